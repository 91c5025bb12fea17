// From the arguments of a Python call to the Values an operator takes.
#pragma once

#include <new>

#include "bindings/op_signature.h"

namespace weft::py {

// A vectorcall's arguments: `count` positional ones, then one for each name of `names` (may be
// null).
struct CallArgs {
  PyObject* const* args;
  size_t count;
  PyObject* names;
  size_t name_count() const { return names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0; }
};

// The Values of one call, on the stack, with room for the ints their spans point to. Tensors in it
// are not counted: the caller's arguments keep them alive.
class Frame {
 public:
  Frame() = default;
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() { clear(); }

  void start(size_t count) {
    clear();
    for (size_t i = 0; i < count; ++i) new (values() + i) Value();
    count_ = count;
    ints_used_ = 0;
    requires_grad = false;
  }
  Value* values() noexcept { return reinterpret_cast<Value*>(storage_); }
  size_t count() const noexcept { return count_; }
  static Value borrow(const Tensor& tensor) {
    return Tensor(Ref<TensorImpl>::adopt(tensor.impl()));
  }
  // Room for n ints that lives as long as the frame; null when there is not enough.
  int64_t* ints(size_t n) noexcept {
    if (ints_used_ + n > kInts) return nullptr;
    ints_used_ += n;
    return ints_ + ints_used_ - n;
  }

  bool requires_grad = false;  // a factory's keyword, no argument of the operator

 private:
  void clear() noexcept {
    for (size_t i = 0; i < count_; ++i) {
      if (values()[i].tag() != ValueTag::Tensor) values()[i].~Value();
    }
    count_ = 0;
  }
  static constexpr size_t kInts = 48;
  alignas(Value) unsigned char storage_[kMaxParams * sizeof(Value)];
  size_t count_ = 0;
  size_t ints_used_ = 0;
  int64_t ints_[kInts];
};

// Why a call does not fit a signature.
struct Mismatch {
  enum Kind { None, Type, Missing, TooMany, UnknownName, GivenTwice } kind = None;
  size_t progress = 0;           // arguments that did fit
  const Param* param = nullptr;  // Type, Missing
  PyObject* object = nullptr;    // Type: the argument; UnknownName, GivenTwice: the name (borrowed)
};

// Fills the frame. False when the call does not fit; then `mismatch` (when given) says why. Raises
// only for arguments of the right type with an impossible value.
bool bind_call(const Signature& signature, const CallArgs& call, Frame& frame, Mismatch* mismatch);

// The arguments of a call that fits the signature, by the schema's order: a tuple with Ellipsis
// where the default holds.
Object given_arguments(const Signature& signature, const CallArgs& call);

// The TypeError of a call that fits no signature. Raises weft::Error.
[[noreturn]] void raise_mismatch(const char* name, const std::vector<Signature>& signatures,
                                 const CallArgs& call);

}  // namespace weft::py

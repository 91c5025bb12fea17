// Weights in the order in which kernels read them, kept with their storage while its bytes stay.
//
// The first call for some bytes packs them for itself; the second one keeps them. So weights in
// training, which change after each step, are not kept, and those of inference are. A storage keeps
// several: projections of queries, keys and values are often parts of one weight.
#pragma once

#include <vector>

#include "core/tensor.h"
#include "core/thread_pool.h"

namespace weft::native {

// Numbers of compiled files; kPackedFormat tells when one of these orders has changed.
inline constexpr uint32_t kPackedFormat = 3;
enum class PackedForm : uint8_t {
  Unrolled,
  UnrolledPairs,
  Winograd,
  WinogradTurned,
  Strips,
  PairStrips,
  Grouped,
  Quads,
  Taps,
  Gates  // the last one: its order is the processor's, so files have none
};

// Of the kept ones, in the whole process.
size_t packed_weight_bytes();
// Most bytes that are kept; what is kept already stays until its storage changes.
size_t packed_weight_limit();
void set_packed_weight_limit(size_t bytes);

class PackedWeight final : public RefCounted {
 public:
  struct Key {
    PackedForm form;
    int64_t groups;
    Layout layout;
    uint32_t changes;
    friend bool operator==(const Key&, const Key&) = default;
  };

  PackedWeight(Key key, size_t elements);
  // Packed before, in memory of `owner` that nobody writes to.
  PackedWeight(Key key, float* data, size_t bytes, Ref<Storage> owner);
  ~PackedWeight();
  const Key& key() const noexcept { return key_; }
  size_t bytes() const noexcept { return bytes_; }
  float* data() const noexcept { return data_; }  // null: only seen so far

 private:
  friend Ref<PackedWeight> kept_weight(const Tensor&, PackedForm, int64_t, int64_t,
                                       FunctionRef<void(float*)>);
  Key key_;
  size_t bytes_;
  bool counted_ = false;
  float* data_ = nullptr;
  Allocator* allocator_ = nullptr;
  Ref<Storage> owner_;
};

// Those that a storage keeps for its bytes as they are, and one more to keep.
std::vector<Ref<PackedWeight>> weights_kept_by(Storage& storage);
void keep_weight(Storage& storage, Ref<PackedWeight> packed);

// The weight in this form: `elements` numbers that `fill` writes. Null: it is not kept,
// being met for the first time, too much for the limit, or in memory that others write to.
Ref<PackedWeight> kept_weight(const Tensor& weight, PackedForm form, int64_t groups,
                              int64_t elements, FunctionRef<void(float*)> fill);
// The same for one that is packed in any case: if it is not kept, for the caller alone.
Ref<PackedWeight> packed_weight(const Tensor& weight, PackedForm form, int64_t groups,
                                int64_t elements, FunctionRef<void(float*)> fill);

}  // namespace weft::native

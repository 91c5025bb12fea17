// Kinds of tensors that weft has not, under libtorch's names, so that hosts which may meet them
// compile: sparse, quantised and named ones.
#pragma once

#include "containers.h"
#include "storage.h"

namespace c10 {
inline namespace over_weft {

enum class QScheme : uint8_t {
  PER_TENSOR_AFFINE,
  PER_CHANNEL_AFFINE,
  PER_TENSOR_SYMMETRIC,
  PER_CHANNEL_SYMMETRIC,
  PER_CHANNEL_AFFINE_FLOAT_QPARAMS
};
inline constexpr QScheme kPerTensorAffine = QScheme::PER_TENSOR_AFFINE,
                         kPerChannelAffine = QScheme::PER_CHANNEL_AFFINE,
                         kPerTensorSymmetric = QScheme::PER_TENSOR_SYMMETRIC,
                         kPerChannelSymmetric = QScheme::PER_CHANNEL_SYMMETRIC;

// A name with its namespace: "aten::add".
class Symbol final {
 public:
  static Symbol fromQualString(const std::string& text) { return Symbol(text); }
  static Symbol dimname(const std::string& text) { return Symbol("dimname::" + text); }
  static Symbol aten(const std::string& text) { return Symbol("aten::" + text); }
  static Symbol attr(const std::string& text) { return Symbol("attr::" + text); }
  const char* toQualString() const { return text_->c_str(); }
  const char* toUnqualString() const { return text_->c_str() + text_->find("::") + 2; }
  friend bool operator==(const Symbol& a, const Symbol& b) { return *a.text_ == *b.text_; }
  friend bool operator!=(const Symbol& a, const Symbol& b) { return !(a == b); }
  friend bool operator<(const Symbol& a, const Symbol& b) { return *a.text_ < *b.text_; }

 private:
  explicit Symbol(const std::string& text) {
    TORCH_CHECK(text.find("::") != std::string::npos, "Symbol: expected a name with '::', got '",
                text, "'");
    static std::mutex mutex;
    static std::set<std::string> texts;  // which live on
    const std::lock_guard<std::mutex> lock(mutex);
    text_ = &*texts.insert(text).first;
  }

  const std::string* text_;
};

struct QualifiedName {
  QualifiedName(std::string text) : text_(std::move(text)) {}
  QualifiedName(const char* text) : text_(text) {}
  QualifiedName(const QualifiedName& before, const std::string& name)
      : text_(before.text_ + "." + name) {}
  const std::string& qualifiedName() const { return text_; }
  std::string name() const { return text_.substr(text_.rfind('.') + 1); }

 private:
  std::string text_;
};

}  // namespace over_weft
}  // namespace c10

namespace at {
inline namespace over_weft {

// A name of a dim.
class Dimname final {
 public:
  static Dimname fromSymbol(c10::Symbol name) { return Dimname(name); }
  static Dimname wildcard() { return Dimname(c10::Symbol::dimname("*")); }
  const c10::Symbol& symbol() const { return name_; }
  bool isWildcard() const { return name_ == c10::Symbol::dimname("*"); }
  bool isBasic() const { return !isWildcard(); }
  friend bool operator==(const Dimname& a, const Dimname& b) { return a.name_ == b.name_; }
  friend std::ostream& operator<<(std::ostream& out, const Dimname& name) {
    if (name.isWildcard()) return out << "None";
    return out << '\'' << name.name_.toUnqualString() << '\'';
  }

 private:
  explicit Dimname(c10::Symbol name) : name_(name) {}
  c10::Symbol name_;
};
using DimnameList = ArrayRef<Dimname>;

inline std::vector<Dimname> Tensor::names() const {
  return std::vector<Dimname>(static_cast<size_t>(dim()), Dimname::wildcard());
}
inline Tensor Tensor::dequantize() const { return to(kFloat); }

inline Tensor dequantize(const Tensor& self) { return self.dequantize(); }
inline std::optional<Device> device_of(const Tensor& tensor) {
  if (!tensor.defined()) return std::nullopt;
  return tensor.device();
}
// Builds a tensor over the caller's memory, option by option.
class TensorMaker {
 public:
  TensorMaker(void* data, IntArrayRef sizes) : data_(data), sizes_(sizes.vec()) {}
  TensorMaker& strides(OptionalIntArrayRef value) {
    if (value) strides_ = value->vec();
    return *this;
  }
  TensorMaker& storage_offset(std::optional<int64_t> value) {
    offset_ = value.value_or(0);
    return *this;
  }
  TensorMaker& deleter(std::function<void(void*)> value) {
    deleter_ = std::move(value);
    return *this;
  }
  TensorMaker& context(void* value, void (*release)(void*) = nullptr) {
    if (release) deleter_ = [=](void*) { release(value); };
    return *this;
  }
  TensorMaker& target_device(std::optional<Device>) { return *this; }
  TensorMaker& options(const TensorOptions& value) {
    options_ = value;
    return *this;
  }
  Tensor make_tensor() const {
    TORCH_CHECK_NOT_IMPLEMENTED(offset_ == 0, "for_blob: expected an offset of 0, got ", offset_);
    return from_blob(data_, sizes_, strides_, deleter_, options_);
  }

 private:
  void* data_;
  std::vector<int64_t> sizes_, strides_;
  int64_t offset_ = 0;
  std::function<void(void*)> deleter_;
  TensorOptions options_;
};
inline TensorMaker for_blob(void* data, IntArrayRef sizes) { return {data, sizes}; }

}  // namespace over_weft

// libtorch's kernels by themselves: here the operators.
namespace native {
using namespace at::over_weft;
}
}  // namespace at

// torch::indexing: what x.index({...}) takes.
#pragma once

#include "boxed.h"

namespace at {
inline namespace over_weft {

class Tensor;

namespace indexing {

enum class TensorIndexType { None, Ellipsis, Integer, Boolean, Slice, Tensor };
inline constexpr std::nullopt_t None = std::nullopt;
struct EllipsisIndexType final {};
inline constexpr EllipsisIndexType Ellipsis{};

class Slice final {
 public:
  Slice(std::optional<int64_t> start = std::nullopt, std::optional<int64_t> stop = std::nullopt,
        std::optional<int64_t> step = std::nullopt)
      : start_(start), stop_(stop), step_(step) {}
  std::optional<int64_t> start() const { return start_; }
  std::optional<int64_t> stop() const { return stop_; }
  int64_t step() const { return step_.value_or(1); }

 private:
  std::optional<int64_t> start_, stop_, step_;
};

class TensorIndex final {
 public:
  TensorIndex(std::nullopt_t) : type_(TensorIndexType::None) {}
  TensorIndex(EllipsisIndexType) : type_(TensorIndexType::Ellipsis) {}
  TensorIndex(const char* text) : type_(TensorIndexType::Ellipsis) {
    TORCH_CHECK_VALUE(std::string_view(text) == "...", "index: expected '...', got '", text, "'");
  }
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  TensorIndex(T index) : type_(TensorIndexType::Integer), integer_(static_cast<int64_t>(index)) {}
  template <class T, std::enable_if_t<std::is_same_v<T, bool>, int> = 0>
  TensorIndex(T index) : type_(TensorIndexType::Boolean), integer_(index) {}
  TensorIndex(Slice slice) : type_(TensorIndexType::Slice), slice_(slice) {}
  TensorIndex(const Tensor& tensor);

  TensorIndexType type() const { return type_; }
  int64_t integer() const { return integer_; }
  const Slice& slice() const { return slice_; }
  const Tensor& tensor() const { return *tensor_; }

 private:
  TensorIndexType type_;
  int64_t integer_ = 0;
  Slice slice_;
  std::shared_ptr<const Tensor> tensor_;  // complete later than this class
};

}  // namespace indexing
}  // namespace over_weft
}  // namespace at

namespace torch {
namespace indexing = at::indexing;
}

// A vector on the stack with a fixed capacity: elements are built as they are added and stay where
// they are.
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <utility>

#include "core/error.h"

namespace weft {

template <class T, size_t kCapacity>
class FixedVector {
 public:
  FixedVector() = default;
  FixedVector(const FixedVector&) = delete;
  FixedVector& operator=(const FixedVector&) = delete;
  ~FixedVector() {
    for (size_t i = size_; i-- > 0;) data()[i].~T();
  }

  template <class... Args>
  T& emplace_back(Args&&... args) {
    WEFT_INTERNAL_ASSERT(size_ < kCapacity, "FixedVector is full");
    T* made = new (raw_ + size_ * sizeof(T)) T(std::forward<Args>(args)...);
    ++size_;
    return *made;
  }

  size_t size() const noexcept { return size_; }
  T* data() noexcept { return std::launder(reinterpret_cast<T*>(raw_)); }
  const T* data() const noexcept { return std::launder(reinterpret_cast<const T*>(raw_)); }
  T& operator[](size_t i) noexcept { return data()[i]; }
  const T& operator[](size_t i) const noexcept { return data()[i]; }
  T& back() noexcept { return data()[size_ - 1]; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  operator std::span<T>() noexcept { return {data(), size_}; }
  operator std::span<const T>() const noexcept { return {data(), size_}; }

 private:
  size_t size_ = 0;
  alignas(T) unsigned char raw_[kCapacity * sizeof(T)];
};

}  // namespace weft

// A growing array that keeps its first N elements inside: most nodes have one or two edges and one
// result, and need no second block of memory for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace weft::autograd {

template <class T, uint32_t N>
class InlineVector {
 public:
  InlineVector() = default;
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;
  ~InlineVector() {
    clear();
    free_heap();
  }

  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  T& operator[](size_t i) noexcept { return data_[i]; }
  const T& operator[](size_t i) const noexcept { return data_[i]; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  T& back() noexcept { return data_[size_ - 1]; }

  void reserve(size_t count) {
    if (count > capacity_) grow(static_cast<uint32_t>(count));
  }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) grow(2 * capacity_);
    T* slot = new (data_ + size_) T{std::forward<Args>(args)...};
    ++size_;
    return *slot;
  }
  void push_back(T value) { emplace_back(std::move(value)); }
  void clear() noexcept {
    std::destroy_n(data_, size_);
    size_ = 0;
  }

 private:
  T* inline_data() noexcept { return reinterpret_cast<T*>(inline_); }
  void grow(uint32_t capacity) {
    T* grown = std::allocator<T>().allocate(capacity);
    std::uninitialized_move_n(data_, size_, grown);
    std::destroy_n(data_, size_);
    free_heap();
    data_ = grown;
    capacity_ = capacity;
  }
  void free_heap() noexcept {
    if (data_ != inline_data()) std::allocator<T>().deallocate(data_, capacity_);
  }

  T* data_ = inline_data();
  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  alignas(T) std::byte inline_[N * sizeof(T)];
};

}  // namespace weft::autograd

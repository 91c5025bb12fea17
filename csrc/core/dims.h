// Dims: a short vector of int64 (sizes, strides, axes) kept inline up to six entries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <ostream>
#include <span>

namespace weft {

using IntList = std::span<const int64_t>;

class Dims {
 public:
  static constexpr uint32_t kInline = 6;

  Dims() = default;
  explicit Dims(size_t count, int64_t value = 0) { resize(count, value); }
  Dims(std::initializer_list<int64_t> values) : Dims(IntList(values.begin(), values.size())) {}
  Dims(IntList values) { assign(values); }
  Dims(const Dims& other) { copy(other); }
  Dims(Dims&& other) noexcept { take(other); }
  ~Dims() { free_heap(); }
  Dims& operator=(const Dims& other) {
    if (this != &other) copy(other);
    return *this;
  }
  Dims& operator=(Dims&& other) noexcept {
    if (this != &other) {
      free_heap();
      take(other);
    }
    return *this;
  }

  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  int64_t* data() noexcept { return data_; }
  const int64_t* data() const noexcept { return data_; }
  int64_t& operator[](size_t i) noexcept { return data_[i]; }
  int64_t operator[](size_t i) const noexcept { return data_[i]; }
  int64_t* begin() noexcept { return data_; }
  int64_t* end() noexcept { return data_ + size_; }
  const int64_t* begin() const noexcept { return data_; }
  const int64_t* end() const noexcept { return data_ + size_; }
  int64_t& back() noexcept { return data_[size_ - 1]; }
  int64_t back() const noexcept { return data_[size_ - 1]; }
  operator IntList() const noexcept { return {data_, size_}; }

  void resize(size_t count, int64_t value = 0) {
    reserve(count);
    for (size_t i = size_; i < count; ++i) data_[i] = value;
    size_ = static_cast<uint32_t>(count);
  }
  void push_back(int64_t value) { insert(size_, value); }
  void insert(size_t at, int64_t value) {
    if (size_ == capacity_) reserve(size_t{2} * capacity_);
    std::memmove(data_ + at + 1, data_ + at, (size_ - at) * sizeof(int64_t));
    data_[at] = value;
    ++size_;
  }
  void erase(size_t at) {
    std::memmove(data_ + at, data_ + at + 1, (size_ - at - 1) * sizeof(int64_t));
    --size_;
  }
  void assign(IntList values) {
    reserve(values.size());
    // Short and usually one to four long, so a loop beats a call of memmove; forwards is right for
    // the overlap of a tail of this list.
    for (size_t i = 0; i < values.size(); ++i) data_[i] = values[i];
    size_ = static_cast<uint32_t>(values.size());
  }

  friend bool operator==(const Dims& a, const Dims& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void reserve(size_t count) {
    if (count <= capacity_) return;
    auto* grown = new int64_t[count];
    if (size_ > 0) std::memcpy(grown, data_, size_ * sizeof(int64_t));
    free_heap();
    data_ = grown;
    capacity_ = static_cast<uint32_t>(count);
  }
  // The usual case copies a fixed number of bytes, which takes no call.
  void copy(const Dims& other) {
    if (other.data_ != other.inline_) return assign(other);
    std::memcpy(data_, other.inline_, sizeof(inline_));
    size_ = other.size_;
  }
  void free_heap() noexcept {
    if (data_ != inline_) delete[] data_;
  }
  void take(Dims& other) noexcept {
    size_ = other.size_;
    if (other.data_ == other.inline_) {
      data_ = inline_;
      capacity_ = kInline;
      std::memcpy(inline_, other.inline_, sizeof(inline_));
    } else {
      data_ = other.data_;
      capacity_ = other.capacity_;
      other.data_ = other.inline_;
      other.capacity_ = kInline;
    }
    other.size_ = 0;
  }

  int64_t* data_ = inline_;
  uint32_t size_ = 0;
  uint32_t capacity_ = kInline;
  int64_t inline_[kInline] = {};
};

inline bool same(IntList a, IntList b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

// A list of ints as error messages print it: "(2, 3)", "(4,)", "()".
struct AsTuple {
  IntList values;
};
std::ostream& operator<<(std::ostream& out, AsTuple list);

}  // namespace weft

// c10::ArrayRef: a list that somebody else owns.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string_view>
#include <variant>
#include <vector>

#include "error.h"

namespace c10 {
inline namespace over_weft {

template <class T>
using optional = std::optional<T>;
using nullopt_t = std::nullopt_t;
using std::get_if;
using std::holds_alternative;
using std::make_optional;
using std::nullopt;
using std::variant;
using std::visit;
using string_view = std::string_view;

template <class T>
class ArrayRef final {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  using size_type = size_t;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& item) : data_(&item), size_(1) {}
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end)
      : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  template <class Allocator>
  ArrayRef(const std::vector<T, Allocator>& items) : data_(items.data()), size_(items.size()) {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements in memory");
  }
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& items) : data_(items.data()), size_(N) {}
  template <size_t N>
  constexpr ArrayRef(const T (&items)[N]) : data_(items), size_(N) {}
  // As all of these it may not outlive what it was made from: here, the expression.
  constexpr ArrayRef(const std::initializer_list<T>& items) : size_(items.size()) {
    data_ = items.begin();
  }

  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T* cbegin() const { return begin(); }
  constexpr const T* cend() const { return end(); }
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  const T& front() const { return at(0); }
  const T& back() const { return at(size_ - 1); }
  constexpr const T& operator[](size_t index) const { return data_[index]; }
  const T& at(size_t index) const {
    TORCH_CHECK_INDEX(index < size_, "ArrayRef: expected an index below ", size_, ", got ", index);
    return data_[index];
  }
  ArrayRef slice(size_t start, size_t count) const {
    TORCH_CHECK_INDEX(start <= size_ && count <= size_ - start,
                      "ArrayRef::slice: expected a part of ", size_, " items, got ", count,
                      " from ", start);
    return {data_ + start, count};
  }
  ArrayRef slice(size_t start) const { return slice(start, size_ - std::min(start, size_)); }
  std::vector<T> vec() const { return {begin(), end()}; }
  operator std::vector<T>() const { return vec(); }
  bool equals(ArrayRef other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

template <class T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) {
  return a.equals(b);
}
template <class T>
bool operator!=(ArrayRef<T> a, ArrayRef<T> b) {
  return !a.equals(b);
}
template <class T>
bool operator==(const std::vector<T>& a, ArrayRef<T> b) {
  return b.equals(a);
}
template <class T>
bool operator==(ArrayRef<T> a, const std::vector<T>& b) {
  return a.equals(b);
}
template <class T>
bool operator!=(const std::vector<T>& a, ArrayRef<T> b) {
  return !b.equals(a);
}
template <class T>
bool operator!=(ArrayRef<T> a, const std::vector<T>& b) {
  return !a.equals(b);
}
template <class T>
std::ostream& operator<<(std::ostream& out, ArrayRef<T> items) {
  out << '[';
  for (size_t i = 0; i < items.size(); ++i) out << (i > 0 ? ", " : "") << items[i];
  return out << ']';
}
template <class T>
ArrayRef<T> makeArrayRef(const std::vector<T>& items) {
  return items;
}

using IntArrayRef = ArrayRef<int64_t>;

// A list of numbers, or none. Refers to what it was made from.
template <class T>
class OptionalArrayRef final {
 public:
  OptionalArrayRef() = default;
  OptionalArrayRef(std::nullopt_t) {}
  OptionalArrayRef(ArrayRef<T> items) : items_(items) {}
  OptionalArrayRef(const T& item) : items_(item) {}
  OptionalArrayRef(const std::vector<T>& items) : items_(items) {}
  OptionalArrayRef(const std::optional<ArrayRef<T>>& items) : items_(items) {}
  template <size_t N>
  OptionalArrayRef(const std::array<T, N>& items) : items_(items) {}
  OptionalArrayRef(const std::initializer_list<T>& items) : items_(items) {}

  bool has_value() const { return items_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const ArrayRef<T>& value() const { return items_.value(); }
  const ArrayRef<T>& operator*() const { return *items_; }
  const ArrayRef<T>* operator->() const { return &*items_; }

 private:
  std::optional<ArrayRef<T>> items_;
};
using OptionalIntArrayRef = OptionalArrayRef<int64_t>;

using IntList = IntArrayRef;

// A list of its own, or none.
template <class T>
struct OptionalArray final {
  std::optional<std::vector<T>> list;

  OptionalArray() = default;
  OptionalArray(std::vector<T> items) : list(std::move(items)) {}
  operator std::optional<ArrayRef<T>>() const {
    return list ? std::optional<ArrayRef<T>>(*list) : std::nullopt;
  }
  operator OptionalArrayRef<T>() const {
    return list ? OptionalArrayRef<T>(*list) : OptionalArrayRef<T>();
  }
};

// The numbers from 0, or from a first one, to an end.
template <class T>
class IntegerRange final {
 public:
  class Iterator {
   public:
    explicit Iterator(T at) : at_(at) {}
    T operator*() const { return at_; }
    Iterator& operator++() { return ++at_, *this; }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    T at_;
  };
  IntegerRange(T begin, T end) : begin_(begin), end_(std::max(begin, end)) {}
  Iterator begin() const { return Iterator(begin_); }
  Iterator end() const { return Iterator(end_); }

 private:
  T begin_, end_;
};
template <class T>
IntegerRange<T> irange(T end) {
  return {T(), end};
}
template <class First, class T>
IntegerRange<T> irange(First begin, T end) {
  return {static_cast<T>(begin), end};
}

template <class T, size_t N = 6>
using SmallVector = std::vector<T>;
using DimVector = std::vector<int64_t>;

}  // namespace over_weft
}  // namespace c10

// Programs write vectors, which libtorch has taught streams: at most 100 items.
namespace std {
template <class... Types>
ostream& operator<<(ostream& out, const vector<Types...>& items) {
  const size_t shown = min<size_t>(items.size(), 100);
  for (size_t i = 0; i < shown; ++i) out << (i > 0 ? " " : "") << items[i];
  return shown < items.size() ? out << " ..." : out;
}
}  // namespace std

namespace at {
using namespace c10;
}
namespace torch {
using namespace at;
}

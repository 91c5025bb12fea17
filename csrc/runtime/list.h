// Lists: five kinds of storage behind one interface.
//
//   IntList, DoubleList, BoolList            numbers side by side
//   TensorList, OptionalTensorList           handles; in the latter an undefined one is None
//   List                                     Values: strings, lists, tuples, anything
//
// The element type of the program chooses the storage, so both sides of an operation on two lists
// of one type have the same. Indices count from the end when negative; a wrong one raises
// IndexError.
#pragma once

#include <vector>

#include "runtime/value.h"

namespace weft {

constexpr bool is_list(ValueTag tag) noexcept {
  return tag >= ValueTag::IntList && tag <= ValueTag::List;
}

// Calls fn with the ListObject behind the value.
template <class Fn>
decltype(auto) visit_list(const Value& list, Fn&& fn);

// The storage of a list of such items.
ValueTag list_tag_of(ValueTag item);

// A new list of the storage `tag`, its items moved from `first`.
Value make_list(ValueTag tag, Value* first, size_t count);
inline Value make_list(ValueTag tag) { return make_list(tag, nullptr, 0); }

int64_t list_len(const Value& list);
Value list_get(const Value& list, int64_t index);
void list_set(const Value& list, int64_t index, const Value& item);
void list_append(const Value& list, const Value& item);

// The place of `index` in a sequence of `size` items; IndexError naming `what` ("list") outside.
int64_t wrap_index(const char* what, int64_t index, int64_t size);

// What a slice selects: `count` items from `start`, every `step`-th. Python's rules; None is the
// end that the sign of the step implies. ValueError for a step of 0.
struct Slice {
  int64_t start, count, step;
};
Slice slice_bounds(const Value& start, const Value& end, int64_t step, int64_t size);

// ---- implementation ----

namespace detail {
[[noreturn]] void fail_index(const char* what, int64_t index, int64_t size);

// How an item leaves and enters storage. TypeError for one that a list of the tag cannot hold.
template <class T>
Value to_value(const T& item) {
  return Value(item);
}
inline const Value& to_value(const Value& item) { return item; }
inline void check_tensor(ValueTag list, const Value& item) {
  const bool good =
      item.tag() == ValueTag::Tensor || (item.is_none() && list == ValueTag::OptionalTensorList);
  if (!good) [[unlikely]]
    item.fail_tag("a tensor");
}
template <class T>
T from_value(ValueTag list, const Value& value) {
  if constexpr (std::is_same_v<T, int64_t>) {
    return value.to_int();
  } else if constexpr (std::is_same_v<T, double>) {
    return value.to_double();
  } else if constexpr (std::is_same_v<T, bool>) {
    return value.to_bool();
  } else if constexpr (std::is_same_v<T, Tensor>) {
    check_tensor(list, value);
    return value.to_tensor();
  } else {
    return value;
  }
}
}  // namespace detail

template <class Fn>
decltype(auto) visit_list(const Value& list, Fn&& fn) {
  switch (list.tag()) {
    case ValueTag::IntList:
      return fn(*list.object<ListObject<int64_t>>());
    case ValueTag::DoubleList:
      return fn(*list.object<ListObject<double>>());
    case ValueTag::BoolList:
      return fn(*list.object<ListObject<bool>>());
    case ValueTag::TensorList:
    case ValueTag::OptionalTensorList:
      return fn(*list.object<ListObject<Tensor>>());
    case ValueTag::List:
      return fn(*list.object<ListObject<Value>>());
    default:
      list.fail_tag("a list");
  }
}

inline int64_t wrap_index(const char* what, int64_t index, int64_t size) {
  const int64_t place = index < 0 ? index + size : index;
  if (static_cast<uint64_t>(place) >= static_cast<uint64_t>(size)) [[unlikely]]
    detail::fail_index(what, index, size);
  return place;
}

}  // namespace weft

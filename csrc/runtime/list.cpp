#include "runtime/list.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace weft {
namespace {

template <class T>
Value filled(ValueTag tag, Value* first, size_t count) {
  auto list = make_ref<ListObject<T>>(std::vector<T>{});
  list->items.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, Value>) {
      list->items.push_back(std::move(first[i]));
    } else if constexpr (std::is_same_v<T, Tensor>) {
      detail::check_tensor(tag, first[i]);
      list->items.push_back(first[i].take_tensor());
    } else {
      list->items.push_back(detail::from_value<T>(tag, first[i]));
    }
  }
  return Value(tag, std::move(list));
}

// An end of a slice brought into [low, high].
int64_t clamp_end(int64_t index, int64_t size, int64_t low, int64_t high) {
  return std::clamp(index < 0 ? index + size : index, low, high);
}

}  // namespace

namespace detail {

void fail_index(const char* what, int64_t index, int64_t size) {
  fail(ErrorKind::Index, size == 0 ? str(what, " index out of range: expected a ", what,
                                         " that is not empty, got index ", index)
                                   : str(what, " index out of range: expected an index in [", -size,
                                         ", ", size - 1, "], got ", index));
}

}  // namespace detail

ValueTag list_tag_of(ValueTag item) {
  return item == ValueTag::Int      ? ValueTag::IntList
         : item == ValueTag::Double ? ValueTag::DoubleList
         : item == ValueTag::Bool   ? ValueTag::BoolList
         : item == ValueTag::Tensor ? ValueTag::TensorList
                                    : ValueTag::List;
}

Value make_list(ValueTag tag, Value* first, size_t count) {
  switch (tag) {
    case ValueTag::IntList:
      return filled<int64_t>(tag, first, count);
    case ValueTag::DoubleList:
      return filled<double>(tag, first, count);
    case ValueTag::BoolList:
      return filled<bool>(tag, first, count);
    case ValueTag::TensorList:
    case ValueTag::OptionalTensorList:
      return filled<Tensor>(tag, first, count);
    default:
      WEFT_INTERNAL_ASSERT(tag == ValueTag::List);
      return filled<Value>(tag, first, count);
  }
}

int64_t list_len(const Value& list) {
  return visit_list(list, [](auto& object) { return static_cast<int64_t>(object.items.size()); });
}

Value list_get(const Value& list, int64_t index) {
  return visit_list(list, [&](auto& object) -> Value {
    const int64_t size = static_cast<int64_t>(object.items.size());
    return detail::to_value(object.items[static_cast<size_t>(wrap_index("list", index, size))]);
  });
}

void list_set(const Value& list, int64_t index, const Value& item) {
  visit_list(list, [&]<class T>(ListObject<T>& object) {
    const int64_t size = static_cast<int64_t>(object.items.size());
    const auto place = static_cast<size_t>(wrap_index("list assignment", index, size));
    object.items[place] = detail::from_value<T>(list.tag(), item);
  });
}

void list_append(const Value& list, const Value& item) {
  visit_list(list, [&]<class T>(ListObject<T>& object) {
    object.items.push_back(detail::from_value<T>(list.tag(), item));
  });
}

Slice slice_bounds(const Value& start, const Value& end, int64_t step, int64_t size) {
  WEFT_CHECK_VALUE(step != 0, "slice step cannot be zero: expected a step other than 0, got 0");
  // A step backwards may stop before the first item and start at the last.
  const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
  const int64_t first =
      start.is_none() ? (step < 0 ? high : low) : clamp_end(start.to_int(), size, low, high);
  const int64_t last =
      end.is_none() ? (step < 0 ? low : high) : clamp_end(end.to_int(), size, low, high);
  if (step > 0) {
    return {first, last > first ? 1 + (last - first - 1) / step : 0, step};
  }
  // -step would overflow for the smallest int; no sequence is as long as its successor.
  const int64_t stride =
      step == std::numeric_limits<int64_t>::min() ? std::numeric_limits<int64_t>::max() : -step;
  return {first, first > last ? 1 + (first - last - 1) / stride : 0, step};
}

}  // namespace weft

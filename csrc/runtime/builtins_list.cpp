// Builtins on lists and tuples.
#include <algorithm>
#include <functional>
#include <numeric>

#include "builtin_bodies.h"
#include "core/error.h"
#include "runtime/arithmetic.h"
#include "runtime/builtins_support.h"
#include "runtime/equality.h"
#include "runtime/exact_sums.h"
#include "runtime/list.h"
#include "runtime/tuple.h"

namespace weft::builtins {
namespace {

int64_t size_of(const auto& object) { return static_cast<int64_t>(object.items.size()); }

// Calls fn(object of a, object of b): two lists of one storage, else TypeError. Tensors go where
// None may be as well, None does not go among tensors.
template <class Fn>
decltype(auto) visit_two(const Value& a, const Value& b, Fn&& fn) {
  return visit_list(a, [&]<class T>(ListObject<T>& first) -> decltype(auto) {
    if constexpr (std::is_same_v<T, Tensor>) {
      const bool good = b.tag() == a.tag() || b.tag() == ValueTag::TensorList;
      if (!good) b.fail_tag("a list of tensors");
    } else {
      if (a.tag() != b.tag()) b.fail_tag("a list of the same type");
    }
    return fn(first, *b.object<ListObject<T>>());
  });
}

// A new list of the storage of `like`.
template <class T>
Value like(const Value& list, std::vector<T> items) {
  return Value(list.tag(), make_ref<ListObject<T>>(std::move(items)));
}

// Python's `==` of an item and a value.
template <class T>
bool is_equal(const T& item, const Value& value) {
  const Value boxed = detail::to_value(item);
  return is_same(boxed, value) || equal(boxed, value);
}

// The place of the first equal item, or the size.
int64_t find_item(const Value& list, const Value& value) {
  return visit_list(list, [&](auto& object) {
    int64_t place = 0;
    for (const auto& item : object.items) {
      if (is_equal(item, value)) break;
      ++place;
    }
    return place;
  });
}

// Reads through `const T&`: a vector of bools gives its items by value.
template <class T>
bool item_less(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, Tensor>) {
    return less(Value(a), Value(b));
  } else if constexpr (std::is_same_v<T, Value>) {
    return less(a, b);
  } else {
    return a < b;
  }
}

void check_not_empty(const char* op, int64_t size) {
  WEFT_CHECK_VALUE(size > 0, op, "() arg is an empty sequence: expected a list with an item");
}

int64_t repeated_size(int64_t size, int64_t count) {
  int64_t total = 0;
  WEFT_CHECK_AS(OutOfMemory,
                !__builtin_mul_overflow(size, count, &total) && total < (int64_t{1} << 40),
                "list: expected a list that fits memory, got ", size, " items ", count, " times");
  return total;
}

}  // namespace

// ---- growing and shrinking ----

Value list_append_item(const Value& list, const Value& item) {
  list_append(list, item);
  return list;
}

void list_extend(const Value& list, const Value& other) {
  visit_two(list, other, [](auto& to, auto& from) {
    // The list may be its own tail.
    const size_t count = from.items.size();
    to.items.reserve(to.items.size() + count);
    for (size_t i = 0; i < count; ++i) to.items.push_back(from.items[i]);
  });
}

void list_insert(const Value& list, int64_t index, const Value& item) {
  visit_list(list, [&]<class T>(ListObject<T>& object) {
    const int64_t size = size_of(object);
    const int64_t place = std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
    object.items.insert(object.items.begin() + place, detail::from_value<T>(list.tag(), item));
  });
}

Value list_pop(const Value& list, int64_t index) {
  return visit_list(list, [&](auto& object) {
    const auto place = object.items.begin() + wrap_index("pop from list:", index, size_of(object));
    Value item = detail::to_value(*place);
    object.items.erase(place);
    return item;
  });
}

void list_clear(const Value& list) {
  visit_list(list, [](auto& object) { object.items.clear(); });
}

void list_delete(const Value& list, int64_t index) {
  visit_list(list, [&](auto& object) {
    object.items.erase(object.items.begin() +
                       wrap_index("list assignment", index, size_of(object)));
  });
}

void list_remove(const Value& list, const Value& item) {
  const int64_t place = find_item(list, item);
  WEFT_CHECK_VALUE(place < list_len(list),
                   "list.remove(x): expected an item of the list, got one that is not in it");
  list_delete(list, place);
}

Value list_set_item(const Value& list, int64_t index, const Value& item) {
  list_set(list, index, item);
  return list;
}

// ---- new lists ----

Value list_copy(const Value& list) {
  return visit_list(list, [&](auto& object) { return like(list, object.items); });
}

Value list_slice(const Value& list, const Value& start, const Value& end, int64_t step) {
  return visit_list(list, [&]<class T>(ListObject<T>& object) {
    const Slice slice = slice_bounds(start, end, step, size_of(object));
    std::vector<T> items;
    items.reserve(static_cast<size_t>(slice.count));
    for (int64_t i = 0; i < slice.count; ++i) {
      items.push_back(object.items[static_cast<size_t>(slice.start + i * slice.step)]);
    }
    return like(list, std::move(items));
  });
}

Value list_add(const Value& a, const Value& b) {
  const Value result = list_copy(a);
  list_extend(result, b);
  return result;
}

Value list_add_(const Value& list, const Value& other) {
  list_extend(list, other);
  return list;
}

Value list_mul(const Value& list, int64_t count) {
  return visit_list(list, [&]<class T>(ListObject<T>& object) {
    std::vector<T> items;
    items.reserve(static_cast<size_t>(repeated_size(size_of(object), std::max<int64_t>(count, 0))));
    for (int64_t i = 0; i < count; ++i) {
      items.insert(items.end(), object.items.begin(), object.items.end());
    }
    return like(list, std::move(items));
  });
}

Value list_mul_(const Value& list, int64_t count) {
  const Value repeated = list_mul(list, count);
  visit_two(list, repeated, [](auto& to, auto& from) { to.items.swap(from.items); });
  return list;
}

Value range_list(int64_t count) {
  std::vector<int64_t> items(static_cast<size_t>(std::max<int64_t>(count, 0)));
  std::iota(items.begin(), items.end(), 0);
  return Value(std::move(items));
}

// ---- search and order ----

bool list_contains(const Value& list, const Value& item) {
  return find_item(list, item) < list_len(list);
}

int64_t list_index(const Value& list, const Value& item) {
  const int64_t place = find_item(list, item);
  WEFT_CHECK_VALUE(place < list_len(list),
                   "list.index(x): expected an item of the list, got one that is not in it");
  return place;
}

int64_t list_count(const Value& list, const Value& item) {
  return visit_list(list, [&](auto& object) {
    int64_t count = 0;
    for (const auto& each : object.items) count += is_equal(each, item);
    return count;
  });
}

void list_reverse(const Value& list) {
  visit_list(list, [](auto& object) { std::reverse(object.items.begin(), object.items.end()); });
}

void list_sort(const Value& list, bool reverse) {
  visit_list(list, [&]<class T>(ListObject<T>& object) {
    // Sorted apart: comparing tensors may raise in the middle.
    std::vector<T> items = object.items;
    std::stable_sort(items.begin(), items.end(), [&](const T& a, const T& b) {
      return reverse ? item_less<T>(b, a) : item_less<T>(a, b);
    });
    object.items = std::move(items);
  });
}

Value list_sorted(const Value& list) {
  const Value result = list_copy(list);
  list_sort(result, false);
  return result;
}

Value list_min_of(const Value& a, const Value& b) { return less(b, a) ? b : a; }
Value list_max_of(const Value& a, const Value& b) { return less(a, b) ? b : a; }

Value list_min(const Value& list) {
  return visit_list(list, [&]<class T>(ListObject<T>& object) {
    check_not_empty("min", size_of(object));
    T best = object.items[0];
    for (const T& item : object.items) {
      if (item_less<T>(item, best)) best = item;
    }
    return Value(detail::to_value(best));
  });
}

Value list_max(const Value& list) {
  return visit_list(list, [&]<class T>(ListObject<T>& object) {
    check_not_empty("max", size_of(object));
    T best = object.items[0];
    for (const T& item : object.items) {
      if (item_less<T>(best, item)) best = item;
    }
    return Value(detail::to_value(best));
  });
}

// ---- sums ----

int64_t list_sum_int(const Value& list) {
  int64_t sum = 0;
  for (const int64_t item : list.to_ints()) sum = checked_add(sum, item);
  return sum;
}

double list_sum_float(const Value& list) {
  const auto items = list.to_doubles();
  return std::accumulate(items.begin(), items.end(), 0.0);
}

std::complex<double> list_sum_complex(const Value& list) {
  std::complex<double> sum = 0;
  for (int64_t i = 0; i < list_len(list); ++i) sum += list_get(list, i).to_scalar().to_complex();
  return sum;
}

double list_exact_sum(const Value& list) { return exact_sum(list.to_doubles()); }

double list_distance(const Value& a, const Value& b) {
  const auto first = a.to_doubles(), second = b.to_doubles();
  WEFT_CHECK_VALUE(first.size() == second.size(),
                   "dist: expected points of one number of dimensions, got ", first.size(), " and ",
                   second.size());
  std::vector<double> parts(first.size());
  std::transform(first.begin(), first.end(), second.begin(), parts.begin(), std::minus<>());
  return vector_length(parts);
}

int64_t list_sum_bool(const Value& list) {
  const auto& items = list.object<ListObject<bool>>()->items;
  return std::count(items.begin(), items.end(), true);
}

namespace {
// Python's bool() of a number or a string.
bool truth(const Value& value) {
  return value.tag() == ValueTag::String ? !value.text().empty() : value.to_scalar().to_bool();
}
}  // namespace

bool list_all(const Value& list) {
  for (int64_t i = 0; i < list_len(list); ++i) {
    if (!truth(list_get(list, i))) return false;
  }
  return true;
}

bool list_any(const Value& list) {
  for (int64_t i = 0; i < list_len(list); ++i) {
    if (truth(list_get(list, i))) return true;
  }
  return false;
}

// ---- tuples ----

Value tuple_get(const Value& tuple, int64_t index) {
  const auto items = tuple_items(tuple);
  return items[static_cast<size_t>(wrap_index("tuple", index, static_cast<int64_t>(items.size())))];
}

int64_t tuple_len(const Value& tuple) { return static_cast<int64_t>(tuple_items(tuple).size()); }

}  // namespace weft::builtins

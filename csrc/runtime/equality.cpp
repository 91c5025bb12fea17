#include "runtime/equality.h"

#include <bit>
#include <cmath>
#include <functional>
#include <string_view>

#include "core/error.h"
#include "ops_compare.h"
#include "runtime/arithmetic.h"
#include "runtime/dict.h"
#include "runtime/list.h"
#include "runtime/nesting.h"
#include "runtime/object.h"
#include "runtime/print.h"
#include "runtime/tuple.h"

namespace weft {
namespace {

bool is_number(const Value& value) {
  return value.tag() >= ValueTag::Bool && value.tag() <= ValueTag::Complex;
}
bool is_integral(const Value& value) {
  return value.tag() == ValueTag::Bool || value.tag() == ValueTag::Int;
}

using builtins::compare;  // exact: 2**53 + 1 is not 2.0**53

bool equal_numbers(const Value& a, const Value& b) {
  if (is_integral(a) && is_integral(b)) return a.to_int() == b.to_int();
  if (a.tag() == ValueTag::Complex || b.tag() == ValueTag::Complex) {
    return a.to_scalar() == b.to_scalar();
  }
  if (is_integral(a)) return compare(a.to_int(), b.to_double()) == 0;
  return is_integral(b) ? equal_numbers(b, a) : a.to_double() == b.to_double();
}

std::partial_ordering order_numbers(const Value& a, const Value& b) {
  if (is_integral(a) && is_integral(b)) return a.to_int() <=> b.to_int();
  if (!is_integral(a) && !is_integral(b)) return a.to_double() <=> b.to_double();
  if (is_integral(a)) return compare(a.to_int(), b.to_double());
  return 0 <=> compare(b.to_int(), a.to_double());
}

std::partial_ordering order_tensors(const Tensor& a, const Tensor& b) {
  if (ops::lt(a, b).item().to_bool()) return std::partial_ordering::less;
  if (ops::gt(a, b).item().to_bool()) return std::partial_ordering::greater;
  return ops::eq(a, b).item().to_bool() ? std::partial_ordering::equivalent
                                        : std::partial_ordering::unordered;
}

// One item of a container against another: the same object needs no comparison.
bool equal_items(const Value& a, const Value& b) { return is_same(a, b) || equal(a, b); }

bool equal_lists(const Value& a, const Value& b) {
  const Nesting nesting;
  if (!is_list(b.tag())) return false;
  const int64_t size = list_len(a);
  if (size != list_len(b)) return false;
  if (a.tag() == ValueTag::IntList && b.tag() == ValueTag::IntList) {
    return a.object<ListObject<int64_t>>()->items == b.object<ListObject<int64_t>>()->items;
  }
  for (int64_t i = 0; i < size; ++i) {
    if (!equal_items(list_get(a, i), list_get(b, i))) return false;
  }
  return true;
}

bool equal_tuples(std::span<const Value> a, std::span<const Value> b) {
  const Nesting nesting;
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal_items(a[i], b[i])) return false;
  }
  return true;
}

bool equal_dicts(const DictObject& a, DictObject& b) {
  const Nesting nesting;
  if (a.size() != b.size()) return false;
  bool same = true;
  a.for_each([&](const Value& key, const Value& value) {
    if (!same) return;
    const Value* other = b.find(key);
    same = other && equal_items(value, *other);
  });
  return same;
}

bool equal_enums(const Value& a, const Value& b) {
  const auto *x = a.object<EnumObject>(), *y = b.object<EnumObject>();
  // Every program has definitions of its own: the qualified name tells enumerations apart.
  return x->index == y->index && (x->def == y->def || x->def->name == y->def->name);
}

// The order of the first items that differ, or of the sizes.
template <class Get>
std::partial_ordering order_sequences(int64_t a_size, int64_t b_size, Get get) {
  const Nesting nesting;
  for (int64_t i = 0; i < a_size && i < b_size; ++i) {
    const auto [x, y] = get(i);
    if (!equal_items(x, y)) return order(x, y);
  }
  return a_size <=> b_size;
}

}  // namespace

bool equal(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return equal_numbers(a, b);
  if (is_list(a.tag())) return equal_lists(a, b);
  if (a.tag() != b.tag()) return false;
  switch (a.tag()) {
    case ValueTag::None:
      return true;
    case ValueTag::String:
      return a.text() == b.text();
    case ValueTag::Device:
      return a.to_device() == b.to_device();
    case ValueTag::DType:
      return a.to_dtype() == b.to_dtype();
    case ValueTag::Tensor:
      return ops::eq(a.to_tensor(), b.to_tensor()).item().to_bool();
    case ValueTag::Tuple:
      return equal_tuples(tuple_items(a), tuple_items(b));
    case ValueTag::Dict:
      return equal_dicts(*a.object<DictObject>(), *b.object<DictObject>());
    case ValueTag::Enum:
      return equal_enums(a, b);
    default:
      return is_same(a, b);
  }
}

bool is_same(const Value& a, const Value& b) {
  if (a.tag() != b.tag()) return false;
  switch (a.tag()) {
    case ValueTag::None:
      return true;
    case ValueTag::Tensor:
      return a.to_tensor().is_same(b.to_tensor());
    case ValueTag::Double:  // bit by bit: a NaN is itself
      return std::bit_cast<int64_t>(a.to_double()) == std::bit_cast<int64_t>(b.to_double());
    case ValueTag::Bool:
    case ValueTag::Int:
      return a.to_int() == b.to_int();
    case ValueTag::Complex:
    case ValueTag::String:
    case ValueTag::Device:
    case ValueTag::DType:
    case ValueTag::Enum:
      return equal(a, b);
    default:
      return a.object<ValueObject>() == b.object<ValueObject>();
  }
}

std::partial_ordering order(const Value& a, const Value& b) {
  const bool complex = a.tag() == ValueTag::Complex || b.tag() == ValueTag::Complex;
  if (is_number(a) && is_number(b) && !complex) return order_numbers(a, b);
  if (a.tag() == ValueTag::String && b.tag() == ValueTag::String) return a.text() <=> b.text();
  if (a.tag() == ValueTag::Tensor && b.tag() == ValueTag::Tensor) {
    return order_tensors(a.to_tensor(), b.to_tensor());
  }
  if (is_list(a.tag()) && is_list(b.tag())) {
    return order_sequences(list_len(a), list_len(b), [&](int64_t i) {
      return std::pair<Value, Value>(list_get(a, i), list_get(b, i));
    });
  }
  if (a.tag() == ValueTag::Tuple && b.tag() == ValueTag::Tuple) {
    const auto x = tuple_items(a), y = tuple_items(b);
    return order_sequences(static_cast<int64_t>(x.size()), static_cast<int64_t>(y.size()),
                           [&](int64_t i) {
                             const auto place = static_cast<size_t>(i);
                             return std::pair<Value, Value>(x[place], y[place]);
                           });
  }
  fail(ErrorKind::Type, str("ordering: expected numbers, strings, or lists or tuples of them, got ",
                            type_name(a), " and ", type_name(b)));
}

bool same_key(const Value& a, const Value& b) {
  if (a.tag() == ValueTag::Tensor || b.tag() == ValueTag::Tensor) return is_same(a, b);
  return equal_items(a, b);
}

uint64_t hash_value(const Value& key) {
  // Neighbouring ints go to neighbouring slots; doubles and pointers differ in their high bits.
  const auto mix = [](uint64_t bits) { return (bits ^ (bits >> 32)) * 0x9e3779b97f4a7c15u >> 7; };
  switch (key.tag()) {
    case ValueTag::None:
      return 0;
    case ValueTag::Bool:
    case ValueTag::Int:
      return static_cast<uint64_t>(key.to_int());
    case ValueTag::Double: {
      const double real = key.to_double();
      if (std::fabs(real) < 0x1p63 && std::trunc(real) == real) {
        return static_cast<uint64_t>(static_cast<int64_t>(real));
      }
      return mix(std::bit_cast<uint64_t>(real));
    }
    case ValueTag::Complex: {
      const std::complex<double> number = key.to_scalar().to_complex();
      const uint64_t real = hash_value(Value(number.real()));
      return number.imag() == 0 ? real : real + 31 * hash_value(Value(number.imag()));
    }
    case ValueTag::String:
      return std::hash<std::string_view>{}(key.text());
    case ValueTag::Tensor:
      return mix(reinterpret_cast<uint64_t>(key.to_tensor().impl()));
    case ValueTag::Enum:
      return std::hash<std::string>{}(key.object<EnumObject>()->def->name) +
             key.object<EnumObject>()->index;
    case ValueTag::Device:
      return std::hash<std::string>{}(key.to_device().str());
    case ValueTag::Tuple: {
      const Nesting nesting;
      uint64_t hash = 17;
      for (const Value& item : tuple_items(key)) hash = hash * 31 + hash_value(item);
      return hash;
    }
    default:
      fail(ErrorKind::Type, str("dict: expected a key of type str, int, float, bool, complex, "
                                "device, Tensor, enum or tuple, got ",
                                type_name(key)));
  }
}

}  // namespace weft

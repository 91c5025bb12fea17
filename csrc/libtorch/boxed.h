// Values between C++ and weft.h, and calls of operators.
#pragma once

#include <memory>
#include <tuple>

#include "generator.h"

namespace at {
inline namespace over_weft {
class Tensor;
}
}  // namespace at

namespace c10 {
inline namespace over_weft {

template <class T>
class List;

namespace detail {

// A value that somebody holds.
using Shared = std::shared_ptr<weft_value>;

template <class Make>
Shared made(Make&& make) {
  weft_value* out = nullptr;
  check(make(&out));
  return Shared(out, weft_value_release);
}

// Values as operators take them. None: a null pointer, which stands for the default of an argument,
// or a value of None.
inline Shared none() { return made(weft_value_none); }
Shared box(const at::Tensor& tensor);
inline Shared box(const Shared& value) { return value; }
inline Shared box(bool value) {
  return made([&](weft_value** out) { return weft_value_bool(value, out); });
}
inline Shared box(int64_t value) {
  return made([&](weft_value** out) { return weft_value_int(value, out); });
}
inline Shared box(double value) {
  return made([&](weft_value** out) { return weft_value_float(value, out); });
}
inline Shared box(std::complex<double> value) {
  return made(
      [&](weft_value** out) { return weft_value_complex(value.real(), value.imag(), out); });
}
inline Shared box(std::string_view text) {
  return made([&](weft_value** out) { return weft_value_string(text.data(), text.size(), out); });
}
inline Shared box(const std::string& text) { return box(std::string_view(text)); }
inline Shared box(const char* text) { return box(std::string_view(text)); }
inline Shared box(ScalarType type) {
  return made([&](weft_value** out) { return weft_value_dtype(dtype_of(type), out); });
}
inline Shared box(const Device& device) {
  return made([&](weft_value** out) { return weft_value_device(device.str().c_str(), out); });
}
inline Shared box(Layout layout) { return box(static_cast<int64_t>(layout)); }
inline Shared box(MemoryFormat format) { return box(static_cast<int64_t>(format)); }
// None stands for the default generator.
inline Shared box(const Generator& generator) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !generator.defined() || generator.unsafeGetGeneratorImpl()->is_default,
      "Generator: expected the default generator, got one of its own, of "
      "which weft.h has no value");
  return none();
}
inline Shared box(const Scalar& scalar) {
  if (scalar.isBoolean()) return box(scalar.toBool());
  if (scalar.isComplex()) return box(scalar.toComplexDouble());
  return scalar.isFloatingPoint() ? box(scalar.toDouble()) : box(scalar.toLong());
}
inline Shared box(IntArrayRef numbers) {
  return made(
      [&](weft_value** out) { return weft_value_ints(numbers.data(), numbers.size(), out); });
}
inline Shared box(ArrayRef<double> numbers) {
  return made(
      [&](weft_value** out) { return weft_value_floats(numbers.data(), numbers.size(), out); });
}

inline Shared list_of(const std::vector<Shared>& items) {
  std::vector<const weft_value*> handles;
  for (const Shared& item : items) handles.push_back(item.get());
  return made(
      [&](weft_value** out) { return weft_value_list(handles.data(), handles.size(), out); });
}
template <class T>
Shared box(ArrayRef<T> items) {
  std::vector<Shared> boxed;
  for (const T& item : items) boxed.push_back(box(item));
  return list_of(boxed);
}
template <class T>
Shared box(const List<T>& items);
template <class T>
Shared box(const std::optional<T>& value) {
  return value ? box(*value) : none();
}
inline Shared box(const OptionalIntArrayRef& value) { return value ? box(*value) : none(); }

// C++ values of results.
template <class T>
struct Unbox;
template <class T>
T unbox(const Shared& value) {
  return Unbox<T>::from(value);
}

inline Shared item(const Shared& container, size_t index) {
  return made([&](weft_value** out) { return weft_value_item(container.get(), index, out); });
}
inline size_t length(const Shared& container) {
  size_t count = 0;
  check(weft_value_length(container.get(), &count));
  return count;
}

template <>
struct Unbox<void> {
  static void from(const Shared&) {}
};
template <>
struct Unbox<Shared> {
  static Shared from(const Shared& value) { return value; }
};
template <>
struct Unbox<bool> {
  static bool from(const Shared& value) {
    int out = 0;
    check(weft_value_get_bool(value.get(), &out));
    return out != 0;
  }
};
template <>
struct Unbox<int64_t> {
  static int64_t from(const Shared& value) {
    int64_t out = 0;
    check(weft_value_get_int(value.get(), &out));
    return out;
  }
};
template <>
struct Unbox<double> {
  static double from(const Shared& value) {
    double out = 0;
    check(weft_value_get_float(value.get(), &out));
    return out;
  }
};
template <>
struct Unbox<std::complex<double>> {
  static std::complex<double> from(const Shared& value) {
    double real = 0, imaginary = 0;
    check(weft_value_get_complex(value.get(), &real, &imaginary));
    return {real, imaginary};
  }
};
template <>
struct Unbox<std::string> {
  static std::string from(const Shared& value) {
    const char* text = nullptr;
    size_t bytes = 0;
    check(weft_value_get_string(value.get(), &text, &bytes));
    return {text, bytes};
  }
};
template <>
struct Unbox<ScalarType> {
  static ScalarType from(const Shared& value) {
    weft_dtype out{};
    check(weft_value_get_dtype(value.get(), &out));
    return scalar_type_of(out);
  }
};
template <>
struct Unbox<Scalar> {
  static Scalar from(const Shared& value) {
    switch (weft_value_kind(value.get())) {
      case WEFT_KIND_BOOL:
        return unbox<bool>(value);
      case WEFT_KIND_INT:
        return unbox<int64_t>(value);
      case WEFT_KIND_COMPLEX:
        return unbox<std::complex<double>>(value);
      default:
        return unbox<double>(value);
    }
  }
};
template <class T>
struct Unbox<std::optional<T>> {
  static std::optional<T> from(const Shared& value) {
    if (weft_value_kind(value.get()) == WEFT_KIND_NONE) return std::nullopt;
    return unbox<T>(value);
  }
};
template <class T>
struct Unbox<std::vector<T>> {
  static std::vector<T> from(const Shared& value) {
    std::vector<T> items;
    const size_t count = length(value);
    for (size_t i = 0; i < count; ++i) items.push_back(unbox<T>(item(value, i)));
    return items;
  }
};
template <class... Parts>
struct Unbox<std::tuple<Parts...>> {
  static std::tuple<Parts...> from(const Shared& value) {
    check_length(value);
    return parts(value, std::index_sequence_for<Parts...>());
  }

 private:
  static void check_length(const Shared& value) {
    TORCH_CHECK_TYPE(length(value) == sizeof...(Parts), "expected a tuple of ", sizeof...(Parts),
                     " items, got ", length(value));
  }
  template <size_t... I>
  static std::tuple<Parts...> parts(const Shared& value, std::index_sequence<I...>) {
    return {unbox<Parts>(item(value, I))...};
  }
};

// An operator of the library by its name: "aten::add.Tensor".
class Operator {
 public:
  explicit Operator(const char* name) { check(weft_find_operator(name, &op_)); }

  // The arguments are boxed, so that a call is no template of their types: headers stay quick.
  template <class Result>
  Result call(std::initializer_list<Shared> args) const {
    return unbox<Result>(run(args));
  }

 private:
  Shared run(std::initializer_list<Shared> args) const {
    std::vector<const weft_value*> handles;
    handles.reserve(args.size());
    for (const Shared& each : args) handles.push_back(each.get());
    return made([&](weft_value** out) {
      return weft_call_operator(op_, handles.data(), handles.size(), out);
    });
  }

  const weft_operator* op_ = nullptr;
};

}  // namespace detail
}  // namespace over_weft
}  // namespace c10

// Builtins: operators on numbers, strings, lists, dicts and tuples (src/weft/_ops/builtins), boxed
// like the operators of the table. Their bodies are in builtins_*.cpp.
#pragma once

#include <complex>
#include <string>
#include <tuple>
#include <utility>

#include "runtime/op_record.h"

namespace weft {

// `name` holds the namespace: "aten::add", "prim::min".
std::span<const OpRecord> builtin_records();

namespace builtins {

// How a body takes an argument out of its Value, by the type of its parameter.
template <class T>
decltype(auto) unbox(const Value& value) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<Plain, Value>) {
    return (value);
  } else if constexpr (std::is_same_v<Plain, int64_t>) {
    return value.to_int();
  } else if constexpr (std::is_same_v<Plain, double>) {
    return value.to_double();
  } else if constexpr (std::is_same_v<Plain, bool>) {
    return value.to_bool();
  } else if constexpr (std::is_same_v<Plain, std::string>) {
    return value.text();
  } else if constexpr (std::is_same_v<Plain, Tensor>) {
    return value.to_tensor();
  } else if constexpr (std::is_same_v<Plain, Scalar>) {
    return value.to_scalar();
  } else {
    static_assert(std::is_same_v<Plain, std::complex<double>>);
    return value.to_scalar().to_complex();
  }
}

template <auto body>
struct Boxed;
template <class R, class... Args, R (*body)(Args...)>
struct Boxed<body> {
  static void call(const Value* args, Value* results) {
    run(args, results, std::index_sequence_for<Args...>());
  }

 private:
  template <size_t... i>
  static void run([[maybe_unused]] const Value* args, [[maybe_unused]] Value* results,
                  std::index_sequence<i...>) {
    if constexpr (std::is_void_v<R>) {
      body(unbox<Args>(args[i])...);
    } else {
      store(body(unbox<Args>(args[i])...), results);
    }
  }
  template <class T>
  static void store(T result, Value* results) {
    results[0] = Value(std::move(result));
  }
  template <class... Ts>
  static void store(std::tuple<Ts...> result, Value* results) {
    std::apply([&](auto&... item) { ((*results++ = Value(std::move(item))), ...); }, result);
  }
};

}  // namespace builtins
}  // namespace weft

// AT_DISPATCH_*: code for the C++ type of a tensor's elements, as `scalar_t`.
#pragma once

#include "dtype.h"

#define WEFT_TORCH_CASE(type_of_case, ...)                                          \
  case type_of_case: {                                                              \
    using scalar_t [[maybe_unused]] = ::c10::detail::CppTypeOf<type_of_case>::type; \
    return __VA_ARGS__();                                                           \
  }
#define AT_DISPATCH_CASE(type_of_case, ...) WEFT_TORCH_CASE(type_of_case, __VA_ARGS__)
#define AT_DISPATCH_SWITCH(type, name, ...)                              \
  [&] {                                                                  \
    const ::c10::ScalarType weft_type = ::c10::detail::dispatched(type); \
    switch (weft_type) {                                                 \
      __VA_ARGS__                                                        \
      default:                                                           \
        ::c10::detail::fail_dispatch(name, weft_type);                   \
    }                                                                    \
  }()
#define WEFT_TORCH_FLOATING(...)                           \
  AT_DISPATCH_CASE(::c10::ScalarType::Double, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Float, __VA_ARGS__)
#define WEFT_TORCH_COMPLEX(...)                                   \
  AT_DISPATCH_CASE(::c10::ScalarType::ComplexDouble, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::ComplexFloat, __VA_ARGS__)
#define WEFT_TORCH_INTEGRAL(...)                         \
  AT_DISPATCH_CASE(::c10::ScalarType::Byte, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Char, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Int, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::c10::ScalarType::Long, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Short, __VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, WEFT_TORCH_FLOATING(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name,                             \
                     WEFT_TORCH_FLOATING(__VA_ARGS__)        \
                         AT_DISPATCH_CASE(::c10::ScalarType::Half, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(more, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name,                              \
                     WEFT_TORCH_FLOATING(__VA_ARGS__) AT_DISPATCH_CASE(more, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(more, another, type, name, ...)                   \
  AT_DISPATCH_SWITCH(type, name,                                                          \
                     WEFT_TORCH_FLOATING(__VA_ARGS__) AT_DISPATCH_CASE(more, __VA_ARGS__) \
                         AT_DISPATCH_CASE(another, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, WEFT_TORCH_FLOATING(__VA_ARGS__) WEFT_TORCH_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_COMPLEX_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, WEFT_TORCH_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, WEFT_TORCH_INTEGRAL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, WEFT_TORCH_FLOATING(__VA_ARGS__) WEFT_TORCH_INTEGRAL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(more, type, name, ...)                               \
  AT_DISPATCH_SWITCH(type, name,                                                       \
                     WEFT_TORCH_FLOATING(__VA_ARGS__) WEFT_TORCH_INTEGRAL(__VA_ARGS__) \
                         AT_DISPATCH_CASE(more, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(more, another, type, name, ...)                     \
  AT_DISPATCH_SWITCH(type, name,                                                       \
                     WEFT_TORCH_FLOATING(__VA_ARGS__) WEFT_TORCH_INTEGRAL(__VA_ARGS__) \
                         AT_DISPATCH_CASE(more, __VA_ARGS__)                           \
                             AT_DISPATCH_CASE(another, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(type, name, ...)                             \
  AT_DISPATCH_SWITCH(type, name,                                                       \
                     WEFT_TORCH_FLOATING(__VA_ARGS__) WEFT_TORCH_INTEGRAL(__VA_ARGS__) \
                         WEFT_TORCH_COMPLEX(__VA_ARGS__))

namespace c10 {
inline namespace over_weft {
namespace detail {

template <ScalarType>
struct CppTypeOf;
#define X(ctype, name, number, dtype)  \
  template <>                          \
  struct CppTypeOf<ScalarType::name> { \
    using type = ctype;                \
  };
WEFT_TORCH_DTYPES(X)
#undef X

inline ScalarType dispatched(ScalarType type) { return type; }
inline ScalarType dispatched(caffe2::TypeMeta type) { return type.toScalarType(); }
[[noreturn]] inline void fail_dispatch(const char* name, ScalarType type) {
  throw NotImplementedError(text_of(name, ": expected a dtype that it computes, got ", type));
}

}  // namespace detail
}  // namespace over_weft
}  // namespace c10

// c10::Error and its kin, and the macros that throw them.
#pragma once

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <weft.h>

// Programs rely on libtorch's headers for these.
#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace c10 {
inline namespace over_weft {

struct SourceLocation {
  const char *function, *file;
  uint32_t line;
};

class Error : public std::exception {
 public:
  explicit Error(std::string text) : text_(std::move(text)) {}
  Error(SourceLocation, std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const char* what_without_backtrace() const noexcept { return text_.c_str(); }
  const std::string& msg() const noexcept { return text_; }
  std::string backtrace() const { return {}; }

 private:
  std::string text_;
};

struct IndexError : Error {
  using Error::Error;
};
struct ValueError : Error {
  using Error::Error;
};
struct TypeError : Error {
  using Error::Error;
};
struct NotImplementedError : Error {
  using Error::Error;
};
struct OutOfMemoryError : Error {
  using Error::Error;
};

namespace detail {

template <class... Parts>
std::string text_of(const Parts&... parts) {
  std::ostringstream out;
  static_cast<void>((out << ... << parts));  // there may be none
  return out.str();
}

// Throws what a status of weft.h stands for.
inline void check(weft_status status) {
  switch (status) {
    case WEFT_OK:
      return;
    case WEFT_INDEX_ERROR:
      throw IndexError(weft_last_error());
    case WEFT_VALUE_ERROR:
      throw ValueError(weft_last_error());
    case WEFT_TYPE_ERROR:
      throw TypeError(weft_last_error());
    case WEFT_NOT_IMPLEMENTED:
      throw NotImplementedError(weft_last_error());
    case WEFT_OUT_OF_MEMORY:
      throw OutOfMemoryError(weft_last_error());
    default:
      throw Error(weft_last_error());
  }
}

// Of a function that libtorch alone has.
[[noreturn]] inline void refuse(const char* name) {
  throw NotImplementedError(text_of(name, ": expected a function that weft has, got another"));
}

template <class Kind, class... Parts>
[[noreturn]] void fail(const char* where, int line, const char* condition, const Parts&... parts) {
  std::string text = text_of(parts...);
  if (text.empty()) text = text_of("expected ", condition, " to be true");
  throw Kind(text_of(text, " (", where, ":", line, ")"));
}

}  // namespace detail
}  // namespace over_weft
}  // namespace c10

// Without do and while, as in libtorch: programs leave the semicolon away.
#define WEFT_TORCH_CHECK_AS(kind, condition, ...)                                    \
  if (!(condition)) {                                                                \
    ::c10::detail::fail<::c10::kind>(__FILE__, __LINE__, #condition, ##__VA_ARGS__); \
  }
#define TORCH_CHECK(condition, ...) WEFT_TORCH_CHECK_AS(Error, condition, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) WEFT_TORCH_CHECK_AS(IndexError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) WEFT_TORCH_CHECK_AS(ValueError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) WEFT_TORCH_CHECK_AS(TypeError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  WEFT_TORCH_CHECK_AS(NotImplementedError, condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define AT_ASSERT(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define AT_ASSERTM(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define AT_ERROR(...) TORCH_CHECK(false, ##__VA_ARGS__)
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b), "expected ", #a, " == ", #b)
#define TORCH_CHECK_NE(a, b) TORCH_CHECK((a) != (b), "expected ", #a, " != ", #b)
#define TORCH_CHECK_LT(a, b) TORCH_CHECK((a) < (b), "expected ", #a, " < ", #b)
#define TORCH_CHECK_LE(a, b) TORCH_CHECK((a) <= (b), "expected ", #a, " <= ", #b)
#define TORCH_CHECK_GT(a, b) TORCH_CHECK((a) > (b), "expected ", #a, " > ", #b)
#define TORCH_CHECK_GE(a, b) TORCH_CHECK((a) >= (b), "expected ", #a, " >= ", #b)
#define TORCH_WARN(...) \
  (std::cerr << "Warning: " << ::c10::detail::text_of(__VA_ARGS__) << std::endl)
#define TORCH_WARN_ONCE(...)                                         \
  do {                                                               \
    static const bool weft_warned = (TORCH_WARN(__VA_ARGS__), true); \
    static_cast<void>(weft_warned);                                  \
  } while (false)
#define C10_LIKELY(condition) (condition)
#define C10_UNLIKELY(condition) (condition)
#define C10_UNUSED [[maybe_unused]]
#define C10_EXPORT
#define C10_API
#define TORCH_API

namespace torch {
inline namespace over_weft {
template <class... Parts>
std::string str(const Parts&... parts) {
  return c10::detail::text_of(parts...);
}
}  // namespace over_weft
using c10::Error;
using c10::IndexError;
using c10::NotImplementedError;
using c10::TypeError;
using c10::ValueError;
}  // namespace torch
namespace at {
using c10::Error;
}

// A tiny test harness for the C++ tests beside each source.
//
//   TEST(layout_contiguous) {
//     CHECK_EQ(Layout::contiguous({{2, 3}}).strides, (Dims{3, 1}));
//     CHECK_THROWS_MSG(wrap_dim("sum", 2, 2), "sum: expected dim in [-2, 1], got 2");
//   }
//
// A failed check ends its test (it throws, so use checks in the test's own thread only). The
// program takes name fragments as arguments and runs the tests that contain one of them; without,
// all.
#pragma once

#include <cmath>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

#include "core/dims.h"
#include "core/error.h"

namespace weft::testing {

struct Failure {
  std::string message;
};

// Adds a test to the list that main() runs, in order of file and line.
struct Registration {
  Registration(const char* name, const char* file, int line, void (*body)());
};

[[noreturn]] void fail_check(const char* file, int line, const std::string& message);

template <class T>
std::string show(const T& value) {
  std::ostringstream out;
  out << std::boolalpha;
  out.precision(17);
  if constexpr (std::is_convertible_v<const T&, IntList>) {
    out << AsTuple{IntList(value)};
  } else if constexpr (requires { out << value; }) {
    out << value;
  } else if constexpr (std::is_enum_v<T>) {
    out << static_cast<long long>(value);
  } else if constexpr (requires { value.begin(); }) {
    out << '[';
    const char* separator = "";
    for (const auto& item : value) {
      out << separator << show(item);
      separator = ", ";
    }
    out << ']';
  } else {
    out << "(a value without operator<<)";
  }
  return out.str();
}

template <class A, class B>
bool equal(const A& a, const B& b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B> && !std::is_same_v<A, bool> &&
                !std::is_same_v<B, bool>) {
    return std::cmp_equal(a, b);  // sizes against literals, without sign warnings
  } else {
    return a == b;
  }
}

template <class A, class B>
void check_eq(const A& a, const B& b, const char* a_text, const char* b_text, const char* file,
              int line) {
  if (equal(a, b)) return;
  fail_check(file, line,
             std::string(a_text) + " == " + b_text + "\n    left:  " + show(a) +
                 "\n    right: " + show(b));
}

// Runs fn; gives the message of the weft::Error it throws (kind by pointer).
template <class Fn>
std::string thrown_message(Fn&& fn, ErrorKind* kind, const char* text, const char* file, int line) {
  try {
    fn();
  } catch (const Error& error) {
    if (kind) *kind = error.kind();
    return error.message();
  }
  fail_check(file, line, std::string(text) + " did not throw");
}

}  // namespace weft::testing

#define TEST(name)                                                                         \
  static void weft_test_##name();                                                          \
  static ::weft::testing::Registration weft_registration_##name(#name, __FILE__, __LINE__, \
                                                                weft_test_##name);         \
  static void weft_test_##name()

#define CHECK_TRUE(cond)                                                 \
  do {                                                                   \
    if (!(cond)) ::weft::testing::fail_check(__FILE__, __LINE__, #cond); \
  } while (0)

#define CHECK_FALSE(cond) CHECK_TRUE(!(cond))

#define CHECK_EQ(a, b) ::weft::testing::check_eq((a), (b), #a, #b, __FILE__, __LINE__)

#define CHECK_NEAR(a, b, tolerance)                                                  \
  do {                                                                               \
    const double check_a = static_cast<double>(a), check_b = static_cast<double>(b); \
    if (!(std::fabs(check_a - check_b) <= (tolerance)))                              \
      ::weft::testing::fail_check(                                                   \
          __FILE__, __LINE__,                                                        \
          #a " near " #b "\n    left:  " + ::weft::testing::show(check_a) +          \
              "\n    right: " + ::weft::testing::show(check_b));                     \
  } while (0)

// The expression must throw a weft::Error with exactly this message.
#define CHECK_THROWS_MSG(expr, text)                                                      \
  ::weft::testing::check_eq(                                                              \
      ::weft::testing::thrown_message([&] { expr; }, nullptr, #expr, __FILE__, __LINE__), \
      std::string(text), #expr, "message", __FILE__, __LINE__)

// The same, with the kind of the error (CHECK_THROWS_AS(Index, wrap_dim(...), "...")).
#define CHECK_THROWS_AS(error_kind, expr, text)                                                 \
  do {                                                                                          \
    ::weft::ErrorKind check_kind{};                                                             \
    const std::string check_text =                                                              \
        ::weft::testing::thrown_message([&] { expr; }, &check_kind, #expr, __FILE__, __LINE__); \
    ::weft::testing::check_eq(check_text, std::string(text), #expr, "message", __FILE__,        \
                              __LINE__);                                                        \
    ::weft::testing::check_eq(check_kind, ::weft::ErrorKind::error_kind, #expr, #error_kind,    \
                              __FILE__, __LINE__);                                              \
  } while (0)

// Two kinds of failure, two words. WEFT_CHECK is the user's mistake and becomes the right Python
// exception; WEFT_INTERNAL_ASSERT is ours and says so. User input must never reach an assert.
//
// Message grammar: "<op>: expected <what>, got <values>", plus at most one hint after "; ".
#pragma once

#include <concepts>
#include <exception>
#include <initializer_list>
#include <ostream>
#include <string>
#include <utility>

namespace weft {

// Names the Python exception a failure turns into (the C interface maps it to an error code).
enum class ErrorKind {
  Runtime,
  Assertion,
  Value,
  Type,
  Index,
  Key,
  ZeroDivision,
  Overflow,
  NotImplemented,
  OutOfMemory,
  LinearAlgebra,
  Internal
};

class Error final : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  ErrorKind kind() const noexcept { return kind_; }
  const std::string& message() const noexcept { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorKind kind_;
  std::string message_;
};

// One part of a message: a value and how to write it. A check then costs its place no more code
// than an array of these and a call, whatever it says.
class Printed {
 public:
  Printed(const char* text) : value_(text), write_(write_text) {}
  template <class T>
    requires(!std::convertible_to<const T&, const char*>)
  Printed(const T& value) : value_(&value), write_(write_value<T>) {}

  friend std::ostream& operator<<(std::ostream& out, const Printed& part) {
    part.write_(out, part.value_);
    return out;
  }

 private:
  static void write_text(std::ostream& out, const void* text);
  template <class T>
  static void write_value(std::ostream& out, const void* value) {
    out << *static_cast<const T*>(value);
  }

  const void* value_;
  void (*write_)(std::ostream&, const void*);
};

std::string join(std::initializer_list<Printed> parts);
[[noreturn, gnu::cold]] void fail(ErrorKind kind, std::string message);
[[noreturn, gnu::cold]] void fail(ErrorKind kind, std::initializer_list<Printed> parts);
[[noreturn, gnu::cold]] void fail_internal(const char* file, int line, const char* condition,
                                           const std::string& message);

// Joins its arguments with operator<<: str("mm: expected 2 dims, got ", n).
template <class... Args>
std::string str(const Args&... args) {
  return join({Printed(args)...});
}

}  // namespace weft

#define WEFT_CHECK_AS(kind, cond, ...)                      \
  do {                                                      \
    if (!(cond)) [[unlikely]]                               \
      ::weft::fail(::weft::ErrorKind::kind, {__VA_ARGS__}); \
  } while (0)

#define WEFT_CHECK(cond, ...) WEFT_CHECK_AS(Runtime, cond, __VA_ARGS__)
#define WEFT_CHECK_VALUE(cond, ...) WEFT_CHECK_AS(Value, cond, __VA_ARGS__)
#define WEFT_CHECK_TYPE(cond, ...) WEFT_CHECK_AS(Type, cond, __VA_ARGS__)
#define WEFT_CHECK_INDEX(cond, ...) WEFT_CHECK_AS(Index, cond, __VA_ARGS__)

#define WEFT_INTERNAL_ASSERT(cond, ...)                                              \
  do {                                                                               \
    if (!(cond)) [[unlikely]]                                                        \
      ::weft::fail_internal(__FILE__, __LINE__, #cond, ::weft::str("" __VA_ARGS__)); \
  } while (0)

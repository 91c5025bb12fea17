// Two kinds of failure, two words. WEFT_CHECK is the user's mistake and becomes the right Python
// exception; WEFT_INTERNAL_ASSERT is ours and says so. User input must never reach an assert.
//
// Message grammar: "<op>: expected <what>, got <values>", plus at most one hint after "; ".
#pragma once

#include <exception>
#include <sstream>
#include <string>
#include <utility>

namespace weft {

// Names the Python exception a failure turns into (the C interface maps it to an error code).
enum class ErrorKind {
  Runtime,
  Value,
  Type,
  Index,
  Key,
  ZeroDivision,
  Overflow,
  NotImplemented,
  OutOfMemory,
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

[[noreturn]] void fail(ErrorKind kind, std::string message);
[[noreturn]] void fail_internal(const char* file, int line, const char* condition,
                                const std::string& message);

// Joins its arguments with operator<<: str("mm: expected 2 dims, got ", n).
template <class... Args>
std::string str(const Args&... args) {
  std::ostringstream out;
  out << std::boolalpha;
  (out << ... << args);
  return out.str();
}

}  // namespace weft

#define WEFT_CHECK_AS(kind, cond, ...)                                 \
  do {                                                                 \
    if (!(cond)) [[unlikely]]                                          \
      ::weft::fail(::weft::ErrorKind::kind, ::weft::str(__VA_ARGS__)); \
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

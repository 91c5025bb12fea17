// Running functions of a program.
//
// Each thread has one stack of registers; a call inside the program is a frame on it, no call of
// C++. Nothing here takes a lock, so threads run one program side by side. Registers are freed by
// the instruction that last uses them.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "core/error.h"
#include "runtime/program.h"

namespace weft {

// What a program raises: the name of a Python exception, its message, and where it happened, line
// by line of the user's source. The key of a KeyError is its argument in Python, beside the
// message.
class ProgramError final : public std::exception {
 public:
  ProgramError(std::string name, std::string message, std::optional<Value> argument = {})
      : name_(std::move(name)), message_(std::move(message)), argument_(std::move(argument)) {}

  const std::string& name() const noexcept { return name_; }        // "ValueError"
  const std::string& message() const noexcept { return message_; }  // without the traceback
  const std::optional<Value>& argument() const noexcept { return argument_; }
  const std::string& traceback() const noexcept { return traceback_; }
  // The message with the traceback below.
  const char* what() const noexcept override;
  // Puts the text of an outer frame before what is there.
  void add_outer(const std::string& frame);

 private:
  std::string name_, message_, traceback_;
  std::optional<Value> argument_;
  mutable std::string what_;
};

// An exception of a call outside the program: it stays what it is, and learns where it passed.
class ForeignError {
 public:
  virtual ~ForeignError() = default;
  // Throws a copy that has the text of an outer frame before what is there.
  [[noreturn]] virtual void throw_with(const std::string& frame) const = 0;
};

// The name of the Python exception that a failure becomes.
std::string exception_name(ErrorKind kind);

// Calls a function; moves from `args`, one for each parameter. Throws ProgramError for every
// failure but those that calls outside the program throw.
Value run_function(const Function& function, Value* args, size_t count);

// Frames a thread may have at a time.
inline constexpr size_t kDeepestCall = 4000;

}  // namespace weft

// What ends a program that its host has cancelled.
#pragma once

#include "runtime/interpreter.h"

namespace weft::capi {

class Cancelled final : public std::exception, public ForeignError {
 public:
  const char* what() const noexcept override {
    return "expected a call that the host lets finish, got one that it cancelled";
  }
  [[noreturn]] void throw_with(const std::string&) const override { throw Cancelled(); }
};

}  // namespace weft::capi

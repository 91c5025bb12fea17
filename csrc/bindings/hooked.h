// Functions of the C interface that ask somebody else first: classes that override them
// (torch_function.h), then the recorder of a trace (trace.h).
//
//   Traced      asks both: what is public and has an override in weft/jit/tracing
//   Overridable asks classes and modes only: what does not change with a tensor's elements
//   Recorded    asks the recorder only: what is weft's own
#pragma once

#include <algorithm>
#include <string_view>

#include "bindings/errors.h"
#include "bindings/torch_function.h"
#include "bindings/trace.h"

namespace weft::py {

template <size_t N>
struct HookName {
  char text[N];
  constexpr HookName(const char (&s)[N]) { std::copy_n(s, N, text); }
  // A function of the module has no self to ask, and takes data rather than tensors.
  constexpr bool is_function() const { return std::string_view(text).starts_with("weft."); }
};

enum class Hooks { None = 0, Override = 1, Record = 2, Both = 3 };
constexpr bool has(Hooks hooks, Hooks one) {
  return (static_cast<int>(hooks) & static_cast<int>(one)) != 0;
}

// What a kind of function is given, who of it can override, and whether hooks apply at all: del,
// and pow with a modulus, are refused by the function itself.
struct Unary {
  PyObject* self;
  Arguments arguments() const { return {self, nullptr, 0}; }
  bool overridden() const { return may_override(self); }
  bool applies() const { return true; }
  static constexpr const char* kRole = "method";
};
struct Binary {  // or a method of one argument; without, it is null
  PyObject* self;
  PyObject* other;
  Arguments arguments() const { return {self, &other, other ? size_t{1} : 0}; }
  bool overridden() const { return may_override(self) || (other && may_override(other)); }
  bool applies() const { return true; }
  static constexpr const char* kRole = "method";
};
struct Power {
  PyObject* self;
  PyObject* other;
  PyObject* modulus;
  Arguments arguments() const { return {self, &other, 1}; }
  bool overridden() const { return may_override(self) || may_override(other); }
  bool applies() const { return modulus == Py_None; }
  static constexpr const char* kRole = "method";
};
struct Assignment {
  PyObject* self;
  PyObject* items[2];
  Arguments arguments() const { return {self, items, 2}; }
  bool overridden() const {
    return may_override(self) || may_override(items[0]) || (items[1] && may_override(items[1]));
  }
  bool applies() const { return items[1] != nullptr; }
  static constexpr const char* kRole = "method";
};
struct Getter {
  PyObject* self;
  Arguments arguments() const { return {self, nullptr, 0}; }
  bool overridden() const { return may_override(self); }
  bool applies() const { return true; }
  static constexpr const char* kRole = "get";
};
struct Setter {
  PyObject* self;
  PyObject* value;
  Arguments arguments() const { return {self, &value, 1}; }
  bool overridden() const { return may_override(self); }
  bool applies() const { return value != nullptr; }
  static constexpr const char* kRole = "set";
};
struct Method {
  PyObject* self;
  PyObject* const* args;
  size_t count;
  PyObject* names;
  Arguments arguments() const { return {self, args, count, names}; }
  bool overridden() const {
    return may_override(self) || std::any_of(args, args + arguments().all(), may_override);
  }
  bool applies() const { return true; }
  static constexpr const char* kRole = "method";
};

inline Unary given(PyObject* self) { return {self}; }
inline Binary given(PyObject* self, PyObject* other) { return {self, other}; }
inline Getter given(PyObject* self, void*) { return {self}; }
inline Setter given(PyObject* self, PyObject* value, void*) { return {self, value}; }
inline Method given(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return {self, args, static_cast<size_t>(count), names};
}
template <class Result>
auto given_three(PyObject* a, PyObject* b, PyObject* c) {
  if constexpr (std::is_same_v<Result, int>) {
    return Assignment{a, {b, c}};
  } else {
    return Power{a, b, c};
  }
}

// A slot's result from the answer of a hook, which it takes over.
template <class Result, class Call>
Result slot_result(PyObject* answer) noexcept {
  if constexpr (std::is_same_v<Result, PyObject*>) {
    return answer;
  } else {
    const Object held = Object::steal(answer);
    if (!answer) return -1;
    if constexpr (std::is_same_v<Result, Py_ssize_t>) return PyLong_AsSsize_t(answer);
    constexpr bool assigns = std::is_same_v<Call, Assignment> || std::is_same_v<Call, Setter>;
    return assigns ? 0 : PyObject_IsTrue(answer);
  }
}

template <HookName name, Hooks hooks, auto fn>
struct Hooked;
template <HookName name, Hooks hooks, class Result, class... A, Result (*fn)(A...)>
struct Hooked<name, hooks, fn> {
  static Result call(A... args) {
    if constexpr (std::is_same_v<Result (*)(A...), Result (*)(PyObject*, PyObject*, PyObject*)>) {
      return ask(given_three<Result>(args...), args...);
    } else {
      return ask(given(args...), args...);
    }
  }

 private:
  template <class Call>
  static Result ask(const Call& call, A... args) {
    const bool watched = watch_count.load(std::memory_order_relaxed) != 0;
    bool overridden = false;
    if constexpr (has(hooks, Hooks::Override) && !name.is_function())
      overridden = call.overridden();
    if (watched || overridden) [[unlikely]] {
      if (call.applies() && (overridden || asks_somebody()))
        return slot_result<Result, Call>(answer(call, overridden));
    }
    return fn(args...);
  }
  static bool asks_somebody() noexcept {
    return (has(hooks, Hooks::Override) && function_mode_asks()) ||
           (has(hooks, Hooks::Record) && trace_records());
  }
  template <class Call>
  [[gnu::noinline, gnu::cold]] static PyObject* answer(const Call& call, bool overridden) noexcept {
    if (overridden || (has(hooks, Hooks::Override) && function_mode_asks()))
      return ask_member(name.text, name.is_function() ? "function" : Call::kRole, call.arguments());
    return trace_override(name.text, call.arguments());
  }
};

template <HookName name, auto fn>
using Traced = Hooked<name, Hooks::Both, fn>;
template <HookName name, auto fn>
using Overridable = Hooked<name, Hooks::Override, fn>;
template <HookName name, auto fn>
using Recorded = Hooked<name, Hooks::Record, fn>;

}  // namespace weft::py

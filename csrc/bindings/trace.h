// Recording for weft.jit.trace, and batching for weft.vmap. While a thread does either, what Python
// asks of tensors goes through its recorder, an object of Python: calls of table operators after
// they ran, with their arguments by schema (`operator`), or instead of running them (`perform`),
// and everything else that is written by hand (`face`), which the recorder performs itself by
// operators of the table.
//
// A program that traces nothing pays one load and one test at each of these places.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "bindings/errors.h"
#include "bindings/python.h"

namespace weft::py {

extern std::atomic<int> trace_count;  // traces under way, of all threads
bool trace_records() noexcept;        // whether this thread records now
bool trace_performs() noexcept;       // whether its recorder has a method `perform`

inline bool tracing() noexcept {
  return trace_count.load(std::memory_order_relaxed) != 0 && trace_records();
}

// Nothing is recorded in this thread for as long as it lives.
class PauseTrace {
 public:
  PauseTrace() noexcept;
  ~PauseTrace();
  PauseTrace(const PauseTrace&) = delete;
  PauseTrace& operator=(const PauseTrace&) = delete;

 private:
  PyObject* recorder_;
};

// The recorder's answer to a call by name; null: an exception is set.
PyObject* trace_face(const char* name, PyObject* const* args, size_t count,
                     PyObject* names = nullptr) noexcept;
// Tells the recorder of an operator that ran: `given` are its arguments in the schema's order,
// Ellipsis where the default holds. Gives the result as Python shall see it. Raises PythonError.
Object trace_operator(const char* schema, PyObject* given, PyObject* result);
// The result of an operator by a recorder that runs operators itself (weft.vmap): it gets the
// arguments of trace_operator, and the operator has not run. Raises PythonError.
Object trace_perform(const char* schema, PyObject* given);
// Before something is made over the memory of an object: raises PythonError for a tensor of a
// batch, whose memory is that of one sample.
void ask_for_memory(PyObject* object);
inline void before_memory(PyObject* object) {
  if (tracing() && trace_performs()) [[unlikely]]
    ask_for_memory(object);
}
// Notes a new wrapper, of any thread: a tensor that no recorded operator gave was made behind the
// recorder's back.
void trace_wrapper(PyObject* object);
inline void note_wrapper(PyObject* object) {
  if (trace_count.load(std::memory_order_relaxed) != 0) [[unlikely]]
    trace_wrapper(object);
}

// Numbers that know where they come from: x.shape[0] while tracing. They look like ints and floats,
// but are none: an int would be read without asking it.
bool is_traced_number(PyObject* object) noexcept;
// Its value; for an object that is one. Raises PythonError.
Object plain_number(PyObject* object);

void init_trace(PyObject* module);

// ---- functions of the C interface that ask the recorder first ----

template <size_t N>
struct TraceName {
  char text[N];
  constexpr TraceName(const char (&s)[N]) { std::copy_n(s, N, text); }
};

inline int trace_status(PyObject* result) noexcept {
  Py_XDECREF(result);
  return result ? 0 : -1;
}
inline int trace_truth(PyObject* result) noexcept {
  if (!result) return -1;
  const Object held = Object::steal(result);
  return PyObject_IsTrue(result);
}

template <TraceName name, auto fn>
struct Traced;

// Operators of one and more operands, methods (without argument: null) and getters.
template <TraceName name, PyObject* (*fn)(PyObject*)>
struct Traced<name, fn> {
  static PyObject* call(PyObject* self) {
    if (tracing()) [[unlikely]]
      return trace_face(name.text, &self, 1);
    return fn(self);
  }
};
template <TraceName name, PyObject* (*fn)(PyObject*, PyObject*)>
struct Traced<name, fn> {
  static PyObject* call(PyObject* a, PyObject* b) {
    if (tracing()) [[unlikely]] {
      PyObject* const args[] = {a, b};
      return trace_face(name.text, args, b ? 2 : 1);
    }
    return fn(a, b);
  }
};
template <TraceName name, PyObject* (*fn)(PyObject*, PyObject*, PyObject*)>
struct Traced<name, fn> {
  static PyObject* call(PyObject* a, PyObject* b, PyObject* c) {
    if (tracing() && c == Py_None) [[unlikely]] {
      PyObject* const args[] = {a, b};
      return trace_face(name.text, args, 2);
    }
    return fn(a, b, c);
  }
};
template <TraceName name, PyObject* (*fn)(PyObject*, void*)>
struct Traced<name, fn> {
  static PyObject* call(PyObject* self, void* closure) {
    if (tracing()) [[unlikely]]
      return trace_face(name.text, &self, 1);
    return fn(self, closure);
  }
};
template <TraceName name, PyObject* (*fn)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)>
struct Traced<name, fn> {
  static PyObject* call(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    if (tracing()) [[unlikely]]
      return with_self(self, args, static_cast<size_t>(count), names);
    return fn(self, args, count, names);
  }

 private:
  static PyObject* with_self(PyObject* self, PyObject* const* args, size_t count, PyObject* names) {
    const size_t all = count + (names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0);
    return guarded([&] {
      std::vector<PyObject*> list{self};
      list.insert(list.end(), args, args + all);
      return trace_face(name.text, list.data(), count + 1, names);
    });
  }
};
template <TraceName name, int (*fn)(PyObject*)>
struct Traced<name, fn> {
  static int call(PyObject* self) {
    if (tracing()) [[unlikely]]
      return trace_truth(trace_face(name.text, &self, 1));
    return fn(self);
  }
};
template <TraceName name, int (*fn)(PyObject*, PyObject*)>
struct Traced<name, fn> {
  static int call(PyObject* self, PyObject* other) {
    if (tracing()) [[unlikely]] {
      PyObject* const args[] = {self, other};
      return trace_truth(trace_face(name.text, args, 2));
    }
    return fn(self, other);
  }
};
// Assignments; del (null) is refused by the function itself.
template <TraceName name, int (*fn)(PyObject*, PyObject*, PyObject*)>
struct Traced<name, fn> {
  static int call(PyObject* self, PyObject* key, PyObject* value) {
    if (tracing() && value) [[unlikely]] {
      PyObject* const args[] = {self, key, value};
      return trace_status(trace_face(name.text, args, 3));
    }
    return fn(self, key, value);
  }
};
template <TraceName name, int (*fn)(PyObject*, PyObject*, void*)>
struct Traced<name, fn> {
  static int call(PyObject* self, PyObject* value, void* closure) {
    if (tracing() && value) [[unlikely]] {
      PyObject* const args[] = {self, value};
      return trace_status(trace_face(name.text, args, 2));
    }
    return fn(self, value, closure);
  }
};
template <TraceName name, Py_ssize_t (*fn)(PyObject*)>
struct Traced<name, fn> {
  static Py_ssize_t call(PyObject* self) {
    if (tracing()) [[unlikely]] {
      const Object length = Object::steal(trace_face(name.text, &self, 1));
      return length ? PyLong_AsSsize_t(length.get()) : -1;
    }
    return fn(self);
  }
};

}  // namespace weft::py

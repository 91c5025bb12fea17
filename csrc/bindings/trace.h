// Recording for weft.jit.trace, and batching for weft.vmap. While a thread does either, what Python
// asks of tensors goes through its recorder, an object of Python: calls of table operators after
// they ran, with their arguments by schema (`operator`), or instead of running them (`perform`),
// and everything else that is written by hand (`override`), which the recorder performs itself by
// operators of the table.
//
// A program that traces nothing pays one load and one test at each of these places (hooked.h).
#pragma once

#include <atomic>

#include "bindings/arguments.h"

namespace weft::py {

extern std::atomic<int> watch_count;  // traces and function modes under way, of all threads
bool trace_records() noexcept;        // whether this thread records now
bool trace_performs() noexcept;       // whether its recorder has a method `perform`

inline bool tracing() noexcept {
  return watch_count.load(std::memory_order_relaxed) != 0 && trace_records();
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
PyObject* trace_override(const char* name, const Arguments& given) noexcept;
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
  if (watch_count.load(std::memory_order_relaxed) != 0) [[unlikely]]
    trace_wrapper(object);
}

// Numbers that know where they come from: x.shape[0] while tracing. They look like ints and floats,
// but are none: an int would be read without asking it.
bool is_traced_number(PyObject* object) noexcept;
// Its value; for an object that is one. Raises PythonError.
Object plain_number(PyObject* object);

void init_trace(PyObject* module);

}  // namespace weft::py

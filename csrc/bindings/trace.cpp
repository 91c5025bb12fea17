// The state of tracing: one recorder for each thread that traces.
#include "bindings/trace.h"

#include <unordered_set>

#include "bindings/errors.h"
#include "core/mutex.h"

namespace weft::py {

std::atomic<int> watch_count{0};

namespace {

thread_local PyObject* current = nullptr;  // owned; null: not tracing, or paused
thread_local bool performs = false;        // whether `current` has operators run itself
std::atomic<int> traces{0};                // under way, of all threads
// Made by any thread while a trace is under way; addresses only.
std::unordered_set<PyObject*> wrappers;
constinit Mutex wrappers_mutex;

PyObject *traced_int = nullptr, *traced_float = nullptr;

// _set_traced_numbers(int_class, float_class)
PyObject* set_numbers(PyObject*, PyObject* classes) {
  PyObject *ints, *floats;
  if (!PyArg_UnpackTuple(classes, "_set_traced_numbers", 2, 2, &ints, &floats)) return nullptr;
  Py_XSETREF(traced_int, new_ref(ints));
  Py_XSETREF(traced_float, new_ref(floats));
  Py_RETURN_NONE;
}

// _set_recorder(recorder) -> the one before it, or None. With None nothing is recorded.
PyObject* set_recorder(PyObject*, PyObject* recorder) {
  PyObject* next = recorder == Py_None ? nullptr : new_ref(recorder);
  performs = next && PyObject_HasAttrString(next, "perform") != 0;
  PyObject* before = std::exchange(current, next);
  return before ? before : new_ref(Py_None);
}

PyObject* get_recorder(PyObject*, PyObject*) { return new_ref(current ? current : Py_None); }

PyObject* tracing_state(PyObject*, PyObject*) {
  return new_ref(current && !performs ? current : Py_None);
}

// _trace_made(tensor): whether its object was made while a trace was under way.
PyObject* made_here(PyObject*, PyObject* object) {
  const std::lock_guard lock(wrappers_mutex);
  return PyBool_FromLong(wrappers.contains(object));
}

PyObject* begin(PyObject*, PyObject*) {
  ++traces;
  ++watch_count;
  Py_RETURN_NONE;
}

PyObject* end(PyObject*, PyObject*) {
  --watch_count;
  const std::lock_guard lock(wrappers_mutex);
  if (--traces == 0) wrappers.clear();
  Py_RETURN_NONE;
}

PyMethodDef trace_functions[] = {
    {"_set_recorder", set_recorder, METH_O,
     "Changes who records between _trace_begin and _trace_end."},
    {"_set_traced_numbers", set_numbers, METH_VARARGS, "The classes of numbers of a trace."},
    {"_recorder", get_recorder, METH_NOARGS, "The recorder of this thread, or None."},
    {"_get_tracing_state", tracing_state, METH_NOARGS, "The same, where it records a trace."},
    {"_trace_made", made_here, METH_O, "Whether the tensor's object was made while tracing."},
    {"_trace_begin", begin, METH_NOARGS, "A trace starts in this thread."},
    {"_trace_end", end, METH_NOARGS, "The trace that started last ends."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool trace_records() noexcept { return current != nullptr; }
bool trace_performs() noexcept { return performs; }

PauseTrace::PauseTrace() noexcept : recorder_(std::exchange(current, nullptr)) {}
PauseTrace::~PauseTrace() { current = recorder_; }

bool is_traced_number(PyObject* object) noexcept {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  return type == traced_int || type == traced_float;
}
Object plain_number(PyObject* object) {
  const bool whole = reinterpret_cast<PyObject*>(Py_TYPE(object)) == traced_int;
  return Object::checked(whole ? PyNumber_Index(object) : PyNumber_Float(object));
}

PyObject* trace_override(const char* name, const Arguments& given) noexcept {
  return guarded([&]() -> PyObject* {
    const Object recorder = Object::borrow(current);
    return Object::checked(PyObject_CallMethod(recorder.get(), "override", "sOO", name,
                                               given.tuple().get(), given.dict().get()))
        .release();
  });
}

Object trace_operator(const char* schema, PyObject* given, PyObject* result) {
  const Object recorder = Object::borrow(current);
  return Object::checked(
      PyObject_CallMethod(recorder.get(), "operator", "sOO", schema, given, result));
}

Object trace_perform(const char* schema, PyObject* given) {
  const Object recorder = Object::borrow(current);
  return Object::checked(PyObject_CallMethod(recorder.get(), "perform", "sO", schema, given));
}

void ask_for_memory(PyObject* object) {
  Object::checked(trace_override("memory", {nullptr, &object, 1, nullptr}));
}

void trace_wrapper(PyObject* object) {
  if (traces.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(wrappers_mutex);
  wrappers.insert(object);
}

void init_trace(PyObject* module) { check_status(PyModule_AddFunctions(module, trace_functions)); }

}  // namespace weft::py

// Python.h and the two words everything in this folder is written with: an owned reference, and
// "a Python exception is set".
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cxxabi.h>
#include <structmember.h>  // after Python.h
#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>
#include <utility>

namespace weft::py {

// Whether threads run Python side by side, without a lock of the interpreter ("GIL" in this
// folder). Before Python 3.14 such interpreters lack functions that we need: they turn their lock
// on when they import us.
#if defined(Py_GIL_DISABLED) && PY_VERSION_HEX >= 0x030E0000
#define WEFT_FREE_THREADED 1
inline constexpr bool kFreeThreaded = true;
#else
#define WEFT_FREE_THREADED 0
inline constexpr bool kFreeThreaded = false;
#endif

// Thrown by C++ code after a Python call failed: the exception itself waits in the interpreter.
struct PythonError {};

// An owned reference to a Python object. Use only while holding the GIL.
class Object {
 public:
  Object() = default;
  // Takes over a reference the caller owns.
  static Object steal(PyObject* object) noexcept {
    Object result;
    result.ptr_ = object;
    return result;
  }
  // As steal, for the result of a Python call: null raises.
  static Object checked(PyObject* object) {
    if (!object) [[unlikely]]
      throw PythonError{};
    return steal(object);
  }
  static Object borrow(PyObject* object) noexcept {
    Py_XINCREF(object);
    return steal(object);
  }
  Object(const Object& other) noexcept : ptr_(other.ptr_) { Py_XINCREF(ptr_); }
  Object(Object&& other) noexcept : ptr_(std::exchange(other.ptr_, nullptr)) {}
  Object& operator=(Object other) noexcept {
    std::swap(ptr_, other.ptr_);
    return *this;
  }
  ~Object() { Py_XDECREF(ptr_); }

  PyObject* get() const noexcept { return ptr_; }
  PyObject* release() noexcept { return std::exchange(ptr_, nullptr); }
  explicit operator bool() const noexcept { return ptr_ != nullptr; }

 private:
  PyObject* ptr_ = nullptr;
};

inline PyObject* new_ref(PyObject* object) noexcept {
  Py_INCREF(object);
  return object;
}
inline void check_status(int status) {
  if (status < 0) [[unlikely]]
    throw PythonError{};
}
inline const char* type_name(PyObject* object) noexcept { return Py_TYPE(object)->tp_name; }
// The last part of a dotted type name: "ndarray" of "numpy.ndarray".
inline std::string_view short_type_name(PyObject* object) noexcept {
  std::string_view name = type_name(object);
  return name.substr(name.rfind('.') + 1);
}
inline std::string_view utf8(PyObject* text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (!data) throw PythonError{};
  return {data, static_cast<size_t>(size)};
}

// The UTF-8 of a string that programs hold: surrogates alone, which UTF-8 has not, take three
// bytes.
inline std::string program_text(PyObject* text) {
  Py_ssize_t size = 0;
  if (const char* data = PyUnicode_AsUTF8AndSize(text, &size)) {
    return {data, static_cast<size_t>(size)};
  }
  if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw PythonError{};
  PyErr_Clear();
  const Object bytes = Object::checked(PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass"));
  return {PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get()))};
}

// Up to Python 3.13 an interpreter that goes down ends threads that want its lock, by unwinding
// their stacks: frames that catch everything end the process then. Such a thread sleeps instead, as
// from 3.14 on: the process ends without it.
template <typename Fn>
auto unless_ended(Fn&& call) {
  try {
    return call();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// For work that is long enough to let other threads run (releasing and taking costs 25 ns).
class ReleaseGil {
 public:
  explicit ReleaseGil(bool wanted = true) {
    if (!wanted) return;
    ++count_;
    state_ = PyEval_SaveThread();
  }
  ~ReleaseGil() {
    if (!state_) return;
    unless_ended([this] { PyEval_RestoreThread(state_); });
    if (--count_ > 0) return;
    if (const auto call = when_none_.load(std::memory_order_relaxed)) [[unlikely]]
      call();
  }
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

  // How many threads are at work without the lock. Hold it when asking: then none begins.
  static int count() noexcept { return count_.load(); }
  // Calls fn, with the lock, once there are none.
  static void when_none(void (*fn)()) noexcept { when_none_.store(fn); }
  // In a new child of fork, which has none of them.
  static void forked() noexcept { count_ = 0; }

 private:
  PyThreadState* state_ = nullptr;
  inline static std::atomic<int> count_{0};
  inline static std::atomic<void (*)()> when_none_{nullptr};
};

class TakeGil {
 public:
  TakeGil() : state_(unless_ended(PyGILState_Ensure)) {}
  ~TakeGil() { PyGILState_Release(state_); }
  TakeGil(const TakeGil&) = delete;
  TakeGil& operator=(const TakeGil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Puts the Python exception in flight aside while code runs that may raise and clear its own.
class KeepException {
 public:
#if PY_VERSION_HEX >= 0x030c0000
  KeepException() : value_(PyErr_GetRaisedException()) {}
  ~KeepException() { PyErr_SetRaisedException(value_); }
#else
  KeepException() { PyErr_Fetch(&type_, &value_, &trace_); }
  ~KeepException() { PyErr_Restore(type_, value_, trace_); }
#endif
  KeepException(const KeepException&) = delete;
  KeepException& operator=(const KeepException&) = delete;

 private:
  PyObject* value_ = nullptr;
#if PY_VERSION_HEX < 0x030c0000
  PyObject *type_ = nullptr, *trace_ = nullptr;
#endif
};

// Drops a reference on any thread, with or without the GIL; leaks it when the process ends.
void drop_reference(void* object) noexcept;

// For a word that is set once, by whichever thread is first, and read without a lock: what it is
// now.
template <class T>
T* load_acquire(T*& word) noexcept {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}
// Sets it, unless another thread has. True: `made` stands there now.
template <class T>
bool set_once(T*& word, T* made) noexcept {
  T* none = nullptr;
  return std::atomic_ref(word).compare_exchange_strong(none, made, std::memory_order_acq_rel);
}

// One more reference to an object that is found without holding one, unless its last is gone.
// Objects that are looked for so must be told by findable().
inline bool try_reference(PyObject* object) noexcept {
#if WEFT_FREE_THREADED
  return PyUnstable_TryIncRef(object) != 0;
#else
  Py_INCREF(object);
  return true;
#endif
}
inline void findable([[maybe_unused]] PyObject* object) noexcept {
#if WEFT_FREE_THREADED
  PyUnstable_EnableTryIncRef(object);
#endif
}

// For objects that live as long as the process and that all threads use: nobody counts references.
inline void make_immortal([[maybe_unused]] PyObject* object) noexcept {
#if WEFT_FREE_THREADED
  object->ob_tid = _Py_UNOWNED_TID;
  object->ob_ref_local = _Py_IMMORTAL_REFCNT_LOCAL;
  object->ob_ref_shared = 0;
#endif
}

// While it lives no other thread changes the object, which is a list or a dict of a program. Calls
// into Python may let others in.
class ObjectLock {
 public:
#if WEFT_FREE_THREADED
  explicit ObjectLock(PyObject* object) { PyCriticalSection_Begin(&section_, object); }
  ~ObjectLock() { PyCriticalSection_End(&section_); }
#else
  explicit ObjectLock(PyObject*) {}
#endif
  ObjectLock(const ObjectLock&) = delete;
  ObjectLock& operator=(const ObjectLock&) = delete;

#if WEFT_FREE_THREADED
 private:
  PyCriticalSection section_;
#endif
};

// The items of a tuple or list. Where threads run side by side those of a list are a copy: another
// may change it.
class Items {
 public:
  explicit Items(PyObject* sequence) {
    if (kFreeThreaded && PyList_Check(sequence)) {
      held_ = Object::checked(PyList_AsTuple(sequence));
      sequence = held_.get();
    }
    sequence_ = sequence;
    size_ = static_cast<size_t>(PySequence_Fast_GET_SIZE(sequence));
  }
  size_t size() const noexcept { return size_; }
  PyObject* operator[](size_t i) const noexcept { return data()[i]; }
  PyObject* const* data() const noexcept { return PySequence_Fast_ITEMS(sequence_); }
  PyObject* const* begin() const noexcept { return data(); }
  PyObject* const* end() const noexcept { return data() + size_; }

 private:
  Object held_;
  PyObject* sequence_;
  size_t size_;
};

// Methods that take positions and names, for PyMethodDef.
using FastFunction = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
inline constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;
inline PyCFunction fast(FastFunction function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

// False once the interpreter goes down and this thread may not call it any more.
bool interpreter_alive() noexcept;

}  // namespace weft::py

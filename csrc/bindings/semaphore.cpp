// Semaphores in Python, with the interface of the standard library's _multiprocessing.SemLock: what
// the locks of weft.multiprocessing are made of.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "bindings/caster.h"
#include "bindings/objects.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/shared_semaphore.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

constexpr int kRecursive = 0;  // 1: a semaphore, which anybody may give

timespec after(double seconds) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  constexpr double kLongest = 1e9;  // thirty years
  double whole = 0;
  const double part = std::modf(std::min(std::max(seconds, 0.0), kLongest), &whole);
  const auto nanoseconds = now.tv_nsec + static_cast<int64_t>(part * 1e9);
  return {now.tv_sec + static_cast<time_t>(whole) + nanoseconds / 1'000'000'000,
          nanoseconds % 1'000'000'000};
}

// One process's view of a semaphore: how often it was taken here, and by which thread last. All of
// it is guarded by the interpreter's lock.
class SemLock {
 public:
  // `memory` is shared. With a value the semaphore is made there; without, it is there already.
  SemLock(int kind, const Tensor& memory, size_t offset, int64_t most, std::optional<int64_t> value)
      : kind_(kind), most_(static_cast<uint32_t>(most)), memory_(memory.storage()) {
    WEFT_CHECK_VALUE(offset % SharedSemaphore::kBytes == 0 &&
                         offset + SharedSemaphore::kBytes <= memory_->nbytes(),
                     "semaphore: expected a place within ", memory_->nbytes(), " bytes, got ",
                     offset);
    constexpr int64_t kMost = SharedSemaphore::kMost;
    WEFT_CHECK_VALUE(most >= 0 && most <= kMost, "semaphore: expected a limit from 0 to ", kMost,
                     ", got ", most);
    WEFT_CHECK_VALUE(value.value_or(0) >= 0 && value.value_or(0) <= most,
                     "semaphore: expected a value from 0 to ", most, ", got ", value.value_or(0));
    void* place = static_cast<char*>(memory_->data()) + offset;
    semaphore_ = value ? SharedSemaphore::create(place, static_cast<uint32_t>(*value))
                       : SharedSemaphore::at(place);
  }

  bool acquire(bool block, std::optional<double> timeout) {
    if (kind_ == kRecursive && is_mine()) {
      ++count_;
      return true;
    }
    if (!semaphore_->try_take() && !(block && wait(timeout))) return false;
    count_ = count() + 1;
    forks_ = fork_generation();
    thread_ = PyThread_get_thread_ident();
    return true;
  }

  void release() {
    if (kind_ == kRecursive) {
      if (!is_mine()) {
        PyErr_SetString(PyExc_AssertionError,
                        "release: expected the thread that has taken this lock, got another one");
        throw nb::python_error();
      }
      if (count_ > 1) {
        --count_;
        return;
      }
    } else {
      WEFT_CHECK_VALUE(semaphore_->value() < most_, "release: expected at most ", most_,
                       " to be given, got one more (released too many times)");
    }
    count_ = count() - 1;
    forks_ = fork_generation();
    semaphore_->give();
  }

  // A child has taken nothing.
  int count() const { return forks_ == fork_generation() ? count_ : 0; }
  bool is_mine() const { return count() > 0 && thread_ == PyThread_get_thread_ident(); }
  uint32_t value() const { return semaphore_->value(); }
  int kind() const { return kind_; }
  uint32_t most() const { return most_; }
  uintptr_t handle() const { return reinterpret_cast<uintptr_t>(semaphore_); }

 private:
  bool wait(std::optional<double> timeout) {
    const std::optional<timespec> until =
        timeout ? std::optional<timespec>(after(*timeout)) : std::nullopt;
    for (;;) {
      SharedSemaphore::Wait result{};
      {
        const nb::gil_scoped_release others_run;
        result = semaphore_->take(until ? &*until : nullptr);
      }
      if (result != SharedSemaphore::Wait::Interrupted)
        return result == SharedSemaphore::Wait::Taken;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  int kind_;
  uint32_t most_;
  Ref<Storage> memory_;
  SharedSemaphore* semaphore_;
  int count_ = 0;
  unsigned long thread_ = 0;
  uint32_t forks_ = 0;  // generation of the process that count_ is of
};

}  // namespace

void bind_semaphores(nb::module_& module) {
  module.attr("SEMAPHORE_BYTES") = SharedSemaphore::kBytes;
  nb::class_<SemLock>(module, "_SemLock", "A semaphore in shared memory.")
      .def(nb::init<int, const Tensor&, size_t, int64_t, std::optional<int64_t>>(), nb::arg("kind"),
           nb::arg("memory"), nb::arg("offset"), nb::arg("maxvalue"), nb::arg("value") = nb::none())
      .def("acquire", &SemLock::acquire, nb::arg("block") = true, nb::arg("timeout") = nb::none(),
           "Takes it, waiting if need be; whether it was taken.")
      .def("release", &SemLock::release, "Gives it back.")
      .def("__enter__", [](SemLock& self) { return self.acquire(true, std::nullopt); })
      .def(
          "__exit__", [](SemLock& self, nb::handle, nb::handle, nb::handle) { self.release(); },
          nb::arg().none(), nb::arg().none(), nb::arg().none())
      .def("_count", &SemLock::count, "How often this process has taken it.")
      .def("_is_mine", &SemLock::is_mine, "Whether this thread has taken it last.")
      .def("_get_value", &SemLock::value, "How often it can be taken now.")
      .def("_is_zero", [](const SemLock& self) { return self.value() == 0; })
      .def(
          "_after_fork", [](const SemLock&) {}, "Nothing: it knows forks by itself.")
      .def_prop_ro("kind", &SemLock::kind)
      .def_prop_ro("maxvalue", &SemLock::most)
      .def_prop_ro("handle", &SemLock::handle)
      .def_prop_ro("name", [](const SemLock&) { return nb::none(); });
}

}  // namespace weft::py

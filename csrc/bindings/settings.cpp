// Knobs of the process: threads, the default dtype, profiles.
#include <nanobind/nanobind.h>

#include "bindings/caster.h"
#include "bindings/objects.h"
#include "core/profiler.h"
#include "core/thread_pool.h"
#include "ops/factory.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

void bind_threads(nb::module_& module) {
  module.def("get_num_threads", &num_threads, "Threads an operator may use.");
  module.def("set_num_threads", &set_num_threads, nb::arg("int"),
             "Sets the number of threads, at least 1.");
}

void bind_dtypes(nb::module_& module) {
  module.def("get_default_dtype", &default_dtype, "The dtype of new floating tensors.");
  module.def("set_default_dtype", &set_default_dtype, nb::arg("d"),
             "Sets the dtype of new floating tensors. TypeError unless it is floating.");
  module.def("promote_types", &promote, nb::arg("type1"), nb::arg("type2"),
             "The dtype that both dtypes are converted to.");
  module.def("_set_fills_unset_memory", &native::set_fills_unset_memory, nb::arg("fills"),
             "Whether new memory is filled with NaN, or the largest of other numbers.");
  module.def("can_cast", &can_cast, nb::arg("from_"), nb::arg("to"),
             "Whether results of the first dtype may be written into the second.");
}

// The recursion limit of the calling thread. Python's own way, sys.setrecursionlimit, sets it for
// every thread, and one that parses Python at that moment finds its depth changed: a SystemError.
int raise_recursion_limit(int frames) {
  PyThreadState* const thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030C0000
  thread->py_recursion_remaining += frames;
  return thread->py_recursion_limit += frames;
#elif PY_VERSION_HEX >= 0x030B0000
  thread->recursion_remaining += frames;
  return thread->recursion_limit += frames;
#else
  thread->recursion_depth -= frames;
  return 0;
#endif
}

// Takes that back, unless the program has set another limit since.
void lower_recursion_limit(int frames, int raised) {
  [[maybe_unused]] PyThreadState* const thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030C0000
  const bool same = thread->py_recursion_limit == raised;
#elif PY_VERSION_HEX >= 0x030B0000
  const bool same = thread->recursion_limit == raised;
#else
  const bool same = raised == 0;
#endif
  if (same) raise_recursion_limit(-frames);
}

void bind_recursion(nb::module_& module) {
  module.def("_raise_recursion_limit", &raise_recursion_limit, nb::arg("frames"),
             "Raises the recursion limit of the calling thread alone; gives what it is then.");
  module.def("_lower_recursion_limit", &lower_recursion_limit, nb::arg("frames"), nb::arg("raised"),
             "Takes _raise_recursion_limit back, unless the limit has been set since.");
}

nb::list profile_events(size_t first) {
  nb::list found;
  for (const profiler::Event& event : profiler::stop(first)) {
    nb::list sizes;
    for (const Dims& one : event.sizes) {
      nb::list size;
      for (int64_t extent : one) size.append(extent);
      sizes.append(size);
    }
    found.append(
        nb::make_tuple(event.name.c_str(), sizes, event.start_ns, event.end_ns, event.thread));
  }
  return found;
}

void bind_profiler(nb::module_& module) {
  module.def("_start_profile", &profiler::start,
             "Begins to record what runs below Python; gives the number of its first event.");
  module.def("_stop_profile", &profile_events, nb::arg("first"),
             "Ends it; gives name, sizes of arguments, start and end in nanoseconds of the steady "
             "clock, and thread of each event.");
}

}  // namespace

void bind_settings(nb::module_& module) {
  bind_threads(module);
  bind_recursion(module);
  bind_profiler(module);
  bind_dtypes(module);
}

}  // namespace weft::py

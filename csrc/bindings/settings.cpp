// Knobs of the process: threads, the default dtype, the allocator.
#include <nanobind/nanobind.h>

#include "bindings/caster.h"
#include "bindings/objects.h"
#include "core/allocator.h"
#include "core/error.h"
#include "core/thread_pool.h"

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
  module.def("can_cast", &can_cast, nb::arg("from_"), nb::arg("to"),
             "Whether results of the first dtype may be written into the second.");
}

nb::dict stats() {
  AllocatorStats now = cpu_allocator().stats();
  nb::dict result;
  result["allocations"] = now.allocations;
  result["frees"] = now.frees;
  result["system_allocations"] = now.system_allocations;
  result["bytes_in_use"] = now.bytes_in_use;
  result["peak_bytes_in_use"] = now.peak_bytes_in_use;
  result["bytes_cached"] = now.bytes_cached;
  return result;
}

void bind_memory(nb::module_& module) {
  module.def("memory_stats", &stats,
             "What the CPU allocator has done, as a dict of counts and bytes.");
  module.def(
      "reset_peak_memory_stats", [] { cpu_allocator().reset_peak(); },
      "Makes the peak what is in use now.");
  module.def(
      "empty_cache", [] { cpu_allocator().empty_cache(); },
      "Gives cached blocks back to the system.");
  module.def(
      "set_memory_limit",
      [](int64_t nbytes) {
        WEFT_CHECK_VALUE(nbytes >= 0, "set_memory_limit: expected at least 0 bytes, got ", nbytes);
        cpu_allocator().set_limit(static_cast<size_t>(nbytes));
      },
      nb::arg("nbytes"),
      "Most bytes in use plus cached; 0 for no limit. Beyond it: OutOfMemoryError.");
  module.def(
      "memory_limit", [] { return cpu_allocator().limit(); }, "The limit; 0 when there is none.");
}

}  // namespace

void bind_settings(nb::module_& module) {
  bind_threads(module);
  bind_dtypes(module);
  bind_memory(module);
}

}  // namespace weft::py

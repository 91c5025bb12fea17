// Knobs of the process: threads, the default dtype.
#include <nanobind/nanobind.h>

#include "bindings/caster.h"
#include "bindings/objects.h"
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

}  // namespace

void bind_settings(nb::module_& module) {
  bind_threads(module);
  bind_dtypes(module);
}

}  // namespace weft::py

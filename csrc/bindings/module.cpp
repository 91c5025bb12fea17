// weft._C: puts the parts together.
#include <nanobind/nanobind.h>

#include "bindings/bindings.h"
#include "bindings/errors.h"
#include "bindings/jit.h"
#include "bindings/meta.h"
#include "bindings/objects.h"
#include "bindings/tensor_object.h"
#include "bindings/torch_function.h"
#include "bindings/trace.h"

NB_MODULE(_C, module) {
  using namespace weft::py;
  // dtypes and the like live as long as the process.
  nanobind::set_leak_warnings(false);
  try {
    init_errors(module.ptr());
    init_size_type(module.ptr());
    init_tensor_type(module.ptr());
    bind_objects(module);
    bind_settings(module);
    bind_memory(module);
    bind_shared_memory(module);
    bind_shared_buffers(module);
    bind_semaphores(module);
    init_trace(module.ptr());
    init_torch_function(module.ptr());
    init_sparse(module.ptr());
    init_construct(module.ptr());
    init_buffers(module.ptr());
    init_numpy(module.ptr());
    init_dlpack(module.ptr());
    init_handles(module.ptr());
    init_storage_methods(module.ptr());
    init_op_functions(module.ptr());
    init_view_dtype();
    init_meta();
    bind_autograd(module);
    init_grad_mode(module.attr("_autograd").ptr());
    bind_mapped_file(module);
    bind_fused(module);
    bind_jit_objects(module);
    init_jit_function(module.ptr());
    init_jit_dispatcher(module.ptr());
    bind_jit_program(module);
    bind_compiled_module(module);
    bind_operator_facts(module);
    bind_call_operator(module);
    bind_host_operators(module);
  } catch (const PythonError&) {
    nanobind::raise_python_error();
  }
}

# libtorch's headers over weft.h: what C++ programs of libtorch include. They are installed beside
# weft.h, in a folder of their own; `python -m weft --libtorch-flags` names it, and
# find_package(Torch) finds it under `python -m weft --libtorch-prefix`.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/csrc/libtorch/" DESTINATION weft/include/libtorch/weft_libtorch
  FILES_MATCHING PATTERN "*.h")
install(FILES "${WEFT_GENERATED}/libtorch/tensor_methods.h" "${WEFT_GENERATED}/libtorch/operators.h"
  "${WEFT_GENERATED}/libtorch/operator_variants.h" "${WEFT_GENERATED}/libtorch/absent_functions.h"
  "${WEFT_GENERATED}/libtorch/absent_methods.h"
  DESTINATION weft/include/libtorch/weft_libtorch)

# Each of these has all of it; those of the frontend also what trains.
set(WEFT_LIBTORCH_FRONTEND_HEADERS
  torch/all.h torch/data.h torch/nn.h torch/optim.h torch/serialize.h torch/torch.h
  torch/csrc/api/include/torch/all.h torch/csrc/api/include/torch/data.h
  torch/csrc/api/include/torch/nn.h torch/csrc/api/include/torch/optim.h
  torch/csrc/api/include/torch/serialize.h torch/csrc/api/include/torch/torch.h
  torch/nn/functional.h torch/nn/init.h torch/nn/module.h torch/nn/modules.h torch/nn/options.h
  torch/nn/pimpl.h torch/nn/utils.h torch/ordered_dict.h torch/serialize/archive.h)
set(WEFT_LIBTORCH_HEADERS
  torch/autograd.h torch/cuda.h torch/custom_class.h torch/enum.h torch/jit.h torch/library.h
  torch/script.h
  torch/types.h torch/utils.h torch/version.h
  torch/csrc/api/include/torch/cuda.h torch/csrc/api/include/torch/enum.h
  torch/csrc/api/include/torch/types.h torch/csrc/api/include/torch/version.h
  torch/csrc/autograd/autograd.h torch/csrc/autograd/custom_function.h
  torch/csrc/autograd/function.h torch/csrc/autograd/generated/variable_factories.h
  torch/csrc/autograd/grad_mode.h torch/csrc/autograd/variable.h torch/csrc/jit/api/module.h
  torch/csrc/jit/frontend/tracer.h torch/csrc/jit/passes/freeze_module.h
  torch/csrc/jit/passes/frozen_graph_optimizations.h torch/csrc/jit/passes/tensorexpr_fuser.h
  torch/csrc/jit/runtime/graph_executor.h torch/csrc/jit/runtime/jit_exception.h
  torch/csrc/inductor/aoti_package/model_package_loader.h torch/csrc/jit/serialization/import.h
  ATen/ATen.h ATen/Context.h ATen/Device.h ATen/Dispatch.h ATen/Functions.h ATen/Operators.h ATen/NativeFunctions.h
  ATen/Parallel.h ATen/ScalarOps.h ATen/Tensor.h ATen/TensorIndexing.h ATen/TensorOptions.h
  ATen/TensorUtils.h ATen/core/LegacyTypeDispatch.h ATen/core/dispatch/Dispatcher.h
  ATen/core/op_registration/op_registration.h ATen/core/Dict.h ATen/core/List.h ATen/core/Tensor.h ATen/core/TensorAccessor.h
  ATen/core/grad_mode.h ATen/core/ivalue.h
  c10/core/Device.h c10/core/DeviceType.h c10/core/DispatchKey.h c10/core/SymInt.h c10/core/GradMode.h c10/core/InferenceMode.h
  c10/core/Layout.h c10/core/MemoryFormat.h c10/core/Scalar.h c10/core/ScalarType.h
  c10/core/TensorOptions.h c10/macros/Export.h c10/macros/Macros.h c10/util/ArrayRef.h
  c10/util/BFloat16.h c10/util/Exception.h c10/util/Half.h c10/util/Logging.h c10/util/Optional.h
  c10/util/StringUtil.h c10/util/complex.h c10/util/intrusive_ptr.h c10/util/irange.h
  c10/util/string_view.h c10/cuda/CUDACachingAllocator.h caffe2/core/macros.h
  # Bindings in other languages ask for these.
  torch/csrc/api/include/torch/serialize/read_adapter_interface.h
  torch/csrc/autograd/anomaly_mode.h torch/csrc/autograd/edge.h torch/csrc/autograd/engine.h
  torch/csrc/autograd/functions/accumulate_grad.h torch/csrc/autograd/profiler.h
  torch/csrc/autograd/profiler_legacy.h torch/csrc/autograd/record_function.h
  torch/csrc/autograd/saved_variable.h torch/csrc/jit/api/compilation_unit.h
  torch/csrc/jit/api/method.h torch/csrc/jit/api/object.h torch/csrc/jit/codegen/cuda/interface.h
  torch/csrc/jit/frontend/code_template.h torch/csrc/jit/ir/ir.h torch/csrc/jit/mobile/import.h
  torch/csrc/jit/mobile/import_data.h torch/csrc/jit/mobile/module.h
  torch/csrc/jit/passes/fixup_trace_scope_blocks.h torch/csrc/jit/passes/normalize_ops.h
  torch/csrc/jit/python/update_graph_executor_opt.h torch/csrc/jit/runtime/operator.h
  torch/csrc/jit/serialization/export.h torch/csrc/jit/serialization/pickle.h
  ATen/BatchedTensorImpl.h ATen/CPUGeneratorImpl.h ATen/DLConvertor.h ATen/DeviceAccelerator.h
  ATen/DeviceGuard.h ATen/NamedTensor.h ATen/PythonTorchFunctionTLS.h
  ATen/autocast_mode.h ATen/code_template.h
  ATen/core/Dimname.h ATen/core/Generator.h ATen/core/function_schema.h
  ATen/core/interned_strings.h ATen/core/jit_type.h ATen/core/stack.h
  ATen/detail/CUDAHooksInterface.h ATen/dlpack.h ATen/record_function.h
  c10/core/Allocator.h c10/core/CPUAllocator.h c10/core/DefaultDtype.h c10/core/DeviceGuard.h
  c10/core/GeneratorImpl.h c10/core/QScheme.h c10/core/Storage.h c10/core/StorageImpl.h
  c10/core/TensorImpl.h c10/core/impl/DeviceGuardImplInterface.h c10/util/FunctionRef.h
  c10/util/flat_hash_map.h c10/util/typeid.h c10/util/variant.h
  caffe2/serialize/read_adapter_interface.h)
set(WEFT_LIBTORCH_FOLDER "${PROJECT_BINARY_DIR}/libtorch")
foreach(header IN LISTS WEFT_LIBTORCH_FRONTEND_HEADERS)
  file(CONFIGURE OUTPUT "${WEFT_LIBTORCH_FOLDER}/${header}"
    CONTENT "#pragma once\n#include <weft_libtorch/nn.h>\n")
endforeach()
foreach(header IN LISTS WEFT_LIBTORCH_HEADERS)
  file(CONFIGURE OUTPUT "${WEFT_LIBTORCH_FOLDER}/${header}"
    CONTENT "#pragma once\n#include <weft_libtorch/all.h>\n")
endforeach()
# These need pybind11, too.
foreach(header torch/extension.h torch/python.h torch/csrc/autograd/python_variable.h)
  file(CONFIGURE OUTPUT "${WEFT_LIBTORCH_FOLDER}/${header}"
    CONTENT "#pragma once\n#include <weft_libtorch/python.h>\n")
endforeach()
install(DIRECTORY "${WEFT_LIBTORCH_FOLDER}/" DESTINATION weft/include/libtorch)
configure_file("${PROJECT_SOURCE_DIR}/cmake/TorchConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/TorchConfig.cmake" @ONLY)
include(CMakePackageConfigHelpers)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/TorchConfigVersion.cmake"
  VERSION 2.13.0 COMPATIBILITY SameMajorVersion)
# Not beside weft-config.cmake: who asks for weft may have another Torch.
install(FILES "${PROJECT_BINARY_DIR}/TorchConfig.cmake" "${PROJECT_BINARY_DIR}/TorchConfigVersion.cmake"
  DESTINATION weft/lib/libtorch/Torch)

// The nanobind side of module.cpp: functions that add their names to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_objects(nanobind::module_& module);   // dtype, device, layout, Generator
void bind_settings(nanobind::module_& module);  // threads, default dtype
void bind_memory(nanobind::module_& module);    // allocators
void bind_shared_memory(nanobind::module_& module);
void bind_shared_buffers(nanobind::module_& module);  // shared memory of data loading
void bind_semaphores(nanobind::module_& module);

}  // namespace weft::py

// What weft.utils.data moves batches with, and watches over its workers with. A buffer is passed as
// a uint8 tensor over all of it.
#include "core/shared_buffer.h"

#include <malloc.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "bindings/caster.h"
#include "bindings/objects.h"
#include "core/error.h"
#include "core/parent_watch.h"
#include "core/shared_memory.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

Tensor whole(Ref<Storage> storage) {
  Layout layout = Layout::contiguous(Dims{static_cast<int64_t>(storage->nbytes())});
  return Tensor(std::move(storage), std::move(layout), DType::U8);
}

Dims dims_of(const std::vector<int64_t>& values) {
  Dims dims;
  for (int64_t value : values) dims.push_back(value);
  return dims;
}

int new_file(size_t nbytes) {
  const ReleaseGil release;
  return new_shared_file("shared memory", nbytes);
}

// What the C library keeps of memory that was freed goes back to the system.
void trim_heap() {
#ifdef __GLIBC__
  const ReleaseGil release;
  malloc_trim(0);
#endif
}

Tensor map_file(int descriptor, size_t nbytes) { return whole(map_shared(descriptor, nbytes)); }

// One tensor per (offset, nbytes, dtype, size, stride), where offset counts bytes of the buffer.
nb::list parts_of(const Tensor& buffer, nb::sequence parts) {
  nb::list tensors;
  const Ref<SharedBufferReader> held(new SharedBufferReader(buffer.storage()));
  for (nb::handle item : parts) {
    const auto part = nb::cast<nb::tuple>(item);
    WEFT_CHECK_TYPE(part.size() == 5, "shared buffer: expected 5 items, got ", part.size());
    Ref<Storage> storage = held->part(nb::cast<size_t>(part[0]), nb::cast<size_t>(part[1]));
    Layout layout{dims_of(nb::cast<std::vector<int64_t>>(part[3])),
                  dims_of(nb::cast<std::vector<int64_t>>(part[4])), 0};
    WEFT_CHECK(layout.sizes.size() == layout.strides.size(),
               "shared buffer: expected as many strides as sizes");
    const Tensor empty(std::move(storage), Layout::contiguous(Dims{0}), nb::cast<DType>(part[2]));
    tensors.append(nb::cast(empty.with_layout(std::move(layout), "shared buffer")));
  }
  return tensors;
}

}  // namespace

void bind_shared_buffers(nb::module_& m) {
  m.attr("SHARED_BUFFER_HEADER") = kSharedBufferHeader;
  m.def("_shared_file", new_file, nb::arg("nbytes"));
  m.def("_map_shared", map_file, nb::arg("descriptor"), nb::arg("nbytes"));
  m.def("_trim_heap", trim_heap);
  m.def("_watch_parent", watch_parent, nb::arg("parent"), nb::arg("direct"), nb::arg("socket"),
        nb::arg("patience"));
  m.def("_set_watch_patience", set_watch_patience);
  m.def("_shared_buffer_parts", parts_of, nb::arg("buffer"), nb::arg("parts"));
  m.def("_shared_buffer_state", [](const Tensor& buffer) {
    return static_cast<uint32_t>(shared_buffer_state(*buffer.storage()));
  });
  m.def("_mark_shared_buffer", [](const Tensor& buffer, uint32_t state) {
    mark_shared_buffer(*buffer.storage(), static_cast<BufferState>(state));
  });
}

}  // namespace weft::py

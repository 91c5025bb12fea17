// Shared memory in Python: what weft.storage and weft.multiprocessing are made of. A storage is
// passed as any tensor over it, and given as a uint8 tensor over all of it.
#include "core/shared_memory.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <utility>
#include <vector>

#include "bindings/caster.h"
#include "bindings/objects.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/mutex.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

Tensor bytes_of(Ref<Storage> storage) {
  Layout layout = Layout::contiguous(Dims{static_cast<int64_t>(storage->nbytes())});
  return Tensor(std::move(storage), std::move(layout), DType::U8);
}

SharingStrategy strategy_of(bool named) {
  return named ? SharingStrategy::FileSystem : SharingStrategy::FileDescriptor;
}

size_t size_arg(const char* op, int64_t nbytes) {
  WEFT_CHECK_VALUE(nbytes >= 0, op, ": expected at least 0 bytes, got ", nbytes);
  return static_cast<size_t>(nbytes);
}

// Blocks that operators without the interpreter's lock may still read and write.
using OldBlocks = std::vector<std::unique_ptr<Storage::OldBlock>>;
OldBlocks& left_blocks() {
  static auto* const blocks = new OldBlocks;
  return *blocks;
}
constinit Mutex left_mutex;

void drop_left_blocks() {
  OldBlocks blocks;  // whose deleters may call Python
  const std::lock_guard lock(left_mutex);
  ReleaseGil::when_none(nullptr);
  blocks.swap(left_blocks());
}

// With the interpreter's lock: the feeder thread of a queue moves a storage while others use it.
// Operators that begin later see the new address; the old block stays while older ones run.
void share(const Tensor& tensor, bool named) {
  auto old = std::make_unique<Storage::OldBlock>();
  share_storage(*tensor.storage(), strategy_of(named), old.get());
  if (ReleaseGil::count() == 0 || old->empty()) return;
  const std::lock_guard lock(left_mutex);
  left_blocks().push_back(std::move(old));
  ReleaseGil::when_none(drop_left_blocks);
}

// Files of gigabytes are filled here, and a lock waited for: other threads run meanwhile.
Tensor new_shared(int64_t nbytes, bool named) {
  const size_t size = size_arg("_new_shared", nbytes);
  const ReleaseGil release;
  return bytes_of(new_shared_storage(size, strategy_of(named)));
}

Tensor adopt_descriptor(int fd, int64_t nbytes, bool read_only) {
  const size_t size = size_arg("_new_shared_fd_cpu", nbytes);
  const ReleaseGil release;
  return bytes_of(adopt_shared_storage(fd, size, read_only));
}

Tensor adopt_name(const std::string& manager, const std::string& name, int64_t nbytes,
                  bool read_only) {
  const size_t size = size_arg("_new_shared_filename_cpu", nbytes);
  const ReleaseGil release;
  return bytes_of(adopt_shared_storage(manager, name, size, read_only));
}

// (descriptor or -1, device, inode, offset, in a heap); None where there is no segment.
nb::object place(const Tensor& tensor) {
  const SharedSegment* segment = shared_segment(*tensor.storage());
  if (segment == nullptr) return nb::none();
  const SharedKey& key = segment->key();
  return nb::make_tuple(segment->fd(), key.device, key.inode, key.offset,
                        segment->heap() != nullptr);
}

std::optional<Tensor> find_shared(uint64_t device, uint64_t inode, uint64_t offset) {
  Ref<Storage> storage = find_shared_storage({device, inode, offset});
  if (!storage) return std::nullopt;
  return bytes_of(std::move(storage));
}

nb::tuple name(const Tensor& tensor) {
  std::string manager;
  std::string found = shared_name(*tensor.storage(), &manager);
  return nb::make_tuple(manager, found);
}

}  // namespace

void bind_shared_memory(nb::module_& module) {
  at_fork(ForkRank::Threads, {nullptr, nullptr, ReleaseGil::forked});
  module.def("_share", &share, nb::arg("tensor"), nb::arg("named"));
  module.def("_new_shared", &new_shared, nb::arg("nbytes"), nb::arg("named"));
  module.def("_adopt_descriptor", &adopt_descriptor);
  module.def("_adopt_name", &adopt_name);
  module.def("_shared_place", &place);
  module.def("_shared_name", &name);
  module.def("_shared_incref",
             [](const Tensor& tensor) { issue_shared_handle(*tensor.storage()); });
  module.def("_shared_decref",
             [](const Tensor& tensor) { withdraw_shared_handle(*tensor.storage()); });
  module.def("_find_shared", &find_shared);
  module.def("_shared_awaited", &shared_handles_left);
  module.def("_shared_count", &shared_segment_count);
  module.def("_leave_shared", &leave_shared_heaps);
}

}  // namespace weft::py

#include "core/shared_buffer.h"

#include <atomic>
#include <utility>

#include "core/error.h"
#include "core/fork.h"
#include "core/shared_memory.h"

namespace weft {
namespace {

std::atomic<uint64_t> forks{0};

// Counted before the fork, so that leases of the parent and their copies in the child are both old.
uint64_t forks_so_far() { return forks.load(std::memory_order_relaxed); }
[[maybe_unused]] const bool slab_knows_forks = at_fork(ForkRank::Segments, {[] { ++forks; }});

std::atomic<uint32_t>& state_word(const Storage& slab) {
  static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free);
  return *static_cast<std::atomic<uint32_t>*>(slab.data());
}

void unmap(void* context) { delete static_cast<SharedSegment*>(context); }

void drop_lease(void* context) { delete static_cast<Ref<SlabLease>*>(context); }

}  // namespace

Ref<Storage> map_shared(int descriptor, size_t nbytes) {
  auto segment = SharedSegment::over("map_shared", descriptor, nbytes);
  void* data = segment->data();
  return Storage::wrap(data, nbytes, unmap, segment.release(), kForeign | kShared);
}

SlabState slab_state(const Storage& slab) {
  return static_cast<SlabState>(state_word(slab).load(std::memory_order_acquire));
}

void mark_slab(const Storage& slab, SlabState state) {
  state_word(slab).store(static_cast<uint32_t>(state), std::memory_order_release);
}

SlabLease::SlabLease(Ref<Storage> slab) : slab_(std::move(slab)), forks_(forks_so_far()) {}

SlabLease::~SlabLease() {
  mark_slab(*slab_, forks_ == forks_so_far() ? SlabState::free : SlabState::retired);
}

Ref<Storage> SlabLease::part(size_t offset, size_t nbytes) {
  const size_t end = slab_->nbytes();
  WEFT_CHECK(offset >= kSlabHeader && offset <= end && nbytes <= end - offset,
             "slab: expected a part of ", end, " bytes behind the header, got ", nbytes,
             " bytes at ", offset);
  return Storage::wrap(static_cast<char*>(slab_->data()) + offset, nbytes, drop_lease,
                       new Ref<SlabLease>(this), kForeign | kShared);
}

bool is_slab_part(const Storage& storage) noexcept {
  return storage.context_of(drop_lease) != nullptr;
}

}  // namespace weft

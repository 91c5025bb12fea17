// Slabs: shared memory that one process fills and another one reads, used again and again.
//
// A slab begins with a state word. The writer fills a slab that is free, marks it busy and tells
// the reader, which lays storages over parts of it. When the last of them dies, the reader's
// process marks the slab free, with no message. If the reader's process forked in the meantime the
// child may look at the same bytes, so the slab is retired instead: nobody writes to it again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/ref.h"
#include "core/storage.h"

namespace weft {

enum class SlabState : uint32_t { free = 0, busy = 1, retired = 2 };

constexpr size_t kSlabHeader = 64;  // bytes before the first part; keeps parts aligned

// Maps nbytes of a file for all processes that map it; the descriptor may be closed afterwards.
// RuntimeError when the system refuses. Nobody finds the storage by its bytes.
Ref<Storage> map_shared(int descriptor, size_t nbytes);

SlabState slab_state(const Storage& slab);
void mark_slab(const Storage& slab, SlabState state);

// Held by every storage over a part of one filling of a slab.
class SlabLease final : public RefCounted {
 public:
  explicit SlabLease(Ref<Storage> slab);
  ~SlabLease();
  // A storage over nbytes from `offset` on, which keeps the lease alive.
  Ref<Storage> part(size_t offset, size_t nbytes);

 private:
  Ref<Storage> slab_;
  uint64_t forks_;  // of this process before the lease
};

// Whether a storage is part of a lease: its place is the slab's, for as long as it lives.
bool is_slab_part(const Storage& storage) noexcept;

}  // namespace weft

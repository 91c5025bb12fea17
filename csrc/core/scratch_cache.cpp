#include "core/scratch_cache.h"

#include <utility>
#include <vector>

#include "core/fork.h"

namespace weft {
namespace {

constexpr size_t kMostKept = size_t{4} << 20;

// What one thread keeps. Locked by others only while they drop it; blocks are freed outside of the
// lock, since an allocator may wait for a lock of its own (the interpreter's).
struct Slot {
  Mutex mutex;
  ScratchBlock idle;

  ScratchBlock exchange(const ScratchBlock& block) {
    const std::lock_guard guard(mutex);
    return std::exchange(idle, block);
  }
};

GlobalMutex slots_mutex(ForkRank::Scratch);

// Every thread's. Never destroyed: threads may outlive static destruction.
std::vector<Slot*>& slots() {
  static auto* const made = new std::vector<Slot*>;
  return *made;
}

// The slots of threads that a child does not have must be whole: others may drop them.
[[maybe_unused]] const bool scratch_cache_knows_forks =
    at_fork(ForkRank::Scratch, {[] {
                                  for (Slot* slot : slots()) slot->mutex.lock();
                                },
                                [] {
                                  for (Slot* slot : slots()) slot->mutex.unlock();
                                },
                                [] {
                                  for (Slot* slot : slots()) slot->mutex.unlock();
                                }});

void free_block(const ScratchBlock& block) noexcept {
  if (block.data != nullptr) block.allocator->free(block.data, block.nbytes);
}

thread_local constinit Slot* tls_slot = nullptr;
thread_local constinit bool tls_ended = false;

struct SlotExit {
  ~SlotExit() {
    Slot* slot = std::exchange(tls_slot, nullptr);
    tls_ended = true;
    {
      const std::lock_guard guard(slots_mutex);
      std::erase(slots(), slot);
    }
    free_block(slot->exchange({}));
    delete slot;
  }
};

// Null when the thread is ending.
Slot* this_slot() {
  if (tls_slot != nullptr || tls_ended) return tls_slot;
  auto* slot = new Slot;
  {
    const std::lock_guard guard(slots_mutex);
    slots().push_back(slot);
  }
  thread_local SlotExit at_exit;
  (void)at_exit;
  return tls_slot = slot;
}

// Keeps the block unless its allocator is no longer the current one; returns what has to be freed.
ScratchBlock keep(Slot& slot, const ScratchBlock& block) {
  const std::lock_guard guard(slot.mutex);
  // Under the lock: whoever installs another allocator looks into this slot after that.
  if (block.allocator != &cpu_allocator()) return block;
  return std::exchange(slot.idle, block);
}

}  // namespace

ScratchBlock take_scratch(size_t nbytes) {
  Allocator& allocator = cpu_allocator();
  if (&allocator != &caching_allocator()) [[unlikely]] {
    if (Slot* slot = this_slot()) {
      const ScratchBlock cached = slot->exchange({});
      if (cached.allocator == &allocator && cached.nbytes >= nbytes) return cached;
      free_block(cached);
    }
  }
  return {&allocator, allocator.allocate(nbytes), nbytes};
}

void give_scratch(const ScratchBlock& block) noexcept {
  const bool keeps = block.allocator != &caching_allocator() && block.nbytes <= kMostKept;
  Slot* slot = keeps ? tls_slot : nullptr;
  free_block(slot != nullptr ? keep(*slot, block) : block);
}

void detail::drop_scratch() noexcept {
  std::vector<ScratchBlock> dropped;
  {
    const std::lock_guard guard(slots_mutex);
    for (Slot* slot : slots()) dropped.push_back(slot->exchange({}));
  }
  for (const ScratchBlock& block : dropped) free_block(block);
}

}  // namespace weft

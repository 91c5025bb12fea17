// Storages over shared segments: who has which bytes, found again by what they are.
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "core/fork.h"
#include "core/shared_buffer.h"
#include "core/shared_heap.h"
#include "core/shared_memory.h"

namespace weft {
namespace {

// One lock for segments, heaps and what is known of them. While it is held no function of anybody
// else runs (deleters take the interpreter's lock, and a process may fork meanwhile).
struct Shared {
  std::mutex mutex;
  struct Entry {
    Storage* storage;  // alive, or waiting for the lock to die
    SharedSegment* segment;
  };
  std::map<SharedKey, Entry> storages;
  bool left = false;  // counts in heaps were taken away before the end of the process

  Shared();
};

Shared& shared() {
  static Shared* const state = new Shared;  // storages may outlive static objects
  return *state;
}

void give_back(void* context) {
  auto* segment = static_cast<SharedSegment*>(context);
  const std::lock_guard guard(shared().mutex);
  const auto found = shared().storages.find(segment->key());
  // Others may have found the same bytes after the last reference to this storage went.
  if (found != shared().storages.end() && found->second.segment == segment)
    shared().storages.erase(found);
  if (shared().left && segment->heap() != nullptr) return;
  delete segment;
}

template <class Fn>
void for_each_in_heaps(Fn&& fn) {
  for (const auto& [key, entry] : shared().storages) {
    if (SharedHeap* heap = entry.segment->heap()) fn(*heap, entry.segment->slot());
  }
}

// A child has the segments of its parent, so it counts as their user before it exists.
void before_fork() {
  shared().mutex.lock();
  for_each_in_heaps([](SharedHeap& heap, uint32_t slot) { heap.add_user(slot); });
}
void after_fork_in_parent() { shared().mutex.unlock(); }
void after_fork_in_child() {
  SharedHeap::forked();
  shared().mutex.unlock();
}

[[maybe_unused]] const bool shared_storage_knows_forks =
    at_fork(ForkRank::Segments, {before_fork, after_fork_in_parent, after_fork_in_child});

Shared::Shared() { std::atexit(leave_shared_heaps); }

void add(Storage& storage, SharedSegment& segment) {
  storage.set(kShared);
  storage.allow_try_retain();
  shared().storages[segment.key()] = {&storage, &segment};
}

// The caller holds the lock.
Ref<Storage> find(const SharedKey& key) {
  const auto found = shared().storages.find(key);
  if (found == shared().storages.end() || !found->second.storage->try_retain()) return nullptr;
  return Ref<Storage>::adopt(found->second.storage);
}

Ref<Storage> storage_over(std::unique_ptr<SharedSegment> segment, bool read_only) {
  const uint8_t flags = read_only ? kShared | kReadOnly : kShared;
  void* data = segment->data();
  const size_t nbytes = segment->nbytes();
  SharedSegment* context = segment.release();
  Ref<Storage> storage = Storage::wrap(data, nbytes, give_back, context, flags);
  add(*storage, *context);
  return storage;
}

Ref<Storage> empty_storage() {
  Ref<Storage> storage = Storage::allocate(0);
  storage->set(kShared);
  return storage;
}

}  // namespace

void share_storage(Storage& storage, SharingStrategy strategy, Storage::OldBlock* old) {
  constexpr const char* op = "share_memory_";
  const std::lock_guard guard(shared().mutex);
  // Parts of buffers cannot be sent: what has to stay where it is gets memory of its own.
  if (storage.has(kShared) && !is_part_of_shared_buffer(storage)) return;
  if (storage.nbytes() == 0) return storage.set(kShared);
  // Before the work; replace looks again.
  WEFT_CHECK(storage.holds() == 0, op,
             ": expected memory that only tensors use, got a storage whose address is held outside "
             "(numpy(), a buffer or DLPack); share a clone()");
  auto segment = SharedSegment::create(op, storage.nbytes(), storage.data(), strategy);
  storage.replace(op, segment->data(), give_back, segment.get(), old);
  add(storage, *segment.release());
}

void share_storage(Storage& storage, SharingStrategy strategy) {
  Storage::OldBlock old;
  share_storage(storage, strategy, &old);
}

Ref<Storage> new_shared_storage(size_t nbytes, SharingStrategy strategy) {
  if (nbytes == 0) return empty_storage();
  const std::lock_guard guard(shared().mutex);
  return storage_over(SharedSegment::create("_new_shared", nbytes, nullptr, strategy), false);
}

Ref<Storage> adopt_shared_storage(int fd, size_t nbytes, bool read_only) {
  constexpr const char* op = "_new_shared_fd_cpu";
  const std::lock_guard guard(shared().mutex);
  auto segment = SharedSegment::adopt(op, fd, nbytes, read_only);
  if (Ref<Storage> known = find(segment->key())) return known;
  return storage_over(std::move(segment), read_only);
}

Ref<Storage> adopt_shared_storage(const std::string& manager, const std::string& name,
                                  size_t nbytes, bool read_only) {
  constexpr const char* op = "_new_shared_filename_cpu";
  const std::lock_guard guard(shared().mutex);
  uint32_t slot = 0;
  SharedHeap& heap = SharedHeap::find(manager, name, &slot);
  Ref<Storage> storage = find(heap.key_of(op, slot, nbytes));
  if (!storage) storage = storage_over(heap.adopt(op, slot, read_only), read_only);
  heap.use_handle(slot);
  return storage;
}

Ref<Storage> find_shared_storage(const SharedKey& key) {
  const std::lock_guard guard(shared().mutex);
  return find(key);
}

bool shared_handles_left() {
  const std::lock_guard guard(shared().mutex);
  return SharedHeap::handles_left();
}

SharedSegment* shared_segment(const Storage& storage) noexcept {
  return static_cast<SharedSegment*>(storage.context_of(give_back));
}

size_t shared_segment_count() { return shared().storages.size(); }

void leave_shared_heaps() {
  const std::lock_guard guard(shared().mutex);
  if (std::exchange(shared().left, true)) return;
  for_each_in_heaps([](SharedHeap& heap, uint32_t slot) { heap.stop_using(slot); });
}

std::string shared_name(const Storage& storage, std::string* manager) {
  const std::lock_guard guard(shared().mutex);
  const SharedSegment* segment = shared_segment(storage);
  SharedHeap* heap = segment != nullptr ? segment->heap() : nullptr;
  WEFT_CHECK(heap != nullptr, "_share_filename_cpu_: expected a storage of the strategy ",
             "file_system, got one without a name");
  *manager = heap->manager();
  return heap->name_of(segment->slot());
}

void issue_shared_handle(const Storage& storage) {
  const std::lock_guard guard(shared().mutex);
  const SharedSegment* segment = shared_segment(storage);
  if (segment != nullptr && segment->heap() != nullptr)
    segment->heap()->issue_handle(segment->slot());
}

void withdraw_shared_handle(const Storage& storage) {
  const std::lock_guard guard(shared().mutex);
  const SharedSegment* segment = shared_segment(storage);
  if (segment != nullptr && segment->heap() != nullptr)
    segment->heap()->use_handle(segment->slot());
}

}  // namespace weft

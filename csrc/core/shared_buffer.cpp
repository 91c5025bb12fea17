#include "core/shared_buffer.h"

#include <atomic>
#include <utility>

#include "core/error.h"
#include "core/fork.h"
#include "core/shared_memory.h"

namespace weft {
namespace {

std::atomic<uint64_t> forks{0};

// Counted before the fork: readers of the parent and their copies in the child are both old.
uint64_t forks_so_far() { return forks.load(std::memory_order_relaxed); }
[[maybe_unused]] const bool counts_forks = at_fork(ForkRank::Segments, {[] { ++forks; }});

std::atomic<uint32_t>& state_word(const Storage& buffer) {
  static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free);
  return *static_cast<std::atomic<uint32_t>*>(buffer.data());
}

void unmap(void* context) { delete static_cast<SharedSegment*>(context); }

void drop_reader(void* context) { delete static_cast<Ref<SharedBufferReader>*>(context); }

}  // namespace

Ref<Storage> map_shared(int descriptor, size_t nbytes) {
  auto segment = SharedSegment::over("map_shared", descriptor, nbytes);
  void* data = segment->data();
  return Storage::wrap(data, nbytes, unmap, segment.release(), kForeign | kShared);
}

BufferState shared_buffer_state(const Storage& buffer) {
  return static_cast<BufferState>(state_word(buffer).load(std::memory_order_acquire));
}

void mark_shared_buffer(const Storage& buffer, BufferState state) {
  state_word(buffer).store(static_cast<uint32_t>(state), std::memory_order_release);
}

SharedBufferReader::SharedBufferReader(Ref<Storage> buffer)
    : buffer_(std::move(buffer)), forks_(forks_so_far()) {}

SharedBufferReader::~SharedBufferReader() {
  mark_shared_buffer(*buffer_, forks_ == forks_so_far() ? BufferState::free : BufferState::retired);
}

Ref<Storage> SharedBufferReader::part(size_t offset, size_t nbytes) {
  const size_t end = buffer_->nbytes();
  WEFT_CHECK(offset >= kSharedBufferHeader && offset <= end && nbytes <= end - offset,
             "shared buffer: expected a part of ", end, " bytes behind the header, got ", nbytes,
             " bytes at ", offset);
  return Storage::wrap(static_cast<char*>(buffer_->data()) + offset, nbytes, drop_reader,
                       new Ref<SharedBufferReader>(this), kForeign | kShared);
}

bool is_part_of_shared_buffer(const Storage& storage) noexcept {
  return storage.context_of(drop_reader) != nullptr;
}

}  // namespace weft

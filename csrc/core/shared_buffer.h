// Shared buffers: shared memory that one process fills and another one reads, used again and again.
//
// A buffer begins with a state word. The writer fills a free buffer, marks it busy and tells the
// reader, which lays storages over parts of it. When the last of them dies, the reader's process
// marks the buffer free, with no message. If the reader's process forked in the meantime the child
// may look at the same bytes, so the buffer is retired instead: nobody writes to it again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/ref.h"
#include "core/storage.h"

namespace weft {

enum class BufferState : uint32_t { free = 0, busy = 1, retired = 2 };

constexpr size_t kSharedBufferHeader = 64;  // bytes before the first part; keeps parts aligned

// Maps nbytes of a file for all processes that map it; the descriptor may be closed afterwards.
// RuntimeError when the system refuses. Nobody finds the storage by its bytes.
Ref<Storage> map_shared(int descriptor, size_t nbytes);

BufferState shared_buffer_state(const Storage& buffer);
void mark_shared_buffer(const Storage& buffer, BufferState state);

// Reads one filling of a buffer: every storage over a part of it holds the reader.
class SharedBufferReader final : public RefCounted {
 public:
  explicit SharedBufferReader(Ref<Storage> buffer);
  ~SharedBufferReader();
  // A storage over nbytes from `offset` on, which keeps the reader alive.
  Ref<Storage> part(size_t offset, size_t nbytes);

 private:
  Ref<Storage> buffer_;
  uint64_t forks_;  // of this process before the reader
};

// Whether a storage is over a part of a buffer: its place is the buffer's, for as long as it lives.
bool is_part_of_shared_buffer(const Storage& storage) noexcept;

}  // namespace weft

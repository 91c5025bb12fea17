// Memory that processes share: stretches of anonymous files, mapped.
//
// Nothing here has a name in a file system, so nothing is left behind when processes are killed:
// the system frees a file with the last descriptor and the last mapping of it. How others find a
// segment is for the two kinds to say:
//
//   own file     one file per segment; its descriptor is sent over a socket
//   in a heap    one file for up to 1024 segments (shared_heap.h); found by the name of the heap's
//                descriptor, so that many segments cost one descriptor
//
// Room is taken when a segment is made: a full system raises then, and no access faults later.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/ref.h"
#include "core/storage.h"

namespace weft {

class SharedHeap;

enum class SharingStrategy : uint8_t {
  FileDescriptor,  // own files, until half of the descriptors are in use; then heaps
  FileSystem,      // heaps
};

// Which bytes of the machine: equal in every process.
struct SharedKey {
  uint64_t device = 0, inode = 0, offset = 0;
  auto operator<=>(const SharedKey&) const = default;
};

class SharedSegment {
 public:
  // Bytes of `contents`, or zeros where it is null. RuntimeError where the system has no room, no
  // descriptor, or no address space left: the text names the limit and what to do.
  static std::unique_ptr<SharedSegment> create(const char* op, size_t nbytes, const void* contents,
                                               SharingStrategy strategy);
  // Maps the file of a descriptor, which it takes over also when it raises.
  static std::unique_ptr<SharedSegment> adopt(const char* op, int fd, size_t nbytes,
                                              bool read_only);
  // Maps the file of a descriptor, which stays the caller's.
  static std::unique_ptr<SharedSegment> over(const char* op, int fd, size_t nbytes);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  void* data() const noexcept { return data_; }
  size_t nbytes() const noexcept { return nbytes_; }
  const SharedKey& key() const noexcept { return key_; }
  // Of an own file; -1 in a heap, and where it was closed because descriptors ran short.
  int fd() const noexcept { return fd_; }
  // Null with an own file.
  SharedHeap* heap() const noexcept { return heap_; }
  uint32_t slot() const noexcept { return slot_; }
  void close_descriptor() noexcept;

 private:
  friend class SharedHeap;
  SharedSegment() = default;
  void map(const char* op, int fd, size_t nbytes, size_t offset, bool read_only);

  void* data_ = nullptr;
  size_t nbytes_ = 0;
  SharedKey key_;
  int fd_ = -1;
  SharedHeap* heap_ = nullptr;  // kept open by the count of its segments
  uint32_t slot_ = 0;
};

// A descriptor of a new anonymous file of zeros, which have their room already. RuntimeError as
// above.
int new_shared_file(const char* op, size_t nbytes);

// ---- storages ----

// Moves the bytes into shared memory; every tensor over the storage follows. Nothing happens where
// they are there already. RuntimeError while the address is held outside, or without room. The
// block they leave goes to `old`; who knows that no operator is at work on it may drop it at once.
void share_storage(Storage& storage, SharingStrategy strategy, Storage::OldBlock* old);
void share_storage(Storage& storage, SharingStrategy strategy);
Ref<Storage> new_shared_storage(size_t nbytes, SharingStrategy strategy);
// The storage over the file of a descriptor, which it takes over: the one that this process has
// already, where it has one.
Ref<Storage> adopt_shared_storage(int fd, size_t nbytes, bool read_only);
// The storage of a name of SharedHeap. The name's handle is used up.
Ref<Storage> adopt_shared_storage(const std::string& manager, const std::string& name,
                                  size_t nbytes, bool read_only);
// The storage over these bytes, where this process has one.
Ref<Storage> find_shared_storage(const SharedKey& key);
// Whether names that this process gave away have not all been adopted yet.
bool shared_handles_left();
// Null where the storage is not shared through this file (and where it has no bytes).
SharedSegment* shared_segment(const Storage& storage) noexcept;
// The name of a storage in a heap, and by whom it can be found. RuntimeError for own files. A
// name is good while somebody uses the storage; a handle lasts until the name is adopted once.
std::string shared_name(const Storage& storage, std::string* manager);
void issue_shared_handle(const Storage& storage);
void withdraw_shared_handle(const Storage& storage);
// How many segments this process has mapped.
size_t shared_segment_count();
// This process is about to end without freeing its objects: others need not wait for it.
void leave_shared_heaps();

// ---- parts, for both kinds ----

namespace detail {

// A new empty file without a name. RuntimeError when there is no descriptor left.
int open_anonymous(const char* op);
// Gives [offset, offset + nbytes) of the file memory, with these contents or zeros.
void fill_file(const char* op, int fd, size_t offset, size_t nbytes, const void* contents);
SharedKey key_of_file(const char* op, int fd, size_t* size);
// Whether a new descriptor with this number shows that at least this share of all is in use: the
// system gives out the lowest free number.
bool descriptors_short(int fd, double share);
size_t round_to_page(size_t nbytes) noexcept;

}  // namespace detail
}  // namespace weft

// SharedHeap: an anonymous file with many segments in it.
//
//   [ header: identity, slots | segment | segment | hole | segment ... ]
//
// Places are never used twice. A slot counts who uses its segment, in the shared header: one for
// every process that has mapped it and one for every handle (a name on its way to a process). Who
// takes the last count away gives the memory back by making a hole. A process that is killed does
// not count down, so its segments stay until the heap goes, which is when no process has it open.
//
// A process has a heap open while it has a segment of it or has handed out handles that nobody
// used. All functions are called with the lock of shared_storage.cpp held.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/shared_memory.h"

namespace weft {

class SharedHeap {
 public:
  static constexpr uint32_t kSlots = 1024;

  // In the heap that this process fills at the moment.
  static std::unique_ptr<SharedSegment> create(const char* op, size_t nbytes, const void* contents);
  // The heap of a name; opened where this process has not.
  static SharedHeap& find(const std::string& manager, const std::string& name, uint32_t* slot);
  // Where the segment of a slot lies.
  SharedKey key_of(const char* op, uint32_t slot, size_t nbytes) const;
  std::unique_ptr<SharedSegment> adopt(const char* op, uint32_t slot, bool read_only);

  // A name keeps its segment alive until somebody adopts it.
  void issue_handle(uint32_t slot) noexcept;
  void use_handle(uint32_t slot) noexcept;
  // How other processes open the heap, and the name of a segment in it.
  std::string manager() const;
  std::string name_of(uint32_t slot) const;

  // This process has unmapped the segment.
  void leave(uint32_t slot) noexcept;
  // One more user: a child that is about to be forked.
  void add_user(uint32_t slot) noexcept;
  void drop_user(uint32_t slot) noexcept;
  // As drop_user, but what nobody else uses stays: this process may still look at it.
  void stop_using(uint32_t slot) noexcept { header_->slots[slot].users.fetch_sub(1); }

  // In a new child of fork: what the parent fills and hands out is not the child's business.
  static void forked();
  // Closes heaps without use.
  static void prune();
  static size_t open_count();
  static bool handles_left();

  ~SharedHeap();
  SharedHeap(const SharedHeap&) = delete;
  SharedHeap& operator=(const SharedHeap&) = delete;

 private:
  bool awaited() noexcept;
  struct Slot {
    std::atomic<uint32_t> users, handles;
    uint64_t offset, nbytes;
  };
  struct Header {
    uint64_t magic, identity[2];
    std::atomic<uint32_t> used;  // slots
    Slot slots[kSlots];
  };
  SharedHeap() = default;
  static SharedHeap& open_new(const char* op);
  static std::unique_ptr<SharedHeap> open_path(const std::string& path, const uint64_t identity[2]);
  void map_header(const char* op);
  size_t space_for(size_t nbytes) const noexcept;

  int fd_ = -1;
  SharedKey key_;
  Header* header_ = nullptr;
  size_t end_ = 0;                // of the file, where this process fills it
  uint32_t segments_ = 0;         // mapped in this process
  std::vector<uint32_t> issued_;  // slots of which this process handed out handles
};

}  // namespace weft

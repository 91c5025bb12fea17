// Storage: bytes with an owner. It knows no dtype and no shape; tensors are layouts over it.
//
// Our own blocks, NumPy arrays, DLPack capsules, buffers, mapped files differ only in the deleter.
// Threads: the reference count is atomic; the bytes are the user's business.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/allocator.h"
#include "core/device.h"
#include "core/ref.h"

namespace weft {

enum StorageFlags : uint8_t {
  kReadOnly = 1,  // writing raises
  kShared = 2,    // in memory shared by processes
  kPinned = 4,
  kForeign = 8,  // memory made by somebody else: cannot be resized
};

class Storage final : public RefCounted {
 public:
  // New memory from the current allocator of the device; contents undefined.
  static Ref<Storage> allocate(size_t nbytes, Device device = {});
  // Wraps memory; deleter(context) runs exactly once, after the last reference, on any thread.
  using Deleter = void (*)(void* context);
  static Ref<Storage> wrap(void* data, size_t nbytes, Deleter deleter, void* context,
                           uint8_t flags = kForeign, Device device = {});

  void* data() const noexcept { return data_; }
  size_t nbytes() const noexcept { return nbytes_; }
  Device device() const noexcept { return device_; }
  bool has(StorageFlags flag) const noexcept { return flags_ & flag; }
  void set(StorageFlags flag) noexcept { flags_ |= flag; }

  // Counts writes through any tensor over this storage; autograd compares it to catch
  // in-place changes of saved values.
  uint32_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  void bump_version() noexcept { version_.fetch_add(1, std::memory_order_relaxed); }

  // Keeps the common prefix of the contents. Raises RuntimeError for foreign memory.
  void resize(size_t nbytes);

  static void destroy(Storage* storage);

 private:
  Storage() = default;
  ~Storage() = default;
  void release_block() noexcept;

  void* data_ = nullptr;
  size_t nbytes_ = 0;
  Device device_;
  uint8_t flags_ = 0;
  std::atomic<uint32_t> version_{0};
  Allocator* allocator_ = nullptr;  // set when the block is ours
  Deleter deleter_ = nullptr;       // set when it is foreign
  void* context_ = nullptr;
};

}  // namespace weft

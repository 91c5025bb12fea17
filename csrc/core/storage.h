// Storage: bytes with an owner. It knows no dtype and no shape; tensors are layouts over it.
//
// Our own blocks, NumPy arrays, DLPack capsules, buffers, mapped files differ only in the deleter.
// Threads: the reference count is atomic; the bytes are the user's business.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "core/allocator.h"
#include "core/backend.h"
#include "core/ref.h"

namespace weft {

enum StorageFlags : uint8_t {
  kReadOnly = 1,  // writing raises
  kShared = 2,    // in memory shared by processes
  kPinned = 4,
  kForeign = 8,           // memory made by somebody else, who may write at any time
  kExposed = 16,          // data_ptr() gave the address away: somebody may write at any time
  kMadeInTransform = 32,  // allocated while `transforms_under_way` (core/transforms.h)
};

// What is derived from the contents of a storage and kept with it (ops/packed_weight.h).
class Derived : public RefCounted {
 public:
  virtual ~Derived() = default;
};

class Storage final : public RefCounted {
 public:
  // New memory from the current allocator of the device, which is available; contents undefined.
  static Ref<Storage> allocate(size_t nbytes, Device device = {});
  // Wraps memory; deleter(context) runs exactly once, after the last reference, on any thread.
  // Without kForeign nobody but tensors over the storage writes to it.
  using Deleter = void (*)(void* context);
  static Ref<Storage> wrap(void* data, size_t nbytes, Deleter deleter, void* context,
                           uint8_t flags = kForeign, Device device = {});

  // For the host to read and write. Raises NotImplementedError for memory of another device.
  void* data() const {
    if (!on_cpu()) [[unlikely]]
      refuse_host_access(device());
    return data_;
  }
  // The same as a number: to compare, and to hand to the device.
  void* address() const noexcept { return data_; }
  size_t nbytes() const noexcept { return nbytes_; }
  Device device() const noexcept { return stream_.device; }
  bool on_cpu() const noexcept { return stream_.device.type == DeviceType::CPU; }
  uint8_t flags() const noexcept { return flags_.load(std::memory_order_relaxed); }
  bool has(StorageFlags flag) const noexcept { return flags() & flag; }
  void set(StorageFlags flag) noexcept { flags_.fetch_or(flag, std::memory_order_relaxed); }

  // Counts writes through the tensors over this storage, but for those that count apart
  // (TensorImpl::counts_apart); autograd compares it to catch in-place changes of saved values.
  uint32_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  void bump_version() noexcept { version_.fetch_add(1, std::memory_order_relaxed); }
  void forget_writes() noexcept { version_.store(0, std::memory_order_relaxed); }

  // Grows with all that may change the bytes: the version, writes that count apart, holders.
  uint32_t changes() const noexcept {
    return version() + uncounted_.load(std::memory_order_relaxed);
  }
  void note_change() noexcept { uncounted_.fetch_add(1, std::memory_order_relaxed); }
  // Whether everything that may change the bytes shows in changes().
  bool shows_changes() const noexcept {
    return on_cpu() && holds() == 0 && (flags() & (kShared | kForeign | kExposed)) == 0;
  }
  Ref<Derived>& derived() noexcept { return derived_; }  // its users lock

  // Whose block it is; null for wrapped memory.
  Allocator* allocator() const noexcept { return allocator_; }

  // Context of wrapped memory whose deleter is this one; null for other memory.
  void* context_of(Deleter deleter) const noexcept {
    return allocator_ == nullptr && deleter_ == deleter ? context_ : nullptr;
  }

  // Keeps the common prefix of the contents. Raises RuntimeError for foreign, read-only and
  // exported memory. Tensors over the storage follow. What they reach stays allocated: the block
  // shrinks only while nobody but the caller refers to the storage.
  void resize(size_t nbytes);
  // The same bytes in other memory, whose deleter(context) runs as that of wrap; tensors follow.
  // Raises RuntimeError while the address is held outside. The old memory is given back by
  // `old`, which the caller runs when it holds no lock.
  class OldBlock;
  void replace(const char* op, void* data, Deleter deleter, void* context, OldBlock* old);
  // How often somebody else holds the address (numpy(), a buffer, DLPack): it may not move then.
  uint32_t holds() const noexcept { return holds_.load(std::memory_order_relaxed); }
  void hold_address() noexcept {
    holds_.fetch_add(1, std::memory_order_relaxed);
    note_change();
  }
  void release_address() noexcept { holds_.fetch_sub(1, std::memory_order_relaxed); }

  // Bytes of the block, which may be more than nbytes() after shrinking.
  size_t capacity() const noexcept { return allocator_ != nullptr ? capacity_ : nbytes_; }

  static void destroy(Storage* storage);

 private:
  Storage() = default;
  ~Storage() = default;
  void move_block(size_t nbytes);
  void release_block() noexcept;

  std::atomic<uint32_t> holds_{0};
  void* data_ = nullptr;
  size_t nbytes_ = 0;
  Stream stream_;                  // that the block was made for
  std::atomic<uint8_t> flags_{0};  // data_ptr() of several threads sets one
  std::atomic<uint32_t> version_{0};
  Allocator* allocator_ = nullptr;  // set when the block is ours
  Deleter deleter_ = nullptr;       // set when it is foreign
  union {
    void* context_ = nullptr;  // of the deleter
    size_t capacity_;          // of the block when it is ours: what the allocator was asked for
  };
  std::atomic<uint32_t> uncounted_{0};  // changes that version_ does not count
  Ref<Derived> derived_;
};

// Memory that a storage has left; given back when this goes.
class Storage::OldBlock {
 public:
  OldBlock() = default;
  ~OldBlock() {
    if (allocator_ != nullptr) allocator_->free(data_, capacity_, stream_);
    if (deleter_ != nullptr) deleter_(context_);
  }
  bool empty() const noexcept { return allocator_ == nullptr && deleter_ == nullptr; }
  OldBlock(const OldBlock&) = delete;
  OldBlock& operator=(const OldBlock&) = delete;

 private:
  friend class Storage;
  Allocator* allocator_ = nullptr;
  void* data_ = nullptr;
  size_t capacity_ = 0;
  Stream stream_;
  Deleter deleter_ = nullptr;
  void* context_ = nullptr;
};

// A reference to a storage whose address somebody outside knows: until it goes, no resize.
class AddressHold {
 public:
  explicit AddressHold(Ref<Storage> storage) : storage_(std::move(storage)) {
    storage_->hold_address();
  }
  ~AddressHold() { storage_->release_address(); }
  AddressHold(const AddressHold&) = delete;
  AddressHold& operator=(const AddressHold&) = delete;
  Storage& operator*() const noexcept { return *storage_; }

 private:
  Ref<Storage> storage_;
};

}  // namespace weft

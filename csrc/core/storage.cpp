// Storages: made, wrapped, resized, given back.
#include "core/storage.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/error.h"
#include "core/thread_cache.h"
#include "core/transforms.h"

namespace weft {

std::atomic<int> transforms_under_way{0};

namespace {

// Where new blocks come from, and for which stream.
struct Source {
  Allocator& allocator;
  Stream stream;
};

[[gnu::noinline]] Source source_on(Device device) {
  device = check_available("storage", device);
  Backend& backend = *find_backend(device);
  return {backend.allocator(device), backend.current_stream(device)};
}

inline Source source_of(Device device) {
  if (device.type != DeviceType::CPU) [[unlikely]]
    return source_on(device);
  return {cpu_allocator(), {}};
}

Ref<Storage> marked(Storage* storage) {
  if (transforms_under_way.load(std::memory_order_relaxed) > 0) [[unlikely]]
    storage->set(kMadeInTransform);
  return Ref<Storage>(storage);
}

// Within one device.
void copy_bytes(void* to, const void* from, size_t nbytes, Device device) {
  if (nbytes == 0) return;
  if (Backend* backend = find_backend(device)) {
    backend->copy(to, device, from, device, nbytes);
  } else {
    std::memcpy(to, from, nbytes);
  }
}

}  // namespace

Ref<Storage> Storage::allocate(size_t nbytes, Device device) {
  const auto [allocator, stream] = source_of(device);
  void* block = allocator.allocate(nbytes);
  void* memory = detail::take_object(detail::kStorageBin, sizeof(Storage));
  auto* storage = new (memory) Storage;
  storage->data_ = block;
  storage->nbytes_ = nbytes;
  storage->stream_ = stream;
  storage->allocator_ = &allocator;
  storage->capacity_ = nbytes;
  return marked(storage);
}

Ref<Storage> Storage::wrap(void* data, size_t nbytes, Deleter deleter, void* context, uint8_t flags,
                           Device device) {
  void* memory = detail::take_object(detail::kStorageBin, sizeof(Storage));
  auto* storage = new (memory) Storage;
  storage->data_ = data;
  storage->nbytes_ = nbytes;
  storage->stream_ = {device};
  storage->flags_ = flags;
  storage->deleter_ = deleter;
  storage->context_ = context;
  return marked(storage);
}

void Storage::resize(size_t nbytes) {
  WEFT_CHECK(!has(kShared), "resize_: expected memory of this process, got ", nbytes_,
             " bytes shared by processes, which cannot be resized; resize a clone()");
  WEFT_CHECK(allocator_ != nullptr && !has(kForeign),
             "resize_: expected a storage weft allocated, ",
             "got memory of somebody else, which cannot be resized");
  WEFT_CHECK(!has(kReadOnly), "resize_: expected a writable storage, got a read-only one");
  if (nbytes == nbytes_) return;
  WEFT_CHECK(holds() == 0,
             "resize_: expected memory that only tensors use, got a storage whose address is "
             "held outside (numpy(), a buffer or DLPack); resize a clone()");
  bump_version();
  if (nbytes > capacity_ || (nbytes < capacity_ && use_count() == 1)) move_block(nbytes);
  nbytes_ = nbytes;
}

void Storage::move_block(size_t nbytes) {
  const auto [allocator, stream] = source_of(device());
  void* block = allocator.allocate(nbytes);
  // Up to the capacity: after shrinking, older tensors still reach what lies beyond nbytes_.
  copy_bytes(block, data_, std::min(nbytes, capacity_), device());
  release_block();
  stream_ = stream;
  data_ = block;
  capacity_ = nbytes;
  allocator_ = &allocator;
}

void Storage::replace(const char* op, void* data, Deleter deleter, void* context, OldBlock* old) {
  WEFT_CHECK(holds() == 0, op,
             ": expected memory that only tensors use, got a storage whose address is held outside "
             "(numpy(), a buffer or DLPack); take a clone()");
  old->allocator_ = allocator_;
  old->data_ = data_;
  old->capacity_ = capacity();
  old->stream_ = stream_;
  old->deleter_ = allocator_ == nullptr ? deleter_ : nullptr;
  old->context_ = allocator_ == nullptr ? context_ : nullptr;
  data_ = data;
  allocator_ = nullptr;
  deleter_ = deleter;
  context_ = context;
  flags_ &= static_cast<uint8_t>(~kForeign);
}

void Storage::release_block() noexcept {
  if (allocator_ != nullptr) {
    allocator_->free(data_, capacity_, stream_);
  } else if (deleter_ != nullptr) {
    deleter_(context_);
  }
}

void Storage::destroy(Storage* storage) {
  storage->release_block();
  storage->~Storage();
  detail::give_object(detail::kStorageBin, storage, sizeof(Storage));
}

}  // namespace weft

#include "core/storage.h"

#include <cstring>

#include "core/error.h"
#include "testing.h"

using namespace weft;

TEST(storage_allocate_is_aligned) {
  for (const size_t nbytes : {1, 63, 64, 65, 1000, 40000, 3000000}) {
    const Ref<Storage> storage = Storage::allocate(nbytes);
    CHECK_EQ(reinterpret_cast<uintptr_t>(storage->data()) % 64, 0);
    CHECK_EQ(storage->nbytes(), nbytes);
    std::memset(storage->data(), 1, nbytes);
  }
  const Ref<Storage> empty = Storage::allocate(0);
  CHECK_EQ(empty->nbytes(), 0);
}

TEST(storage_deleter_runs_once) {
  int calls = 0;
  char bytes[8];
  {
    const Ref<Storage> storage =
        Storage::wrap(bytes, 8, [](void* context) { ++*static_cast<int*>(context); }, &calls);
    const Ref<Storage> other = storage;
    CHECK_EQ(storage->use_count(), 2);
    CHECK_EQ(storage->data(), static_cast<void*>(bytes));
    CHECK_TRUE(storage->has(kForeign));
  }
  CHECK_EQ(calls, 1);
  Storage::wrap(bytes, 8, nullptr, nullptr);  // no deleter: somebody else's business
}

TEST(storage_resize_keeps_contents) {
  const Ref<Storage> storage = Storage::allocate(4);
  std::memcpy(storage->data(), "abcd", 4);
  storage->resize(100000);
  CHECK_EQ(storage->nbytes(), 100000);
  CHECK_EQ(std::memcmp(storage->data(), "abcd", 4), 0);
  storage->resize(2);
  CHECK_EQ(std::memcmp(storage->data(), "ab", 2), 0);
  storage->resize(0);
  storage->resize(8);
  CHECK_EQ(storage->nbytes(), 8);
}

TEST(storage_shrinks_only_for_its_last_owner) {
  const Ref<Storage> storage = Storage::allocate(4096);
  Ref<Storage> other = storage;
  void* block = storage->data();
  storage->resize(16);
  CHECK_EQ(storage->data(), block);
  CHECK_EQ(storage->capacity(), 4096);
  storage->resize(4096);
  CHECK_EQ(storage->data(), block);
  other.reset();
  storage->resize(16);
  CHECK_EQ(storage->capacity(), 16);
}

TEST(storage_held_outside_keeps_its_size) {
  const Ref<Storage> storage = Storage::allocate(8);
  {
    const AddressHold hold(storage);
    CHECK_THROWS_AS(Runtime, storage->resize(16),
                    "resize_: expected memory that only tensors use, got a storage whose address "
                    "is held outside (numpy(), a buffer or DLPack); resize a clone()");
  }
  storage->resize(16);
  CHECK_EQ(storage->nbytes(), 16);
}

TEST(storage_resize_errors) {
  char bytes[8];
  const Ref<Storage> foreign = Storage::wrap(bytes, 8, nullptr, nullptr);
  CHECK_THROWS_AS(Runtime, foreign->resize(16),
                  "resize_: expected a storage weft allocated, got memory of somebody else, which "
                  "cannot be resized");
  const Ref<Storage> fixed = Storage::allocate(8);
  fixed->set(kReadOnly);
  CHECK_THROWS_AS(Runtime, fixed->resize(16),
                  "resize_: expected a writable storage, got a read-only one");
}

TEST(storage_version_counts) {
  const Ref<Storage> storage = Storage::allocate(8);
  CHECK_EQ(storage->version(), 0);
  storage->bump_version();
  CHECK_EQ(storage->version(), 1);
}

TEST(storage_device_error) {
  CHECK_THROWS_AS(Assertion, Storage::allocate(8, Device{DeviceType::CUDA, 0}),
                  "storage: expected device cpu, got cuda:0; Torch not compiled with CUDA enabled");
}

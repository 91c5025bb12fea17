#include "core/shared_buffer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "core/error.h"
#include "testing.h"

using namespace weft;

namespace {

Ref<Storage> new_slab(size_t nbytes) {
  std::FILE* file = std::tmpfile();
  CHECK_TRUE(file != nullptr && ftruncate(fileno(file), static_cast<off_t>(nbytes)) == 0);
  Ref<Storage> slab = map_shared(fileno(file), nbytes);
  std::fclose(file);
  return slab;
}

}  // namespace

TEST(slab_is_free_when_the_last_part_dies) {
  const Ref<Storage> slab = new_slab(4096);
  CHECK_TRUE(slab_state(*slab) == SlabState::free);
  mark_slab(*slab, SlabState::busy);
  Ref<SlabLease> lease(new SlabLease(slab));
  Ref<Storage> first = lease->part(64, 100), second = lease->part(1024, 3072);
  lease = nullptr;
  CHECK_EQ(first->nbytes(), 100);
  CHECK_TRUE(first->has(kShared) && is_slab_part(*first) && !is_slab_part(*slab));
  std::memset(second->data(), 1, second->nbytes());
  first = nullptr;
  CHECK_TRUE(slab_state(*slab) == SlabState::busy);
  second = nullptr;
  CHECK_TRUE(slab_state(*slab) == SlabState::free);
}

TEST(slab_is_retired_after_a_fork) {
  const Ref<Storage> slab = new_slab(4096);
  mark_slab(*slab, SlabState::busy);
  Ref<SlabLease> lease(new SlabLease(slab));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  lease = nullptr;
  CHECK_TRUE(slab_state(*slab) == SlabState::retired);
}

TEST(slab_parts_stay_inside) {
  const Ref<Storage> slab = new_slab(4096);
  const Ref<SlabLease> lease(new SlabLease(slab));
  auto told = [](const std::string& part) {
    return "slab: expected a part of 4096 bytes behind the header, got " + part;
  };
  CHECK_THROWS_AS(Runtime, lease->part(0, 8), told("8 bytes at 0"));
  CHECK_THROWS_AS(Runtime, lease->part(4096, 1), told("1 bytes at 4096"));
  CHECK_THROWS_AS(Runtime, lease->part(64, SIZE_MAX), told("18446744073709551615 bytes at 64"));
  std::string refused;
  try {
    map_shared(-1, 4096);
  } catch (const Error& error) {
    refused = error.what();
  }
  CHECK_TRUE(
      refused.starts_with("map_shared: expected to map 4096 bytes of shared memory, got "
                          "\"Bad file descriptor\""));
}

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

Ref<Storage> new_buffer(size_t nbytes) {
  std::FILE* file = std::tmpfile();
  CHECK_TRUE(file != nullptr && ftruncate(fileno(file), static_cast<off_t>(nbytes)) == 0);
  Ref<Storage> buffer = map_shared(fileno(file), nbytes);
  std::fclose(file);
  return buffer;
}

}  // namespace

TEST(shared_buffer_is_free_when_the_last_part_dies) {
  const Ref<Storage> buffer = new_buffer(4096);
  CHECK_TRUE(shared_buffer_state(*buffer) == BufferState::free);
  mark_shared_buffer(*buffer, BufferState::busy);
  Ref<SharedBufferReader> reader(new SharedBufferReader(buffer));
  Ref<Storage> first = reader->part(64, 100), second = reader->part(1024, 3072);
  reader = nullptr;
  CHECK_EQ(first->nbytes(), 100);
  CHECK_TRUE(first->has(kShared) && is_part_of_shared_buffer(*first) &&
             !is_part_of_shared_buffer(*buffer));
  std::memset(second->data(), 1, second->nbytes());
  first = nullptr;
  CHECK_TRUE(shared_buffer_state(*buffer) == BufferState::busy);
  second = nullptr;
  CHECK_TRUE(shared_buffer_state(*buffer) == BufferState::free);
}

TEST(shared_buffer_is_retired_after_a_fork) {
  const Ref<Storage> buffer = new_buffer(4096);
  mark_shared_buffer(*buffer, BufferState::busy);
  Ref<SharedBufferReader> reader(new SharedBufferReader(buffer));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  reader = nullptr;
  CHECK_TRUE(shared_buffer_state(*buffer) == BufferState::retired);
}

TEST(shared_buffer_parts_stay_inside) {
  const Ref<Storage> buffer = new_buffer(4096);
  const Ref<SharedBufferReader> reader(new SharedBufferReader(buffer));
  auto told = [](const std::string& part) {
    return "shared buffer: expected a part of 4096 bytes behind the header, got " + part;
  };
  CHECK_THROWS_AS(Runtime, reader->part(0, 8), told("8 bytes at 0"));
  CHECK_THROWS_AS(Runtime, reader->part(4096, 1), told("1 bytes at 4096"));
  CHECK_THROWS_AS(Runtime, reader->part(64, SIZE_MAX), told("18446744073709551615 bytes at 64"));
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

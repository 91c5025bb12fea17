#include "core/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/shared_heap.h"
#include "testing.h"

using namespace weft;

namespace {

constexpr SharingStrategy kBoth[] = {SharingStrategy::FileDescriptor, SharingStrategy::FileSystem};

unsigned char* bytes(const Ref<Storage>& storage) {
  return static_cast<unsigned char*>(storage->data());
}

// The exit status of what a child of fork returns; 99 where it threw.
template <class Fn>
int in_child(Fn&& fn) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    try {
      _exit(fn());
    } catch (const Error&) {
      _exit(99);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

size_t file_blocks(int fd) {
  struct stat status{};
  fstat(fd, &status);
  return static_cast<size_t>(status.st_blocks) * 512;
}

Ref<Storage> adopt_by_name(const Ref<Storage>& storage) {
  std::string manager;
  const std::string name = shared_name(*storage, &manager);
  return adopt_shared_storage(manager, name, storage->nbytes(), false);
}

}  // namespace

TEST(shared_memory_keeps_contents_and_refuses_resize) {
  for (const SharingStrategy strategy : kBoth) {
    const Ref<Storage> storage = Storage::allocate(10000);
    std::memset(storage->data(), 7, 10000);
    void* before = storage->data();
    share_storage(*storage, strategy);
    CHECK_TRUE(storage->has(kShared));
    CHECK_TRUE(storage->data() != before);
    CHECK_EQ(static_cast<int>(bytes(storage)[9999]), 7);
    CHECK_EQ(storage->nbytes(), 10000);
    void* shared = storage->data();
    share_storage(*storage, strategy);
    CHECK_EQ(storage->data(), shared);
    CHECK_THROWS_AS(Runtime, storage->resize(1),
                    "resize_: expected memory of this process, got 10000 bytes shared by "
                    "processes, which cannot be resized; resize a clone()");
  }
}

TEST(shared_memory_gives_the_old_block_back) {
  int calls = 0;
  char block[8] = "abcdefg";
  const Ref<Storage> storage =
      Storage::wrap(block, 8, [](void* context) { ++*static_cast<int*>(context); }, &calls);
  share_storage(*storage, SharingStrategy::FileDescriptor);
  CHECK_EQ(calls, 1);
  CHECK_FALSE(storage->has(kForeign));
  CHECK_EQ(std::memcmp(storage->data(), "abcdefg", 8), 0);
}

TEST(shared_memory_refuses_held_addresses) {
  const Ref<Storage> storage = Storage::allocate(8);
  const AddressHold hold(storage);
  CHECK_THROWS_AS(Runtime, share_storage(*storage, SharingStrategy::FileDescriptor),
                  "share_memory_: expected memory that only tensors use, got a storage whose "
                  "address is held outside (numpy(), a buffer or DLPack); share a clone()");
}

TEST(shared_memory_without_bytes) {
  for (const SharingStrategy strategy : kBoth) {
    const Ref<Storage> storage = new_shared_storage(0, strategy);
    CHECK_TRUE(storage->has(kShared));
    CHECK_TRUE(shared_segment(*storage) == nullptr);
  }
}

TEST(shared_memory_finds_what_it_has) {
  const Ref<Storage> own = new_shared_storage(100, SharingStrategy::FileDescriptor);
  const int fd = fcntl(shared_segment(*own)->fd(), F_DUPFD_CLOEXEC, 0);
  CHECK_TRUE(adopt_shared_storage(fd, 100, false) == own);
  CHECK_EQ(fcntl(fd, F_GETFD), -1);  // it was taken over
  const Ref<Storage> named = new_shared_storage(100, SharingStrategy::FileSystem);
  CHECK_TRUE(adopt_by_name(named) == named);
}

// Threads find, and drop, what other threads are dropping at that moment.
TEST(shared_memory_is_found_while_it_dies) {
  const size_t before = shared_segment_count();
  Ref<Storage> first = new_shared_storage(64, SharingStrategy::FileDescriptor);
  bytes(first)[7] = 9;
  const int file = fcntl(shared_segment(*first)->fd(), F_DUPFD_CLOEXEC, 0);
  first.reset();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) {
        const Ref<Storage> found = adopt_shared_storage(fcntl(file, F_DUPFD_CLOEXEC, 0), 64, false);
        const Ref<Storage> other = found;
        if (bytes(other)[7] != 9) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(wrong.load(), 0);
  CHECK_EQ(shared_segment_count(), before);
  close(file);
}

TEST(shared_memory_is_one_memory_in_two_processes) {
  for (const SharingStrategy strategy : kBoth) {
    const Ref<Storage> storage = new_shared_storage(5000, strategy);
    CHECK_EQ(in_child([&] {
               bytes(storage)[4999] = 42;
               return 0;
             }),
             0);
    CHECK_EQ(static_cast<int>(bytes(storage)[4999]), 42);
  }
}

TEST(shared_memory_checks_the_size_of_a_file) {
  const Ref<Storage> own = new_shared_storage(100, SharingStrategy::FileDescriptor);
  const int fd = fcntl(shared_segment(*own)->fd(), F_DUPFD_CLOEXEC, 0);
  CHECK_THROWS_AS(Runtime, adopt_shared_storage(fd, 101, false),
                  "_new_shared_fd_cpu: expected 1 to 100 bytes (the size of the file), got 101");
  CHECK_EQ(fcntl(fd, F_GETFD), -1);
}

TEST(shared_memory_frees_descriptors_and_mappings) {
  const int before = dup(0);
  for (const SharingStrategy strategy : kBoth) {
    const size_t count = shared_segment_count();
    std::vector<Ref<Storage>> storages;
    for (int i = 0; i < 20; ++i) storages.push_back(new_shared_storage(100, strategy));
    CHECK_EQ(shared_segment_count(), count + 20);
    storages.clear();
    CHECK_EQ(shared_segment_count(), count);
  }
  const int after = dup(0);
  CHECK_TRUE(after <= before + 2);  // the heap that is being filled stays open
  close(before);
  close(after);
}

TEST(shared_heap_holds_many_segments_in_one_file) {
  std::vector<Ref<Storage>> storages;
  const int before = dup(0);
  for (int i = 0; i < 3000; ++i) {
    storages.push_back(new_shared_storage(4, SharingStrategy::FileSystem));
    bytes(storages.back())[0] = static_cast<unsigned char>(i);
  }
  const int after = dup(0);
  CHECK_TRUE(after - before <= 5);
  for (int i = 0; i < 3000; ++i)
    CHECK_EQ(static_cast<int>(bytes(storages[static_cast<size_t>(i)])[0]), i % 256);
  close(before);
  close(after);
}

TEST(shared_heap_gives_memory_back) {
  const Ref<Storage> small = new_shared_storage(1, SharingStrategy::FileSystem);
  std::string manager;
  shared_name(*small, &manager);
  const int file = open(manager.c_str(), O_RDWR | O_CLOEXEC);
  const size_t before = file_blocks(file);
  Ref<Storage> large = new_shared_storage(size_t{1} << 20, SharingStrategy::FileSystem);
  CHECK_EQ(file_blocks(file), before + (size_t{1} << 20));
  issue_shared_handle(*large);
  std::string unused;
  const std::string name = shared_name(*large, &unused);
  large.reset();  // the handle holds it
  CHECK_EQ(file_blocks(file), before + (size_t{1} << 20));
  large = adopt_shared_storage(manager, name, size_t{1} << 20, false);
  large.reset();
  CHECK_EQ(file_blocks(file), before);
  CHECK_THROWS_MSG(
      adopt_shared_storage(manager, name, size_t{1} << 20, false),
      str("_new_shared_filename_cpu: expected a tensor that somebody still holds, got ", name,
          ", which all have freed"));
  close(file);
}

// A parent frees what its child still looks at.
TEST(shared_heap_counts_children_of_fork) {
  Ref<Storage> storage = new_shared_storage(4096, SharingStrategy::FileSystem);
  bytes(storage)[0] = 5;
  int ready[2], answer[2];
  CHECK_EQ(pipe(ready) + pipe(answer), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    char byte = 0;
    if (read(ready[0], &byte, 1) != 1) _exit(1);
    byte = static_cast<char>(bytes(storage)[0]);
    storage.reset();
    _exit(write(answer[1], &byte, 1) == 1 ? 0 : 1);
  }
  storage.reset();
  CHECK_EQ(write(ready[1], "x", 1), 1);
  char byte = 0;
  CHECK_EQ(read(answer[0], &byte, 1), 1);
  CHECK_EQ(static_cast<int>(byte), 5);
  waitpid(child, nullptr, 0);
  for (const int fd : {ready[0], ready[1], answer[0], answer[1]}) close(fd);
}

TEST(shared_heap_refuses_wrong_names) {
  const Ref<Storage> storage = new_shared_storage(8, SharingStrategy::FileSystem);
  std::string manager;
  const std::string name = shared_name(*storage, &manager);
  CHECK_THROWS_MSG(adopt_shared_storage(manager, "/weft_1", 8, false),
                   "open shared memory: expected a name /weft_<identity>_<slot>, got /weft_1");
  const std::string other = "/weft_00000000000000010000000000000002_0";
  CHECK_THROWS_MSG(adopt_shared_storage("/etc/passwd", other, 8, false),
                   "open shared memory: expected a manager /proc/<process>/fd/<number>, got "
                   "/etc/passwd");
  CHECK_THROWS_MSG(adopt_shared_storage(manager, other, 8, false),
                   str("open shared memory: expected process ", getpid(),
                       " to hold the memory of its tensor, got another file; keep the sender alive "
                       "until the tensor has arrived"));
  CHECK_THROWS_MSG(adopt_shared_storage(manager, name, 9, false),
                   "_new_shared_filename_cpu: expected 8 bytes, got 9");
}

TEST(shared_heap_refuses_a_file_cut_short) {
  const Ref<Storage> first = new_shared_storage(8, SharingStrategy::FileSystem);
  std::string manager;
  shared_name(*first, &manager);
  const int file = open(manager.c_str(), O_RDWR | O_CLOEXEC);
  const off_t before = lseek(file, 0, SEEK_END);
  Ref<Storage> second = new_shared_storage(8, SharingStrategy::FileSystem);
  const off_t after = lseek(file, 0, SEEK_END);
  const auto page = static_cast<off_t>(sysconf(_SC_PAGESIZE));
  const std::string name = shared_name(*second, &manager);
  issue_shared_handle(*second);
  second.reset();
  CHECK_EQ(ftruncate(file, before), 0);
  CHECK_THROWS_MSG(adopt_shared_storage(manager, name, 8, false),
                   str("_new_shared_filename_cpu: expected a file of at least ",
                       (before + page - 1) / page * page + 8, " bytes, got ", before));
  CHECK_EQ(ftruncate(file, after), 0);
  adopt_shared_storage(manager, name, 8, false);
  close(file);
}

// ---- limits ----

TEST(shared_memory_names_the_limit_of_files) {
  CHECK_EQ(in_child([] {
             signal(SIGXFSZ, SIG_IGN);
             const rlimit limit{1 << 20, 1 << 20};
             setrlimit(RLIMIT_FSIZE, &limit);
             CHECK_THROWS_MSG(
                 new_shared_storage(size_t{2} << 20, SharingStrategy::FileDescriptor),
                 "_new_shared: expected files of 2097152 bytes to be allowed, got at most 1048576 "
                 "(ulimit -f); raise the limit");
             return 0;
           }),
           0);
}

TEST(shared_memory_turns_to_heaps_when_descriptors_run_short) {
  CHECK_EQ(in_child([] {
             const rlimit limit{64, 64};
             setrlimit(RLIMIT_NOFILE, &limit);
             std::vector<Ref<Storage>> storages;
             for (int i = 0; i < 2000; ++i)
               storages.push_back(new_shared_storage(4, SharingStrategy::FileDescriptor));
             const bool first = shared_segment(*storages.front())->heap() == nullptr;
             const bool last = shared_segment(*storages.back())->heap() != nullptr;
             return first && last ? 0 : 1;
           }),
           0);
}

TEST(shared_memory_names_the_limit_of_descriptors) {
  CHECK_EQ(in_child([] {
             while (dup(0) >= 0) {
             }
             try {
               new_shared_storage(4, SharingStrategy::FileDescriptor);
             } catch (const Error& error) {
               return error.message().find("(ulimit -n); raise the limit") != std::string::npos ? 0
                                                                                                : 1;
             }
             return 2;
           }),
           0);
}

TEST(shared_memory_asks_for_no_more_than_the_machine_has) {
  try {
    new_shared_storage(size_t{1} << 50, SharingStrategy::FileDescriptor);
    CHECK_TRUE(false);
  } catch (const Error& error) {
    CHECK_TRUE(error.kind() == ErrorKind::OutOfMemory);
    CHECK_TRUE(error.message().find("(what the machine has left), got 1125899906842624") !=
               std::string::npos);
  }
}

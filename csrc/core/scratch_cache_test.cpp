#include "core/scratch_cache.h"

#include <atomic>
#include <cstdlib>
#include <thread>

#include "testing.h"

namespace weft {
namespace {

class Counting final : public Allocator {
 public:
  void* allocate(size_t nbytes) override {
    ++made;
    return std::aligned_alloc(kAlignment, (nbytes + kAlignment - 1) / kAlignment * kAlignment);
  }
  void free(void* block, size_t, Stream) noexcept override {
    ++freed;
    std::free(block);
  }
  AllocatorStats stats() const override { return {}; }
  void set_limit(size_t) override {}
  size_t limit() const override { return 0; }

  std::atomic<int> made{0}, freed{0};
};

// Installs an allocator for the time of a test.
struct Installed {
  explicit Installed(Allocator& allocator) : old(&set_cpu_allocator(allocator)) {}
  ~Installed() { set_cpu_allocator(*old); }
  Allocator* old;
};

TEST(scratch_is_kept_for_the_next_call) {
  Counting counting;
  {
    const Installed guard(counting);
    const ScratchBlock first = take_scratch(20000);
    give_scratch(first);
    const ScratchBlock second = take_scratch(10000);
    CHECK_TRUE(second.data == first.data);
    const ScratchBlock nested = take_scratch(10000);  // while the first is in use
    CHECK_TRUE(nested.data != first.data);
    give_scratch(second);
    give_scratch(nested);  // takes the place of the other, which is freed
    CHECK_EQ(counting.made.load(), 2);
    CHECK_EQ(counting.freed.load(), 1);
    give_scratch(take_scratch(30000));
    CHECK_EQ(counting.made.load(), 3);
    CHECK_EQ(counting.freed.load(), 2);
  }
  CHECK_EQ(counting.freed.load(), 3);  // another allocator has taken its place
}

TEST(scratch_goes_back_to_the_allocator_that_made_it) {
  Counting first, second;
  {
    const Installed outer(first);
    const ScratchBlock block = take_scratch(20000);
    {
      const Installed inner(second);
      give_scratch(block);
      CHECK_EQ(first.freed.load(), 1);
      give_scratch(take_scratch(20000));
    }
    CHECK_EQ(second.freed.load(), 1);
  }
  CHECK_EQ(first.made.load(), 1);
  CHECK_EQ(second.made.load(), 1);
}

TEST(scratch_of_a_thread_that_ends_is_freed) {
  Counting counting;
  const Installed guard(counting);
  std::thread([] { give_scratch(take_scratch(20000)); }).join();
  CHECK_EQ(counting.made.load(), 1);
  CHECK_EQ(counting.freed.load(), 1);
}

TEST(scratch_of_other_threads_is_dropped_with_the_allocator) {
  Counting counting;
  std::atomic<int> step{0};
  std::thread other;
  {
    const Installed guard(counting);
    other = std::thread([&] {
      give_scratch(take_scratch(20000));
      step = 1;
      while (step != 2) std::this_thread::yield();
    });
    while (step != 1) std::this_thread::yield();
    CHECK_EQ(counting.freed.load(), 0);
  }
  CHECK_EQ(counting.freed.load(), 1);
  step = 2;
  other.join();
}

TEST(scratch_of_the_built_in_allocator_is_not_kept_here) {
  const AllocatorStats before = caching_allocator().stats();
  give_scratch(take_scratch(20000));
  const AllocatorStats after = caching_allocator().stats();
  CHECK_EQ(after.allocations - before.allocations, uint64_t{1});
  CHECK_EQ(after.frees - before.frees, uint64_t{1});
}

}  // namespace
}  // namespace weft

#include "core/thread_pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/error.h"
#include "testing.h"

using namespace weft;

namespace {

struct ThreadsGuard {
  explicit ThreadsGuard(int count) : old(num_threads()) { set_num_threads(count); }
  ~ThreadsGuard() { set_num_threads(old); }
  int old;
};

using Region = void (*)(int64_t, int64_t, FunctionRef<void(int64_t, int64_t)>);

// Every index once, pieces of at least the grain.
bool covers(int64_t count, int64_t grain, Region region = parallel_for) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
  std::atomic<bool> pieces_fit{true};
  region(count, grain, [&](int64_t begin, int64_t end) {
    if (end - begin < std::min(grain, count)) pieces_fit = false;
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  for (const std::atomic<int>& times : seen) {
    if (times != 1) return false;
  }
  return pieces_fit;
}

}  // namespace

TEST(pool_covers_every_index_once) {
  for (const int threads : {1, 2, 5}) {
    const ThreadsGuard guard(threads);
    for (const int64_t count : {0, 1, 2, 7, 100, 1001}) {
      for (const int64_t grain : {0, 1, 3, 64, 5000}) {
        CHECK_TRUE(covers(count, grain));
        CHECK_TRUE(covers(count, grain, parallel_sweep));
        CHECK_TRUE(covers(count, grain, parallel_sweep));  // the other way
      }
    }
  }
}

// Elements that are few and large: no thread gets more of them than it must.
TEST(pool_shares_evenly) {
  for (const int threads : {2, 3}) {
    const ThreadsGuard guard(threads);
    for (int64_t count = threads; count < 40; ++count) {
      std::mutex mutex;
      std::set<int64_t> begins;
      parallel_for(count, 1, [&](int64_t begin, int64_t) {
        const std::lock_guard lock(mutex);
        begins.insert(begin);
      });
      for (int64_t t = 0; t < threads; ++t) CHECK_TRUE(begins.contains(t * count / threads));
    }
  }
}

TEST(pool_uses_several_threads) {
  const ThreadsGuard guard(2);
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  // Two pieces wait for each other: only two threads can finish this.
  parallel_for(2, 1, [&](int64_t, int64_t) {
    ++inside;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (inside < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (inside == 2) met = true;
  });
  CHECK_TRUE(met);
}

TEST(pool_sweeps_turn_back) {
  const ThreadsGuard guard(1);
  std::vector<int64_t> first, second;
  parallel_sweep(100, 10, [&](int64_t begin, int64_t) { first.push_back(begin); });
  parallel_sweep(100, 10, [&](int64_t begin, int64_t) { second.push_back(begin); });
  CHECK_EQ(first.size(), size_t{10});
  std::reverse(second.begin(), second.end());
  CHECK_TRUE(first == second);
}

// A thread that is held up keeps none of its pieces from the others.
TEST(pool_takes_what_others_leave) {
  const ThreadsGuard guard(2);
  std::atomic<int> pieces{0};
  std::atomic<bool> fine{true};
  for (int round = 0; round < 20; ++round) {
    pieces = 0;
    parallel_sweep(64, 1, [&](int64_t begin, int64_t end) {
      if (begin == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      pieces += static_cast<int>(end - begin);
    });
    if (pieces != 64) fine = false;
  }
  CHECK_TRUE(fine.load());
}

TEST(pool_nested_runs_inline) {
  const ThreadsGuard guard(4);
  CHECK_FALSE(in_parallel_region());
  std::atomic<int> inner{0};
  std::atomic<bool> one_piece{true};
  parallel_for(8, 1, [&](int64_t begin, int64_t end) {
    if (!in_parallel_region()) one_piece = false;
    for (int64_t i = begin; i < end; ++i) {
      parallel_for(10, 1, [&](int64_t b, int64_t e) {
        if (b != 0 || e != 10) one_piece = false;
        ++inner;
      });
    }
  });
  CHECK_EQ(inner.load(), 8);
  CHECK_TRUE(one_piece.load());
  CHECK_FALSE(in_parallel_region());
}

TEST(pool_rethrows_and_goes_on) {
  for (const int threads : {1, 3}) {
    const ThreadsGuard guard(threads);
    for (int round = 0; round < 20; ++round) {
      CHECK_THROWS_AS(Value,
                      parallel_for(6, 1, [](int64_t, int64_t) { fail(ErrorKind::Value, "bad"); }),
                      "bad");
      CHECK_FALSE(in_parallel_region());
      CHECK_TRUE(covers(50, 1));
    }
  }
}

TEST(pool_two_callers) {
  const ThreadsGuard guard(3);
  std::vector<std::thread> callers;
  std::atomic<bool> fine{true};
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        if (!covers(64, 1)) fine = false;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK_TRUE(fine.load());
}

TEST(pool_wakes_sleeping_workers) {
  const ThreadsGuard guard(2);
  for (int i = 0; i < 5; ++i) {
    CHECK_TRUE(covers(100, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(pool_survives_fork) {
  const ThreadsGuard guard(2);
  CHECK_TRUE(covers(100, 1));
  const pid_t child = fork();
  if (child == 0) {
    bool fine = num_threads() == 2;
    for (int i = 0; i < 50; ++i) fine = fine && covers(100, 1);
    set_num_threads(3);
    fine = fine && covers(100, 1);
    _exit(fine ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  CHECK_TRUE(covers(100, 1));
}

TEST(pool_errors) {
  CHECK_THROWS_AS(Runtime, set_num_threads(0),
                  "set_num_threads: expected a count in [1, 1024], got 0");
  CHECK_THROWS_AS(Runtime, set_num_threads(100000),
                  "set_num_threads: expected a count in [1, 1024], got 100000");
  const ThreadsGuard guard(2);
  CHECK_THROWS_AS(Runtime, parallel_for(4, 1, [](int64_t, int64_t) { set_num_threads(3); }),
                  "set_num_threads: expected a call outside parallel regions, got one inside");
}

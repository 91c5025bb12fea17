#include "core/fork.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "core/allocator.h"
#include "core/generator.h"
#include "core/storage.h"
#include "core/thread_pool.h"
#include "testing.h"

namespace weft {
namespace {

// Runs body() in a child: its exit status, or that of SIGALRM when it hangs.
int in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    bool fine = false;
    try {
      fine = body();
    } catch (...) {
    }
    _exit(fine ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// ThreadSanitizer forgets the parent's threads in no child, and stops when new ones take their ids.
#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadsInChildren = false;
#else
constexpr bool kThreadsInChildren = true;
#endif

// A thread that holds something until it is told to go.
class Holder {
 public:
  template <class Take, class Give>
  Holder(Take take, Give give)
      : thread_([this, take, give] {
          take();
          holds_ = true;
          while (!ends_) std::this_thread::yield();
          give();
        }) {
    while (!holds_) std::this_thread::yield();
  }
  ~Holder() {
    ends_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> holds_{false}, ends_{false};
  std::thread thread_;
};

TEST(mutex_excludes) {
  Mutex mutex;
  int64_t sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        const std::lock_guard guard(mutex);
        ++sum;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(sum, int64_t{80000});
  CHECK_TRUE(mutex.try_lock());
  CHECK_TRUE(mutex.held_by_this_thread());
  CHECK_TRUE(!mutex.try_lock());
  mutex.unlock();
  CHECK_TRUE(!mutex.held_by_this_thread());
}

TEST(mutex_wakes_who_waits) {
  Mutex mutex;
  for (int i = 0; i < 20; ++i) {
    mutex.lock();
    std::thread other([&] { const std::lock_guard guard(mutex); });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    mutex.unlock();
    other.join();
  }
}

TEST(mutex_is_taken_over_in_a_child) {
  Mutex mutex;
  const Holder holder([&] { mutex.lock(); }, [&] { mutex.unlock(); });
  CHECK_TRUE(!mutex.try_lock());
  CHECK_EQ(in_child([&] {
             const bool taken_over = mutex.lock();
             mutex.unlock();
             const bool again = mutex.lock();
             mutex.unlock();
             return taken_over && !again;
           }),
           0);
}

TEST(mutex_of_the_forking_thread_stays_held) {
  Mutex mutex;
  mutex.lock();
  CHECK_EQ(in_child([&] {
             bool taken = true;
             std::thread([&] { taken = mutex.try_lock(); }).join();
             mutex.unlock();
             std::thread([&] { taken = !taken && mutex.try_lock(); }).join();
             return taken;
           }),
           0);
  mutex.unlock();
}

TEST(mutex_in_a_child_of_a_child) {
  if (!kThreadsInChildren) return;
  Mutex mutex;
  const Holder holder([&] { mutex.lock(); }, [&] { mutex.unlock(); });
  CHECK_EQ(in_child([&] {
             Mutex second;
             const Holder inner([&] { second.lock(); }, [&] { second.unlock(); });
             return in_child([&] { return mutex.lock() && second.lock(); }) == 0 && mutex.lock();
           }),
           0);
}

GlobalMutex test_mutex(ForkRank::Compiler);

TEST(fork_waits_for_global_locks) {
  std::atomic<bool> stop{false};
  int64_t pair[2] = {0, 0};
  std::thread writer([&] {
    while (!stop) {
      {
        const std::lock_guard guard(test_mutex);
        ++pair[0];
        std::this_thread::yield();
        ++pair[1];
      }
      std::this_thread::yield();  // a fork that polls the lock must find it free some time
    }
  });
  int failed = 0;
  for (int i = 0; i < 20; ++i) {
    failed += in_child([&] {
                const std::lock_guard guard(test_mutex);
                return pair[0] == pair[1];
              }) != 0;
  }
  stop = true;
  writer.join();
  CHECK_EQ(failed, 0);
}

TEST(fork_under_a_global_lock) {
  test_mutex.lock();
  CHECK_EQ(in_child([&] {
             const bool held = test_mutex.held_by_this_thread();
             test_mutex.unlock();
             return held && !test_mutex.lock();
           }),
           0);
  CHECK_TRUE(test_mutex.held_by_this_thread());
  test_mutex.unlock();
}

TEST(fork_generations) {
  const uint32_t here = fork_generation();
  CHECK_EQ(in_child([&] { return fork_generation() == here + 1; }), 0);
  CHECK_EQ(fork_generation(), here);
}

TEST(fork_while_a_generator_is_in_use) {
  Generator generator(1);
  const Holder holder([&] { generator.lock(); }, [&] { generator.unlock(); });
  CHECK_EQ(in_child([&] {
             const std::lock_guard guard(generator);
             double sum = 0;
             for (int i = 0; i < 2000; ++i) sum += generator.uniform_double();
             return sum > 0;
           }),
           0);
}

TEST(fork_while_threads_allocate_and_run_regions) {
  if (!kThreadsInChildren) return;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      while (!stop) {
        const Ref<Storage> block = Storage::allocate(size_t{1} << (6 + 5 * t));
        parallel_for(64, 1, [&](int64_t, int64_t) { Storage::allocate(40000); });
      }
    });
  }
  int failed = 0;
  for (int i = 0; i < 60; ++i) {
    failed += in_child([] {
                std::atomic<int64_t> sum{0};
                parallel_for(1000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
                const Ref<Storage> small = Storage::allocate(100),
                                   large = Storage::allocate(9 << 20);
                std::thread([] { Storage::allocate(50000); }).join();
                return sum == 1000 && caching_allocator().stats().bytes_in_use > 0;
              }) != 0;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(failed, 0);
}

TEST(fork_inside_a_piece_that_a_worker_took_over) {
  const int before = num_threads();
  set_num_threads(2);
  std::atomic<pid_t> child{-1};
  const auto caller = std::this_thread::get_id();
  const auto now = [] { return std::chrono::steady_clock::now(); };
  // Pieces 0 and 1 are the caller's, which is busy for a while, so that the worker takes the
  // second. A worker that is done before the caller begins does not look again: it waits. One that
  // wakes too late leaves the try to another region.
  for (int i = 0; i < 200 && child.load() == -1; ++i) {
    std::atomic<bool> began{false};
    parallel_for(4, 1, [&](int64_t begin, int64_t) {
      const auto end = now() + std::chrono::milliseconds(100);
      if (begin == 0) began = true;
      while (begin == 0 && child.load() == -1 && now() < end) std::this_thread::yield();
      while (begin >= 2 && !began && now() < end) std::this_thread::yield();
      if (begin != 1 || std::this_thread::get_id() == caller) return;
      const pid_t made = fork();
      if (made == 0) alarm(60);
      child = made;
    });
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child.load());
  CHECK_EQ(status, 0);
  set_num_threads(before);
}

TEST(fork_inside_a_region) {
  const int before = num_threads();
  set_num_threads(2);
  std::atomic<int> bad{0}, forks{0};
  parallel_for(8, 1, [&](int64_t, int64_t) {
    ++forks;
    bad += in_child([] {
             std::atomic<int64_t> sum{0};
             parallel_for(100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
             return sum == 100;
           }) != 0;
  });
  CHECK_TRUE(forks.load() > 1);
  CHECK_EQ(bad.load(), 0);
  // A child that goes on with the region instead is told.
  pid_t child = -1;
  const pid_t parent = getpid();
  std::atomic<bool> forked{false};
  try {
    parallel_for(2, 1, [&](int64_t begin, int64_t) {
      if (begin != 0 || forked.exchange(true)) return;
      child = fork();
      if (child == 0) alarm(60);
    });
    if (getpid() != parent) _exit(3);
  } catch (const Error& error) {
    _exit(error.message().find("forked inside") != std::string::npos ? 0 : 4);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  set_num_threads(before);
}

}  // namespace
}  // namespace weft

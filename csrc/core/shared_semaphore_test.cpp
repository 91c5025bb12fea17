#include "core/shared_semaphore.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "testing.h"

using namespace weft;

namespace {

// Memory that this process and its children share, with room for some.
void* shared_page() {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK_TRUE(page != MAP_FAILED);
  return page;
}

timespec in(double seconds) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto nanoseconds = now.tv_nsec + static_cast<int64_t>(seconds * 1e9);
  return {now.tv_sec + nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
}

using Wait = SharedSemaphore::Wait;

}  // namespace

TEST(shared_semaphore_counts) {
  void* page = shared_page();
  SharedSemaphore* two = SharedSemaphore::create(page, 2);
  SharedSemaphore* none = SharedSemaphore::create(static_cast<char*>(page) + 64, 0);
  CHECK_TRUE(two->try_take() && two->take(nullptr) == Wait::Taken);
  CHECK_TRUE(!two->try_take() && !none->try_take());
  const timespec past = in(-1), soon = in(0.02);
  CHECK_TRUE(two->take(&past) == Wait::Late && two->take(&soon) == Wait::Late);
  CHECK_TRUE(two->give() && two->value() == 1);
  CHECK_TRUE(SharedSemaphore::at(page)->try_take() && two->value() == 0);
  SharedSemaphore* full = SharedSemaphore::create(page, SharedSemaphore::kMost);
  CHECK_TRUE(!full->give() && full->value() == SharedSemaphore::kMost);
  munmap(page, 4096);
}

TEST(shared_semaphore_lets_one_in_at_a_time) {
  void* page = shared_page();
  SharedSemaphore* lock = SharedSemaphore::create(page, 1);
  auto* count = reinterpret_cast<std::atomic<int>*>(static_cast<char*>(page) + 64);
  auto work = [&] {
    for (int i = 0; i < 2000; ++i) {
      if (lock->take(nullptr) != Wait::Taken) _exit(2);
      // Not one operation: two inside at once lose some.
      count->store(count->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      lock->give();
    }
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 2; ++i) {
    children.push_back(fork());
    if (children.back() == 0) {
      alarm(30);
      work();
      _exit(0);
    }
  }
  std::thread first(work), second(work);
  first.join();
  second.join();
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
  }
  CHECK_EQ(count->load(), 8000);
  munmap(page, 4096);
}

TEST(shared_semaphore_outlives_who_waits_for_it) {
  void* page = shared_page();
  SharedSemaphore* lock = SharedSemaphore::create(page, 0);
  // The one that is woken is killed, again and again; the last one must not sleep on.
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() == 0) {
      alarm(30);
      _exit(lock->take(nullptr) == Wait::Taken ? 0 : 1);
    }
  }
  usleep(100'000);
  for (int i = 0; i < 3; ++i) {
    kill(children[static_cast<size_t>(i)], SIGSTOP);
    waitpid(children[static_cast<size_t>(i)], nullptr, WUNTRACED);
  }
  lock->give();
  for (int i = 0; i < 3; ++i) kill(children[static_cast<size_t>(i)], SIGKILL);
  int ended_well = 0;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    ended_well += WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  CHECK_EQ(ended_well, 1);
  CHECK_EQ(lock->value(), 0);
  munmap(page, 4096);
}

TEST(shared_semaphore_waits_are_interrupted) {
  void* page = shared_page();
  SharedSemaphore* lock = SharedSemaphore::create(page, 0);
  const pid_t child = fork();
  if (child == 0) {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    sigaction(SIGALRM, &action, nullptr);
    ualarm(100'000, 0);
    _exit(lock->take(nullptr) == Wait::Interrupted ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  munmap(page, 4096);
}

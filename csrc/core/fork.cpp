#include "core/fork.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace weft {
namespace {

// Longer than any section that a process-wide lock guards. A lock not got in this time stays with
// its owner, and the child takes it over.
constexpr double kLockSeconds = 10;

struct Entry {
  ForkRank rank;
  ForkHandlers handlers;
  GlobalMutex* mutex = nullptr;  // or else this one
};

struct Registry {
  Mutex mutex;
  std::vector<Entry> entries;  // by rank
};

std::atomic<uint32_t> generation{0};

// Never destroyed: children are made during static destruction too.
Registry& registry() {
  static Registry* const made = new Registry;
  return *made;
}

void prepare() {
  Registry& all = registry();
  all.mutex.lock();
  for (const Entry& entry : all.entries) {
    if (entry.mutex != nullptr) entry.mutex->take_for_fork();
    if (entry.handlers.prepare != nullptr) entry.handlers.prepare();
  }
}

void after(void (*ForkHandlers::*side)()) {
  Registry& all = registry();
  for (auto entry = all.entries.rbegin(); entry != all.entries.rend(); ++entry) {
    if (entry->mutex != nullptr) entry->mutex->give_after_fork();
    if (auto* handler = entry->handlers.*side; handler != nullptr) handler();
  }
  all.mutex.unlock();
}

void in_parent() { after(&ForkHandlers::parent); }

void in_child() {
  detail::forget_other_threads();
  generation.fetch_add(1, std::memory_order_relaxed);
  after(&ForkHandlers::child);
}

void add(const Entry& entry) {
  Registry& all = registry();
  const std::lock_guard guard(all.mutex);
  [[maybe_unused]] static const bool once = [] {
    pthread_atfork(prepare, in_parent, in_child);
    return true;
  }();
  const auto place =
      std::upper_bound(all.entries.begin(), all.entries.end(), entry,
                       [](const Entry& a, const Entry& b) { return a.rank < b.rank; });
  all.entries.insert(place, entry);
}

}  // namespace

bool at_fork(ForkRank rank, ForkHandlers handlers) {
  add({rank, handlers, nullptr});
  return true;
}

uint32_t fork_generation() noexcept { return generation.load(std::memory_order_relaxed); }

bool poll_before_fork(bool (*done)(void*), void* context, double seconds) noexcept {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (int i = 0; !done(context); ++i) {
    if (i < 100) {
      std::this_thread::yield();
      continue;
    }
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

GlobalMutex::GlobalMutex(ForkRank rank) { add({rank, {}, this}); }

void GlobalMutex::take_for_fork() noexcept {
  if (held_by_this_thread()) return;
  taken_ = poll_before_fork([](void* mutex) { return static_cast<Mutex*>(mutex)->try_lock(); },
                            static_cast<Mutex*>(this), kLockSeconds);
}

void GlobalMutex::give_after_fork() noexcept {
  if (!taken_) return;
  taken_ = false;
  unlock();
}

}  // namespace weft

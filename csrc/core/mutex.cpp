#include "core/mutex.h"

#include <optional>

#include "core/thread_pool.h"

namespace weft {
namespace {

constexpr uint32_t kWaiters = 1;
constexpr int kSpins = 100;

// Threads are numbered in the order in which they first lock something. A child goes on counting
// where its parent was, so a number names one thread in all of a family of processes.
std::atomic<uint32_t> next_number{1};
std::atomic<uint32_t> first_here{1};  // number from which on threads are of this process
std::atomic<uint32_t> survivor{0};    // and the one that called fork

constinit thread_local uint32_t tls_number = 0;

uint32_t this_number() noexcept {
  if (tls_number == 0) [[unlikely]]
    tls_number = next_number.fetch_add(1, std::memory_order_relaxed);
  return tls_number;
}

bool is_alive(uint32_t number) noexcept {
  return number >= first_here.load(std::memory_order_relaxed) ||
         number == survivor.load(std::memory_order_relaxed);
}

}  // namespace

bool Mutex::try_lock() noexcept {
  uint32_t seen = 0;
  const uint32_t mine = this_number() << 1;
  if (word_.compare_exchange_strong(seen, mine, std::memory_order_acquire)) return true;
  return seen != 0 && !is_alive(seen >> 1) &&
         word_.compare_exchange_strong(seen, mine | kWaiters, std::memory_order_acquire);
}

bool Mutex::lock_or_wait(bool patiently) noexcept {
  uint32_t seen = 0;
  const uint32_t mine = this_number() << 1;
  if (word_.compare_exchange_strong(seen, mine, std::memory_order_acquire)) [[likely]]
    return false;
  return lock_slow(mine, patiently);
}

bool Mutex::lock_slow(uint32_t mine, bool patiently) noexcept {
  std::optional<RegionScope> given_up;
  for (int spins = 0;;) {
    uint32_t seen = word_.load(std::memory_order_relaxed);
    if (seen == 0 || !is_alive(seen >> 1)) {
      if (word_.compare_exchange_weak(seen, mine | kWaiters, std::memory_order_acquire))
        return seen != 0;
      continue;
    }
    if (++spins < kSpins) continue;
    if ((seen & kWaiters) == 0 &&
        !word_.compare_exchange_weak(seen, seen | kWaiters, std::memory_order_relaxed))
      continue;
    if (patiently && !given_up) given_up.emplace();
    word_.wait(seen | kWaiters, std::memory_order_relaxed);
  }
}

void Mutex::unlock() noexcept {
  if (word_.exchange(0, std::memory_order_release) & kWaiters) word_.notify_one();
}

bool Mutex::held_by_this_thread() const noexcept {
  return word_.load(std::memory_order_relaxed) >> 1 == this_number();
}

void detail::forget_other_threads() noexcept {
  survivor.store(this_number(), std::memory_order_relaxed);
  first_here.store(next_number.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace weft

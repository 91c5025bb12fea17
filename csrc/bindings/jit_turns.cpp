#include "bindings/jit_turns.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "bindings/python.h"

namespace weft::py {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTurn = std::chrono::microseconds(20);  // a dozen calls on small tensors
// In which a thread that waits for the lock wakes up. Sleeps take some 50 us longer than asked.
constexpr auto kMoment = std::chrono::microseconds(20);

std::atomic<bool> g_wanted{false};

void hand_over() {
  thread_local Clock::time_point turn;  // since when this thread has had the lock
  if (Clock::now() - turn < kTurn) return;
  {
    const ReleaseGil unlocked;
    std::this_thread::sleep_for(kMoment);
  }
  turn = Clock::now();
}

}  // namespace

bool set_lock_wanted(bool wanted) noexcept { return g_wanted.exchange(wanted); }

void offer_lock() {
  if (g_wanted.load(std::memory_order_relaxed)) [[unlikely]]
    hand_over();
}

}  // namespace weft::py

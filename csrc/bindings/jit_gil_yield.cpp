#include "bindings/jit_gil_yield.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "bindings/python.h"

namespace weft::py {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLeastHeld = std::chrono::microseconds(20);  // a dozen calls on small tensors
// In which a thread that waits for the GIL wakes up. Sleeps take some 50 us longer than asked.
constexpr auto kMoment = std::chrono::microseconds(20);

std::atomic<bool> g_wanted{false};

void hand_over() {
  thread_local Clock::time_point held_since;  // by this thread
  if (Clock::now() - held_since < kLeastHeld) return;
  {
    const ReleaseGil unlocked;
    std::this_thread::sleep_for(kMoment);
  }
  held_since = Clock::now();
}

}  // namespace

bool set_gil_wanted(bool wanted) noexcept { return g_wanted.exchange(wanted); }

void yield_gil() {
  if (g_wanted.load(std::memory_order_relaxed)) [[unlikely]]
    hand_over();
}

}  // namespace weft::py

#include "runtime/interrupt.h"

#include <atomic>
#include <chrono>

namespace weft::interrupt {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kInterval = std::chrono::milliseconds(50);

std::atomic<Check> host_check{nullptr};

}  // namespace

void set_check(Check check) noexcept { host_check.store(check, std::memory_order_release); }

void poll() {
  thread_local Clock::time_point next;
  const Check check = host_check.load(std::memory_order_acquire);
  if (check == nullptr) return;
  const Clock::time_point now = Clock::now();
  if (now < next) return;
  next = now + kInterval;
  check();
}

}  // namespace weft::interrupt

#include "ops/blas_call.h"

#include <atomic>
#include <cstdint>

#include "core/fork.h"

namespace weft {
namespace {

constexpr double kMostSeconds = 5;

std::atomic<uint32_t> inside{0};
std::atomic<uint32_t> closed{0};  // 1 while a fork goes on

void open() {
  closed.store(0, std::memory_order_seq_cst);
  closed.notify_all();
}

// After closing: who counts itself later sees that, and leaves again.
void close_and_wait() {
  closed.store(1, std::memory_order_seq_cst);
  poll_before_fork([](void*) { return inside.load(std::memory_order_seq_cst) == 0; }, nullptr,
                   kMostSeconds);
}

void open_in_child() {
  inside.store(0, std::memory_order_relaxed);
  open();
}

[[maybe_unused]] const bool blas_call_knows_forks =
    at_fork(ForkRank::Blas, {close_and_wait, open, open_in_child});

}  // namespace

BlasCall::BlasCall() noexcept {
  for (;;) {
    inside.fetch_add(1, std::memory_order_seq_cst);
    if (closed.load(std::memory_order_seq_cst) == 0) return;
    inside.fetch_sub(1, std::memory_order_seq_cst);
    closed.wait(1);
  }
}

BlasCall::~BlasCall() { inside.fetch_sub(1, std::memory_order_release); }

}  // namespace weft

#include "core/shared_semaphore.h"

#include <cerrno>
#include <climits>
#include <new>

namespace weft {
namespace {

bool before(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

// Whoever is killed after it was woken takes the call that was meant for all with it, so the others
// look by themselves from time to time.
timespec next_look() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  ++now.tv_sec;
  return now;
}

}  // namespace

SharedSemaphore* SharedSemaphore::create(void* place, uint32_t value) noexcept {
  static_assert(sizeof(SharedSemaphore) <= kBytes && kMost == SEM_VALUE_MAX);
  auto* made = new (place) SharedSemaphore;
  sem_init(&made->semaphore_, /*pshared=*/1, value);
  return made;
}

bool SharedSemaphore::try_take() noexcept {
  while (sem_trywait(&semaphore_) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

SharedSemaphore::Wait SharedSemaphore::take(const timespec* until) noexcept {
  while (!try_take()) {
    const timespec look = next_look();
    const bool last = until != nullptr && before(*until, look);
    if (sem_clockwait(&semaphore_, CLOCK_MONOTONIC, last ? until : &look) == 0) break;
    if (errno == EINTR) return Wait::Interrupted;
    if (last) return Wait::Late;
  }
  return Wait::Taken;
}

bool SharedSemaphore::give() noexcept { return sem_post(&semaphore_) == 0; }

uint32_t SharedSemaphore::value() const noexcept {
  int value = 0;
  sem_getvalue(const_cast<sem_t*>(&semaphore_), &value);
  return static_cast<uint32_t>(value);
}

}  // namespace weft

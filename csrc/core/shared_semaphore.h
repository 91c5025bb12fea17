// SharedSemaphore: a number in memory that processes share; whoever takes from it waits until it is
// above zero.
//
// It has no name and needs no destructor: it is gone with the memory. A process that is killed does
// not give back what it has taken.
#pragma once

#include <semaphore.h>

#include <cstddef>
#include <cstdint>
#include <ctime>

namespace weft {

class SharedSemaphore {
 public:
  static constexpr size_t kBytes = 64;  // one has a cache line of its own
  static constexpr uint32_t kMost = 0x7fffffff;

  // In kBytes of memory that begin at a multiple of them; value <= kMost.
  static SharedSemaphore* create(void* place, uint32_t value) noexcept;
  // One that another process may have made there.
  static SharedSemaphore* at(void* place) noexcept { return static_cast<SharedSemaphore*>(place); }
  SharedSemaphore(const SharedSemaphore&) = delete;
  SharedSemaphore& operator=(const SharedSemaphore&) = delete;

  bool try_take() noexcept;
  enum class Wait : uint8_t { Taken, Late, Interrupted };
  // Waits until a moment of CLOCK_MONOTONIC, or without end; a signal interrupts.
  Wait take(const timespec* until) noexcept;
  // False where it is kMost already.
  bool give() noexcept;
  uint32_t value() const noexcept;

 private:
  SharedSemaphore() = default;

  sem_t semaphore_;
};

}  // namespace weft

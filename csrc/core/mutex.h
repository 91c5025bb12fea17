// Mutex: four bytes that know who holds them, so that a child of fork() is never kept waiting for a
// thread that it does not have.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace weft {

// Lockable as the standard says. Not recursive.
class Mutex {
 public:
  constexpr Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // True when it was taken over: its owner is a thread of the process that this one was forked
  // from, and what it guards may be half changed.
  bool lock() noexcept { return lock_or_wait(false); }
  // The same for what is held for long, or by somebody who may want the interpreter: whoever waits
  // gives up what RegionHooks name (core/thread_pool.h).
  bool lock_patiently() noexcept { return lock_or_wait(true); }
  bool try_lock() noexcept;
  void unlock() noexcept;
  bool held_by_this_thread() const noexcept;

 private:
  bool lock_or_wait(bool patiently) noexcept;
  bool lock_slow(uint32_t mine, bool patiently) noexcept;

  // 0, or the owner's number shifted by one; the low bit: somebody may be waiting.
  std::atomic<uint32_t> word_{0};
};

// Holds a mutex that lock_patiently() takes.
class PatientLock {
 public:
  explicit PatientLock(Mutex& mutex) noexcept : mutex_(mutex) { mutex_.lock_patiently(); }
  ~PatientLock() { mutex_.unlock(); }
  PatientLock(const PatientLock&) = delete;
  PatientLock& operator=(const PatientLock&) = delete;

 private:
  Mutex& mutex_;
};

namespace detail {

// In the child of a fork: from now on only the calling thread and new ones are alive.
void forget_other_threads() noexcept;

}  // namespace detail
}  // namespace weft

// What keeps a child of fork() working: it has one thread, and every lock and every half-made
// change of the others as they were at that moment.
//
// Before a fork the forking thread takes the process-wide locks, in the order of ForkRank, and both
// sides give them back after it: so nothing that they guard is half changed in the child. Locks of
// single objects are not taken; the child's threads take them over from owners that are gone
// (core/mutex.h). What belongs to threads (workers, waiting lists) is made anew in the child.
#pragma once

#include <cstdint>

#include "core/mutex.h"

namespace weft {

// The order in which handlers run before a fork; after it they run the other way round. It is the
// order of locks, too: a thread that holds one takes only later ones.
enum class ForkRank : uint8_t {
  Compiler,    // requests for native code
  Programs,    // classes, plans of fusion groups, operators by name
  Views,       // histories of views
  Hooks,       // hooks of nodes
  Blas,        // calls of OpenBLAS
  Weights,     // packed weights of storages
  Allocators,  // counters of allocators written in Python
  Segments,    // storages in shared memory
  Scratch,
  Cache,    // the caching allocator
  Threads,  // the pool and the workers of jit.fork
  Profiler,
};

// Any of them may be null. `child` must not wait for anything.
struct ForkHandlers {
  void (*prepare)() = nullptr;
  void (*parent)() = nullptr;
  void (*child)() = nullptr;
};
// Registers handlers for the life of the process; called while libraries are loaded.
bool at_fork(ForkRank rank, ForkHandlers handlers);

// Forks between the process that loaded the library and this one.
uint32_t fork_generation() noexcept;

// A lock of the whole process, taken around every fork. For short sections that never wait for the
// interpreter. A fork in a thread that holds it leaves it held, in the child too. Never destroyed:
// make them with static storage.
class GlobalMutex final : public Mutex {
 public:
  explicit GlobalMutex(ForkRank rank);
  // The forking thread's: see fork.cpp.
  void take_for_fork() noexcept;
  void give_after_fork() noexcept;

 private:
  bool taken_ = false;
};

// Calls done() until it is true, at most so many seconds; says whether it was.
bool poll_before_fork(bool (*done)(void*), void* context, double seconds) noexcept;

}  // namespace weft

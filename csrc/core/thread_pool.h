// The pool that every parallel loop shares, OpenBLAS's included.
//
// Fork-safe: a child starts with a fresh pool; a region that it was forked inside of raises there,
// since its other pieces are lost. A nested parallel region runs inline. Workers spin
// for 50 to 100 us before they sleep, since waking a sleeping one costs 24 us and a spinning one
// 0.12 us.
#pragma once

#include <cstdint>
#include <type_traits>

namespace weft {

// Threads a parallel region uses, the caller included. Default: the cores this process may run on,
// or WEFT_NUM_THREADS, or OMP_NUM_THREADS.
int num_threads();
void set_num_threads(int count);  // raises RuntimeError unless count >= 1
bool in_parallel_region();

// A non-owning reference to a callable (no allocation per region).
template <class Signature>
class FunctionRef;
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  FunctionRef() = default;  // not to be called
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& fn)
      : object_(const_cast<void*>(static_cast<const void*>(&fn))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(static_cast<Args&&>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, static_cast<Args&&>(args)...); }

 private:
  void* object_ = nullptr;
  R (*call_)(void*, Args...) = nullptr;
};

// Calls body(begin, end) on disjoint pieces of [0, count), each at least `grain` long where
// possible; inline when one piece is enough. The first exception is rethrown in the caller after
// all pieces end.
void parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);

// parallel_for for a body that walks memory and costs little to call: more pieces, and every other
// sweep of the process goes through each thread's from the last to the first. A tensor that is
// larger than the caches is then read first where the sweep before has just been.
void parallel_sweep(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);

// What the caller of a region gives up while it runs, such as the interpreter's lock, which the
// workers may need to get memory: leave() gets what enter() returned. Null, the default: nothing.
struct RegionHooks {
  void* (*enter)();
  void (*leave)(void* state);
};
void set_region_hooks(const RegionHooks* hooks);

// Gives up what the hooks name for as long as it lives.
class RegionScope {
 public:
  RegionScope();
  ~RegionScope() {
    if (hooks_ != nullptr) hooks_->leave(state_);
  }
  RegionScope(const RegionScope&) = delete;
  RegionScope& operator=(const RegionScope&) = delete;

 private:
  const RegionHooks* hooks_;
  void* state_ = nullptr;
};

}  // namespace weft

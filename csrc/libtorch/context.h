// Threads, seeds, devices: settings of the process.
#pragma once

#include <exception>
#include <thread>

#include "factories.h"

namespace at {
inline namespace over_weft {

inline int get_num_threads() { return weft_num_threads(); }
inline void set_num_threads(int count) { c10::detail::check(weft_set_num_threads(count)); }
inline void init_num_threads() {}
// Programs run in the thread that calls them.
inline int get_num_interop_threads() { return 1; }
inline void set_num_interop_threads(int) {}
inline void manual_seed(uint64_t seed) { c10::detail::check(weft_manual_seed(seed)); }

namespace internal {
inline constexpr int64_t GRAIN_SIZE = 32768;  // of cheap loops
}

// Calls function(begin, end) for parts of a range of at least `grain` numbers, on several threads.
template <class Function>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const Function& function) {
  if (begin >= end) return;
  const int64_t parts =
      std::min<int64_t>(get_num_threads(), (end - begin) / std::max<int64_t>(grain, 1));
  if (parts < 2) return function(begin, end);
  const int64_t step = (end - begin + parts - 1) / parts;
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> failures(static_cast<size_t>(parts));
  for (int64_t part = 0; part < parts; ++part) {
    threads.emplace_back([&, part] {
      try {
        const int64_t from = begin + part * step;
        if (from < end) function(from, std::min(from + step, end));
      } catch (...) {
        failures[static_cast<size_t>(part)] = std::current_exception();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

inline bool hasCUDA() { return false; }
inline bool hasMPS() { return false; }

// Settings that libtorch has of its other engines: there is one here, which is deterministic.
class Context {
 public:
  void setBenchmarkCuDNN(bool) {}
  void setUserEnabledCuDNN(bool) {}
  void setUserEnabledMkldnn(bool) {}
  void setDeterministicCuDNN(bool) {}
  void setAllowTF32CuDNN(bool) {}
  void setAllowTF32CuBLAS(bool) {}
  void setFlushDenormal(bool) {}
  void lazyInitCUDA() {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "lazyInitCUDA: expected a device of weft, got cuda");
  }
  bool hasCUDA() const { return false; }
  bool deterministicCuDNN() const { return true; }
};
inline Context& globalContext() {
  static Context context;
  return context;
}

}  // namespace over_weft
}  // namespace at

namespace torch {
inline namespace over_weft {

namespace cuda {
inline bool is_available() { return false; }
inline bool cudnn_is_available() { return false; }
inline size_t device_count() { return 0; }
inline void manual_seed(uint64_t) {}
inline void manual_seed_all(uint64_t) {}
inline void synchronize(int64_t = -1) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "synchronize: expected a device of weft, got cuda");
}
}  // namespace cuda
namespace mps {
inline bool is_available() { return false; }
}  // namespace mps
namespace xpu {
inline bool is_available() { return false; }
inline size_t device_count() { return 0; }
}  // namespace xpu

}  // namespace over_weft
}  // namespace torch

namespace c10::cuda::CUDACachingAllocator {
inline void emptyCache() {}  // nothing is cached for a device that is not there
}  // namespace c10::cuda::CUDACachingAllocator

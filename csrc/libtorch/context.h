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
inline void manual_seed(uint64_t seed) {
  Generator generator = detail::getDefaultCPUGenerator();
  generator.set_current_seed(seed);
}
inline std::string show_config() { return "weft, as PyTorch " TORCH_VERSION "\n"; }
inline std::string get_parallel_info() {
  return c10::detail::text_of("at::get_num_threads() : ", get_num_threads(), "\n");
}

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
inline bool hasXPU() { return false; }
inline bool hasHIP() { return false; }
inline bool hasMKL() { return false; }
inline bool hasMKLDNN() { return false; }
inline bool hasOpenMP() { return false; }
inline bool hasLAPACK() { return true; }
inline bool hasMAGMA() { return false; }

enum class QEngine : uint8_t { NoQEngine, FBGEMM, QNNPACK, ONEDNN, X86 };
enum class Float32MatmulPrecision { HIGHEST, HIGH, MEDIUM };

// What a device would have that is not there.
struct AcceleratorHooksInterface {
  bool isAvailable() const { return false; }
  bool hasPrimaryContext(c10::DeviceIndex) const { return false; }
  int64_t deviceCount() const { return 0; }
  bool hasCuDNN() const { return false; }
  bool hasCUDA() const { return false; }
  int64_t current_device() const { return -1; }
  int64_t getNumGPUs() const { return 0; }
  long versionCuDNN() const { return refuse("versionCuDNN"), 0; }
  long versionCUDART() const { return refuse("versionCUDART"), 0; }
  std::string showConfig() const { return refuse("showConfig"), ""; }

  static void refuse(const char* what) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, what, ": expected a device of weft, got cuda");
  }
};

// Settings of libtorch's other engines: they are kept, and change nothing.
class Context {
 public:
#define WEFT_TORCH_SETTING(getter, setter, value)  \
  bool getter() const { return getter##_; }        \
  void setter(bool wanted) { getter##_ = wanted; } \
                                                   \
 private:                                          \
  bool getter##_ = value;                          \
                                                   \
 public:
  WEFT_TORCH_SETTING(userEnabledCuDNN, setUserEnabledCuDNN, true)
  WEFT_TORCH_SETTING(userEnabledMkldnn, setUserEnabledMkldnn, true)
  WEFT_TORCH_SETTING(benchmarkCuDNN, setBenchmarkCuDNN, false)
  WEFT_TORCH_SETTING(deterministicCuDNN, setDeterministicCuDNN, false)
  WEFT_TORCH_SETTING(allowTF32CuDNN, setAllowTF32CuDNN, true)
  WEFT_TORCH_SETTING(allowTF32CuBLAS, setAllowTF32CuBLAS, false)
  WEFT_TORCH_SETTING(userEnabledFlashSDP, setSDPUseFlash, true)
  WEFT_TORCH_SETTING(userEnabledMemEfficientSDP, setSDPUseMemEfficient, true)
  WEFT_TORCH_SETTING(userEnabledMathSDP, setSDPUseMath, true)
#undef WEFT_TORCH_SETTING
  bool allowFP16ReductionCuBLAS() const { return false; }
  void setAllowFP16ReductionCuBLAS(bool, bool = false) {}
  bool deterministicAlgorithms() const { return deterministic_; }
  bool deterministicAlgorithmsWarnOnly() const { return warns_only_; }
  void setDeterministicAlgorithms(bool wanted, bool warns_only = false) {
    deterministic_ = wanted;
    warns_only_ = warns_only;
  }
  bool setFlushDenormal(bool) { return false; }
  void setFloat32MatmulPrecision(const std::string&) {}
  void lazyInitCUDA() { AcceleratorHooksInterface::refuse("lazyInitCUDA"); }

#define WEFT_TORCH_HAS(name, value) \
  static bool name() { return value; }
  WEFT_TORCH_HAS(hasOpenMP, at::hasOpenMP())
  WEFT_TORCH_HAS(hasMKL, at::hasMKL())
  WEFT_TORCH_HAS(hasLAPACK, at::hasLAPACK())
  WEFT_TORCH_HAS(hasMKLDNN, at::hasMKLDNN())
  WEFT_TORCH_HAS(hasMAGMA, false)
  WEFT_TORCH_HAS(hasCUDA, false)
  WEFT_TORCH_HAS(hasCUDART, false)
  WEFT_TORCH_HAS(hasCuDNN, false)
  WEFT_TORCH_HAS(hasCuSOLVER, false)
  WEFT_TORCH_HAS(hasHIP, false)
  WEFT_TORCH_HAS(hasIPU, false)
  WEFT_TORCH_HAS(hasXLA, false)
  WEFT_TORCH_HAS(hasXPU, false)
  WEFT_TORCH_HAS(hasLazy, false)
  WEFT_TORCH_HAS(hasMPS, false)
  WEFT_TORCH_HAS(hasMTIA, false)
  WEFT_TORCH_HAS(hasMAIA, false)
  WEFT_TORCH_HAS(hasORT, false)
#undef WEFT_TORCH_HAS
  static long versionCuDNN() { return AcceleratorHooksInterface().versionCuDNN(); }
  static long versionCUDART() { return AcceleratorHooksInterface().versionCUDART(); }

  // Networks of integers compute as on x86.
  QEngine qEngine() const { return QEngine::X86; }
  void setQEngine(QEngine engine) {
    TORCH_CHECK_NOT_IMPLEMENTED(engine == QEngine::X86 || engine == QEngine::FBGEMM,
                                "setQEngine: expected the engine X86 or FBGEMM, got number ",
                                static_cast<int>(engine));
  }
  static const std::vector<QEngine>& supportedQEngines() {
    static const std::vector<QEngine> engines{QEngine::NoQEngine, QEngine::FBGEMM, QEngine::X86};
    return engines;
  }
  const Generator& defaultGenerator(Device device) {
    TORCH_CHECK_NOT_IMPLEMENTED(device.is_cpu(), "defaultGenerator: expected the CPU, got ",
                                device);
    return detail::getDefaultCPUGenerator();
  }
  AcceleratorHooksInterface& getAcceleratorHooksInterface(
      std::optional<c10::DeviceType> = std::nullopt) {
    static AcceleratorHooksInterface hooks;
    return hooks;
  }

 private:
  bool deterministic_ = false, warns_only_ = false;
};
inline Context& globalContext() {
  static Context context;
  return context;
}

namespace detail {
inline const AcceleratorHooksInterface& getCUDAHooks() {
  return globalContext().getAcceleratorHooksInterface();
}
}  // namespace detail

inline std::optional<c10::DeviceType> getAccelerator(bool checked = false) {
  if (checked) AcceleratorHooksInterface::refuse("getAccelerator");
  return std::nullopt;
}
namespace accelerator {
inline c10::DeviceIndex deviceCount() { return 0; }
}  // namespace accelerator

// The type of numbers in braces and of factories without one.
inline caffe2::TypeMeta get_default_dtype() { return kFloat; }
inline ScalarType get_default_dtype_as_scalartype() { return kFloat; }
inline void set_default_dtype(caffe2::TypeMeta type) {
  TORCH_CHECK_NOT_IMPLEMENTED(type == kFloat, "set_default_dtype: expected float, got ", type);
}

}  // namespace over_weft
}  // namespace at

namespace c10 {
inline namespace over_weft {
namespace impl {

// What sets the device of a thread: of those that are not there.
struct DeviceGuardImplInterface {
  Device getDevice() const { return kCPU; }
  void setDevice(Device) const {}
};
inline const DeviceGuardImplInterface* getDeviceGuardImpl(DeviceType type) {
  TORCH_CHECK_NOT_IMPLEMENTED(type == kCPU, "getDeviceGuardImpl: expected a device of weft, got ",
                              type);
  static const DeviceGuardImplInterface guard;
  return &guard;
}

}  // namespace impl

// States of generators are not in weft.h; seeds are.
inline at::Tensor Generator::get_state() const { detail::refuse("get_state"); }
inline void Generator::set_state(const at::Tensor&) { detail::refuse("set_state"); }

}  // namespace over_weft
}  // namespace c10

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

// at::autocast and the profiler: modes that programs in C++ have not, under libtorch's names.
#pragma once

#include "context.h"

namespace at {
inline namespace over_weft {
namespace autocast {

struct State {
  std::array<bool, 32> enabled{};
  std::array<ScalarType, 32> types;
  bool cache = true;
  int nesting = 0;

  State() {
    types.fill(kBFloat16);
    types[static_cast<size_t>(kCUDA)] = kHalf;
  }
};
inline State& state() {
  thread_local State made;
  return made;
}

// Of other devices it says what was set, and changes nothing on the CPU.
inline bool is_autocast_enabled(c10::DeviceType device) {
  return state().enabled[static_cast<size_t>(device)];
}
inline void set_autocast_enabled(c10::DeviceType device, bool enabled) {
  TORCH_CHECK_NOT_IMPLEMENTED(!enabled || device != kCPU,
                              "set_autocast_enabled: expected another device than the CPU, where "
                              "operators compute in the dtypes that they are given");
  state().enabled[static_cast<size_t>(device)] = enabled;
}
inline ScalarType get_autocast_dtype(c10::DeviceType device) {
  return state().types[static_cast<size_t>(device)];
}
inline void set_autocast_dtype(c10::DeviceType device, ScalarType type) {
  state().types[static_cast<size_t>(device)] = type;
}
inline bool is_enabled() { return is_autocast_enabled(kCUDA); }
inline void set_enabled(bool enabled) { set_autocast_enabled(kCUDA, enabled); }
inline ScalarType get_autocast_gpu_dtype() { return get_autocast_dtype(kCUDA); }
inline void set_autocast_gpu_dtype(ScalarType type) { set_autocast_dtype(kCUDA, type); }
#define WEFT_TORCH_AUTOCAST(name, device)                                                   \
  inline bool is_##name##_enabled() { return is_autocast_enabled(device); }                 \
  inline void set_##name##_enabled(bool enabled) { set_autocast_enabled(device, enabled); } \
  inline ScalarType get_autocast_##name##_dtype() { return get_autocast_dtype(device); }    \
  inline void set_autocast_##name##_dtype(ScalarType type) { set_autocast_dtype(device, type); }
WEFT_TORCH_AUTOCAST(cpu, kCPU)
WEFT_TORCH_AUTOCAST(xpu, kXPU)
WEFT_TORCH_AUTOCAST(xla, kXLA)
WEFT_TORCH_AUTOCAST(hpu, kHPU)
WEFT_TORCH_AUTOCAST(ipu, kIPU)
WEFT_TORCH_AUTOCAST(privateuseone, kPrivateUse1)
#undef WEFT_TORCH_AUTOCAST
inline bool is_autocast_cache_enabled() { return state().cache; }
inline void set_autocast_cache_enabled(bool enabled) { state().cache = enabled; }
inline int increment_nesting() { return ++state().nesting; }
inline int decrement_nesting() { return --state().nesting; }
inline void clear_cache() {}

}  // namespace autocast

// Steps of a scaler of gradients: these are divided by the scale, and it grows or falls.
inline void _amp_foreach_non_finite_check_and_unscale_(TensorList self, Tensor& found_inf,
                                                       const Tensor& inv_scale) {
  for (Tensor each : self) {
    if (!each.isfinite().all().item<bool>()) found_inf.fill_(1);
    each.mul_(inv_scale);
  }
}
inline Tensor& _amp_update_scale_(Tensor& self, Tensor& growth_tracker, const Tensor& found_inf,
                                  double growth_factor, double backoff_factor,
                                  int64_t growth_interval) {
  if (found_inf.item<double>() != 0) {
    self.mul_(backoff_factor);
    growth_tracker.zero_();
    return self;
  }
  const int64_t steps = growth_tracker.item<int64_t>() + 1;
  if (steps == growth_interval) {
    const Tensor grown = self * growth_factor;
    if (grown.isfinite().all().item<bool>()) self.copy_(grown);
  }
  growth_tracker.fill_(steps == growth_interval ? 0 : steps);
  return self;
}
inline Tensor& _amp_update_scale_out(Tensor& out, const Tensor& self, Tensor& growth_tracker,
                                     const Tensor& found_inf, double growth_factor,
                                     double backoff_factor, int64_t growth_interval) {
  out.copy_(self);
  return _amp_update_scale_(out, growth_tracker, found_inf, growth_factor, backoff_factor,
                            growth_interval);
}
inline Tensor& _amp_update_scale_outf(const Tensor& self, Tensor& growth_tracker,
                                      const Tensor& found_inf, double growth_factor,
                                      double backoff_factor, int64_t growth_interval, Tensor& out) {
  return _amp_update_scale_out(out, self, growth_tracker, found_inf, growth_factor, backoff_factor,
                               growth_interval);
}
inline std::tuple<Tensor, Tensor> _amp_update_scale(const Tensor& self,
                                                    const Tensor& growth_tracker,
                                                    const Tensor& found_inf, double growth_factor,
                                                    double backoff_factor,
                                                    int64_t growth_interval) {
  Tensor scale = self.clone(), tracker = growth_tracker.clone();
  _amp_update_scale_(scale, tracker, found_inf, growth_factor, backoff_factor, growth_interval);
  return {scale, tracker};
}

namespace impl {
inline bool torch_function_mode_enabled() { return false; }  // Python's
}  // namespace impl

using RecordFunctionHandle = uint64_t;

namespace jit {

// Names with their texts, for templates.
class TemplateEnv {
 public:
  void s(const std::string& name, const std::string& text) { texts_[name] = text; }
  template <class Number>
  void d(const std::string& name, const Number& number) {
    s(name, std::to_string(number));
  }
  const std::string& s(const std::string& name) const { return texts_.at(name); }

 private:
  std::map<std::string, std::string> texts_;
};
// A text with ${names} in it.
class CodeTemplate {
 public:
  explicit CodeTemplate(std::string text) : text_(std::move(text)) {}
  std::string format(const TemplateEnv& names) const {
    std::string made;
    size_t from = 0;
    for (size_t at = text_.find("${"); at != std::string::npos; at = text_.find("${", from)) {
      const size_t end = text_.find('}', at);
      TORCH_CHECK(end != std::string::npos, "CodeTemplate: expected a '}' behind '${'");
      made += text_.substr(from, at - from) + names.s(text_.substr(at + 2, end - at - 2));
      from = end + 1;
    }
    return made + text_.substr(from);
  }

 private:
  std::string text_;
};

}  // namespace jit
}  // namespace over_weft
}  // namespace at

namespace torch::autograd::profiler {
inline namespace over_weft {

enum class ProfilerState { Disabled, CPU, CUDA, NVTX, ITT, KINETO };
struct ProfilerConfig {
  explicit ProfilerConfig(ProfilerState = ProfilerState::Disabled, bool = false, bool = false) {}
};
// An event of the profiler: there are none, as it is never enabled.
struct LegacyEvent {
  const char* name() const { return ""; }
  std::string kindStr() const { return ""; }
  uint64_t threadId() const { return 0; }
  at::RecordFunctionHandle handle() const { return 0; }
  int64_t nodeId() const { return 0; }
  std::vector<std::vector<int64_t>> shapes() const { return {}; }
  double cpuElapsedUs(const LegacyEvent&) const { return 0; }
  int64_t cpuMemoryUsage() const { return 0; }
};
using thread_event_lists = std::vector<std::vector<LegacyEvent>>;
inline bool profilerEnabled() { return false; }
inline void enableProfilerLegacy(const ProfilerConfig&) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "enableProfilerLegacy: expected weft.profiler, of Python");
}
inline thread_event_lists disableProfilerLegacy() {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "disableProfilerLegacy: expected a profiler that is enabled");
}

}  // namespace over_weft
}  // namespace torch::autograd::profiler

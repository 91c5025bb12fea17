// at::Generator: streams of random numbers. weft.h has the default one, which manual_seed seeds.
#pragma once

#include <random>

#include "options.h"

namespace at {
inline namespace over_weft {
class Tensor;
}
}  // namespace at

namespace c10 {
inline namespace over_weft {

inline constexpr uint64_t default_rng_seed_val = 67280421310721;

// What handles of a generator share. One of its own keeps a seed; operators refuse it.
struct GeneratorImpl {
  explicit GeneratorImpl(bool is_default, std::optional<uint64_t> seed)
      : is_default(is_default), seed(seed) {}

  const bool is_default;
  std::mutex mutex_;
  std::optional<uint64_t> seed;  // of the default one: unknown until it is set
};

class Generator final {
 public:
  Generator() = default;
  explicit Generator(std::shared_ptr<GeneratorImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return impl_ != nullptr; }
  GeneratorImpl* unsafeGetGeneratorImpl() const { return impl_.get(); }
  std::shared_ptr<GeneratorImpl> getIntrusivePtr() const { return impl_; }
  template <class T>
  T* get() const {
    return static_cast<T*>(impl_.get());
  }
  std::mutex& mutex() { return expect().mutex_; }
  Device device() const { return kCPU; }
  Generator clone() const {
    TORCH_CHECK_NOT_IMPLEMENTED(!expect().is_default,
                                "Generator: expected a generator of its own to clone, got the "
                                "default one, whose state weft.h does not tell");
    return Generator(std::make_shared<GeneratorImpl>(false, impl_->seed));
  }

  void set_current_seed(uint64_t seed) {
    if (expect().is_default) detail::check(weft_manual_seed(seed));
    impl_->seed = seed;
  }
  uint64_t current_seed() const {
    TORCH_CHECK_NOT_IMPLEMENTED(expect().seed,
                                "Generator: expected a seed that manual_seed has set, got none");
    return *impl_->seed;
  }
  // A seed of the system's entropy, which it puts out.
  uint64_t seed() {
    std::random_device source;
    const uint64_t made = static_cast<uint64_t>(source()) << 32 | source();
    set_current_seed(made);
    return made;
  }
  at::Tensor get_state() const;
  void set_state(const at::Tensor&);

  friend bool operator==(const Generator& a, const Generator& b) { return a.impl_ == b.impl_; }
  friend bool operator!=(const Generator& a, const Generator& b) { return a.impl_ != b.impl_; }

 private:
  GeneratorImpl& expect() const {
    TORCH_CHECK(impl_, "Generator: expected a generator, got an undefined one");
    return *impl_;
  }

  std::shared_ptr<GeneratorImpl> impl_;
};

}  // namespace over_weft
}  // namespace c10

namespace at {
inline namespace over_weft {

struct CPUGeneratorImpl : GeneratorImpl {
  explicit CPUGeneratorImpl(uint64_t seed = c10::default_rng_seed_val)
      : GeneratorImpl(false, seed) {}
};

template <class Impl, class... Args>
Generator make_generator(Args&&... args) {
  return Generator(std::make_shared<Impl>(std::forward<Args>(args)...));
}

namespace detail {

inline const Generator& getDefaultCPUGenerator() {
  static const Generator generator(std::make_shared<GeneratorImpl>(true, std::nullopt));
  return generator;
}
inline Generator createCPUGenerator(uint64_t seed = c10::default_rng_seed_val) {
  return make_generator<CPUGeneratorImpl>(seed);
}

}  // namespace detail
}  // namespace over_weft
}  // namespace at

// Generator: the Mersenne twister with PyTorch's CPU conventions, so that the same seed gives the
// same streams. The distributions are written on top of it (ops).
//
// Threads: callers that draw hold a lock_guard of the generator for the whole of one operator.
// Forks: the child of a fork starts from the parent's state at that moment.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/mutex.h"
#include "core/ref.h"

namespace weft {

class Generator final : public RefCounted {
 public:
  static constexpr uint64_t kDefaultSeed = 67280421310721;
  static constexpr size_t kStateBytes = 5056;  // of state(), PyTorch's layout

  explicit Generator(uint64_t seed = kDefaultSeed) { manual_seed(seed); }

  // Only the low 32 bits reach the twister, all 64 are kept as initial_seed(). Forgets cached
  // normals.
  void manual_seed(uint64_t seed);
  // Seeds from the system's entropy; gives the seed.
  uint64_t seed();
  uint64_t initial_seed() const { return seed_; }

  uint32_t random() {
    if (--left_ == 0) refill();
    uint32_t y = words_[next_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  // Two draws; the first is the high half.
  uint64_t random64() {
    const uint64_t high = random();
    return (high << 32) | random();
  }
  // In [0, 1): the low 24 bits of one draw; the low 53 bits of a 64-bit draw.
  float uniform_float() { return static_cast<float>(random() & 0xffffffu) * 0x1p-24f; }
  double uniform_double() {
    return static_cast<double>(random64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
  }

  // Second value of a Box-Muller pair, kept for the next call.
  std::optional<float> next_float_normal;
  std::optional<double> next_double_normal;

  // The whole state as kStateBytes bytes; set_state raises RuntimeError on another size or
  // nonsense.
  std::array<std::byte, kStateBytes> state() const;
  void set_state(std::span<const std::byte> bytes);
  Ref<Generator> clone() const;

  void lock() {
    if (mutex_.lock_patiently()) repair();
  }
  void unlock() { mutex_.unlock(); }

 private:
  static constexpr int kWords = 624;
  void refill();
  void repair();  // after its owner went in the middle of a draw

  Mutex mutex_;
  uint64_t seed_ = 0;
  int32_t left_ = 1;  // draws until the next refill, plus one
  uint32_t next_ = 0;
  std::array<uint32_t, kWords> words_;
};

// The generator of every random operator that is given none; seeded from the system's entropy.
const Ref<Generator>& default_generator();

}  // namespace weft

// Seeding, refilling and (de)serialising the Mersenne twister (MT19937).
#include "core/generator.h"

#include <cstddef>
#include <cstring>
#include <random>

#include "core/error.h"
#include "core/fork.h"

namespace weft {
namespace {

constexpr int kShift = 397;

// PyTorch's record of a CPU generator. Words are 32-bit values in 64-bit fields.
struct State {
  uint64_t seed;
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t words[624];
  double normal_x;
  double normal_y;  // the cached double normal
  double normal_rho;
  int32_t has_double_normal;
};
// The record is what old PyTorch wrote; a float normal and its flag follow it today.
constexpr size_t kLegacyBytes = sizeof(State);
constexpr size_t kFloatAt = 5048, kFlagAt = 5052;
static_assert(sizeof(State) == 5048 && offsetof(State, normal_y) == 5024);

uint32_t twist(uint32_t high, uint32_t low) {
  const uint32_t mixed = (high & 0x80000000u) | (low & 0x7fffffffu);
  return (mixed >> 1) ^ ((low & 1u) != 0 ? 0x9908b0dfu : 0u);
}

}  // namespace

void Generator::manual_seed(uint64_t seed) {
  seed_ = seed;
  words_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kWords; ++i) {
    words_[i] = 1812433253u * (words_[i - 1] ^ (words_[i - 1] >> 30)) + i;
  }
  left_ = 1;
  next_ = 0;
  next_float_normal.reset();
  next_double_normal.reset();
}

uint64_t Generator::seed() {
  std::random_device device;
  const uint64_t high = device();
  manual_seed((high << 32) | device());
  return seed_;
}

void Generator::refill() {
  uint32_t* w = words_.data();
  for (int i = 0; i < kWords - kShift; ++i) w[i] = w[i + kShift] ^ twist(w[i], w[i + 1]);
  for (int i = kWords - kShift; i < kWords - 1; ++i) {
    w[i] = w[i + kShift - kWords] ^ twist(w[i], w[i + 1]);
  }
  w[kWords - 1] = w[kShift - 1] ^ twist(w[kWords - 1], w[0]);
  left_ = kWords;
  next_ = 0;
}

void Generator::repair() {
  const bool whole = left_ >= 1 && next_ + static_cast<uint32_t>(left_) <= kWords + 1;
  if (!whole) left_ = 1;
}

std::array<std::byte, Generator::kStateBytes> Generator::state() const {
  State record{};
  record.seed = seed_;
  record.left = left_;
  record.seeded = 1;
  record.next = next_;
  for (int i = 0; i < kWords; ++i) record.words[i] = words_[static_cast<size_t>(i)];
  record.has_double_normal = next_double_normal.has_value();
  record.normal_y = next_double_normal.value_or(0);
  const float float_normal = next_float_normal.value_or(0);
  std::array<std::byte, kStateBytes> bytes{};
  std::memcpy(bytes.data(), &record, sizeof(State));
  std::memcpy(bytes.data() + kFloatAt, &float_normal, sizeof(float_normal));
  bytes[kFlagAt] = std::byte{next_float_normal.has_value()};
  return bytes;
}

void Generator::set_state(std::span<const std::byte> bytes) {
  WEFT_CHECK(bytes.size() == kStateBytes || bytes.size() == kLegacyBytes,
             "set_state: expected a state of ", kStateBytes, " bytes, got ", bytes.size());
  State record{};
  std::memcpy(&record, bytes.data(), sizeof(State));
  WEFT_CHECK(
      record.left >= 1 && record.left <= kWords && record.next <= kWords &&
          (record.left == 1 || record.next + static_cast<uint64_t>(record.left) <= kWords + 1),
      "set_state: expected a state that get_state() made, got position ", record.next, " with ",
      record.left, " left");
  seed_ = record.seed;
  left_ = record.left;
  next_ = static_cast<uint32_t>(record.next);
  for (size_t i = 0; i < kWords; ++i) words_[i] = static_cast<uint32_t>(record.words[i]);
  next_double_normal.reset();
  next_float_normal.reset();
  if (record.has_double_normal != 0) next_double_normal = record.normal_y;
  if (bytes.size() == kStateBytes && bytes[kFlagAt] != std::byte{0}) {
    float value;
    std::memcpy(&value, bytes.data() + kFloatAt, sizeof(value));
    next_float_normal = value;
  }
}

Ref<Generator> Generator::clone() const {
  Ref<Generator> copy = make_ref<Generator>();
  copy->seed_ = seed_;
  copy->left_ = left_;
  copy->next_ = next_;
  copy->words_ = words_;
  copy->next_float_normal = next_float_normal;
  copy->next_double_normal = next_double_normal;
  return copy;
}

const Ref<Generator>& default_generator() {
  // Never destroyed: operators may run during static destruction.
  static const Ref<Generator>& generator = *[] {
    auto* made = new Ref<Generator>(make_ref<Generator>());
    (*made)->seed();
    return made;
  }();
  return generator;
}

namespace {

// Before a fork: no other thread may be in the middle of making it.
[[maybe_unused]] const bool generator_knows_forks =
    at_fork(ForkRank::Threads, {[] { default_generator(); }});

}  // namespace

}  // namespace weft

#include "core/generator.h"

#include <cstring>

#include "core/error.h"
#include "testing.h"

using namespace weft;

TEST(generator_stream_of_seed_42) {
  // The reference values are PyTorch 2.13's.
  Generator generator(42);
  CHECK_EQ(generator.random64(), 0x5fe1dc66cbea3db3ull);
  CHECK_EQ(generator.random64(), 0xf362035c2ef5950eull);
  CHECK_EQ(generator.random(), 0xbb63f46au);
  generator.manual_seed(42);
  CHECK_EQ(generator.uniform_float(), 0.8822692632675171f);
  CHECK_EQ(generator.uniform_double(), 0.32003209624972895);
}

TEST(generator_uses_low_half_of_the_seed) {
  Generator wide((uint64_t{1} << 40) + 5), narrow(5);
  CHECK_EQ(wide.initial_seed(), (uint64_t{1} << 40) + 5);
  CHECK_EQ(wide.random(), narrow.random());
  CHECK_EQ(narrow.random() != Generator(6).random(), true);
}

TEST(generator_ten_thousandth_value) {
  Generator generator(5489);
  for (int i = 0; i < 9999; ++i) generator.random();
  CHECK_EQ(generator.random(), 4123659995u);  // the value the C++ standard requires of mt19937
}

TEST(generator_state_round_trip) {
  Generator generator(7);
  for (int draws : {0, 1, 623, 624, 625, 2000}) {
    generator.manual_seed(7);
    for (int i = 0; i < draws; ++i) generator.random();
    generator.next_float_normal = 0.5f;
    generator.next_double_normal = draws % 2 == 0 ? std::optional<double>(1.5) : std::nullopt;
    const auto state = generator.state();
    const Ref<Generator> copy = generator.clone();
    Generator restored;
    restored.set_state(state);
    CHECK_EQ(restored.initial_seed(), 7);
    CHECK_TRUE(restored.next_float_normal == generator.next_float_normal);
    CHECK_TRUE(restored.next_double_normal == generator.next_double_normal);
    CHECK_TRUE(restored.state() == state);
    for (int i = 0; i < 700; ++i) {
      const uint32_t value = generator.random();
      CHECK_EQ(restored.random(), value);
      CHECK_EQ(copy->random(), value);
    }
  }
}

TEST(generator_state_errors) {
  Generator generator;
  auto state = generator.state();
  CHECK_THROWS_AS(Runtime, generator.set_state(std::span(state).first(100)),
                  "set_state: expected a state of 5056 bytes, got 100");
  const uint64_t position = 5000;
  std::memcpy(state.data() + 16, &position, sizeof(position));
  CHECK_THROWS_AS(
      Runtime, generator.set_state(state),
      "set_state: expected a state that get_state() made, got position 5000 with 1 left");
}

TEST(generator_default) {
  CHECK_TRUE(default_generator() == default_generator());
  CHECK_TRUE(Generator().seed() != Generator().seed());
  CHECK_EQ(Generator().initial_seed(), 67280421310721ull);
}

#include "ops/copy.h"

#include "ops/overlap.h"
#include "ops/tile_testing.h"
#include "testing.h"

namespace weft {
namespace {

using tile::testing::expand;
using tile::testing::Random;
using tile::testing::values;

constexpr DType k_dtypes[] = {DType::Bool, DType::U8,  DType::I16, DType::I64, DType::F16,
                              DType::F32,  DType::F64, DType::C64, DType::C128};

TEST(copy_random_layouts) {
  Random random(31);
  for (int round = 0; round < 500; ++round) {
    const Dims shape = random.shape(5, round % 20 == 0 ? 200000 : 3000);
    const DType from = k_dtypes[random.below(9)];
    const DType to = random.below(2) ? from : k_dtypes[random.below(9)];
    const Tensor dst = random.tensor(shape, to), src = random.operand(shape, from);
    auto expected = values(expand(src, shape));
    if (to == DType::Bool) {
      for (double& value : expected) value = value != 0;
    }
    copy_into(dst, src, "copy_");
    CHECK_TRUE(values(dst) == expected);
  }
}

TEST(copy_transposed) {
  Random random(32);
  const Dims shapes[] = {{33, 65}, {1024, 1000}, {3, 40, 50}, {200, 8}, {9, 4000}};
  for (const Dims& shape : shapes) {
    for (DType dtype : {DType::U8, DType::BF16, DType::F32, DType::F64, DType::C128}) {
      const Tensor x = random.tensor(shape, dtype, true);
      Layout layout = x.layout();
      std::swap(layout.sizes[0], layout.sizes.back());
      std::swap(layout.strides[0], layout.strides.back());
      const Tensor view = x.with_layout(layout), copy = contiguous_copy(view);
      CHECK_TRUE(copy.is_contiguous());
      CHECK_TRUE(values(copy) == values(view));
    }
  }
}

TEST(copy_reversed_lines) {
  Random random(35);
  for (DType dtype : {DType::U8, DType::I16, DType::F32, DType::F64, DType::C128}) {
    for (int64_t n = 1; n < 150; ++n) {
      const Tensor x = random.tensor(Dims{3, n}, dtype, true);
      const Tensor turned = contiguous_copy(x.with_layout({{3, n}, {n, -1}, n - 1}));
      const auto expected = values(x), found = values(turned);
      const size_t width = expected.size() / 3;  // two numbers for a complex one
      const size_t numbers = width / static_cast<size_t>(n);
      for (size_t i = 0; i < expected.size(); ++i) {
        const size_t row = i / width, place = i % width / numbers, part = i % numbers;
        const size_t from = row * width + (static_cast<size_t>(n) - 1 - place) * numbers + part;
        CHECK_EQ(found[i], expected[from]);
      }
    }
  }
}

TEST(copy_lines_at_every_distance) {
  // Lines of more than 2 KB, in the same place of their pages or a little behind.
  Random random(34);
  const Tensor memory = random.tensor(Dims{7, 4096}, DType::U8, true);
  const Tensor from = memory.with_layout({{3, 3001}, {4096, 1}, 0});
  const auto expected = values(from);
  for (int64_t behind = 0; behind < 70; ++behind) {
    const Tensor to = memory.with_layout({{3, 3001}, {4096, 1}, 3 * 4096 + behind});
    const Tensor beside = memory.with_layout({{3, 1}, {4096, 1}, 3 * 4096 + behind + 3001});
    const auto before = values(beside);
    copy_into(to, from, "copy_");
    CHECK_TRUE(values(to) == expected);
    CHECK_TRUE(values(beside) == before);
  }
}

TEST(copy_clone_keeps_order) {
  Random random(33);
  const Tensor x = random.tensor(Dims{2, 4, 5, 3}, DType::F32, true);
  const Tensor view = x.with_layout({{2, 3, 4, 5}, {60, 1, 15, 3}, 0});
  const Tensor clone = clone_preserve(view);
  CHECK_EQ(clone.strides(), view.strides());
  CHECK_TRUE(values(clone) == values(view));
  const Tensor gaps = x.with_layout({{3, 4}, {2, 15}, 0});
  CHECK_EQ(clone_preserve(gaps).strides(), (Dims{1, 3}));
}

TEST(copy_shared_memory) {
  Random random(34);
  const Tensor line = random.tensor(Dims{5000}, DType::F32, true);
  const Tensor front = line.with_layout({{4999}, {1}, 0}),
               back = line.with_layout({{4999}, {1}, 1});
  const auto old = values(front);
  copy_into(back, front, "copy_");
  CHECK_TRUE(values(back) == old);
  const Tensor reversed = line.with_layout({{5000}, {-1}, 4999});
  const auto mirrored = values(reversed);
  copy_into(line, reversed, "copy_");
  CHECK_TRUE(values(line) == mirrored);
  copy_into(line, line, "copy_");
  CHECK_TRUE(values(line) == mirrored);
}

TEST(copy_errors) {
  Random random(35);
  const Tensor a = random.tensor(Dims{2, 3}, DType::F32, true);
  const Tensor b = random.tensor(Dims{4}, DType::F32, true);
  CHECK_THROWS_MSG(copy_into(a, b, "copy_"),
                   "copy_: expected broadcastable shapes, got (2, 3) and (4,)");
  const Tensor row = random.tensor(Dims{1, 2, 3}, DType::F32, true);
  CHECK_THROWS_MSG(copy_into(a, row, "copy_"),
                   "copy_: expected a shape that broadcasts to (2, 3), got (1, 2, 3)");
  CHECK_THROWS_MSG(fill(a, Scalar(std::complex<double>(1, 2)), "fill_"),
                   "fill_: expected a real number for dtype float32, got (1+2j)");
  const Tensor bytes = random.tensor(Dims{3}, DType::U8, true);
  CHECK_THROWS_MSG(fill(bytes, 300, "full"), "full: expected a value that fits in uint8, got 300");
}

TEST(fill_random_layouts) {
  Random random(36);
  for (int round = 0; round < 200; ++round) {
    const Dims shape = random.shape(4, round % 20 == 0 ? 200000 : 3000);
    const DType dtype = k_dtypes[1 + random.below(8)];
    const Tensor x = random.tensor(shape, dtype);
    const Tensor around(
        x.storage(),
        Layout::contiguous(Dims{static_cast<int64_t>(x.storage()->nbytes() / x.item_size())}),
        dtype);
    double before = 0, inside = 0, after = 0;
    for (double v : values(around)) before += v;
    for (double v : values(x)) inside += v;
    const int value = round % 3 == 0 ? 0 : 7;
    fill(x, value);
    for (double v : values(x)) CHECK_EQ(v, value);
    for (double v : values(around)) after += v;
    CHECK_EQ(after, before - inside + value * static_cast<double>(x.numel()));
  }
  const Tensor bytes = random.tensor(Dims{3}, DType::U8, true);
  fill(bytes, -1);
  CHECK_EQ(values(bytes)[0], 255.0);
}

TEST(overlap_of_views) {
  Random random(37);
  const Tensor x = random.tensor(Dims{8, 8}, DType::F32, true);
  auto view = [&](Dims sizes, Dims strides, int64_t offset) {
    return x.with_layout({sizes, strides, offset});
  };
  CHECK_EQ(overlap(x, x), Overlap::Exact);
  CHECK_EQ(overlap(view({8}, {8}, 0), view({8}, {8}, 1)), Overlap::None);
  CHECK_EQ(overlap(view({8}, {8}, 0), view({8}, {8}, 8)), Overlap::Some);
  CHECK_EQ(overlap(view({8, 4}, {8, 1}, 0), view({8, 4}, {8, 1}, 4)), Overlap::None);
  CHECK_EQ(overlap(view({8, 4}, {8, 1}, 0), view({8, 4}, {8, 1}, 3)), Overlap::Some);
  CHECK_EQ(overlap(view({4, 4}, {8, 1}, 0), view({4, 4}, {8, 1}, 32)), Overlap::None);
  CHECK_EQ(overlap(view({8, 8}, {8, 1}, 0), view({8, 8}, {1, 8}, 0)), Overlap::Some);
  CHECK_EQ(overlap(view({32}, {2}, 0), view({32}, {2}, 1)), Overlap::None);
  CHECK_EQ(overlap(view({8}, {-8}, 56), view({8}, {8}, 4)), Overlap::None);
}

}  // namespace
}  // namespace weft

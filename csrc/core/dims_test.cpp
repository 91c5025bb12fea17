#include "core/dims.h"

#include <utility>

#include "testing.h"

using namespace weft;

TEST(dims_inline_and_heap) {
  Dims dims;
  for (int64_t i = 0; i < 20; ++i) dims.push_back(i);
  CHECK_EQ(dims.size(), 20);
  CHECK_EQ(dims.back(), 19);
  dims.insert(0, -1);
  dims.erase(1);
  CHECK_EQ(dims[0], -1);
  CHECK_EQ(dims[1], 1);
  CHECK_EQ(dims.size(), 20);
}

TEST(dims_copy_and_move) {
  const Dims large(10, 7);
  Dims copy = large;
  CHECK_EQ(copy, large);
  Dims moved = std::move(copy);
  CHECK_EQ(moved, large);
  CHECK_TRUE(copy.empty());  // moved-from is empty and usable
  copy.push_back(3);
  CHECK_EQ(copy, Dims{3});
  moved = copy;
  CHECK_EQ(moved, Dims{3});
  moved = Dims{1, 2};
  CHECK_EQ(moved, (Dims{1, 2}));
  Dims& self = moved;
  moved = self;
  CHECK_EQ(moved, (Dims{1, 2}));
}

TEST(dims_resize_and_assign) {
  Dims dims{1, 2};
  dims.resize(4, 9);
  CHECK_EQ(dims, (Dims{1, 2, 9, 9}));
  dims.resize(1);
  CHECK_EQ(dims, Dims{1});
  dims.assign(Dims(8, 5));
  CHECK_EQ(dims.size(), 8);
  CHECK_TRUE(same(dims, Dims(8, 5)));
  CHECK_FALSE(same(dims, Dims(7, 5)));
}

TEST(dims_as_tuple) {
  CHECK_EQ(str(AsTuple{Dims{}}), "()");
  CHECK_EQ(str(AsTuple{Dims{4}}), "(4,)");
  CHECK_EQ(str(AsTuple{Dims{2, -3}}), "(2, -3)");
}

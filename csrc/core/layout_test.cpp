#include "core/layout.h"

#include "testing.h"

using namespace weft;

namespace {

constexpr int64_t kBig = int64_t{1} << 40;

Layout make(Dims sizes, Dims strides, int64_t offset = 0) {
  return {std::move(sizes), std::move(strides), offset};
}

void check_extent(const Layout& layout, int64_t begin, int64_t end) {
  CHECK_EQ(layout.extent().begin, begin);
  CHECK_EQ(layout.extent().end, end);
}

}  // namespace

TEST(layout_contiguous) {
  const Layout layout = Layout::contiguous(Dims{2, 3, 4});
  CHECK_EQ(layout.strides, (Dims{12, 4, 1}));
  CHECK_EQ(layout.numel(), 24);
  CHECK_EQ(layout.dim(), 3);
  CHECK_TRUE(layout.is_contiguous());
  check_extent(layout, 0, 24);
}

TEST(layout_zero_dims_and_sizes) {
  const Layout scalar = Layout::contiguous({});
  CHECK_EQ(scalar.numel(), 1);
  CHECK_TRUE(scalar.is_contiguous());
  check_extent(scalar, 0, 1);
  const Layout empty = Layout::contiguous(Dims{2, 0, 3});
  CHECK_EQ(empty.numel(), 0);
  CHECK_EQ(empty.strides, (Dims{3, 3, 1}));
  CHECK_TRUE(empty.is_contiguous());
  check_extent(make({0}, {5}, 100), 0, 0);
  CHECK_TRUE(make({3, 0}, {100, -7}).is_contiguous());
}

TEST(layout_contiguity_ignores_size_one) {
  CHECK_TRUE(make({1, 3}, {-77, 1}).is_contiguous());
  CHECK_FALSE(make({2, 3}, {3, -1}).is_contiguous());
  CHECK_FALSE(make({2, 3}, {0, 1}).is_contiguous());
  CHECK_FALSE(make({2, 3}, {1, 2}).is_contiguous());
}

TEST(layout_channels_last) {
  constexpr auto kLast = MemoryFormat::ChannelsLast, kLast3d = MemoryFormat::ChannelsLast3d;
  CHECK_TRUE(make({2, 3, 4, 5}, {60, 1, 15, 3}).has_format(kLast));
  CHECK_FALSE(Layout::contiguous(Dims{2, 3, 4, 5}).has_format(kLast));
  CHECK_TRUE(make({2, 1, 4, 5}, {20, 20, 5, 1}).has_format(kLast));
  CHECK_FALSE(make({3, 4, 5}, {1, 15, 3}).has_format(kLast));
  CHECK_EQ(strides_of(kLast, Dims{2, 3, 4, 5}), (Dims{60, 1, 15, 3}));
  CHECK_EQ(strides_of(kLast3d, Dims{2, 3, 4, 5, 6}), (Dims{360, 1, 90, 18, 3}));
  CHECK_TRUE(make({2, 3, 4, 5, 6}, {360, 1, 90, 18, 3}).has_format(kLast3d));
  CHECK_FALSE(make({2, 3, 4, 5}, {60, 1, 15, 3}).has_format(kLast3d));
}

TEST(layout_suggested_format) {
  constexpr auto kPlain = MemoryFormat::Contiguous, kLast = MemoryFormat::ChannelsLast;
  CHECK_TRUE(make({2, 3, 4, 5}, {60, 1, 15, 3}).suggested_format() == kLast);
  CHECK_TRUE(make({2, 3, 4, 5}, {120, 1, 30, 6}).suggested_format() == kLast);  // some channels
  CHECK_TRUE(make({2, 3, 1, 1}, {3, 1, 3, 3}).suggested_format() == kLast);
  CHECK_TRUE(make({2, 3, 1, 1}, {3, 1, 1, 1}).suggested_format() == kPlain);
  CHECK_TRUE(make({2, 1, 1, 1}, {1, 1, 1, 1}).suggested_format() == kPlain);
  CHECK_TRUE(make({2, 3, 4, 5}, {60, 20, 5, 1}).suggested_format() == kPlain);
  CHECK_TRUE(make({2, 3, 4, 5}, {0, 1, 0, 0}).suggested_format() == kPlain);
  CHECK_TRUE(make({0, 3, 4, 5}, {60, 1, 15, 3}).suggested_format() == kPlain);
  CHECK_TRUE(make({2, 3, 4, 5, 6}, {360, 1, 90, 18, 3}).suggested_format() ==
             MemoryFormat::ChannelsLast3d);
}

TEST(layout_extent_with_negative_strides) {
  check_extent(make({3}, {-1}, 2), 0, 3);
  check_extent(make({3}, {-2}, 2), -2, 3);
  check_extent(make({2, 3}, {3, -1}, 2), 0, 6);
  check_extent(make({4, 5}, {0, 0}, 7), 7, 8);
  check_extent(make({kBig}, {INT64_MAX}, 0), 0, INT64_MAX);
  check_extent(make({kBig}, {INT64_MIN}, 0), INT64_MIN, 1);
}

TEST(layout_non_overlapping) {
  CHECK_TRUE(Layout::contiguous(Dims{2, 3}).is_non_overlapping());
  CHECK_TRUE(make({3, 2}, {1, 3}).is_non_overlapping());
  CHECK_TRUE(make({2, 3}, {-6, 2}, 6).is_non_overlapping());
  CHECK_FALSE(make({2}, {0}).is_non_overlapping());
  CHECK_FALSE(make({3, 3}, {1, 1}).is_non_overlapping());
  CHECK_TRUE(make({1, 3}, {0, 1}).is_non_overlapping());
  CHECK_TRUE(make({0, 3}, {0, 0}).is_non_overlapping());
  CHECK_FALSE(make({2, 2}, {INT64_MIN, INT64_MIN}).is_non_overlapping());
}

TEST(layout_numel_errors) {
  CHECK_EQ(checked_numel("empty", Dims{kBig, 1 << 20}), kBig << 20);
  CHECK_THROWS_AS(Runtime, checked_numel("empty", Dims{2, -1}),
                  "empty: expected sizes >= 0, got (2, -1)");
  CHECK_THROWS_AS(Runtime, checked_numel("zeros", Dims{kBig, kBig}),
                  "zeros: expected fewer than 2**63 elements, got sizes (1099511627776, "
                  "1099511627776)");
  CHECK_THROWS_MSG(checked_numel("zeros", Dims{0, kBig, kBig}),
                   "zeros: expected fewer than 2**63 elements, got sizes (0, 1099511627776, "
                   "1099511627776)");
  CHECK_THROWS_MSG(Layout::contiguous(Dims{-1}), "layout: expected sizes >= 0, got (-1,)");
}

TEST(layout_wrap_dim) {
  CHECK_EQ(wrap_dim("sum", -1, 2), 1);
  CHECK_EQ(wrap_dim("sum", 0, 2), 0);
  CHECK_EQ(wrap_dim("sum", -1, 0), 0);
  CHECK_THROWS_AS(Index, wrap_dim("sum", 2, 2), "sum: expected dim in [-2, 1], got 2");
  CHECK_THROWS_AS(Index, wrap_dim("sum", -3, 2), "sum: expected dim in [-2, 1], got -3");
  CHECK_THROWS_AS(Index, wrap_dim("sum", 1, 0), "sum: expected dim in [-1, 0], got 1");
  CHECK_THROWS_AS(Index, wrap_dim("sum", INT64_MIN, 2),
                  "sum: expected dim in [-2, 1], got -9223372036854775808");
}

TEST(layout_wrap_dims) {
  CHECK_EQ(wrap_dims("sum", Dims{-1, 0}, 3), (Dims{2, 0}));
  CHECK_THROWS_AS(Runtime, wrap_dims("sum", Dims{0, -2}, 2),
                  "sum: expected each dim at most once, got (0, -2)");
}

TEST(layout_broadcast) {
  CHECK_EQ(broadcast_sizes("add", Dims{2, 1, 4}, Dims{3, 1}), (Dims{2, 3, 4}));
  CHECK_EQ(broadcast_sizes("add", Dims{}, Dims{2}), Dims{2});
  CHECK_EQ(broadcast_sizes("add", Dims{1}, Dims{0}), Dims{0});
  CHECK_THROWS_AS(Runtime, broadcast_sizes("add", Dims{2, 3}, Dims{4}),
                  "add: expected broadcastable shapes, got (2, 3) and (4,)");
  CHECK_THROWS_AS(Runtime, broadcast_sizes("add", Dims{4}, Dims{2, 3}),
                  "add: expected broadcastable shapes, got (4,) and (2, 3)");
  CHECK_THROWS_AS(Runtime, broadcast_sizes("add", Dims{2}, Dims{0}),
                  "add: expected broadcastable shapes, got (2,) and (0,)");
}

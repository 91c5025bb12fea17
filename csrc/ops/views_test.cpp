#include "ops/views.h"

#include "testing.h"

namespace weft {
namespace {

Layout dense(std::initializer_list<int64_t> sizes) { return Layout::contiguous(Dims(sizes)); }

}  // namespace

TEST(views_view_splits_and_joins) {
  const Layout a = dense({2, 3, 4});
  CHECK_EQ(views::view(a, Dims{6, 4}), dense({6, 4}));
  CHECK_EQ(views::view(a, Dims{-1}), dense({24}));
  CHECK_EQ(views::view(a, Dims{2, -1, 2, 2}), dense({2, 3, 2, 2}));
  const Layout t = views::transpose(a, 0, 2);  // (4, 3, 2), strides (1, 4, 12)
  CHECK_EQ(views::view(t, Dims{2, 2, 3, 2}).strides, (Dims{2, 1, 4, 12}));
  CHECK_THROWS_MSG(views::view(t, Dims{12, 2}),
                   "view: expected strides that allow shape (12, 2), got shape (4, 3, 2) with "
                   "strides (1, 4, 12); reshape copies where needed");
}

TEST(views_view_of_broadcast_and_empty) {
  const Layout row = views::expand(dense({1, 3}), Dims{4, 3});
  CHECK_EQ(row.strides, (Dims{0, 1}));
  CHECK_FALSE(views::view_strides(row, Dims{12}).has_value());
  CHECK_EQ(views::view(row, Dims{2, 2, 3}).strides, (Dims{0, 0, 1}));
  CHECK_EQ(views::view(dense({0, 3}), Dims{3, 0}).sizes, (Dims{3, 0}));
  CHECK_EQ(views::view(dense({}), Dims{1, 1}).sizes, (Dims{1, 1}));
  CHECK_EQ(views::view(dense({1, 1}), Dims{}).sizes, Dims{});
}

TEST(views_view_errors) {
  CHECK_THROWS_MSG(views::view(dense({6}), Dims{4}),
                   "view: expected a size of 6 elements, got shape (4,)");
  CHECK_THROWS_MSG(views::view(dense({6}), Dims{4, -1}),
                   "view: expected a size of 6 elements, got shape (4, -1)");
  CHECK_THROWS_MSG(views::view(dense({6}), Dims{-1, -1}),
                   "view: expected at most one -1 in the shape, got (-1, -1)");
  CHECK_THROWS_MSG(
      views::view(dense({0}), Dims{0, -1}),
      "view: expected a shape that leaves no choice for -1, got shape (0, -1) for 0 elements");
  CHECK_THROWS_MSG(views::view(dense({6}), Dims{int64_t{1} << 62, 8}),
                   "view: expected a size of 6 elements, got shape (4611686018427387904, 8)");
}

TEST(views_transposing) {
  const Layout a = dense({2, 3});
  CHECK_EQ(views::transpose(a, 0, -1).strides, (Dims{1, 3}));
  CHECK_EQ(views::t(a), views::transpose(a, 0, 1));
  CHECK_EQ(views::t(dense({3})), dense({3}));
  CHECK_EQ(views::permute(dense({2, 3, 4}), Dims{2, 0, 1}).sizes, (Dims{4, 2, 3}));
  CHECK_EQ(views::movedim(dense({2, 3, 4}), 0, -1).sizes, (Dims{3, 4, 2}));
  CHECK_EQ(views::movedim(dense({2, 3, 4}), Dims{0, 1}, Dims{2, 0}).sizes, (Dims{3, 4, 2}));
  CHECK_THROWS_AS(Index, views::transpose(a, 0, 2), "transpose: expected dim in [-2, 1], got 2");
  CHECK_THROWS_MSG(views::t(dense({2, 3, 4})), "t: expected at most 2 dims, got 3");
  CHECK_THROWS_MSG(views::permute(a, Dims{0}), "permute: expected 2 dims, got (0,)");
}

TEST(views_squeezing) {
  const Layout a = dense({1, 3, 1});
  CHECK_EQ(views::squeeze(a).sizes, Dims{3});
  CHECK_EQ(views::squeeze(a, 0).sizes, (Dims{3, 1}));
  CHECK_EQ(views::squeeze(a, 1).sizes, (Dims{1, 3, 1}));
  CHECK_EQ(views::squeeze(a, Dims{0, -1}).sizes, Dims{3});
  CHECK_EQ(views::unsqueeze(dense({2, 3}), -1).sizes, (Dims{2, 3, 1}));
  CHECK_EQ(views::unsqueeze(dense({2, 3}), 1).strides, (Dims{3, 3, 1}));
}

TEST(views_selecting) {
  const Layout a = dense({3, 4});
  CHECK_EQ(views::select(a, 0, -1).offset, 8);
  CHECK_EQ(views::select(a, 1, 2), (Layout{{3}, {4}, 2}));
  CHECK_THROWS_AS(Index, views::select(a, 0, 3),
                  "select: expected index in [-3, 2] for dim 0, got 3");
  CHECK_THROWS_AS(Index, views::select(dense({}), 0, 0),
                  "select: expected at least 1 dim, got a 0-d tensor");
  CHECK_EQ(views::narrow(a, 1, 1, 2), (Layout{{3, 2}, {4, 1}, 1}));
  CHECK_THROWS_MSG(views::narrow(a, 1, 3, 2),
                   "narrow: expected start + length <= 4, got start 3 and length 2");
}

TEST(views_slicing) {
  const Layout a = dense({10});
  auto slice = [&](std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
    return views::slice(a, 0, start, end, step);
  };
  CHECK_EQ(slice(2, 8, 3), (Layout{{2}, {3}, 2}));
  CHECK_EQ(slice(-3, {}, 1), (Layout{{3}, {1}, 7}));
  CHECK_EQ(slice({}, 100, 4), (Layout{{3}, {4}, 0}));
  CHECK_EQ(slice(8, 2, 1).sizes, Dims{0});
  CHECK_EQ(slice({}, {}, -1), (Layout{{10}, {-1}, 9}));
  CHECK_EQ(slice(7, 2, -2), (Layout{{3}, {-2}, 7}));
  CHECK_EQ(slice(-1, -100, -5), (Layout{{2}, {-5}, 9}));
  CHECK_EQ(slice({}, {}, INT64_MAX).sizes, Dims{1});
  CHECK_EQ(slice({}, {}, INT64_MIN).sizes, Dims{1});
  CHECK_THROWS_AS(Value, slice({}, {}, 0), "slice: expected a step other than 0, got 0");
}

TEST(views_expanding) {
  CHECK_EQ(views::expand(dense({3}), Dims{2, -1}), (Layout{{2, 3}, {0, 1}, 0}));
  CHECK_THROWS_MSG(views::expand(dense({3}), Dims{4}),
                   "expand: expected sizes that shape (3,) expands to, got (4,)");
  CHECK_THROWS_MSG(views::expand(dense({3}), Dims{-1, 3}),
                   "expand: expected sizes that shape (3,) expands to, got (-1, 3)");
  CHECK_THROWS_MSG(views::expand(dense({2, 3}), Dims{3}),
                   "expand: expected at least 2 sizes, got (3,)");
}

TEST(views_windows) {
  CHECK_EQ(views::diagonal(dense({3, 4}), 0, 0, 1), (Layout{{3}, {5}, 0}));
  CHECK_EQ(views::diagonal(dense({3, 4}), 2, 0, 1), (Layout{{2}, {5}, 2}));
  CHECK_EQ(views::diagonal(dense({3, 4}), -1, 0, 1), (Layout{{2}, {5}, 4}));
  CHECK_EQ(views::diagonal(dense({3, 4}), INT64_MIN, 0, 1).sizes, Dims{0});
  CHECK_EQ(views::diagonal(dense({3, 4}), INT64_MAX, 0, 1).sizes, Dims{0});
  CHECK_EQ(views::unfold(dense({7}), 0, 3, 2), (Layout{{3, 3}, {2, 1}, 0}));
  CHECK_EQ(views::unfold(dense({}), 0, 1, 1).sizes, Dims{1});
  CHECK_THROWS_MSG(views::unfold(dense({2}), 0, 3, 1),
                   "unfold: expected size in [0, 2] for dim 0, got 3");
  CHECK_EQ(views::unflatten(dense({2, 6}), 1, Dims{-1, 3}), dense({2, 2, 3}));
  CHECK_THROWS_MSG(views::as_strided(dense({4}), Dims{2}, Dims{1}, -1),
                   "as_strided: expected storage_offset >= 0, got -1");
}

}  // namespace weft

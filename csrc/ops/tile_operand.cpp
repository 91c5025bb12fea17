#include "ops/tile_operand.h"

#include <cstdlib>
#include <cstring>
#include <numeric>

#include "ops/strided.h"

namespace weft::tile {
namespace {

void convert_run(KernelFn kernel, void* to, const void* from, int64_t n) {
  void* operands[2] = {to, const_cast<void*>(from)};
  kernel(operands, n, nullptr);
}

// Whether the n elements at the cursor lie side by side.
bool is_run(const View& view, const Space& space, const Cursor& at, int64_t n) {
  return view.linear || (view.unit() && at.index[0] + n <= space.sizes[0]);
}

// Moves n elements between `packed` and the strided walk from `base` (the space's element 0).
template <strided::Direction direction>
void move_elements(char* packed, char* base, const View& view, const Space& space, const Cursor& at,
                   int64_t n) {
  const Dims& sizes = space.sizes;
  const auto item = static_cast<int64_t>(view.item);
  if (at.index[0] + n <= sizes[0]) {
    char* place = base + at.offset(view.strides);
    strided::move<direction>(packed, place, view.item, 1, n, 0, view.strides[0]);
    return;
  }
  Cursor cursor = at;
  while (n > 0) {
    int64_t rows = 1, length = std::min(n, sizes[0] - cursor.index[0]);
    if (cursor.index[0] == 0 && n >= sizes[0]) {
      rows = std::min(n / sizes[0], sizes[1] - cursor.index[1]);
    }
    char* place = base + cursor.offset(view.strides);
    strided::move<direction>(packed, place, view.item, rows, length, view.strides[1],
                             view.strides[0]);
    packed += rows * length * item;
    n -= rows * length;
    cursor.advance(space, rows * length);
  }
}

void spread(char* tile, const View& view, const char* from, int64_t n) {
  const size_t item = item_size(view.kernel);
  alignas(16) char value[16];
  if (view.convert) {
    convert_run(view.convert, value, from, 1);
  } else {
    std::memcpy(value, from, item);
  }
  strided::move<strided::Direction::Gather>(tile, value, item, 1, n, 0, 0);  // stride 0: repeats it
}

}  // namespace

void* load(const View& view, Buffer& buffer, const char* base, const Space& space, const Cursor& at,
           int64_t n) {
  const char* from = base + at.offset(view.strides);
  if (is_run(view, space, at, n)) {
    if (!view.convert) return const_cast<char*>(from);
    if (view.steady && buffer.cached == from && buffer.cached_count >= n) return buffer.tile;
    convert_run(view.convert, buffer.tile, from, n);
  } else {
    const bool uniform = view.strides[0] == 0 && at.index[0] + n <= space.sizes[0];
    if ((uniform || view.steady) && buffer.cached == from && buffer.cached_count >= n) {
      return buffer.tile;
    }
    if (uniform) {
      spread(buffer.tile, view, from, n);
    } else {
      char* packed = view.convert ? buffer.raw : buffer.tile;
      move_elements<strided::Direction::Gather>(packed, const_cast<char*>(base), view, space, at,
                                                n);
      if (view.convert) convert_run(view.convert, buffer.tile, packed, n);
      if (!view.steady) {
        buffer.cached = nullptr;  // what follows `from` depends on the place in the space
        return buffer.tile;
      }
    }
  }
  buffer.cached = from;
  buffer.cached_count = n;
  return buffer.tile;
}

void* target(const View& view, const Buffer& buffer, char* base, const Space& space,
             const Cursor& at, int64_t n) {
  if (view.in_place() && is_run(view, space, at, n)) return base + at.offset(view.strides);
  return buffer.tile;
}

void store(const View& view, const Buffer& buffer, char* base, const Space& space, const Cursor& at,
           int64_t n) {
  if (is_run(view, space, at, n)) {
    if (view.in_place()) return;
    char* to = base + at.offset(view.strides);
    if (view.convert) {
      convert_run(view.convert, to, buffer.tile, n);
    } else {
      strided::copy_line(to, buffer.tile, static_cast<size_t>(n) * view.item);
    }
    return;
  }
  char* packed = buffer.tile;
  if (view.convert) {
    convert_run(view.convert, buffer.raw, packed, n);
    packed = buffer.raw;
  }
  move_elements<strided::Direction::Scatter>(packed, base, view, space, at, n);
}

void set_types(View& view, DType memory, DType kernel, bool output) {
  view.memory = memory;
  view.kernel = kernel;
  view.item = static_cast<uint8_t>(item_size(memory));
  if (memory != kernel) {
    view.convert = output ? convert_kernel(memory, kernel) : convert_kernel(kernel, memory);
  }
}

Dims broadcast_strides(const Tensor& tensor, IntList shape) {
  Dims strides(shape.size());
  const auto item = static_cast<int64_t>(tensor.item_size());
  const size_t lead = shape.size() - tensor.sizes().size();
  for (size_t d = lead; d < shape.size(); ++d) {
    if (tensor.sizes()[d - lead] == shape[d]) strides[d] = tensor.strides()[d - lead] * item;
  }
  return strides;
}

Dims walk_order(IntList shape, std::span<const Dims> strides) {
  Dims order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::reverse(order.begin(), order.end());
  // 1: a is slower than b; -1: faster; 0: no operand tells.
  auto compare = [&](int64_t a, int64_t b) {
    for (const Dims& list : strides) {
      const int64_t sa = std::abs(list[a]), sb = std::abs(list[b]);
      if (sa == 0 || sb == 0) continue;
      if (sa != sb) return sa > sb ? 1 : -1;
      if (shape[a] > shape[b]) return 1;  // the longer is slower; the shorter asks the others
    }
    return 0;
  };
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t j = i; j-- > 0;) {
      const int relation = compare(order[j], order[at]);
      if (relation > 0) {
        std::swap(order[j], order[at]);
        at = j;
      } else if (relation < 0) {
        break;
      }
    }
  }
  return order;
}

void coalesce(Dims& sizes, std::span<Dims* const> strides) {
  size_t last = 0;
  for (size_t d = 1; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    bool fuse = true;
    if (sizes[last] != 1) {
      for (const Dims* list : strides) {
        fuse = fuse && (*list)[d] == (*list)[last] * sizes[last];
      }
    }
    if (sizes[last] == 1) {  // takes the place of a dimension that never moves
      sizes[last] = sizes[d];
      for (Dims* list : strides) (*list)[last] = (*list)[d];
    } else if (fuse) {
      sizes[last] *= sizes[d];
    } else {
      ++last;
      sizes[last] = sizes[d];
      for (Dims* list : strides) (*list)[last] = (*list)[d];
    }
  }
  const size_t count = last + 1;
  if (sizes.empty()) {
    sizes.push_back(1);
    for (Dims* list : strides) list->push_back(0);
    return;
  }
  sizes.resize(count);
  for (Dims* list : strides) list->resize(count);
}

Space make_space(Dims sizes) {
  Space space{std::move(sizes), 1};
  for (int64_t size : space.sizes) space.numel *= size;
  return space;
}

void describe(View& view, const Space& space) {
  view.linear = view.steady = true;
  int64_t expected = view.item;
  for (size_t d = 0; d < space.sizes.size(); ++d) {
    if (space.sizes[d] != 1 && view.strides[d] != expected) view.linear = false;
    if (d > 0 && view.strides[d] != 0) view.steady = false;
    expected *= space.sizes[d];
  }
}

TileRule tile_rule(const Space& space, std::span<const View* const> views, bool single_step) {
  // Rows shorter than this go several to a tile: gathering them costs less than a call for each.
  // Repeating one value or one row costs less still, and what is not side by side is gathered
  // either way.
  constexpr int64_t kShortRow = 32, kShortWhenRepeated = 1024;
  TileRule rule;
  bool all_linear = true, none_in_rows = true;
  for (const View* view : views) {
    all_linear = all_linear && view->linear;
    const bool repeated = view->steady || view->strides[0] == 0;
    none_in_rows = none_in_rows && (view->linear || repeated || !view->unit());
  }
  rule.linear = all_linear;
  const int64_t row = space.sizes[0];
  // Rows that a tile does not hold several of stay apart.
  const int64_t longest = single_step ? kShortWhenRepeated : kTile / 2 + 1;
  const int64_t short_row = none_in_rows ? longest : kShortRow;
  rule.whole_rows = space.sizes.size() > 1 && !all_linear && row < short_row;
  int64_t scratch = 0;  // bytes for each element of a tile
  for (const View* view : views) {
    const bool is_run = view->linear || (view->unit() && !rule.whole_rows);
    if (!view->in_place() || !is_run) scratch += static_cast<int64_t>(item_size(view->kernel));
  }
  if (!single_step) return rule;
  if (scratch == 0 && !rule.whole_rows) {
    rule.most = INT64_MAX;
  } else if (scratch > 0) {
    constexpr int64_t kScratchBytes = 16384;
    rule.most = rule.capacity = std::clamp(kScratchBytes / scratch, kTile, 4 * kTile);
    rule.whole_rows = rule.whole_rows && row <= rule.most;
  }
  return rule;
}

Arena::Arena(size_t nbytes) : next_(inline_) {
  if (nbytes <= kInline) return;
  block_ = take_scratch(nbytes);
  next_ = static_cast<char*>(block_.data);
}

Arena::~Arena() {
  if (block_.data != nullptr) give_scratch(block_);
}

size_t buffer_bytes(const View& view, int64_t n) {
  if (view.linear && view.in_place()) return 0;
  size_t nbytes = Arena::rounded(static_cast<size_t>(n) * item_size(view.kernel));
  if (view.convert && !view.linear) nbytes += Arena::rounded(static_cast<size_t>(n) * view.item);
  return nbytes;
}

Buffer give_buffer(const View& view, int64_t n, Arena& arena) {
  Buffer buffer{};
  if (view.linear && view.in_place()) return buffer;
  buffer.tile = arena.take(static_cast<size_t>(n) * item_size(view.kernel));
  if (view.convert && !view.linear) buffer.raw = arena.take(static_cast<size_t>(n) * view.item);
  return buffer;
}

}  // namespace weft::tile

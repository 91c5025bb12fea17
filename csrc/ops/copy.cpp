#include "ops/copy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/thread_pool.h"
#include "ops/fixed_vector.h"
#include "ops/overlap.h"
#include "ops/strided.h"
#include "ops/tile_operand.h"
#include "ops/tile_plan.h"
#include "ops/transpose.h"

namespace weft {
namespace {

using tile::Buffer;
using tile::Cursor;
using tile::kGrain;
using tile::kTile;
using tile::Space;
using tile::TileRule;
using tile::View;

// Where one tensor is written, and maybe another one read, element by element.
struct Walk {
  Space space;
  View dst, src;
  TileRule rule;
};

void set_view(View& view, const Tensor& tensor, const Dims& strides, const Dims& order) {
  view.base = static_cast<char*>(tensor.address());
  view.strides.resize(order.size());
  for (size_t d = 0; d < order.size(); ++d) view.strides[d] = strides[order[d]];
}

// `src` null: only dst is walked.
void lay_out(Walk& walk, const Tensor& dst, const Tensor* src) {
  const Dims& shape = dst.sizes();
  FixedVector<Dims, 2> strides;
  strides.emplace_back(tile::broadcast_strides(dst, shape));
  if (src) strides.emplace_back(tile::broadcast_strides(*src, shape));
  const Dims order = tile::walk_order(shape, strides);
  Dims sizes(order.size());
  for (size_t d = 0; d < order.size(); ++d) sizes[d] = shape[order[d]];
  tile::set_types(walk.dst, dst.dtype(), dst.dtype(), true);
  set_view(walk.dst, dst, strides[0], order);
  FixedVector<Dims*, 2> lists;
  FixedVector<const View*, 2> views;
  lists.emplace_back(&walk.dst.strides);
  views.emplace_back(&walk.dst);
  if (src) {
    tile::set_types(walk.src, src->dtype(), dst.dtype(), false);
    set_view(walk.src, *src, strides[1], order);
    lists.emplace_back(&walk.src.strides);
    views.emplace_back(&walk.src);
  }
  tile::coalesce(sizes, std::span<Dims* const>(lists.data(), lists.size()));
  walk.space = tile::make_space(std::move(sizes));
  tile::describe(walk.dst, walk.space);
  if (src) tile::describe(walk.src, walk.space);
  walk.rule = tile::tile_rule(walk.space, views, true);
  if (walk.rule.most != INT64_MAX) walk.rule.most = kTile;
  walk.rule.whole_rows = walk.rule.whole_rows && 2 * walk.space.sizes[0] <= kTile;
}

// Calls body(begin, end) for pieces of the space that part at tile borders.
template <class Body>
void in_pieces(const Walk& walk, const Body& body) {
  const int64_t numel = walk.space.numel;
  if (numel <= kGrain) return body(0, numel);
  const int64_t row = walk.space.sizes[0];
  const int64_t unit = walk.rule.whole_rows ? kTile / row * row : kTile;
  parallel_sweep((numel + unit - 1) / unit, tile::kPiece / unit, [&](int64_t begin, int64_t end) {
    body(begin * unit, std::min(end * unit, numel));
  });
}

template <class Body>
void for_each_tile(const Walk& walk, int64_t begin, int64_t end, const Body& body) {
  Cursor cursor;
  cursor.seek(walk.space, begin);
  while (begin < end) {
    const int64_t n = walk.rule.next(walk.space, cursor, end - begin);
    body(cursor, n);
    begin += n;
    if (begin < end) cursor.advance(walk.space, n);
  }
}

// Loads straight into the destination where that is a run, else through scratch.
void copy_piece(const Walk& walk, int64_t begin, int64_t end) {
  alignas(64) char tile_bytes[kTile * 16], raw_bytes[kTile * 16];
  for_each_tile(walk, begin, end, [&](const Cursor& cursor, int64_t n) {
    Buffer out{tile_bytes, raw_bytes, nullptr, 0};
    void* const to = tile::target(walk.dst, out, walk.dst.base, walk.space, cursor, n);
    Buffer in{static_cast<char*>(to), raw_bytes, nullptr, 0};
    void* const from = tile::load(walk.src, in, walk.src.base, walk.space, cursor, n);
    if (to != tile_bytes) {
      if (from != to) {
        strided::copy_line(static_cast<char*>(to), static_cast<const char*>(from),
                           static_cast<size_t>(n) * walk.dst.item);
      }
    } else {
      out.tile = static_cast<char*>(from);
      tile::store(walk.dst, out, walk.dst.base, walk.space, cursor, n);
    }
  });
}

// Rows that lie side by side on either side, from memory where a row does not follow the one
// before: what is read some rows later is fetched, for the processor does not see it coming.
void copy_rows(const Walk& walk, int64_t begin, int64_t end) {
  constexpr int64_t kAhead = 8, kLine = 64;
  const int64_t row = walk.space.sizes[0], row_bytes = row * walk.dst.item;
  const int64_t from_step = walk.src.strides[1], to_step = walk.dst.strides[1];
  Cursor cursor;
  cursor.seek(walk.space, begin);
  while (begin < end) {
    const char* from = walk.src.base + cursor.offset(walk.src.strides);
    char* to = walk.dst.base + cursor.offset(walk.dst.strides);
    int64_t n = std::min(row - cursor.index[0], end - begin);
    if (n < row) {
      std::memcpy(to, from, static_cast<size_t>(n * walk.dst.item));
    } else {
      const int64_t rows = std::min((end - begin) / row, walk.space.sizes[1] - cursor.index[1]);
      n = rows * row;
      for (int64_t r = 0; r < rows; ++r, from += from_step, to += to_step) {
        const char* const ahead = from + kAhead * from_step;
        for (int64_t i = 0; r + kAhead < rows && i < row_bytes; i += kLine) {
          __builtin_prefetch(ahead + i);
        }
        strided::copy_line(to, from, static_cast<size_t>(row_bytes));
      }
    }
    begin += n;
    if (begin < end) cursor.advance(walk.space, n);
  }
}

bool has_rows(const Walk& walk) {
  constexpr int64_t kShort = 32, kLong = 4096;
  const int64_t bytes = walk.space.sizes[0] * walk.dst.item;
  return walk.space.sizes.size() > 1 && !walk.src.convert && walk.src.unit() && walk.dst.unit() &&
         bytes >= kShort && bytes <= kLong;
}

// The dimension along which src is contiguous, when dst is so along the fastest one and a blocked
// transpose pays; 0 otherwise.
size_t transposed_dim(const Walk& walk) {
  constexpr int64_t kWorthIt = 8;
  const Dims &sizes = walk.space.sizes, &src = walk.src.strides;
  if (walk.src.convert || !walk.dst.unit() || src[0] == walk.src.item || src[0] == 0) return 0;
  if (sizes[0] < kWorthIt) return 0;
  for (size_t d = 1; d < sizes.size(); ++d) {
    if (src[d] == walk.src.item && sizes[d] >= kWorthIt) return d;
  }
  return 0;
}

void copy_transposed(const Walk& walk, size_t k) {
  const int64_t columns = walk.space.sizes[0], rows = walk.space.sizes[k];
  Space outer = walk.space;
  Dims dst_strides = walk.dst.strides, src_strides = walk.src.strides;
  for (size_t d : {k, size_t{0}}) {
    outer.sizes.erase(d);
    dst_strides.erase(d);
    src_strides.erase(d);
  }
  outer.numel = walk.space.numel / (columns * rows);
  if (outer.sizes.empty()) {
    outer.sizes.push_back(1);
    dst_strides.push_back(0);
    src_strides.push_back(0);
  }
  // Bands of rows are what threads share.
  const int64_t band = transpose::band(walk.dst.item), bands = (rows + band - 1) / band;
  const int64_t grain = std::max<int64_t>(1, kGrain / (band * columns));
  parallel_for(outer.numel * bands, grain, [&](int64_t begin, int64_t end) {
    Cursor cursor;
    for (; begin < end; ++begin) {
      cursor.seek(outer, begin / bands);
      const int64_t first = begin % bands * band;
      transpose::copy(walk.dst.base + cursor.offset(dst_strides) + first * walk.dst.strides[k],
                      walk.src.base + cursor.offset(src_strides) + first * walk.src.item,
                      walk.dst.item, std::min(band, rows - first), columns, walk.dst.strides[k],
                      walk.src.strides[0]);
    }
  });
}

bool plain_pair(const Tensor& dst, const Tensor& src) {
  return dst.dtype() == src.dtype() && dst.sizes() == src.sizes() && dst.is_contiguous() &&
         src.is_contiguous();
}

void check_distinct(const Tensor& dst, const char* op) {
  WEFT_CHECK(dst.layout().is_non_overlapping(), op,
             ": expected an output with distinct elements, got strides ", AsTuple{dst.strides()},
             " for shape ", AsTuple{dst.sizes()}, "; clone() it before writing");
}

// The greatest finite number; of float64 and the floats of one byte, which saturate, any.
double finite_limit(DType dtype) {
  if (dtype == DType::F16) return 65504;
  if (dtype == DType::BF16) return 0x1.fep127;
  return dtype == DType::F32 ? std::numeric_limits<float>::max()
                             : std::numeric_limits<double>::infinity();
}

// Whether a number that is not infinite stays finite in a floating or complex dtype.
bool stays_finite(const Scalar& value, DType dtype) {
  const double most = finite_limit(real_of(dtype));
  const std::complex<double> number = value.to_complex();
  const auto fits = [most](double part) { return !(std::abs(part) > most) || std::isinf(part); };
  return fits(number.real()) && fits(number.imag());
}

}  // namespace

void check_number(const Scalar& value, DType dtype, const char* op) {
  WEFT_CHECK(!value.is_complex() || is_complex(dtype) || dtype == DType::Bool, op,
             ": expected a real number for dtype ", dtype, ", got ", value);
  check_range(value, dtype, op);
  if (!is_floating(dtype)) return;
  WEFT_CHECK(stays_finite(value, dtype), op, ": expected a value that fits in ", dtype, ", got ",
             value);
}

void check_range(const Scalar& value, DType dtype, const char* op) {
  if (is_complex(dtype) || dtype == DType::F32) {
    WEFT_CHECK(stays_finite(value, dtype), op, ": expected a value that fits in ", dtype, ", got ",
               value);
  }
  if (!is_integral(dtype)) return;
  const bool fits = dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      using Limits = std::numeric_limits<T>;
      if (value.is_integral()) {
        // Negative numbers wrap in unsigned types, as in PyTorch.
        const int64_t v = value.to_int();
        if (v < 0 && std::is_unsigned_v<T>) {
          return sizeof(T) == 8 || v >= -static_cast<int64_t>(Limits::max());
        }
        return std::in_range<T>(v);
      }
      const double v = value.to_double();
      if (v > static_cast<double>(Limits::max())) return false;
      return v >= static_cast<double>(Limits::min()) &&
             v < std::ldexp(1.0, std::numeric_limits<T>::digits);
    }
    return true;
  });
  WEFT_CHECK(fits, op, ": expected a value that fits in ", dtype, ", got ", value);
}

void copy_new(const Tensor& dst, const Tensor& src) {
  const int64_t numel = dst.numel();
  if (numel == 0) return;
  if (!dst.on_cpu() || !src.on_cpu()) [[unlikely]]
    return copy_on_devices(dst, src);
  if (numel <= kGrain && plain_pair(dst, src)) {
    std::memcpy(dst.address(), src.address(), static_cast<size_t>(numel) * dst.item_size());
    return;
  }
  Walk walk;
  lay_out(walk, dst, &src);
  if (const size_t k = transposed_dim(walk)) return copy_transposed(walk, k);
  const auto copy = has_rows(walk) ? copy_rows : copy_piece;
  in_pieces(walk, [&](int64_t begin, int64_t end) { copy(walk, begin, end); });
}

void copy_into(const Tensor& dst, const Tensor& src, const char* op) {
  WEFT_CHECK(dst.defined() && src.defined(), op, ": expected a tensor, got None");
  if (!(dst.sizes() == src.sizes())) {
    const bool fits =
        src.dim() <= dst.dim() && broadcast_sizes(op, dst.sizes(), src.sizes()) == dst.sizes();
    WEFT_CHECK(fits, op, ": expected a shape that broadcasts to ", AsTuple{dst.sizes()}, ", got ",
               AsTuple{src.sizes()});
  }
  check_distinct(dst, op);
  dst.check_writable(op);
  switch (overlap(dst, src)) {
    case Overlap::None:
      return copy_new(dst, src);
    case Overlap::Exact:
      return;
    case Overlap::Some:
      return copy_new(dst, contiguous_copy(src));
  }
}

Tensor contiguous_copy(const Tensor& src) {
  Tensor result = Tensor::empty(src.sizes(), src.dtype(), src.device(), "contiguous");
  copy_new(result, src);
  return result;
}

Tensor empty_preserve(const Tensor& like, DType dtype, Device device) {
  if (like.is_contiguous()) return tile::make_result("empty_like", like.sizes(), {}, dtype, device);
  const Dims strides = tile::broadcast_strides(like, like.sizes());
  const Dims order = tile::walk_order(like.sizes(), std::span<const Dims>(&strides, 1));
  return tile::make_result("empty_like", like.sizes(), order, dtype, device);
}

Tensor clone_preserve(const Tensor& src) {
  Tensor result = empty_preserve(src, src.dtype(), src.device());
  copy_new(result, src);
  return result;
}

void fill(const Tensor& dst, const Scalar& value, const char* op) {
  const DType dtype = dst.dtype();
  if (dst.numel() == 1) {  // one element becomes infinite in 16 bits, as in PyTorch
    check_range(value, dtype, op);
  } else {
    check_number(value, dtype, op);
  }
  WEFT_CHECK(!value.is_complex() || is_complex(dtype), op, ": expected a real number for dtype ",
             dtype, ", got ", value);
  dst.check_writable(op);
  if (dst.numel() == 0) return;
  alignas(16) char element[16];
  value.store(dtype, element);
  if (!dst.on_cpu()) [[unlikely]]
    return copy_on_devices(dst, Tensor::scalar(value, dtype));
  if (dst.numel() == 1) {
    std::memcpy(dst.address(), element, dst.item_size());
    return;
  }
  Walk walk;
  lay_out(walk, dst, nullptr);
  const bool zero = std::all_of(element, element + dst.item_size(), [](char c) { return c == 0; });
  const auto write = [&](int64_t begin, int64_t end) {
    if (zero && walk.dst.linear) {
      std::memset(walk.dst.base + begin * walk.dst.item, 0,
                  static_cast<size_t>(end - begin) * walk.dst.item);
      return;
    }
    alignas(64) char tile_bytes[kTile * 16];
    const int64_t wide = std::min(kTile, end - begin);
    strided::move<strided::Direction::Gather>(tile_bytes, element, walk.dst.item, 1, wide, 0, 0);
    Walk piece = walk;
    piece.dst.buffered = true;
    piece.rule.most = kTile;
    for_each_tile(piece, begin, end, [&](const Cursor& cursor, int64_t n) {
      tile::store(piece.dst, Buffer{tile_bytes, nullptr, nullptr, 0}, piece.dst.base, piece.space,
                  cursor, n);
    });
  };
  // Elements that share memory get one number, but no two threads write the same one.
  if (dst.layout().is_non_overlapping()) return in_pieces(walk, write);
  write(0, walk.space.numel);
}

}  // namespace weft

// Windows over images: their geometry, and the walk over lines of results that pool_line.h
// computes.
#pragma once

#include <vector>

#include "core/thread_pool.h"
#include "ops/conv.h"
#include "ops/deinterleave.h"
#include "ops/pool_line.h"
#include "ops/scratch.h"
#include "ops/support.h"

namespace weft::native::pool {

struct Axis {
  int64_t size, out, kernel, stride, padding, dilation;

  int64_t begin(int64_t i) const { return i * stride - padding; }  // of window i
  int64_t reach() const { return (kernel - 1) * dilation + 1; }
  // The taps [first, last) of window i that lie inside.
  int64_t first(int64_t i) const { return begin(i) < 0 ? (dilation - 1 - begin(i)) / dilation : 0; }
  int64_t last(int64_t i) const {
    return std::max(first(i), std::min(kernel, (size - begin(i) + dilation - 1) / dilation));
  }
  // The first place of window i that is not in front of the image.
  int64_t start(int64_t i) const { return begin(i) + first(i) * dilation; }
};

struct Pooling {
  int64_t planes, channels;
  Axis h, w;
  Dims out_sizes;

  int64_t in_plane() const { return h.size * w.size; }
  int64_t out_plane() const { return h.out * w.out; }
};

// Raises RuntimeError naming `op`.
Pooling make_pooling(const char* op, IntList input, IntList kernel, IntList stride, IntList padding,
                     IntList dilation, bool ceil_mode);
// (..., H, W) with H and W of at least 1: how many planes of them. Raises RuntimeError naming `op`.
int64_t count_planes(const char* op, IntList input);

// A line of results: row y of a plane, or, by channels, all channels of position (y, x).
template <class T>
struct Line {
  Window window;
  const T* from;
  int64_t at;  // its first result
  int64_t y, x;
};

// Rows of a plane parted by their places modulo the stride, in a border of one value: what the
// windows of neighbouring results read then lies side by side.
template <class T>
class PartedRows {
 public:
  PartedRows(const Axis& w, T border, int64_t rows)
      : w_(w),
        border_(border),
        phases_(std::min(w.stride, w.reach())),
        width_(w.out + (w.reach() - 1) / w.stride),
        room_(rows * row()) {}

  int64_t row() const { return phases_ * width_; }
  int64_t at(int64_t place) const { return place % w_.stride * width_ + place / w_.stride; }
  const T* data() { return room_.data(); }

  void fill(int64_t index, const T* from) {
    T* const to = room_.data() + index * row();
    if (w_.stride == 2 && phases_ == 2) return fill_pairs(from, to);
    for (int64_t phase = 0; phase < phases_; ++phase) {
      T* const line = to + phase * width_;
      const auto [first, last] = inside(phase);
      const T* const in = from + first * w_.stride + phase - w_.padding;
      std::fill_n(line, first, border_);
      if (w_.stride == 1) {
        std::copy_n(in, last - first, line + first);
      } else {
        for (int64_t i = 0; i < last - first; ++i) line[first + i] = in[i * w_.stride];
      }
      std::fill(line + last, line + width_, border_);
    }
  }

 private:
  // The elements of a phase that lie inside of the image.
  conv::Range inside(int64_t phase) const {
    return conv::inside(phase - w_.padding, w_.stride, w_.size, width_);
  }
  void fill_pairs(const T* from, T* to) {
    const conv::Range even = inside(0), odd = inside(1);
    const int64_t first = std::max(even.first, odd.first), last = std::min(even.last, odd.last);
    const auto at = [&](int64_t i, int64_t phase) {
      const conv::Range& range = phase ? odd : even;
      return i >= range.first && i < range.last ? from[2 * i + phase - w_.padding] : border_;
    };
    const auto careful = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t phase : {0, 1}) to[phase * width_ + i] = at(i, phase);
      }
    };
    careful(0, std::min(first, width_));
    if (first < last) {
      deinterleave(from + 2 * first - w_.padding, last - first, to + first, to + width_ + first);
    }
    careful(std::max(first, last), width_);
  }

  const Axis w_;
  const T border_;
  const int64_t phases_, width_;
  Scratch<T> room_;
};

constexpr int64_t kGrain = int64_t{1} << 14;  // elements read that are worth a thread

// Calls fn(Line) for each row of results of (planes, H, W). Threads take blocks of rows whose
// parted rows stay in the nearest cache.
template <class T, class Fn>
void for_each_row(const Pooling& p, const T* in, T border, Fn&& fn) {
  constexpr int64_t kElements = 8192;
  const int64_t line = (p.w.out + p.w.reach() / p.w.stride) * std::min(p.w.stride, p.w.reach());
  const int64_t lines = std::clamp<int64_t>(kElements / (line * p.h.stride), 1, p.h.out);
  const int64_t blocks = (p.h.out + lines - 1) / lines;
  const int64_t work = lines * p.w.out * p.h.kernel * p.w.kernel;
  parallel_for(p.planes * blocks, kGrain / std::max<int64_t>(work, 1) + 1,
               [&](int64_t begin, int64_t end) {
                 PartedRows<T> parted(p.w, border, (lines - 1) * p.h.stride + p.h.reach());
                 std::vector<Tap> columns, rows;
                 for (int64_t j = 0; j < p.w.kernel; ++j) {
                   const int64_t place = j * p.w.dilation;
                   columns.push_back({parted.at(place), place - p.w.padding});
                 }
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t plane = i / blocks, top = i % blocks * lines;
                   const int64_t bottom = std::min(top + lines, p.h.out);
                   const int64_t first = std::max<int64_t>(0, p.h.begin(top));
                   const int64_t last = std::min(p.h.size, p.h.begin(bottom - 1) + p.h.reach());
                   for (int64_t r = first; r < last; ++r) {
                     parted.fill(r - first, in + plane * p.in_plane() + r * p.w.size);
                   }
                   for (int64_t y = top; y < bottom; ++y) {
                     rows.clear();
                     for (int64_t k = p.h.first(y); k < p.h.last(y); ++k) {
                       const int64_t r = p.h.begin(y) + k * p.h.dilation;
                       rows.push_back({(r - first) * parted.row(), r * p.w.size});
                     }
                     const int64_t start = p.h.start(y) * p.w.size - p.w.padding;
                     fn(Line<T>{{rows, columns, p.w.out, p.w.stride, start},
                                parted.data(),
                                plane * p.out_plane() + y * p.w.out,
                                y,
                                0});
                   }
                 }
               });
}

// The taps of all windows along an axis, `step` elements and `places` places apart.
struct AxisTaps {
  std::vector<Tap> taps;
  std::vector<size_t> ends{0};

  AxisTaps(const Axis& axis, int64_t step, int64_t places) {
    for (int64_t i = 0; i < axis.out; ++i) {
      for (int64_t k = axis.first(i); k < axis.last(i); ++k) {
        const int64_t at = axis.begin(i) + k * axis.dilation;
        taps.push_back({at * step, at * places});
      }
      ends.push_back(taps.size());
    }
  }
  std::span<const Tap> operator[](int64_t i) const {
    const size_t begin = ends[static_cast<size_t>(i)];
    return std::span(taps).subspan(begin, ends[static_cast<size_t>(i) + 1] - begin);
  }
};

// The same for each position of results of (N, H, W, C): all its channels.
template <class T, class Fn>
void for_each_position(const Pooling& p, const T* in, Fn&& fn) {
  const int64_t c = p.channels;
  const AxisTaps rows(p.h, p.w.size * c, p.w.size), columns(p.w, c, 1);
  const int64_t work = p.w.out * c * p.h.kernel * p.w.kernel;
  parallel_for(p.planes / std::max<int64_t>(c, 1) * p.h.out,
               kGrain / std::max<int64_t>(work, 1) + 1, [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t image = i / p.h.out, y = i % p.h.out;
                   for (int64_t x = 0; x < p.w.out; ++x) {
                     const int64_t start = p.h.start(y) * p.w.size + p.w.start(x);
                     fn(Line<T>{{rows[y], columns[x], c, 0, start},
                                in + image * c * p.in_plane(),
                                (i * p.w.out + x) * c,
                                y,
                                x});
                   }
                 }
               });
}

}  // namespace weft::native::pool

// Discrete Fourier transforms along dimensions of tensors.
#include <algorithm>
#include <complex>

#include "core/thread_pool.h"
#include "native_products.h"
#include "native_spectra.h"
#include "ops/fft_long.h"
#include "ops/fft_plan.h"
#include "ops/fft_rows.h"
#include "ops/scratch.h"
#include "ops/support.h"
#include "ops_arithmetic.h"
#include "ops_compare.h"
#include "ops_factories.h"
#include "ops_padding.h"
#include "ops_spectra.h"
#include "ops_unary.h"
#include "ops_views.h"

namespace weft::native {
namespace {

// A dimension of a contiguous tensor: line i starts at (i / inner) * size * inner + i % inner, and
// its entries are `inner` apart.
struct DimLines {
  int64_t count, size, inner;

  DimLines(const Tensor& tensor, int64_t dim) : count(1), size(tensor.size(dim)), inner(1) {
    for (int64_t d = 0; d < tensor.dim(); ++d) {
      if (d != dim) count *= tensor.size(d);
      if (d > dim) inner *= tensor.size(d);
    }
  }
  int64_t start(int64_t line) const { return line / inner * size * inner + line % inner; }
};

// DimLines to be transformed together: they do not cross an outer dimension where that parts lanes
// that lie beside each other.
template <class T>
struct Groups {
  static constexpr int64_t kLanes = fft::kRow<T>;
  int64_t part, parts;  // groups lie within runs of `part` lines, `parts` in each

  explicit Groups(const DimLines& lines)
      : part(lines.inner < kLanes ? lines.count : lines.inner),
        parts((part + kLanes - 1) / kLanes) {}
  int64_t first(int64_t group) const { return group / parts * part + group % parts * kLanes; }
  int64_t count(int64_t group) const { return std::min(kLanes, part - group % parts * kLanes); }
};

// The lines of a group in a tensor whose entries are `width` elements of T (1: real, 2: complex).
template <class T>
fft::Lanes<T> lanes_of(const DimLines& lines, int64_t width, const void* data, int64_t first,
                       int64_t count) {
  using Access = typename fft::Lanes<T>::Access;
  const bool beside = lines.inner >= fft::kRow<T> && count == fft::kRow<T>;
  fft::Lanes<T> lanes{};
  lanes.access = lines.inner == 1 ? Access::Contiguous
                 : !beside        ? Access::Strided
                 : width == 2     ? Access::InterleavedPairs
                                  : Access::Interleaved;
  lanes.count = count;
  lanes.step = 2 * lines.inner;
  lanes.part = width == 2 ? 1 : lines.inner;
  T* const base = const_cast<T*>(static_cast<const T*>(data));
  for (int64_t l = 0; l < fft::kRow<T>; ++l) {
    lanes.lane[l] = base + width * lines.start(first + std::min(l, count - 1));
  }
  return lanes;
}

// A group of lines through `run`: from memory, to where they go. While elements move, the memory to
// be written and the lines of the next group come nearer.
template <class T, class Run>
void pass_through(const fft::Lanes<T>& from, int64_t in, const fft::Rows<T>& taken, const Run& run,
                  const fft::Lanes<T>& to, int64_t out, const fft::Rows<T>& given, T scale) {
  using Access = typename fft::Lanes<T>::Access;
  fft::gather<T>(from, in, taken, to.access == Access::Contiguous ? &to : nullptr);
  run();
  fft::Lanes<T> next = from;
  for (T*& lane : next.lane) lane += fft::kRow<T> * in;
  fft::scatter<T>(to, out, scale, given, from.access == Access::Contiguous ? &next : nullptr);
}

// Calls body(first, count, rows, work) for all groups of lines.
template <class T, class Body>
void by_groups(const DimLines& lines, const fft::Plan<T>& plan, const Body& body) {
  if (lines.count == 0) return;
  const Groups<T> groups(lines);
  const int64_t rows = (plan.size() + 1) * fft::kEntry<T>;  // a half spectrum has one more
  parallel_for(
      lines.count / groups.part * groups.parts, 1 + 32768 / rows, [&](int64_t begin, int64_t end) {
        Scratch<T> scratch(rows + plan.work());
        for (int64_t group = begin; group < end; ++group) {
          body(groups.first(group), groups.count(group), scratch.data(), scratch.data() + rows);
        }
      });
}

// Whether lines are better transformed one by one: there are too few of them to fill rows, or one
// of them fills the caches. Those that lie beside each other are read well together for longer.
template <class T>
bool one_by_one(const DimLines& lines) {
  constexpr int64_t kLongest = 8192;
  if (lines.size < fft::LongPlan<T>::kLeast) return false;
  if (lines.count < fft::kRow<T> / 2) return true;
  return lines.size > (lines.inner < fft::kRow<T> ? kLongest : 4 * kLongest);
}

template <class T>
void transform(const void* in, void* out, const DimLines& lines, bool inverse, T scale) {
  if (one_by_one<T>(lines)) {
    const auto plan = fft::cached<fft::LongPlan<T>>(lines.size);
    const int64_t step = 2 * lines.inner;
    for (int64_t line = 0; line < lines.count; ++line) {
      const int64_t start = 2 * lines.start(line);
      plan->run(static_cast<const T*>(in) + start, step, static_cast<T*>(out) + start, step,
                inverse, scale);
    }
    return;
  }
  const int64_t n = lines.size;
  const auto plan = fft::cached<fft::Plan<T>>(n);
  by_groups<T>(lines, *plan, [&](int64_t first, int64_t count, T* rows, T* work) {
    pass_through<T>(
        lanes_of<T>(lines, 2, in, first, count), 2 * n, {.rows = rows, .exchange = inverse},
        [&] { plan->run(rows, work); }, lanes_of<T>(lines, 2, out, first, count), 2 * n,
        {.rows = rows, .order = plan->order(), .exchange = inverse}, scale);
  });
}

// Real lines of an even length are complex ones of half of it, whose transform is taken apart;
// those of an odd length have imaginary parts of 0.
template <class T>
void half_spectrum(const void* in, void* out, const DimLines& from, const DimLines& to, T scale) {
  const int64_t n = from.size, length = n % 2 ? n : n / 2;
  if (one_by_one<T>(from)) {
    for (int64_t line = 0; line < from.count; ++line) {
      fft::half_of_long(n, static_cast<const T*>(in) + from.start(line), from.inner,
                        static_cast<T*>(out) + 2 * to.start(line), 2 * to.inner, scale);
    }
    return;
  }
  const auto plan = fft::cached<fft::Plan<T>>(length);
  const auto turns = fft::cached<fft::HalfTurns<T>>(n);
  by_groups<T>(from, *plan, [&](int64_t first, int64_t count, T* rows, T* work) {
    if (n % 2) std::fill_n(rows, n * fft::kEntry<T>, T(0));
    const auto run = [&] {
      plan->run(rows, work);
      if (n % 2 == 0) fft::split_half(length, turns->data(), plan->order(), rows);
    };
    pass_through<T>(lanes_of<T>(from, 1, in, first, count), n, {.rows = rows, .real = n % 2 == 1},
                    run, lanes_of<T>(to, 2, out, first, count), 2 * to.size,
                    {.rows = rows, .order = plan->order()}, n % 2 ? scale : scale / 2);
  });
}

// The entries from the middle on of a spectrum of an odd n, by those before; parts are exchanged.
template <class T>
void mirror(int64_t n, T* rows) {
  constexpr int64_t kLanes = fft::kRow<T>;
  std::fill_n(rows, kLanes, T(0));
  for (int64_t k = 1; k <= n / 2; ++k) {
    const T* const here = rows + k * fft::kEntry<T>;
    T* const there = rows + (n - k) * fft::kEntry<T>;
    for (int64_t l = 0; l < kLanes; ++l) {
      there[l] = -here[l];
      there[kLanes + l] = here[kLanes + l];
    }
  }
}

// The reverse: what the imaginary parts of the first entry, and for an even n of the last, would be
// is not looked at.
template <class T>
void real_signal(const void* in, void* out, const DimLines& from, const DimLines& to, T scale) {
  const int64_t n = to.size, length = n % 2 ? n : n / 2;
  if (one_by_one<T>(to)) {
    for (int64_t line = 0; line < to.count; ++line) {
      fft::real_of_long(n, static_cast<const T*>(in) + 2 * from.start(line), 2 * from.inner,
                        static_cast<T*>(out) + to.start(line), to.inner, scale);
    }
    return;
  }
  const auto plan = fft::cached<fft::Plan<T>>(length);
  const auto turns = fft::cached<fft::HalfTurns<T>>(n);
  by_groups<T>(to, *plan, [&](int64_t first, int64_t count, T* rows, T* work) {
    const auto run = [&] {
      if (n % 2) {
        mirror(n, rows);
      } else {
        fft::merge_half(length, turns->data(), rows);
      }
      plan->run(rows, work);
    };
    pass_through<T>(
        lanes_of<T>(from, 2, in, first, count), 2 * from.size,
        {.rows = rows, .exchange = n % 2 == 1}, run, lanes_of<T>(to, 1, out, first, count), n,
        {.rows = rows, .order = plan->order(), .exchange = true, .real = n % 2 == 1}, scale);
  });
}

void check_complex(const char* op, const Tensor& self) {
  WEFT_CHECK(self.dtype() == DType::C64 || self.dtype() == DType::C128, op,
             ": expected complex64 or complex128, got ", self.dtype());
}

// body(T()) with the type of the real parts.
template <class Body>
void by_precision(DType dtype, const Body& body) {
  if (real_of(dtype) == DType::F64) return body(double());
  return body(float());
}

Dims with_size(const Tensor& tensor, int64_t dim, int64_t size) {
  Dims sizes(tensor.sizes());
  sizes[dim] = size;
  return sizes;
}

}  // namespace

Tensor fft_complex(const Tensor& self, IntList dim, int64_t sign, double scale) {
  check_complex("_fft", self);
  const Dims dims = wrap_dims("_fft", dim, self.dim());
  if (dims.empty() || self.numel() == 0) return ops::mul(self, Scalar(scale));
  const Tensor in = in_order(self);
  Tensor out = Tensor::empty(self.sizes(), self.dtype(), self.device());
  by_precision(self.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < dims.size(); ++i) {
      const T factor = i + 1 == dims.size() ? static_cast<T>(scale) : T(1);
      transform<T>(i ? out.data() : in.data(), out.data(), DimLines(out, dims[i]), sign > 0,
                   factor);
    }
  });
  return out;
}

Tensor fft_half(const Tensor& self, int64_t dim, double scale) {
  WEFT_CHECK(self.dtype() == DType::F32 || self.dtype() == DType::F64,
             "_fft_half: expected float32 or float64, got ", self.dtype());
  dim = wrap_dim("_fft_half", dim, self.dim());
  const int64_t n = self.size(dim);
  WEFT_CHECK(n > 0, "_fft_half: expected at least 1 entry along dim ", dim, ", got 0");
  const Tensor in = in_order(self);
  Tensor out =
      Tensor::empty(with_size(self, dim, n / 2 + 1), complex_of(self.dtype()), self.device());
  by_precision(self.dtype(), [&](auto zero) {
    using T = decltype(zero);
    half_spectrum<T>(in.data(), out.data(), DimLines(in, dim), DimLines(out, dim),
                     static_cast<T>(scale));
  });
  return out;
}

Tensor fft_real(const Tensor& self, int64_t dim, int64_t n, double scale) {
  check_complex("_fft_real", self);
  dim = wrap_dim("_fft_real", dim, self.dim());
  WEFT_CHECK(n > 0 && self.size(dim) == n / 2 + 1, "_fft_real: expected ", n / 2 + 1,
             " entries for ", n, " real numbers, got ", self.size(dim));
  const Tensor in = in_order(self);
  Tensor out = Tensor::empty(with_size(self, dim, n), real_of(self.dtype()), self.device());
  by_precision(self.dtype(), [&](auto zero) {
    using T = decltype(zero);
    real_signal<T>(in.data(), out.data(), DimLines(in, dim), DimLines(out, dim),
                   static_cast<T>(scale));
  });
  return out;
}

Tensor fft_half_backward(const Tensor& grad, int64_t dim, int64_t n, double scale) {
  dim = wrap_dim("_fft_half_backward", dim, grad.dim());
  Dims widths(static_cast<size_t>(2 * (grad.dim() - dim)));
  widths.back() = n - grad.size(dim);
  const int64_t dims[] = {dim};
  return ops::real(ops::_fft(ops::constant_pad_nd(grad, widths, 0), dims, 1, scale));
}

Tensor fft_real_backward(const Tensor& grad, int64_t dim, double scale) {
  dim = wrap_dim("_fft_real_backward", dim, grad.dim());
  const int64_t n = grad.size(dim), count = n / 2 + 1;
  // Every entry but the first, and for an even n the last, stands for its mirror too.
  Dims shape(static_cast<size_t>(grad.dim()), 1);
  shape[dim] = count;
  const Tensor positions = ops::reshape(ops::arange(Scalar(count)), shape);
  const Tensor single =
      ops::eq(ops::remainder(ops::mul(positions, Scalar(2)), Scalar(n)), Scalar(0));
  const Tensor weight = ops::rsub(as_dtype(single, grad.dtype()), Scalar(2));
  return ops::mul(ops::_fft_half(grad, dim, scale), weight);
}

}  // namespace weft::native

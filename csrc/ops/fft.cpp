// Discrete Fourier transforms along dimensions of tensors.
#include <algorithm>
#include <complex>

#include "core/thread_pool.h"
#include "native.h"
#include "ops.h"
#include "ops/fft_plan.h"
#include "ops/scratch.h"
#include "ops/support.h"

namespace weft::native {
namespace {

// A dimension of a contiguous tensor: line i starts at (i / inner) * size * inner + i % inner, and
// its entries are `inner` apart.
struct Lines {
  int64_t count, size, inner;

  Lines(const Tensor& tensor, int64_t dim) : count(1), size(tensor.size(dim)), inner(1) {
    for (int64_t d = 0; d < tensor.dim(); ++d) {
      if (d != dim) count *= tensor.size(d);
      if (d > dim) inner *= tensor.size(d);
    }
  }
  int64_t start(int64_t line) const { return line / inner * size * inner + line % inner; }
};

// As many lines at once as fill registers, as long as they stay in the caches.
constexpr int64_t kMostLanes = 16, kRoom = 32768;

// Calls body(first line, lanes, room) for groups of lines; room holds `elements` a lane.
template <class T, class Body>
void by_groups(int64_t lines, int64_t size, int64_t elements, const Body& body) {
  const int64_t lanes = std::clamp<int64_t>(kRoom / std::max<int64_t>(size, 1), 1, kMostLanes);
  const int64_t groups = (lines + lanes - 1) / lanes;
  const int64_t grain = std::max<int64_t>(1, kRoom / (size * lanes));
  parallel_for(groups, grain, [&](int64_t begin, int64_t end) {
    Scratch<T> room(elements * lanes);
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * lanes;
      body(first, std::min(lanes, lines - first), room.data());
    }
  });
}

// Calls body(offset, lane, i) for every `step`th entry of a group of lines, `count` of each.
template <class Body>
void each(const Lines& lines, int64_t first, int64_t lanes, int64_t count, int64_t step,
          const Body& body) {
  constexpr int64_t kBlock = 32;  // of a line after the other: what is written lies close together
  const int64_t apart = step * lines.inner, block = lines.inner == 1 ? kBlock : 1;
  int64_t starts[kMostLanes];
  for (int64_t l = 0; l < lanes; ++l) starts[l] = lines.start(first + l);
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t end = std::min(count, begin + block);
    for (int64_t l = 0; l < lanes; ++l) {
      for (int64_t i = begin; i < end; ++i) body(starts[l] + i * apart, l, i);
    }
  }
}

template <class T>
void transform(const std::complex<T>* in, std::complex<T>* out, const Lines& lines, int64_t sign,
               T scale) {
  const auto plan = fft::kept<fft::Plan<T>>(lines.size);
  const int64_t n = lines.size, elements = 2 * n + plan->work(1);
  by_groups<T>(lines.count, n, elements, [&](int64_t first, int64_t lanes, T* room) {
    T* const re = room;
    T* const im = room + n * lanes;
    each(lines, first, lanes, n, 1, [&](int64_t at, int64_t l, int64_t i) {
      re[i * lanes + l] = in[at].real();
      im[i * lanes + l] = in[at].imag();
    });
    // The inverse is the transform of what has real and imaginary parts exchanged.
    plan->run(lanes, sign < 0 ? re : im, sign < 0 ? im : re, room + 2 * n * lanes);
    each(lines, first, lanes, n, 1, [&](int64_t at, int64_t l, int64_t i) {
      out[at] = {re[i * lanes + l] * scale, im[i * lanes + l] * scale};
    });
  });
}

// Real lines of an even length are complex ones of half of it, whose transform is taken apart;
// those of an odd length have imaginary parts of 0.
template <class T>
void half_spectrum(const T* in, std::complex<T>* out, const Lines& from, const Lines& to, T scale) {
  const int64_t n = from.size, length = n % 2 ? n : n / 2;
  const auto plan = fft::kept<fft::Plan<T>>(length);
  const auto turns = fft::kept<fft::HalfTurns<T>>(n);
  const int64_t elements = 2 * length + plan->work(1);
  by_groups<T>(from.count, n, elements, [&](int64_t first, int64_t lanes, T* room) {
    T* const re = room;
    T* const im = room + length * lanes;
    each(from, first, lanes, length, n % 2 ? 1 : 2, [&](int64_t at, int64_t l, int64_t i) {
      re[i * lanes + l] = in[at];
      im[i * lanes + l] = n % 2 ? T(0) : in[at + from.inner];
    });
    plan->run(lanes, re, im, room + 2 * length * lanes);
    each(to, first, lanes, to.size, 1, [&](int64_t at, int64_t l, int64_t k) {
      if (n % 2) {
        out[at] = {re[k * lanes + l] * scale, im[k * lanes + l] * scale};
        return;
      }
      const int64_t here = (k == length ? 0 : k) * lanes + l;
      const int64_t mirror = (k == 0 ? 0 : length - k) * lanes + l;
      const T a = re[here], b = im[here], c = re[mirror], d = im[mirror];
      const T even_re = a + c, even_im = b - d, odd_re = b + d, odd_im = c - a;
      const T cosine = turns->cosine(k), sine = turns->sine(k), half = scale / 2;
      out[at] = {half * (even_re + cosine * odd_re - sine * odd_im),
                 half * (even_im + cosine * odd_im + sine * odd_re)};
    });
  });
}

// The reverse: what the imaginary parts of the first entry, and for an even n of the last, would be
// is not looked at.
template <class T>
void real_signal(const std::complex<T>* in, T* out, const Lines& from, const Lines& to, T scale) {
  const int64_t n = to.size, length = n % 2 ? n : n / 2, last = from.size - 1;
  const auto plan = fft::kept<fft::Plan<T>>(length);
  const auto turns = fft::kept<fft::HalfTurns<T>>(n);
  const int64_t spectrum = 2 * from.size, elements = 2 * length + plan->work(1) + spectrum;
  by_groups<T>(to.count, n, elements, [&](int64_t first, int64_t lanes, T* room) {
    T* const re = room;
    T* const im = re + length * lanes;
    T* const given_re = im + length * lanes;
    T* const given_im = given_re + from.size * lanes;
    each(from, first, lanes, from.size, 1, [&](int64_t at, int64_t l, int64_t k) {
      const bool is_real = k == 0 || (n % 2 == 0 && k == last);
      given_re[k * lanes + l] = in[at].real();
      given_im[k * lanes + l] = is_real ? T(0) : in[at].imag();
    });
    for (int64_t k = 0; k < length; ++k) {
      for (int64_t l = 0; l < lanes; ++l) {
        const int64_t at = k * lanes + l;
        if (n % 2) {
          const bool mirrored = k > last;
          const int64_t source = (mirrored ? n - k : k) * lanes + l;
          re[at] = given_re[source];
          im[at] = mirrored ? -given_im[source] : given_im[source];
          continue;
        }
        const int64_t mirror = (length - k) * lanes + l;
        const T cosine = turns->cosine(k), sine = turns->sine(k);
        const T a = given_re[at], b = given_im[at], c = given_re[mirror], d = given_im[mirror];
        const T odd_re = (a - c) * cosine + (b + d) * sine;
        const T odd_im = (b + d) * cosine - (a - c) * sine;
        re[at] = a + c - odd_im;
        im[at] = b - d + odd_re;
      }
    }
    plan->run(lanes, im, re, given_im + from.size * lanes);
    each(to, first, lanes, length, n % 2 ? 1 : 2, [&](int64_t at, int64_t l, int64_t i) {
      out[at] = re[i * lanes + l] * scale;
      if (n % 2 == 0) out[at + to.inner] = im[i * lanes + l] * scale;
    });
  });
}

void check_complex(const char* op, const Tensor& self) {
  WEFT_CHECK(is_complex(self.dtype()), op, ": expected complex numbers, got ", self.dtype());
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
  const Tensor in = in_order(self);
  Tensor out = Tensor::empty(self.sizes(), self.dtype());
  if (dims.empty() || self.numel() == 0) return ops::mul(self, Scalar(scale));
  by_precision(self.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto* from = static_cast<const std::complex<T>*>(in.data());
    auto* const to = static_cast<std::complex<T>*>(out.data());
    for (size_t i = 0; i < dims.size(); ++i) {
      const T factor = i + 1 == dims.size() ? static_cast<T>(scale) : T(1);
      transform<T>(i ? to : from, to, Lines(out, dims[i]), sign, factor);
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
  Tensor out = Tensor::empty(with_size(self, dim, n / 2 + 1), complex_of(self.dtype()));
  by_precision(self.dtype(), [&](auto zero) {
    using T = decltype(zero);
    half_spectrum<T>(static_cast<const T*>(in.data()), static_cast<std::complex<T>*>(out.data()),
                     Lines(in, dim), Lines(out, dim), static_cast<T>(scale));
  });
  return out;
}

Tensor fft_real(const Tensor& self, int64_t dim, int64_t n, double scale) {
  check_complex("_fft_real", self);
  dim = wrap_dim("_fft_real", dim, self.dim());
  WEFT_CHECK(n > 0 && self.size(dim) == n / 2 + 1, "_fft_real: expected ", n / 2 + 1,
             " entries for ", n, " real numbers, got ", self.size(dim));
  const Tensor in = in_order(self);
  Tensor out = Tensor::empty(with_size(self, dim, n), real_of(self.dtype()));
  by_precision(self.dtype(), [&](auto zero) {
    using T = decltype(zero);
    real_signal<T>(static_cast<const std::complex<T>*>(in.data()), static_cast<T*>(out.data()),
                   Lines(in, dim), Lines(out, dim), static_cast<T>(scale));
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
  const Tensor places = ops::reshape(ops::arange(Scalar(count)), shape);
  const Tensor single = ops::eq(ops::remainder(ops::mul(places, Scalar(2)), Scalar(n)), Scalar(0));
  const Tensor weight = ops::rsub(as_dtype(single, grad.dtype()), Scalar(2));
  return ops::mul(ops::_fft_half(grad, dim, scale), weight);
}

}  // namespace weft::native

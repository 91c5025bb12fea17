#include "ops/conv_plane.h"

#include "ops/vector.h"

namespace weft::native::conv {
namespace {

constexpr int64_t kLanes = 16;

// 16 positions a step. With KernelH and KernelW known the loops over taps unroll, and the taps stay
// in registers.
template <int Bytes, int KernelH, int KernelW, class T>
WEFT_INLINE void correlate_body(const PlaneTaps& t, int64_t line, const T* padded, const T* taps,
                                T start, bool add, T* out) {
  const int64_t kernel_h = KernelH ? KernelH : t.kernel_h;
  const int64_t kernel_w = KernelW ? KernelW : t.kernel_w;
  for (int64_t y = 0; y < t.out_height; ++y) {
    const T* from = padded + y * t.stride_h * line;
    T* to = out + y * t.out_width;
    for (int64_t next = 0; next < t.out_width; next += kLanes) {
      // The last step starts early enough to be whole; what it writes again is the same.
      const bool again = !add && t.out_width >= kLanes && next + kLanes > t.out_width;
      const int64_t x = again ? t.out_width - kLanes : next;
      LanesOf<T, kLanes, Bytes> sums, values;
      sums.fill(start);
      for (int64_t i = 0; i < kernel_h; ++i) {
        const T* at = from + i * t.dilation_h * line + x;
        for (int64_t j = 0; j < kernel_w; ++j) {
          values.read(at + j * t.dilation_w);
          sums.add(taps[i * kernel_w + j], values);
        }
      }
      const int64_t count = t.out_width - x;
      if (count >= kLanes) {
        if (add) {
          values.read(to + x);
          sums.add(T(1), values);
        }
        sums.write(to + x);
      } else {
        T tail[kLanes];
        sums.write(tail);
        for (int64_t k = 0; k < count; ++k) to[x + k] = add ? to[x + k] + tail[k] : tail[k];
      }
    }
  }
}

}  // namespace

template <class T>
void fill_plane(const PaddedPlane& p, const T* plane, T* padded) {
  for (int64_t y = 0; y < p.height; ++y) {
    std::copy_n(plane + y * p.width, p.width, padded + (y + p.pad_h) * p.line() + p.pad_w);
  }
}

template <class T>
void correlate_plane(const PlaneTaps& t, int64_t line, const T* padded, const T* taps, T start,
                     bool add, T* out) {
  at_level([&](auto bytes) WEFT_INLINED {
    if (t.kernel_h == 3 && t.kernel_w == 3) {
      return correlate_body<bytes(), 3, 3>(t, line, padded, taps, start, add, out);
    }
    correlate_body<bytes(), 0, 0>(t, line, padded, taps, start, add, out);
  });
}

#define INSTANTIATE(T)                                           \
  template void fill_plane<T>(const PaddedPlane&, const T*, T*); \
  template void correlate_plane<T>(const PlaneTaps&, int64_t, const T*, const T*, T, bool, T*);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace weft::native::conv

#include "ops/pool_line.h"

#include <algorithm>

#include "ops/vector.h"

namespace weft::native::pool {
namespace {

// The greatest of the elements that each lane takes, and its place where `indices` are wanted.
template <class T, bool kIndices>
struct Max {
  const Window& window;
  T* const out;
  int64_t* const indices;

  template <int kBytes>
  struct State {
    Vector<T, kBytes> best;
    typename VectorOf<T, kBytes>::mask where;
  };
  template <int kBytes>
  WEFT_INLINE void start(State<kBytes>& state) const {
    state.best = Vector<T, kBytes>{} + kLowest<T>;
    if constexpr (kIndices) {
      state.where = decltype(state.where){} + static_cast<Index<T>>(window.start);
    }
  }
  template <int kBytes>
  WEFT_INLINE void take(State<kBytes>& state, const T* at, int64_t place) const {
    Vector<T, kBytes> value;
    load(value, at);
    auto wins = value > state.best;
    if constexpr (std::is_floating_point_v<T>) wins |= value != value;
    state.best = wins ? value : state.best;
    if constexpr (kIndices) {
      state.where = wins ? decltype(wins){} + static_cast<Index<T>>(place) : state.where;
    }
  }
  template <int kBytes>
  WEFT_INLINE void finish(const State<kBytes>& state, int64_t x) const {
    store(state.best, out + x);
    if constexpr (kIndices) {
      constexpr int64_t kLanes = kBytes / sizeof(T);
      Index<T> places[kLanes];
      store(state.where, places);
      for (int64_t l = 0; l < kLanes; ++l) indices[x + l] = places[l] + (x + l) * window.step;
    }
  }
};

template <class T>
struct Mean {
  const T divisor;
  const T* const counts;
  T* const out;

  template <int kBytes>
  using State = Vector<T, kBytes>;
  template <int kBytes>
  WEFT_INLINE void start(State<kBytes>& sum) const {
    sum = State<kBytes>{};
  }
  template <int kBytes>
  WEFT_INLINE void take(State<kBytes>& sum, const T* at, int64_t) const {
    State<kBytes> value;
    load(value, at);
    sum += value;
  }
  template <int kBytes>
  WEFT_INLINE void finish(const State<kBytes>& sum, int64_t x) const {
    State<kBytes> by = State<kBytes>{} + T(1);
    if (counts) load(by, counts + x);
    store(sum / (by * divisor), out + x);
  }
};

// kCount vectors of kBytes at a time, tap by tap, row by row. The last step starts early enough to
// be whole: what it writes again is the same.
template <int kBytes, int kCount, class T, class Fold>
WEFT_INLINE void steps(const Window& w, const T* from, const Fold& fold) {
  constexpr int64_t kLanes = kBytes / sizeof(T);
  for (int64_t next = 0; next < w.n; next += kCount * kLanes) {
    const int64_t x = std::min(next, w.n - kCount * kLanes);
    typename Fold::template State<kBytes> states[kCount];
    for (auto& state : states) fold.template start<kBytes>(state);
    for (const Tap& row : w.rows) {
      for (const Tap& column : w.columns) {
        const T* const at = from + x + row.at + column.at;
        for (int c = 0; c < kCount; ++c) {
          fold.template take<kBytes>(states[c], at + c * kLanes, row.index + column.index);
        }
      }
    }
    for (int c = 0; c < kCount; ++c) fold.template finish<kBytes>(states[c], x + c * kLanes);
  }
}

template <int kBytes, class T, class Fold>
WEFT_INLINE void fold_line(const Window& w, const T* from, const Fold& fold) {
  constexpr int64_t kLanes = kBytes / sizeof(T);
  if (w.n >= 2 * kLanes) return steps<kBytes, 2>(w, from, fold);
  if (w.n >= kLanes) return steps<kBytes, 1>(w, from, fold);
  if constexpr (kBytes > 16) return fold_line<kBytes / 2>(w, from, fold);
  steps<sizeof(T), 1>(w, from, fold);
}

template <class T, class Fold>
void fold_of(const Window& window, const T* from, const Fold& by) {
  // Registers of 64 bytes stay out: GCC 12 chooses between their lanes one by one, with branches.
  at_level([](auto bytes, auto* w, auto* at, auto* fold)
               WEFT_INLINED { fold_line<std::min(bytes(), 32)>(*w, at, *fold); },
           &window, from, &by);
}

}  // namespace

template <class T>
void max_line(const Window& window, const T* from, T* out, int64_t* indices) {
  if constexpr (sizeof(T) > 1) {
    if (indices) return fold_of(window, from, Max<T, true>{window, out, indices});
  }
  fold_of(window, from, Max<T, false>{window, out, nullptr});
}

template <class T>
void mean_line(const Window& window, const T* from, T divisor, const T* counts, T* out) {
  fold_of(window, from, Mean<T>{divisor, counts, out});
}

template void max_line(const Window&, const float*, float*, int64_t*);
template void max_line(const Window&, const double*, double*, int64_t*);
template void max_line(const Window&, const uint8_t*, uint8_t*, int64_t*);
template void max_line(const Window&, const int32_t*, int32_t*, int64_t*);
template void max_line(const Window&, const int64_t*, int64_t*, int64_t*);
template void max_line(const Window&, const uint64_t*, uint64_t*, int64_t*);
template void mean_line(const Window&, const float*, float, const float*, float*);
template void mean_line(const Window&, const double*, double, const double*, double*);
template void mean_line(const Window&, const int64_t*, int64_t, const int64_t*, int64_t*);

}  // namespace weft::native::pool

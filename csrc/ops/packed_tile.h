// A tile of a product with packed strips (packed_gemm.h): what its functions are given, and what
// becomes of its sums.
#pragma once

#include <cstring>

#include "ops/packed_gemm.h"

namespace weft::blas {

struct Task {
  int64_t rows, k;
  const float* a;
  int64_t a_row;
  const float* b;
  int64_t strip;
  // A part of the strips to multiply next, which is fetched meanwhile: bytes for each row of b.
  const char* ahead;
  int64_t ahead_step;
  bool add;
  float* c;
  int64_t c_row;
  Sink sink;
};

// What becomes of the sums of a tile. Asked once: most have nothing to add.
class Epilogue {
 public:
  WEFT_INLINE explicit Epilogue(const Task& t)
      : sink_(t.sink),
        c_(t.c),
        add_(t.add),
        plain_(!t.add && !sink_.bias && !sink_.residual && !sink_.relu) {}
  template <class Vector>
  WEFT_INLINE void write(Vector& sum, int64_t row, int64_t column) const {
    const int64_t at = row + column;
    Vector more;
    auto plus = [&](const float* from) WEFT_INLINED {
      std::memcpy(&more, from, sizeof(more));
      sum += more;
    };
    if (!plain_) {
      if (add_) plus(c_ + at);
      if (sink_.bias) plus(sink_.bias + column);
      if (sink_.residual) plus(sink_.residual + at);
      if (sink_.relu) hold(sum, sink_.high);
    }
    std::memcpy(c_ + at, &sum, sizeof(sum));
  }

 private:
  const Sink sink_;
  float* const c_;
  const bool add_, plain_;
};

// Tiles of 1 to `rows` rows, of so many strips and of one.
struct Tiles {
  using Fn = void(const Task&);
  int64_t rows, strips;
  Fn *const *of, *const *of_one;
};

}  // namespace weft::blas

// What the tests of epilogues and prologues share: the ways that products and convolutions go.
#pragma once

#include <initializer_list>

#include "core/thread_pool.h"
#include "ops/heads.h"
#include "ops/samples.h"
#include "ops/views.h"

namespace weft::samples {

inline Tensor transposed(const Tensor& t) {
  return viewed(t, views::transpose(t.layout(), -2, -1));
}

// Calls fn() with so many threads, for each number.
template <class Fn>
void with_threads(std::initializer_list<int> numbers, Fn&& fn) {
  const int before = num_threads();
  for (int number : numbers) {
    set_num_threads(number);
    fn();
  }
  set_num_threads(before);
}

struct Convolution {
  Dims input, weight, stride, padding, dilation;
  int64_t groups;

  template <class T>
  Tensor operator()(const Tensor& x, const Tensor& bias, const Around& around) const {
    return native::conv2d(x, noise<T>(weight, 2), bias, stride, padding, dilation, groups, around);
  }
  int64_t units() const { return input[0] * groups; }
};

inline const Convolution kConvolutions[] = {
    {{2, 3, 9, 8}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {{2, 20, 33, 30}, {24, 20, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},  // winograd
    {{1, 32, 17, 19}, {32, 16, 3, 3}, {1, 1}, {0, 2}, {1, 1}, 2},  // ... of groups, odd sizes
    {{9, 20, 7, 6}, {40, 20, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},    // ... images in one block
    {{4, 40, 60, 31}, {16, 40, 3, 3}, {1, 1}, {2, 0}, {1, 1}, 1},  // ... blocks of lines
    {{2, 40, 31, 50}, {12, 20, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 2},  // unrolled, blocks of lines
    {{4, 30, 40, 40}, {8, 30, 5, 3}, {1, 1}, {2, 4}, {1, 3}, 1},   // ... that overlap, dilated
    {{4, 30, 40, 30}, {8, 30, 2, 2}, {3, 5}, {0, 1}, {1, 1}, 1},   // ... that leave lines out
    {{4, 9, 5, 4}, {8, 9, 3, 3}, {2, 1}, {6, 5}, {1, 1}, 1},       // ... of padding alone
    {{6, 20, 12, 12}, {9, 20, 1, 1}, {2, 2}, {0, 0}, {1, 1}, 1},
    {{3, 20, 12, 12}, {9, 20, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},  // pointwise
    {{1, 20, 12, 12}, {40, 10, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 2},
    {{2, 6, 40, 40}, {12, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 6},  // depthwise, by planes
    {{2, 6, 40, 40}, {6, 1, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 6},   // ... by lines
    {{3, 7, 9, 11}, {14, 1, 3, 3}, {1, 2}, {1, 1}, {2, 1}, 7},   // ... small planes
    {{5, 1, 16, 16}, {3, 1, 5, 5}, {1, 1}, {2, 2}, {1, 1}, 1},   // a single channel
    {{0, 3, 5, 5}, {2, 3, 3, 3}, {1, 1}, {0, 0}, {1, 1}, 1},
};

}  // namespace weft::samples

// Where a convolution reads: images in memory, or what a prologue makes of them.
#pragma once

#include "ops/conv.h"
#include "ops/epilogue.h"
#include "ops/scratch.h"

namespace weft::native::conv {

// A unit is what a kernel sees: the channels of one group of one image, plane after plane.
template <class T>
struct Source {
  const T* images;  // null where there is a prologue
  Prologue* before = nullptr;
};

// What one thread reads of it. A unit that a prologue makes is made when it is first asked for, and
// stays until another one is. (To make only the lines that a block of the result reads is slower:
// short pieces of many planes. A 3 x 3 kernel on 8 x 64 x 56 x 56 took 1.04 of the time apart.)
template <class T>
class SourceReader {
 public:
  // `end`: the thread asks for one unit after the other up to this one: small ones are then made
  // several at a time. 0: in any order.
  SourceReader(const Source<T>& source, int64_t channels, int64_t plane, int64_t end = 0)
      : source_(source),
        channels_(channels),
        plane_(plane),
        end_(end),
        ahead_(end ? std::max<int64_t>(1, kAhead / std::max<int64_t>(1, channels * plane)) : 1),
        made_(source.before ? ahead_ * channels * plane : 0) {}

  const T* unit(int64_t unit) {
    if (!source_.before) return source_.images + unit * channels_ * plane_;
    if (unit < first_ || unit >= first_ + count_) {
      first_ = unit;
      count_ = end_ ? std::min(ahead_, end_ - unit) : 1;
      source_.before->part({first_ * channels_, count_ * channels_, 0, plane_}, made_.data());
    }
    return made_.data() + (unit - first_) * channels_ * plane_;
  }

 private:
  static constexpr int64_t kAhead = 8192;  // elements

  const Source<T> source_;
  const int64_t channels_, plane_, end_, ahead_;
  Scratch<T> made_;
  int64_t first_ = 0, count_ = 0;  // the units that are there
};

}  // namespace weft::native::conv

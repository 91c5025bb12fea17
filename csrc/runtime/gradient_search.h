// Whether values hold a tensor that requires a gradient: what decides between the two programs of a
// function.
#pragma once

#include "runtime/value.h"

namespace weft {

// Looks through values; what it does not know, or what is too large to look through in every call,
// counts as a tensor that requires a gradient.
class GradientSearch {
 public:
  bool in_value(const Value& value, int depth = 0);

 protected:
  // Counts one more value; false when there are too many.
  bool spend(int depth) { return ++seen_ <= kMostValues && depth <= kMostDepth; }

 private:
  static constexpr int kMostValues = 20'000, kMostDepth = 16;
  int seen_ = 0;
};

}  // namespace weft

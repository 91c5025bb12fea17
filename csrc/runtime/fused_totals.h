// The gradient of a group with what would stand around it as a part of it.
//
// The plain gradient of a group gives one tensor for each place where an input is read, which the
// engine adds up; and it computes statistics of rows anew that the group had. Here the sums are
// steps, which begin with what other operators have already sent to the input, and statistics are
// inputs that the group kept. The additions are the engine's, in its order: the bits stay.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/fused.h"

namespace weft {

// The values of rows (or of rows without their dimension), as `is_of_rows` tells them by number,
// that the gradient of a group would compute again.
std::vector<uint8_t> repeated_statistics(const FusedSpec& forward,
                                         const std::function<bool(uint8_t)>& is_of_rows);

struct FusedTotals {
  // One gradient for all places where an input is read.
  struct Sum {
    uint8_t input;     // of the forward group
    uint8_t argument;  // where `group` takes what has arrived; -0.0 if nothing has
  };
  // Where the gradient of an edge comes from.
  struct Source {
    enum class Kind : uint8_t { Gradient, Output, Earlier } kind;  // Earlier: it is in another's
    uint8_t index;
  };

  // Its inputs are those of the plain gradient's group, then `kept`, then one for each sum.
  Ref<FusedGroup> group;
  std::vector<Sum> sums;
  std::vector<Source> sources;  // by edge

  // `kept`: values of `forward` that are there. Null where nothing is gained by it, or a tile
  // program would have too many operands.
  static std::unique_ptr<FusedTotals> make(const FusedSpec& forward,
                                           const std::vector<uint8_t>& kept);
};

}  // namespace weft

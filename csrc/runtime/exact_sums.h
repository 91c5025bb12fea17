// Sums of floats that are rounded once, as Python's math.fsum, math.dist and math.hypot have them.
#pragma once

#include <span>

namespace weft::builtins {

// The exact sum of the numbers, rounded to the nearest float. A sum that grows too large on the
// way, or of infinities of both signs, raises.
double exact_sum(std::span<const double> numbers);

// The root of the sum of squares. Infinity wins over NaN. The parts are overwritten.
double vector_length(std::span<double> parts);

}  // namespace weft::builtins

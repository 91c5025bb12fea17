// Python's format specifications: [[fill]align][sign][z][#][0][width][grouping][.precision][type].
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/value.h"

namespace weft {

struct FormatSpec {
  std::string fill = " ";
  char align = 0;                 // '<', '>', '^', '=', or 0: left for strings, right for numbers
  char sign = 0;                  // '+', '-', ' ', or 0: as '-'
  bool no_negative_zero = false;  // 'z': what rounds to -0 is shown as 0
  bool alternate = false;
  bool zero = false;
  int64_t width = 0;
  char grouping = 0;
  int64_t precision = -1;
  char type = 0;
};

// ValueError for a text that is no specification.
FormatSpec parse_format_spec(std::string_view text);

// The value by the specification: bool, int, float, str, 0-d tensors as their number. TypeError for
// other values, ValueError where the specification does not fit.
std::string format_value(const Value& value, const FormatSpec& spec);
// The TypeError, for a value that no specification fits.
void check_formattable(const Value& value);

}  // namespace weft

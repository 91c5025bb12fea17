// Results of hand-written operators on the device "meta" (core/meta.h).
#pragma once

namespace weft::py {

void init_meta();  // has Python's formulas asked for them

}  // namespace weft::py

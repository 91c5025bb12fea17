// Transforms of functions (weft.func) as the core sees them: what is made while they are under way.
#pragma once

#include <atomic>

namespace weft {

// Of all threads; storages that are allocated while it is above 0 get kMadeInTransform.
extern std::atomic<int> transforms_under_way;

}  // namespace weft

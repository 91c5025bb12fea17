// Transforms of functions (weft.func) as the core sees them: what is made while they are under way.
#pragma once

#include <atomic>

#include "core/storage.h"

namespace weft {

// Of all threads; storages that are allocated while it is above 0 get the flag.
extern std::atomic<int> transforms_under_way;
inline constexpr auto kMadeInTransform = static_cast<StorageFlags>(32);

}  // namespace weft

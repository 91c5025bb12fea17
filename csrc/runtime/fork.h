// fork: a call on another thread.
#pragma once

#include <vector>

#include "runtime/program.h"

namespace weft {

// Starts the call and gives its Future. The thread takes over whether operators record a graph. A
// call that finds every thread busy runs at once in the calling thread: so no call ever waits for a
// thread, and calls that wait for each other cannot block for good.
Value fork_function(const Function& function, std::vector<Value> args);

}  // namespace weft

// Ends this process when the one that it works for is gone.
#pragma once

#include <sys/types.h>

namespace weft {

// Starts a thread that looks every second whether `parent` lives, and meanwhile waits for the other
// side of a socket to hang up. Then the process has the seconds of its patience to end by itself;
// after them it ends with status 1, whatever its other threads are doing. `direct`: it is a child
// of `parent`. Once in a process; a fork of it is not watched. RuntimeError without a thread.
void watch_parent(pid_t parent, bool direct, int socket, double patience);
// May be called from a handler of signals.
void set_watch_patience(double seconds) noexcept;

}  // namespace weft

// What a profile records below Python: functions and operators of programs, fusion groups, nodes of
// backward passes, in every thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/dims.h"

namespace weft::profiler {

struct Event {
  std::string name;
  std::vector<Dims> sizes;   // of each argument; those of no tensor are empty
  int64_t start_ns, end_ns;  // of the steady clock
  int64_t thread;            // the system's number of it
};

// How many recordings are under way: what runs looks at it, and stays as it is where there are
// none.
extern std::atomic<int> recordings;
inline bool recording() noexcept { return recordings.load(std::memory_order_relaxed) > 0; }

int64_t now() noexcept;
// Something that began at start_ns ends in this thread. Events come in the order of their ends.
void record(std::string name, std::vector<Dims> sizes, int64_t start_ns);

// Begins a recording; gives the number of its first event, which stop() takes.
size_t start();
// Ends it; gives what ended since its start.
std::vector<Event> stop(size_t first);

}  // namespace weft::profiler

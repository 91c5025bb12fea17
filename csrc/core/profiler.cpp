#include "core/profiler.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <mutex>

#include "core/fork.h"

namespace weft::profiler {
namespace {

GlobalMutex events_mutex(ForkRank::Profiler);
std::vector<Event>& events() {
  static auto* const all = new std::vector<Event>;  // threads may outlive static objects
  return *all;
}

}  // namespace

std::atomic<int> recordings{0};

int64_t now() noexcept {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void record(std::string name, std::vector<Dims> sizes, int64_t start_ns) {
  Event event{std::move(name), std::move(sizes), start_ns, now(), syscall(SYS_gettid)};
  const std::lock_guard lock(events_mutex);
  if (recording()) events().push_back(std::move(event));
}

size_t start() {
  const std::lock_guard lock(events_mutex);
  recordings.fetch_add(1);
  return events().size();
}

std::vector<Event> stop(size_t first) {
  const std::lock_guard lock(events_mutex);
  std::vector<Event> found;
  if (recordings.fetch_sub(1) == 1) {
    found.swap(events());
    found.erase(found.begin(), found.begin() + static_cast<ptrdiff_t>(first));
  } else {
    found.assign(events().begin() + static_cast<ptrdiff_t>(first), events().end());
  }
  return found;
}

}  // namespace weft::profiler

#include "core/profiler.h"

#include <thread>

#include "testing.h"

namespace weft::profiler {
namespace {

std::vector<std::string> names(const std::vector<Event>& events) {
  std::vector<std::string> found;
  for (const Event& event : events) found.push_back(event.name);
  return found;
}

TEST(profiler_recordings_overlap) {
  record("before", {}, now());
  const size_t outer = start();
  record("a", {{2, 3}, {}}, now());
  const size_t inner = start();
  record("b", {}, now());
  const std::vector<Event> all = stop(outer);
  CHECK_TRUE(recording());
  record("c", {}, now());
  CHECK_TRUE((names(stop(inner)) == std::vector<std::string>{"b", "c"}));
  CHECK_FALSE(recording());
  record("after", {}, now());
  CHECK_TRUE((names(all) == std::vector<std::string>{"a", "b"}));
  CHECK_EQ(all[0].sizes[0], (Dims{2, 3}));
  CHECK_TRUE(all[0].start_ns <= all[0].end_ns && all[0].end_ns <= all[1].end_ns);
  CHECK_TRUE(names(stop(start())).empty());
}

TEST(profiler_threads_record_side_by_side) {
  const size_t first = start();
  auto work = [] {
    for (int i = 0; i < 1000; ++i) record("event", {{i}}, now());
  };
  std::thread one(work), two(work);
  one.join();
  two.join();
  const std::vector<Event> found = stop(first);
  CHECK_EQ(found.size(), 2000u);
  int64_t seen = 0;
  for (const Event& event : found) seen += event.thread == found[0].thread;
  CHECK_EQ(seen, 1000);
}

}  // namespace
}  // namespace weft::profiler

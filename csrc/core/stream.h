// Streams: queues of a device. Work on one stream is done in order. The CPU's only stream has
// nothing queued: an operator is done when its call returns.
#pragma once

#include <cstdint>

#include "core/device.h"

namespace weft {

struct Stream {
  Device device;
  int32_t id = 0;  // 0: the default stream of the device

  // Whether all work queued so far is done.
  bool query() const;
  // Returns when it is.
  void synchronize() const;
  friend bool operator==(Stream, Stream) = default;
};

// A point in the work of a stream.
class Event {
 public:
  // From now on the event stands for the work that the stream has at this moment.
  void record(Stream stream);
  // Work queued on `stream` from now on begins after the event.
  void wait(Stream stream) const;
  // Whether the work before the event is done; true for an event that was never recorded.
  bool query() const;
  void synchronize() const;

 private:
  Stream stream_;
  uint64_t point_ = 0;  // what the backend calls it
};

}  // namespace weft

#include "core/stream.h"

#include "core/backend.h"

namespace weft {

bool Stream::query() const {
  Backend* backend = find_backend(device);
  return backend == nullptr || backend->is_done(*this, backend->record(*this));
}

void Stream::synchronize() const {
  if (Backend* backend = find_backend(device)) backend->wait(*this, backend->record(*this));
}

void Event::record(Stream stream) {
  stream_ = stream;
  Backend* backend = find_backend(stream.device);
  point_ = backend ? backend->record(stream) : 0;
}

void Event::wait(Stream stream) const {
  if (Backend* backend = find_backend(stream_.device)) backend->order(stream_, point_, stream);
}

bool Event::query() const {
  Backend* backend = find_backend(stream_.device);
  return backend == nullptr || backend->is_done(stream_, point_);
}

void Event::synchronize() const {
  if (Backend* backend = find_backend(stream_.device)) backend->wait(stream_, point_);
}

}  // namespace weft

// How deep walks over a value have gone: a list may contain itself, and code of others may nest
// values as deep as it likes.
#pragma once

namespace weft {

// Lives as long as a function looks into a container. ValueError beyond 200 of them.
class Nesting {
 public:
  Nesting();
  ~Nesting();
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
};

}  // namespace weft

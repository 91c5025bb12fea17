// Scratch: uninitialised memory for the time of a call (packed operands, unrolled images).
#pragma once

#include <cstdint>

#include "core/allocator.h"

namespace weft {

// Room for `count` elements, given back when it goes out of scope; small ones lie on the stack.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count) : bytes_(static_cast<size_t>(count) * sizeof(T)) {
    if (bytes_ <= sizeof(inline_)) {
      data_ = reinterpret_cast<T*>(inline_);
    } else {
      allocator_ = &cpu_allocator();
      data_ = static_cast<T*>(allocator_->allocate(bytes_));
    }
  }
  ~Scratch() {
    if (allocator_) allocator_->free(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() { return data_; }

 private:
  size_t bytes_;
  T* data_;
  Allocator* allocator_ = nullptr;
  alignas(64) unsigned char inline_[4096];
};

}  // namespace weft

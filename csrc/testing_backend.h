// A second backend for tests: "privateuseone", whose memory the host may not touch. Its pages are
// protected, so that whoever reads or writes them ends the process, except while the backend itself
// copies or computes. It computes as the CPU does.
#pragma once

#include <sys/mman.h>

#include <map>
#include <mutex>

#include "ops/copy.h"
#include "ops/tile_row.h"
#include "ops/tile_walk.h"

namespace weft::ops {
Tensor mm(const Tensor& self, const Tensor& mat2);
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias);
Tensor _linear_backward_weight(const Tensor& grad_output, const Tensor& input);
}  // namespace weft::ops

namespace weft::testing {

class ProtectedMemory final : public Allocator {
 public:
  void* allocate(size_t nbytes) override {
    const std::lock_guard guard(mutex_);
    const size_t size = rounded(nbytes);
    const int access = users_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
    void* block = mmap(nullptr, size, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    WEFT_CHECK_AS(OutOfMemory, block != MAP_FAILED, "allocate: expected ", size,
                  " bytes, got none");
    blocks_[block] = size;
    stats_.bytes_in_use += nbytes;
    ++stats_.allocations;
    return block;
  }
  void free(void* block, size_t nbytes, Stream stream) noexcept override {
    const std::lock_guard guard(mutex_);
    last_stream = stream;
    munmap(block, blocks_[block]);
    blocks_.erase(block);
    stats_.bytes_in_use -= nbytes;
    ++stats_.frees;
  }
  AllocatorStats stats() const override {
    const std::lock_guard guard(mutex_);
    return stats_;
  }
  void set_limit(size_t) override {}
  size_t limit() const override { return 0; }
  const char* name() const override { return "protected"; }

  // While it lives, memory may be touched.
  class Access {
   public:
    explicit Access(ProtectedMemory& memory) : memory_(memory) { memory_.count(1); }
    ~Access() { memory_.count(-1); }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    ProtectedMemory& memory_;
  };

  Stream last_stream;  // of the last block that came back

 private:
  static size_t rounded(size_t nbytes) { return (nbytes + 4096) & ~size_t{4095}; }

  void count(int change) {
    const std::lock_guard guard(mutex_);
    const bool was = users_ > 0;
    users_ += change;
    if (was == (users_ > 0)) return;
    for (auto [block, size] : blocks_) {
      mprotect(block, size, users_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
  }

  mutable std::mutex mutex_;
  std::map<void*, size_t> blocks_;
  AllocatorStats stats_;
  int users_ = 0;
};

class ProtectedBackend final : public Backend {
 public:
  int device_count() const override { return 2; }
  Allocator& allocator(Device) override { return memory; }
  Stream current_stream(Device device) override { return {device, 7}; }

  void copy(void* to, Device, const void* from, Device, size_t nbytes) override {
    const ProtectedMemory::Access access(memory);
    std::memmove(to, from, nbytes);
    ++copies;
  }
  void run_program(const tile::Walk& walk) override {
    const ProtectedMemory::Access access(memory);
    tile::run_on_cpu(walk);
    ++programs;
  }
  void run_program(const tile::RowWalk& walk) override {
    const ProtectedMemory::Access access(memory);
    tile::run_on_cpu(walk);
    ++programs;
  }

  Function native(std::string_view key) override {
    const auto as_function = [](auto* body) { return reinterpret_cast<Function>(body); };
    if (key == "mm") {
      return as_function(+[](const Tensor& a, const Tensor& b) {
        return there().compute([](const auto&... x) { return ops::mm(x...); }, a, b);
      });
    }
    if (key == "linear") {
      return as_function(+[](const Tensor& a, const Tensor& b, const Tensor& c) {
        return there().compute([](const auto&... x) { return ops::linear(x...); }, a, b, c);
      });
    }
    if (key == "_linear_backward_weight") {
      return as_function(+[](const Tensor& a, const Tensor& b) {
        return there().compute([](const auto&... x) { return ops::_linear_backward_weight(x...); },
                               a, b);
      });
    }
    return nullptr;
  }

  // The one there is, registered when it is first asked for. Lives as long as the process.
  static ProtectedBackend& there() {
    static ProtectedBackend& backend = *[] {
      auto* made = new ProtectedBackend;
      register_backend(DeviceType::PrivateUse1, *made);
      return made;
    }();
    return backend;
  }

  ProtectedMemory memory;
  int copies = 0, programs = 0;

 private:
  // The same memory as if it were the CPU's.
  static Tensor on_host(const Tensor& tensor) {
    if (!tensor.defined()) return {};
    const Storage& storage = *tensor.storage();
    return {Storage::wrap(storage.address(), storage.nbytes(), nullptr, nullptr), tensor.layout(),
            tensor.dtype()};
  }
  template <class Body, class... Args>
  Tensor compute(Body body, const Tensor& first, const Args&... rest) {
    const ProtectedMemory::Access access(memory);
    return on_device(body(on_host(first), on_host(rest)...), first.device());
  }
};

}  // namespace weft::testing

// Settings of the library: threads, gradients, random numbers, memory, cancellation.
#include <atomic>
#include <memory>
#include <mutex>

#include "autograd/mode.h"
#include "capi/cancelled.h"
#include "capi/handles.h"
#include "core/allocator.h"
#include "core/generator.h"
#include "core/thread_pool.h"
#include "runtime/interrupt.h"
#include "runtime/machine_code.h"

namespace weft::capi {
namespace {

// The host's memory. Its blocks may outlive the setting, so allocators stay (see keep).
class HostAllocator final : public Allocator {
 public:
  using Allocate = void* (*)(size_t, void*);
  using Release = void (*)(void*, size_t, void*);

  HostAllocator(Allocate allocate, Release release, void* context)
      : allocate_(allocate), release_(release), context_(context) {}

  void* allocate(size_t nbytes) override {
    if (nbytes == 0) return nullptr;
    void* block = allocate_(nbytes, context_);
    WEFT_CHECK_AS(OutOfMemory, block, "allocate: expected ", nbytes,
                  " bytes from the host, got none");
    WEFT_CHECK(reinterpret_cast<uintptr_t>(block) % kAlignment == 0, "allocate: expected memory ",
               "aligned to ", kAlignment, " bytes, got another address");
    allocations_.fetch_add(1, std::memory_order_relaxed);
    in_use_.fetch_add(nbytes, std::memory_order_relaxed);
    return block;
  }
  void free(void* block, size_t nbytes, Stream) noexcept override {
    if (block == nullptr) return;
    frees_.fetch_add(1, std::memory_order_relaxed);
    in_use_.fetch_sub(nbytes, std::memory_order_relaxed);
    release_(block, nbytes, context_);
  }
  AllocatorStats stats() const override {
    AllocatorStats stats;
    stats.allocations = stats.system_allocations = allocations_.load();
    stats.frees = frees_.load();
    stats.bytes_in_use = stats.peak_bytes_in_use = in_use_.load();
    return stats;
  }
  void set_limit(size_t) override {
    fail(ErrorKind::NotImplemented, "set_limit: expected weft's allocator, got the host's");
  }
  size_t limit() const override { return 0; }
  const char* name() const override { return "host"; }

 private:
  Allocate allocate_;
  Release release_;
  void* context_;
  std::atomic<uint64_t> allocations_{0}, frees_{0};
  std::atomic<size_t> in_use_{0};
};

HostAllocator& keep(std::unique_ptr<HostAllocator> made) {
  static auto* const mutex = new std::mutex;
  static auto* const allocators = new std::vector<std::unique_ptr<HostAllocator>>;
  const std::lock_guard lock(*mutex);
  return *allocators->emplace_back(std::move(made));
}

struct Host {
  int (*is_cancelled)(void*) = nullptr;
  void* context = nullptr;
};
std::mutex host_mutex;
Host host;

void ask_host() {
  const Host asked = [] {
    const std::lock_guard lock(host_mutex);
    return host;
  }();
  if (asked.is_cancelled && asked.is_cancelled(asked.context)) throw Cancelled();
}

}  // namespace
}  // namespace weft::capi

using namespace weft;
using capi::guarded;

weft_status weft_set_num_threads(int count) {
  return guarded([&] { set_num_threads(count); });
}

int weft_num_threads(void) { return num_threads(); }

weft_status weft_manual_seed(uint64_t seed) {
  return guarded([&] {
    const Ref<Generator> generator = default_generator();
    const std::lock_guard lock(*generator);
    generator->manual_seed(seed);
  });
}

int weft_set_grad_enabled(int enabled) { return autograd::set_grad_enabled(enabled != 0); }

weft_status weft_set_allocator(void* (*allocate)(size_t, void*),
                               void (*release)(void*, size_t, void*), void* context) {
  return guarded([&] {
    WEFT_CHECK_VALUE((allocate == nullptr) == (release == nullptr),
                     "weft_set_allocator: expected two functions or none, got one");
    if (!allocate) {
      set_cpu_allocator(caching_allocator());
      return;
    }
    set_cpu_allocator(
        capi::keep(std::make_unique<capi::HostAllocator>(allocate, release, context)));
  });
}

void weft_allow_machine_code(int allowed) { machine_code::set_allowed(allowed != 0); }

weft_status weft_set_cancellation(int (*is_cancelled)(void*), void* context) {
  return guarded([&] {
    const std::lock_guard lock(capi::host_mutex);
    capi::host = {is_cancelled, context};
    interrupt::set_check(is_cancelled ? capi::ask_host : nullptr);
  });
}

#include "core/meta.h"

#include <atomic>

#include "core/backend.h"
#include "core/error.h"

namespace weft::meta {
namespace {

// Hands out addresses that no memory can have, each once: overlaps are found as on other devices.
class NoMemory final : public Allocator {
 public:
  void* allocate(size_t nbytes) override {
    const size_t step = (nbytes / kAlignment + 1) * kAlignment;
    return reinterpret_cast<void*>(next_.fetch_add(step, std::memory_order_relaxed));
  }
  void free(void*, size_t, Stream) noexcept override {}
  AllocatorStats stats() const override { return {}; }
  void set_limit(size_t) override {}
  size_t limit() const override { return 0; }
  const char* name() const override { return "meta"; }

 private:
  std::atomic<uintptr_t> next_{uintptr_t{1} << 48};  // above what processors can address
};

class MetaBackend final : public Backend {
 public:
  MetaBackend() { register_backend(DeviceType::Meta, *this); }
  int device_count() const override { return 1; }
  Allocator& allocator(Device) override { return memory_; }
  void copy(void*, Device to, const void*, Device, size_t) override {
    if (to.type != DeviceType::Meta) refuse_copy();
  }
  void run_program(const tile::Walk&) override {}
  void run_program(const tile::RowWalk&) override {}

 private:
  NoMemory memory_;
};

[[maybe_unused]] MetaBackend& registered = *new MetaBackend;  // never destroyed
std::atomic<Rule> g_rule{nullptr};

}  // namespace

bool& refused() noexcept {
  thread_local constinit bool refused = false;
  return refused;
}

void refuse_elements(const char* key) {
  refused() = true;
  fail(ErrorKind::NotImplemented,
       str(key, ": expected tensors with elements, got one on the device meta"));
}
void refuse_copy() { fail(ErrorKind::NotImplemented, "Cannot copy out of meta tensor; no data!"); }
void refuse_item() {
  refused() = true;
  fail(ErrorKind::Runtime, "Tensor.item() cannot be called on meta tensors");
}

void set_rule(Rule rule) noexcept { g_rule.store(rule, std::memory_order_release); }

std::vector<Tensor> results(const char* key, std::span<const Argument> arguments) {
  const Rule rule = g_rule.load(std::memory_order_acquire);
  return rule ? rule(key, arguments) : std::vector<Tensor>{};
}

}  // namespace weft::meta

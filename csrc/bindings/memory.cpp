// Allocators in Python: statistics, limits, and allocators made of two functions of the user's.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <map>

#include "bindings/caster.h"
#include "bindings/objects.h"
#include "core/allocator.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/thread_pool.h"
#include "ops/packed_weight.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

// ---- allocators of the user's ----

GlobalMutex counters_mutex(ForkRank::Allocators);

// Counts, limits and checks; where memory comes from is for the derived class to say. Thread-safe:
// the lock is not held while a function of the user's runs.
class UserAllocator : public Allocator {
 public:
  explicit UserAllocator(std::string name) : name_(std::move(name)) {}

  void* allocate(size_t nbytes) final {
    if (nbytes == 0) return nullptr;
    reserve(nbytes);
    try {
      return checked_block(nbytes);
    } catch (...) {
      const std::lock_guard guard(counters_mutex);
      give_up(nbytes);
      throw;
    }
  }

  void free(void* block, size_t nbytes, Stream) noexcept final {
    if (block == nullptr) return;
    give_back(block, nbytes);
    const std::lock_guard guard(counters_mutex);
    give_up(nbytes);
    ++stats_.frees;
  }

  AllocatorStats stats() const final {
    const std::lock_guard guard(counters_mutex);
    return stats_;
  }
  void reset_peak() final {
    const std::lock_guard guard(counters_mutex);
    stats_.peak_bytes_in_use = stats_.bytes_in_use;
  }
  void set_limit(size_t nbytes) final { limit_.store(nbytes); }
  size_t limit() const final { return limit_.load(); }
  const char* name() const final { return name_.c_str(); }

  std::vector<BlockCount> snapshot() const final {
    const std::lock_guard guard(counters_mutex);
    std::vector<BlockCount> blocks;
    for (const auto& [size, count] : sizes_) {
      if (count > 0) blocks.push_back({size, count, 0});
    }
    return blocks;
  }

 protected:
  // Null, or raises OutOfMemory, when there is none.
  virtual void* obtain(size_t nbytes) = 0;
  virtual void give_back(void* block, size_t nbytes) noexcept = 0;

 private:
  void reserve(size_t nbytes) {
    const std::lock_guard guard(counters_mutex);
    const size_t most = limit_.load();
    WEFT_CHECK_AS(OutOfMemory, most == 0 || nbytes <= most - std::min(most, stats_.bytes_in_use),
                  "allocate: expected at most ", most, " bytes of the allocator '", name_,
                  "', got a request for ", nbytes, " with ", stats_.bytes_in_use, " in use");
    ++sizes_[nbytes];
    stats_.bytes_in_use += nbytes;
  }

  // The caller holds the lock.
  void give_up(size_t nbytes) noexcept {
    const auto found = sizes_.find(nbytes);
    if (found != sizes_.end() && --found->second == 0) sizes_.erase(found);
    stats_.bytes_in_use -= nbytes;
  }

  void* checked_block(size_t nbytes) {
    void* block = obtain(nbytes);
    WEFT_CHECK_AS(OutOfMemory, block != nullptr, "allocate: expected ", nbytes,
                  " bytes of the allocator '", name_, "', got null");
    if (reinterpret_cast<uintptr_t>(block) % kAlignment != 0) {
      give_back(block, nbytes);
      fail(ErrorKind::Value, str("allocate: expected a block at a multiple of ", kAlignment,
                                 " bytes of the allocator '", name_, "', got address ", block));
    }
    const std::lock_guard guard(counters_mutex);
    ++stats_.allocations;
    ++stats_.system_allocations;
    stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
    return block;
  }

  const std::string name_;
  AllocatorStats stats_;
  std::map<size_t, uint64_t> sizes_;  // blocks in use
  std::atomic<size_t> limit_{0};
};

// void* allocate(size_t), void free(void*, size_t): no GIL, no Python.
class PointerAllocator final : public UserAllocator {
 public:
  using Allocate = void* (*)(size_t);
  using Free = void (*)(void*, size_t);
  PointerAllocator(std::string name, Allocate allocate, Free free)
      : UserAllocator(std::move(name)), allocate_(allocate), free_(free) {}

 protected:
  void* obtain(size_t nbytes) override { return allocate_(nbytes); }
  void give_back(void* block, size_t nbytes) noexcept override { free_(block, nbytes); }

 private:
  const Allocate allocate_;
  const Free free_;
};

// The exception in flight as text; clears it.
std::string exception_text() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  Object owned[] = {Object::steal(type), Object::steal(value), Object::steal(trace)};
  Object text = Object::steal(value ? PyObject_Str(value) : nullptr);
  std::string result(value ? short_type_name(value) : "an exception");
  const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  return words && *words ? result + ": " + words : result;
}

// Two callables: allocate(nbytes) -> address, free(address, nbytes). Called on any thread.
class CallableAllocator final : public UserAllocator {
 public:
  CallableAllocator(std::string name, PyObject* allocate, PyObject* free)
      : UserAllocator(std::move(name)),
        allocate_(Object::borrow(allocate)),
        free_(Object::borrow(free)) {}

 protected:
  void* obtain(size_t nbytes) override {
    TakeGil gil;
    KeepException keep;
    Object result = Object::steal(
        PyObject_CallFunction(allocate_.get(), "K", static_cast<unsigned long long>(nbytes)));
    if (result.get() == Py_None) return nullptr;
    void* block = result ? PyLong_AsVoidPtr(result.get()) : nullptr;
    if (PyErr_Occurred()) {
      fail(ErrorKind::OutOfMemory, str("allocate: expected ", nbytes, " bytes of the allocator '",
                                       name(), "', got ", exception_text()));
    }
    return block;
  }

  void give_back(void* block, size_t nbytes) noexcept override {
    if (!interpreter_alive()) return;
    TakeGil gil;
    KeepException keep;
    Object address = Object::steal(PyLong_FromVoidPtr(block));
    Object done =
        Object::steal(address ? PyObject_CallFunction(free_.get(), "OK", address.get(),
                                                      static_cast<unsigned long long>(nbytes))
                              : nullptr);
    if (!done) PyErr_WriteUnraisable(free_.get());
  }

 private:
  const Object allocate_, free_;
};

// ---- the handle ----

// An allocator that was once installed lives as long as the process: a thread may be about to call
// it, and blocks of its may be anywhere.
struct Handle {
  Allocator* allocator;
  UserAllocator* owned = nullptr;  // not installed yet

  Handle(Allocator* ptr, UserAllocator* own) : allocator(ptr), owned(own) {}
  Handle(Handle&& other) noexcept
      : allocator(other.allocator), owned(std::exchange(other.owned, nullptr)) {}
  ~Handle() { delete owned; }
};

PointerAllocator* from_pointers(const std::string& name, nb::handle alloc, nb::handle free) {
  auto address = [](nb::handle number) {
    void* pointer = PyLong_AsVoidPtr(number.ptr());
    if (PyErr_Occurred()) throw nb::python_error();
    WEFT_CHECK_VALUE(pointer, "Allocator: expected the address of a function, got 0");
    return pointer;
  };
  return new PointerAllocator(name, reinterpret_cast<PointerAllocator::Allocate>(address(alloc)),
                              reinterpret_cast<PointerAllocator::Free>(address(free)));
}

Handle make_allocator(nb::handle alloc, nb::handle free, const std::string& name) {
  UserAllocator* made = nullptr;
  if (PyLong_Check(alloc.ptr()) && PyLong_Check(free.ptr())) {
    made = from_pointers(name, alloc, free);
  } else {
    WEFT_CHECK_TYPE(PyCallable_Check(alloc.ptr()) && PyCallable_Check(free.ptr()),
                    "Allocator: expected two functions or two addresses, got ",
                    short_type_name(alloc.ptr()), " and ", short_type_name(free.ptr()));
    made = new CallableAllocator(name, alloc.ptr(), free.ptr());
  }
  return {made, made};
}

// An allocator of the user's may need the interpreter's lock, on any thread: whoever waits for the
// workers must not hold it. Stays for good: blocks of that allocator may be anywhere.
constexpr RegionHooks kGiveUpLock{
    [] { return static_cast<void*>(PyGILState_Check() ? new ReleaseGil : nullptr); },
    [](void* state) { delete static_cast<ReleaseGil*>(state); }};

uintptr_t install(Handle& handle) {
  handle.owned = nullptr;
  if (handle.allocator != &caching_allocator()) set_region_hooks(&kGiveUpLock);
  return reinterpret_cast<uintptr_t>(&set_cpu_allocator(*handle.allocator));
}

nb::dict stats_of(const Allocator& allocator) {
  AllocatorStats now = allocator.stats();
  nb::dict result;
  result["allocations"] = now.allocations;
  result["frees"] = now.frees;
  result["system_allocations"] = now.system_allocations;
  result["bytes_in_use"] = now.bytes_in_use;
  result["peak_bytes_in_use"] = now.peak_bytes_in_use;
  result["bytes_cached"] = now.bytes_cached;
  return result;
}

nb::list snapshot_of(const Allocator& allocator) {
  nb::list result;
  for (const BlockCount& count : allocator.snapshot())
    result.append(nb::make_tuple(count.block_bytes, count.in_use, count.cached));
  return result;
}

void set_limit(Allocator& allocator, int64_t nbytes) {
  WEFT_CHECK_VALUE(nbytes >= 0, "set_memory_limit: expected at least 0 bytes, got ", nbytes);
  allocator.set_limit(static_cast<size_t>(nbytes));
}

void bind_handle(nb::module_& module) {
  nb::class_<Handle>(module, "_Allocator")
      .def_prop_ro("address", [](Handle& h) { return reinterpret_cast<uintptr_t>(h.allocator); })
      .def_prop_ro("name", [](Handle& h) { return std::string(h.allocator->name()); })
      .def("stats", [](Handle& h) { return stats_of(*h.allocator); })
      .def("snapshot", [](Handle& h) { return snapshot_of(*h.allocator); })
      .def("empty_cache", [](Handle& h) { h.allocator->empty_cache(); })
      .def("reset_peak", [](Handle& h) { h.allocator->reset_peak(); })
      .def("limit", [](Handle& h) { return h.allocator->limit(); })
      .def("set_limit", [](Handle& h, int64_t nbytes) { set_limit(*h.allocator, nbytes); })
      .def("install", &install);
  module.def("_make_allocator", &make_allocator, nb::arg("alloc").none(), nb::arg("free").none(),
             nb::arg("name"));
  module.def("_current_allocator", [] { return Handle(&cpu_allocator(), nullptr); });
  module.def("_caching_allocator", [] { return Handle(&caching_allocator(), nullptr); });
}

}  // namespace

void bind_memory(nb::module_& module) {
  bind_handle(module);
  module.def(
      "memory_stats", [] { return stats_of(cpu_allocator()); },
      "What the CPU allocator has done, as a dict of counts and bytes.");
  module.def(
      "reset_peak_memory_stats", [] { cpu_allocator().reset_peak(); },
      "Makes the peak what is in use now.");
  module.def(
      "empty_cache", [] { cpu_allocator().empty_cache(); },
      "Gives cached blocks back to the system.");
  module.def(
      "set_memory_limit", [](int64_t nbytes) { set_limit(cpu_allocator(), nbytes); },
      nb::arg("nbytes"),
      "Most bytes in use plus cached; 0 for no limit. Beyond it: OutOfMemoryError.");
  module.def(
      "memory_limit", [] { return cpu_allocator().limit(); }, "The limit; 0 when there is none.");
  module.def("_packed_weights", &native::packed_weight_bytes, "Bytes of weights kept packed.");
  module.def("_packed_weight_limit", &native::packed_weight_limit, "Most bytes of them.");
  module.def(
      "_set_packed_weight_limit",
      [](int64_t nbytes) {
        WEFT_CHECK_VALUE(nbytes >= 0, "set_packed_weight_limit: expected at least 0 bytes, got ",
                         nbytes);
        native::set_packed_weight_limit(static_cast<size_t>(nbytes));
      },
      nb::arg("nbytes"), "What weft.memory.set_packed_weight_limit sets.");
}

}  // namespace weft::py

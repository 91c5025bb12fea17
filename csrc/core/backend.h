// Backends: what computes and keeps memory on devices other than the CPU. Operators reach a device
// through its backend alone, in three places: Storage::allocate, tile::run and the call of a
// hand-written body (ops/native_call.h).
//
// A device's memory may be out of the host's reach: Storage::data() raises for it. The CPU is no
// Backend, its code is called directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/allocator.h"
#include "core/stream.h"

namespace weft {

namespace tile {
struct Walk;
struct RowWalk;
}  // namespace tile

class Backend {
 public:
  virtual ~Backend() = default;

  virtual int device_count() const = 0;

  // Allocates the device's memory.
  virtual Allocator& allocator(Device device) = 0;

  // Copies bytes. One of the two devices is this backend's, the other one too or the CPU.
  virtual void copy(void* to, Device to_device, const void* from, Device from_device,
                    size_t nbytes) = 0;

  // Runs a planned tile program. The addresses of its views are the device's.
  virtual void run_program(const tile::Walk& walk) = 0;
  virtual void run_program(const tile::RowWalk& walk) = 0;

  // The device's own body of a hand-written operator, by the key of its row ("mm", "fill_.Tensor"):
  // a function of the body's C++ signature, whose tensors are all on the device. Null: it has none.
  using Function = void (*)();
  virtual Function native(std::string_view) { return nullptr; }

  // The stream that the calling thread queues work on, and points in the work of a stream. These
  // suit a device whose work is done when a call returns.
  virtual Stream current_stream(Device device) { return {device, 0}; }
  virtual uint64_t record(Stream) { return 0; }
  virtual bool is_done(Stream, uint64_t) { return true; }
  virtual void wait(Stream, uint64_t) {}
  virtual void order(Stream, uint64_t, Stream) {}
};

// Makes a type of device available. The backend must live as long as the process; a type has at
// most one: RuntimeError for a second one, and for the CPU.
void register_backend(DeviceType type, Backend& backend);

// The backend of a device; null for the CPU, and where none is registered.
Backend* find_backend(Device device) noexcept;

// The device as tensors have it: "privateuseone" is "privateuseone:0", "cpu:0" is "cpu". Raises
// RuntimeError unless tensors can be made on it.
Device check_available(const char* op, Device device);

// While it lives, errors of this thread about memory that the host cannot reach name the operator's
// row.
class NativeScope {
 public:
  explicit NativeScope(const char* key) noexcept;
  ~NativeScope();
  NativeScope(const NativeScope&) = delete;
  NativeScope& operator=(const NativeScope&) = delete;

 private:
  const char* const outer_;
};

// Raises NotImplementedError: the host wants to reach memory of the device.
[[noreturn]] void refuse_host_access(Device device);

// Raises RuntimeError in PyTorch's words.
[[noreturn]] void refuse_two_devices(Device one, Device other);

}  // namespace weft

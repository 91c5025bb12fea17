#include "core/backend.h"

#include <atomic>

#include "core/error.h"
#include "core/meta.h"

namespace weft {
namespace {

std::atomic<Backend*> g_backends[kDeviceTypeCount];
thread_local constinit const char* g_native = nullptr;

}  // namespace

void register_backend(DeviceType type, Backend& backend) {
  WEFT_CHECK(type != DeviceType::CPU, "register_backend: expected another device than cpu, got it");
  Backend* none = nullptr;
  WEFT_CHECK(g_backends[static_cast<size_t>(type)].compare_exchange_strong(none, &backend),
             "register_backend: expected one backend for ", Device{type}, ", got a second one");
}

Backend* find_backend(Device device) noexcept {
  return g_backends[static_cast<size_t>(device.type)].load(std::memory_order_acquire);
}

Device check_available(const char* op, Device device) {
  if (device.type == DeviceType::CPU) [[likely]]
    return {};
  device = device.type == DeviceType::Meta ? meta::with_index(device) : device;
  const Backend* backend = find_backend(device);
  // Programs match PyTorch's words.
  WEFT_CHECK_AS(Assertion, backend || device.type != DeviceType::CUDA, op,
                ": expected device cpu, got ", device, "; Torch not compiled with CUDA enabled");
  WEFT_CHECK(backend, op, ": expected device cpu, got ", device,
             "; this build has no other device");
  const int count = backend->device_count();
  WEFT_CHECK(device.index < count, op, ": expected a device index below ", count, ", got ", device);
  return meta::with_index(device);
}

NativeScope::NativeScope(const char* key) noexcept : outer_(g_native) { g_native = key; }
NativeScope::~NativeScope() { g_native = outer_; }

void refuse_host_access(Device device) {
  if (device.type == DeviceType::Meta) {
    if (g_native == nullptr) meta::refuse_copy();
    meta::refuse_elements(g_native);
  }
  if (g_native != nullptr) {
    fail(ErrorKind::NotImplemented, str(g_native, ": expected a body for the device ", device,
                                        ", got none; move the tensors to the CPU"));
  }
  fail(ErrorKind::NotImplemented, str("data: expected memory of the CPU, got a tensor on ", device,
                                      "; use Tensor.cpu() to copy it to host memory first"));
}

void refuse_two_devices(Device one, Device other) {
  fail(ErrorKind::Runtime,
       str("Expected all tensors to be on the same device, but found at least two devices, ", one,
           " and ", other, "!"));
}

}  // namespace weft

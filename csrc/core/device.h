// Where a storage lives. Kinds without a backend (backend.h) parse too, so that an error can name
// them.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace weft {

enum class DeviceType : uint8_t {
  CPU,
  CUDA,
  Meta,
  PrivateUse1,
  XPU,
  MPS,
  XLA,
  HPU,
  MTIA,
  Vulkan,
  IPU
};
inline constexpr int kDeviceTypeCount = 11;

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;  // -1: the current one of its kind

  // "cpu", "cuda:1", "meta" and the like; raises RuntimeError for anything else.
  static Device parse(std::string_view text);
  std::string str() const;
  friend bool operator==(Device, Device) = default;
};

std::ostream& operator<<(std::ostream& out, Device device);

}  // namespace weft

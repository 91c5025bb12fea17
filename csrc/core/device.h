// Where a storage lives. Only the CPU is built today; other kinds parse, so that an error can name
// them.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace weft {

enum class DeviceType : uint8_t { CPU, CUDA, Meta };

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;  // -1: the current one of its kind

  // "cpu", "cuda:1", "meta"; raises RuntimeError for anything else.
  static Device parse(std::string_view text);
  std::string str() const;
  friend bool operator==(Device, Device) = default;
};

std::ostream& operator<<(std::ostream& out, Device device);
// Raises RuntimeError unless tensors can be made on the device in this build.
void check_available(const char* op, Device device);

}  // namespace weft

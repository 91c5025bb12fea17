// Device names.
#include "core/device.h"

#include <charconv>

#include "core/error.h"

namespace weft {
namespace {

constexpr std::string_view kNames[kDeviceTypeCount] = {
    "cpu", "cuda", "meta", "privateuseone", "xpu", "mps", "xla", "hpu", "mtia", "vulkan", "ipu"};

}  // namespace

Device Device::parse(std::string_view text) {
  const std::string_view kind = text.substr(0, text.find(':'));
  Device device;
  bool known = false;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kind != kNames[i]) continue;
    device.type = static_cast<DeviceType>(i);
    known = true;
  }
  bool valid = known;
  if (known && kind.size() < text.size()) {
    const char* end = text.data() + text.size();
    int index = -1;
    const auto [stop, code] = std::from_chars(text.data() + kind.size() + 1, end, index);
    valid = code == std::errc() && stop == end && index >= 0 && index <= 127;
    device.index = static_cast<int8_t>(index);
  }
  std::string names;
  for (std::string_view name : kNames) names.append(names.empty() ? "" : ", ").append(name);
  WEFT_CHECK(valid, "device: expected one of ", names, ", with an index as in \"cuda:1\" at most, ",
             "got \"", text, '"');
  return device;
}

std::string Device::str() const {
  std::string text(kNames[static_cast<size_t>(type)]);
  if (index >= 0) text += ":" + std::to_string(index);
  return text;
}

std::ostream& operator<<(std::ostream& out, Device device) { return out << device.str(); }

}  // namespace weft

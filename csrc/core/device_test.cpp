#include "core/device.h"

#include "core/backend.h"
#include "testing.h"

using namespace weft;

TEST(device_parse) {
  CHECK_EQ(Device::parse("cpu"), Device{});
  CHECK_EQ(Device::parse("cpu:0").index, 0);
  CHECK_EQ(Device::parse("cuda:12"), (Device{DeviceType::CUDA, 12}));
  CHECK_EQ(Device::parse("meta").str(), "meta");
  CHECK_EQ(Device::parse("cuda:1").str(), "cuda:1");
}

TEST(device_parse_errors) {
  for (const char* text : {"", "gpu", "cpu:", "cpu:x", "cpu:-1", "cpu:1x", "cuda:128", "cpu:0:1"}) {
    CHECK_THROWS_AS(
        Runtime, Device::parse(text),
        str("device: expected one of cpu, cuda, meta, privateuseone, xpu, mps, xla, hpu, mtia, "
            "vulkan, ipu, with an index as in \"cuda:1\" at most, got \"",
            text, '"'));
  }
}

TEST(device_available) {
  check_available("empty", Device{});
  CHECK_TRUE(check_available("empty", Device::parse("cpu:1")) == Device{});  // there is one CPU
  CHECK_THROWS_AS(Assertion, check_available("empty", Device::parse("cuda:0")),
                  "empty: expected device cpu, got cuda:0; Torch not compiled with CUDA enabled");
  CHECK_THROWS_AS(Runtime, check_available("zeros", Device::parse("mps")),
                  "zeros: expected device cpu, got mps; this build has no other device");
}

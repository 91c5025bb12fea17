// Headers of safetensors files, and damaged ones.
#include "capi/safetensors_header.h"
#include "testing.h"

namespace weft {
namespace {

using capi::read_state_header;

constexpr std::string_view kHeader =
    R"( {"a\"\u00e9\ud83d\ude00":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("__metadata__":{"format":"pt"},"b":{"data_offsets":[24,24],"shape":[],"dtype":"I64"}}  )";

TEST(safetensors_header) {
  const auto found = read_state_header(kHeader);
  CHECK_EQ(found.size(), size_t{2});
  CHECK_EQ(found[0].name, std::string("a\"\xC3\xA9\xF0\x9F\x98\x80"));
  CHECK_TRUE(found[0].dtype == DType::F32 && found[1].dtype == DType::I64);
  CHECK_EQ(found[0].sizes.size(), size_t{2});
  CHECK_EQ(found[0].end, uint64_t{24});
  CHECK_TRUE(found[1].sizes.empty() && found[1].begin == 24);
}

TEST(safetensors_headers_that_are_none) {
  const char* const texts[] = {
      "",
      "{",
      "[]",
      "{\"a\":1}",
      "{} x",
      R"({"a":{}})",
      R"({"\ud800":{}})",
      R"({"\x":{}})",
      R"({"a":{"dtype":"F3"}})",
      R"({"a":{"dtype":"F3","shape":[1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}})",
      R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,0]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,99999999999999999999]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})",
      R"({"a":{"other":[]}})",
  };
  for (const char* text : texts) {
    bool refused = false;
    try {
      read_state_header(text);
    } catch (const Error& error) {
      refused = error.kind() == ErrorKind::Value;
    }
    CHECK_TRUE(refused);
  }
}

TEST(safetensors_headers_that_are_damaged) {
  for (size_t i = 0; i < kHeader.size(); ++i) {
    for (int c = 0; c < 128; c += 3) {
      std::string text(kHeader.substr(0, c == 0 ? i : kHeader.size()));
      if (c != 0) text[i] = static_cast<char>(c);
      try {
        read_state_header(text);
      } catch (const Error& error) {
        CHECK_TRUE(std::string(error.what()).find("expected") != std::string::npos);
      }
    }
  }
}

}  // namespace
}  // namespace weft

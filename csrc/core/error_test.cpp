#include "core/error.h"

#include "core/device.h"
#include "core/dtype.h"
#include "testing.h"

using namespace weft;

TEST(error_kinds_and_messages) {
  CHECK_THROWS_AS(Runtime, WEFT_CHECK(1 > 2, "mm: expected ", 2, " dims, got ", 3L),
                  "mm: expected 2 dims, got 3");
  CHECK_THROWS_AS(Value, WEFT_CHECK_VALUE(false, "a"), "a");
  CHECK_THROWS_AS(Type, WEFT_CHECK_TYPE(false, "b"), "b");
  CHECK_THROWS_AS(Index, WEFT_CHECK_INDEX(false, "c"), "c");
  WEFT_CHECK(true, "not thrown");
}

TEST(error_str_joins) {
  CHECK_EQ(str("x", 1, ' ', true, ' ', AsTuple{Dims{4}}, AsTuple{{}}, AsTuple{Dims{1, -2}}),
           "x1 true (4,)()(1, -2)");
}

TEST(error_internal_names_place) {
  try {
    WEFT_INTERNAL_ASSERT(1 == 2, "extra ", 5);
  } catch (const Error& error) {
    CHECK_EQ(error.kind(), ErrorKind::Internal);
    const std::string text = error.what();
    CHECK_EQ(text.find("internal error: 1 == 2 is false at csrc/core/error_test.cpp:"), 0);
    CHECK_TRUE(text.find(": extra 5; this is a bug in weft, please report it") != text.npos);
    return;
  }
  CHECK_TRUE(false);
}

#include "runtime/nesting.h"

#include "core/error.h"

namespace weft {
namespace {

constexpr int kDeepest = 200;
thread_local int depth = 0;

}  // namespace

Nesting::Nesting() {
  WEFT_CHECK_VALUE(depth < kDeepest, "expected a value nested at most ", kDeepest, " deep");
  ++depth;
}
Nesting::~Nesting() { --depth; }

}  // namespace weft

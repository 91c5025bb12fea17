// The backend of csrc/testing_backend.h as a library: loading it registers the backend.
#include "testing_backend.h"

namespace {

[[maybe_unused]] const auto& registered = weft::testing::ProtectedBackend::there();

}  // namespace

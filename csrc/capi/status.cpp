// Exceptions as status codes, and the text of the last one on each thread.
#include <algorithm>
#include <array>
#include <new>

#include "capi/cancelled.h"
#include "capi/handles.h"
#include "runtime/interpreter.h"

namespace weft::capi {
namespace {

thread_local std::string last_error;

weft_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Value:
      return WEFT_VALUE_ERROR;
    case ErrorKind::Type:
      return WEFT_TYPE_ERROR;
    case ErrorKind::Index:
      return WEFT_INDEX_ERROR;
    case ErrorKind::Key:
      return WEFT_KEY_ERROR;
    case ErrorKind::NotImplemented:
      return WEFT_NOT_IMPLEMENTED;
    case ErrorKind::OutOfMemory:
      return WEFT_OUT_OF_MEMORY;
    case ErrorKind::Internal:
      return WEFT_INTERNAL_ERROR;
    default:
      return WEFT_RUNTIME_ERROR;
  }
}

weft_status status_of(const std::string& exception) {
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::Internal); ++kind) {
    const auto known = static_cast<ErrorKind>(kind);
    if (exception == exception_name(known)) return status_of(known);
  }
  return WEFT_PROGRAM_ERROR;
}

weft_status remember(weft_status status, const char* text) {
  last_error = text;
  return status;
}

weft_status rethrow() {
  try {
    throw;
  } catch (const Cancelled& error) {
    return remember(WEFT_CANCELLED, error.what());
  } catch (const ProgramError& error) {
    return remember(status_of(error.name()), str(error.name(), ": ", error.what()).c_str());
  } catch (const Error& error) {
    return remember(status_of(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    return remember(WEFT_OUT_OF_MEMORY, "expected more memory, got none");
  } catch (const std::exception& error) {
    return remember(WEFT_INTERNAL_ERROR, error.what());
  } catch (...) {
    return remember(WEFT_INTERNAL_ERROR, "expected a known exception, got another one");
  }
}

}  // namespace

weft_status status_of_exception() noexcept {
  try {
    return rethrow();
  } catch (...) {  // no memory for the text
    return WEFT_OUT_OF_MEMORY;
  }
}

}  // namespace weft::capi

const char* weft_last_error(void) { return weft::capi::last_error.c_str(); }
int weft_api_version(void) { return WEFT_API_VERSION; }

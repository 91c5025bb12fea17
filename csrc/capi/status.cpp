// Exceptions as status codes, and the text of the last one on each thread.
#include <algorithm>
#include <new>
#include <utility>

#include "capi/cancelled.h"
#include "capi/handles.h"
#include "runtime/interpreter.h"

namespace weft::capi {
namespace {

thread_local std::string last_error;
thread_local uint64_t failure_count = 0;

// Kinds of errors with a status of their own; others are WEFT_RUNTIME_ERROR.
constexpr std::pair<ErrorKind, weft_status> kStatuses[] = {
    {ErrorKind::Value, WEFT_VALUE_ERROR},
    {ErrorKind::Type, WEFT_TYPE_ERROR},
    {ErrorKind::Index, WEFT_INDEX_ERROR},
    {ErrorKind::Key, WEFT_KEY_ERROR},
    {ErrorKind::NotImplemented, WEFT_NOT_IMPLEMENTED},
    {ErrorKind::OutOfMemory, WEFT_OUT_OF_MEMORY},
    {ErrorKind::Internal, WEFT_INTERNAL_ERROR},
};

weft_status status_of(ErrorKind kind) {
  const auto* row = std::ranges::find(kStatuses, kind, &std::pair<ErrorKind, weft_status>::first);
  return row == std::end(kStatuses) ? WEFT_RUNTIME_ERROR : row->second;
}

weft_status status_of(const std::string& exception) {
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::Internal); ++kind) {
    const auto known = static_cast<ErrorKind>(kind);
    if (exception == exception_name(known)) return status_of(known);
  }
  return WEFT_PROGRAM_ERROR;
}

weft_status remember(weft_status status, const char* text) {
  ++failure_count;
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

uint64_t failures() noexcept { return failure_count; }

void throw_status(weft_status status, const std::string& text) {
  if (status == WEFT_CANCELLED) throw Cancelled();
  const auto* row =
      std::ranges::find(kStatuses, status, &std::pair<ErrorKind, weft_status>::second);
  // What a host calls internal is a fault of the host.
  const bool known = row != std::end(kStatuses) && status != WEFT_INTERNAL_ERROR;
  fail(known ? row->first : ErrorKind::Runtime, text);
}

}  // namespace weft::capi

weft_status weft_fail(weft_status status, const char* text) {
  try {
    return weft::capi::remember(status, text ? text : "");
  } catch (...) {  // no memory for the text
    return status;
  }
}
const char* weft_last_error(void) { return weft::capi::last_error.c_str(); }
int weft_api_version(void) { return WEFT_API_VERSION; }

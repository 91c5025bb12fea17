// The cold half of error.h: building and throwing failures.
#include "core/error.h"

namespace weft {

void fail(ErrorKind kind, std::string message) { throw Error(kind, std::move(message)); }

void fail_internal(const char* file, int line, const char* condition, const std::string& message) {
  // Only the path below csrc/ helps a reader.
  std::string path(file);
  if (const size_t at = path.rfind("csrc/"); at != std::string::npos) path.erase(0, at);
  std::string text = str("internal error: ", condition, " is false at ", path, ":", line);
  if (!message.empty()) text += ": " + message;
  throw Error(ErrorKind::Internal, std::move(text) + "; this is a bug in weft, please report it");
}

}  // namespace weft

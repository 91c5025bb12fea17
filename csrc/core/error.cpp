// The cold half of error.h: building and throwing failures.
#include "core/error.h"

#include <sstream>

namespace weft {

void Printed::write_text(std::ostream& out, const void* text) {
  out << static_cast<const char*>(text);
}

std::string join(std::initializer_list<Printed> parts) {
  std::ostringstream out;
  out << std::boolalpha;
  for (const Printed& part : parts) out << part;
  return out.str();
}

void fail(ErrorKind kind, std::string message) { throw Error(kind, std::move(message)); }
void fail(ErrorKind kind, std::initializer_list<Printed> parts) { fail(kind, join(parts)); }

void fail_internal(const char* file, int line, const char* condition, const std::string& message) {
  // Only the path below csrc/ helps a reader.
  std::string path(file);
  if (const size_t at = path.rfind("csrc/"); at != std::string::npos) path.erase(0, at);
  std::string text = str("internal error: ", condition, " is false at ", path, ":", line);
  if (!message.empty()) text += ": " + message;
  throw Error(ErrorKind::Internal, std::move(text) + "; this is a bug in weft, please report it");
}

}  // namespace weft

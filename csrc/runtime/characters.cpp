#include "runtime/characters.h"

#include <algorithm>

namespace weft {

int64_t count_characters(std::string_view text) noexcept {
  return std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); });
}

size_t byte_offset(std::string_view text, int64_t index) noexcept {
  for (size_t at = 0; at < text.size(); ++at) {
    if (!continues_character(text[at]) && index-- == 0) return at;
  }
  return text.size();
}

size_t character_size(std::string_view text, size_t at) noexcept {
  size_t end = at + 1;
  while (end < text.size() && continues_character(text[end])) ++end;
  return end - at;
}

void append_character(std::string& text, uint32_t code) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | (code >> 6));
    add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | (code >> 12));
    add(0x80 | ((code >> 6) & 0x3f));
    add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | (code >> 18));
    add(0x80 | ((code >> 12) & 0x3f));
    add(0x80 | ((code >> 6) & 0x3f));
    add(0x80 | (code & 0x3f));
  }
}

int64_t code_point(std::string_view character) noexcept {
  if (character.empty() || character.size() != character_size(character, 0)) return -1;
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  if (character.size() > 4) return -1;
  int64_t code = first & (0x7f >> character.size());
  for (const char c : character.substr(1)) code = (code << 6) | (c & 0x3f);
  return code;
}

}  // namespace weft

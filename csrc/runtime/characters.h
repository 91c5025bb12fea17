// Strings as sequences of characters: UTF-8, a character being a code point.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

inline bool continues_character(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}
int64_t count_characters(std::string_view text) noexcept;
// Where in `text` the character number `index` starts; `index` is at most their count.
size_t byte_offset(std::string_view text, int64_t index) noexcept;
// The length in bytes of the character at `at`.
size_t character_size(std::string_view text, size_t at) noexcept;

// The UTF-8 of a code point, appended; and the code point of a text that is one character, or -1.
void append_character(std::string& text, uint32_t code);
int64_t code_point(std::string_view character) noexcept;

// Of ASCII only; other letters have no case here and belong to no class.
constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_letter(char c) { return is_upper(c) || is_lower(c); }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
}
constexpr char to_lower(char c) { return is_upper(c) ? static_cast<char>(c + 32) : c; }
constexpr char to_upper(char c) { return is_lower(c) ? static_cast<char>(c - 32) : c; }

}  // namespace weft

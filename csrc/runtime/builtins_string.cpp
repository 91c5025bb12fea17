// Builtins on strings: places, classes, case, padding. Those that cut strings up are in
// builtins_split.cpp.
#include <algorithm>
#include <string_view>

#include "builtin_bodies.h"
#include "core/error.h"
#include "runtime/builtins_support.h"
#include "runtime/characters.h"
#include "runtime/list.h"

namespace weft::builtins {
namespace {

using Text = const std::string&;

// The part of a string that `start` and `end` choose, in bytes. `valid` is false where start lies
// beyond the end: then not even the empty string is found.
struct Range {
  size_t first, last;
  bool valid;
};

Range range_of(Text text, int64_t start, int64_t end) {
  const int64_t size = count_characters(text);
  // TorchScript's default end of -1 is the end of the string.
  if (end == -1 || end > size) end = size;
  if (end < 0) end = std::max<int64_t>(end + size, 0);
  if (start < 0) start = std::max<int64_t>(start + size, 0);
  if (start > end) return {0, 0, false};
  return {byte_offset(text, start), byte_offset(text, end), true};
}

std::string_view part(Text text, const Range& range) {
  return std::string_view(text).substr(range.first, range.last - range.first);
}

int64_t place_of(Text text, const Range& range, size_t found) {
  if (found == std::string::npos) return -1;
  return count_characters(std::string_view(text).substr(0, range.first + found));
}

// Whether there is a character and all are of a class.
template <class Class>
bool all_of_class(Text text, Class in_class) {
  return !text.empty() && std::ranges::all_of(text, in_class);
}

template <class Change>
std::string changed(Text text, Change change) {
  std::string result = text;
  for (char& c : result) c = change(c);
  return result;
}

std::string repeated(std::string_view text, int64_t count) {
  int64_t bytes = 0;
  WEFT_CHECK_AS(
      OutOfMemory,
      count <= 0 || (!__builtin_mul_overflow(static_cast<int64_t>(text.size()), count, &bytes) &&
                     bytes < (int64_t{1} << 40)),
      "str: expected a string that fits memory, got ", text.size(), " bytes ", count, " times");
  std::string result;
  result.reserve(static_cast<size_t>(bytes));
  for (int64_t i = 0; i < count; ++i) result += text;
  return result;
}

std::string padded(const char* op, Text text, int64_t left, int64_t right, Text fill) {
  WEFT_CHECK_TYPE(count_characters(fill) == 1, op,
                  ": expected a fill of exactly one character, got '", fill, "'");
  return repeated(fill, left) + text + repeated(fill, right);
}

int64_t missing(Text text, int64_t width) {
  return std::max<int64_t>(width - count_characters(text), 0);
}

}  // namespace

// ---- characters ----

int64_t str_len(Text text) { return count_characters(text); }

std::string str_get(Text text, int64_t index) {
  const size_t at = byte_offset(text, wrap_index("string", index, count_characters(text)));
  return text.substr(at, character_size(text, at));
}

std::string str_slice(Text text, const Value& start, const Value& end, int64_t step) {
  const Slice slice = slice_bounds(start, end, step, count_characters(text));
  if (slice.count == 0) return "";
  if (step == 1) {
    const size_t first = byte_offset(text, slice.start);
    const std::string_view rest = std::string_view(text).substr(first);
    return std::string(rest.substr(0, byte_offset(rest, slice.count)));
  }
  std::string result;
  for (int64_t i = 0; i < slice.count; ++i) result += str_get(text, slice.start + i * slice.step);
  return result;
}

Value str_characters(Text text) {
  std::vector<Value> items;
  for (size_t at = 0; at < text.size();) {
    const size_t size = character_size(text, at);
    items.emplace_back(text.substr(at, size));
    at += size;
  }
  return Value(std::move(items));
}

std::string int_chr(int64_t code) {
  WEFT_CHECK_VALUE(code >= 0 && code <= 0x10ffff,
                   "chr() arg not in range(0x110000): expected a code point, got ", code);
  std::string text;
  append_character(text, static_cast<uint32_t>(code));
  return text;
}

int64_t str_ord(Text text) {
  const int64_t code = code_point(text);
  WEFT_CHECK_TYPE(code >= 0, "ord() expected a character, got a string of length ",
                  count_characters(text));
  return code;
}

std::string str_mul(Text text, int64_t count) { return repeated(text, count); }

// ---- search ----

bool str_contains(Text text, Text piece) { return text.find(piece) != std::string::npos; }

int64_t str_find(Text text, Text piece, int64_t start, int64_t end) {
  const Range range = range_of(text, start, end);
  return range.valid ? place_of(text, range, part(text, range).find(piece)) : -1;
}

int64_t str_rfind(Text text, Text piece, int64_t start, int64_t end) {
  const Range range = range_of(text, start, end);
  return range.valid ? place_of(text, range, part(text, range).rfind(piece)) : -1;
}

int64_t str_index(Text text, Text piece, int64_t start, int64_t end) {
  const int64_t place = str_find(text, piece, start, end);
  WEFT_CHECK_VALUE(place >= 0, "substring not found: expected a part of the string, got '", piece,
                   "'");
  return place;
}

int64_t str_rindex(Text text, Text piece, int64_t start, int64_t end) {
  const int64_t place = str_rfind(text, piece, start, end);
  WEFT_CHECK_VALUE(place >= 0, "substring not found: expected a part of the string, got '", piece,
                   "'");
  return place;
}

int64_t str_count(Text text, Text piece, int64_t start, int64_t end) {
  const Range range = range_of(text, start, end);
  if (!range.valid) return 0;
  const std::string_view inside = part(text, range);
  if (piece.empty()) return count_characters(inside) + 1;
  int64_t count = 0;
  for (size_t at = inside.find(piece); at != inside.npos;
       at = inside.find(piece, at + piece.size()))
    ++count;
  return count;
}

bool str_startswith(Text text, Text piece, int64_t start, int64_t end) {
  const Range range = range_of(text, start, end);
  return range.valid && part(text, range).starts_with(piece);
}

bool str_endswith(Text text, Text piece, int64_t start, int64_t end) {
  const Range range = range_of(text, start, end);
  return range.valid && part(text, range).ends_with(piece);
}

// ---- classes ----

bool str_isspace(Text text) { return all_of_class(text, is_space); }
bool str_isalpha(Text text) { return all_of_class(text, is_letter); }
bool str_isdigit(Text text) { return all_of_class(text, is_digit); }
bool str_isdecimal(Text text) { return all_of_class(text, is_digit); }
bool str_isnumeric(Text text) { return all_of_class(text, is_digit); }
bool str_isalnum(Text text) {
  return all_of_class(text, [](char c) { return is_letter(c) || is_digit(c); });
}
bool str_islower(Text text) {
  return std::ranges::any_of(text, is_lower) && std::ranges::none_of(text, is_upper);
}
bool str_isupper(Text text) {
  return std::ranges::any_of(text, is_upper) && std::ranges::none_of(text, is_lower);
}
bool str_isprintable(Text text) {
  return std::ranges::none_of(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}
bool str_isidentifier(Text text) {
  const auto begins = [](char c) { return is_letter(c) || c == '_'; };
  return !text.empty() && begins(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return begins(c) || is_digit(c); });
}
bool str_istitle(Text text) {
  bool any = false, inside = false;
  for (const char c : text) {
    if (is_letter(c)) {
      if (is_upper(c) == inside) return false;
      any = true;
    }
    inside = is_letter(c);
  }
  return any;
}

// ---- case ----

std::string str_lower(Text text) { return changed(text, to_lower); }
std::string str_upper(Text text) { return changed(text, to_upper); }
std::string str_swapcase(Text text) {
  return changed(text, [](char c) { return is_lower(c) ? to_upper(c) : to_lower(c); });
}
std::string str_capitalize(Text text) {
  std::string result = str_lower(text);
  if (!result.empty()) result[0] = to_upper(result[0]);
  return result;
}
std::string str_title(Text text) {
  bool inside = false;
  return changed(text, [&](char c) {
    const char result = inside ? to_lower(c) : to_upper(c);
    inside = is_letter(c);
    return result;
  });
}

// ---- padding ----

std::string str_center(Text text, int64_t width, Text fill) {
  const int64_t padding = missing(text, width);
  // Of an odd padding the larger half is left where the width is odd too, as in Python.
  const int64_t left = padding / 2 + (padding & width & 1);
  return padded("center", text, left, padding - left, fill);
}
std::string str_ljust(Text text, int64_t width, Text fill) {
  return padded("ljust", text, 0, missing(text, width), fill);
}
std::string str_rjust(Text text, int64_t width, Text fill) {
  return padded("rjust", text, missing(text, width), 0, fill);
}
std::string str_zfill(Text text, int64_t width) {
  const size_t sign = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  return text.substr(0, sign) + repeated("0", missing(text, width)) + text.substr(sign);
}

std::string str_expandtabs(Text text, int64_t tab) {
  std::string result;
  int64_t column = 0;
  for (const char c : text) {
    if (c == '\t') {
      const int64_t blanks = tab > 0 ? tab - column % tab : 0;
      result += repeated(" ", blanks);
      column += blanks;
      continue;
    }
    result += c;
    if (c == '\n' || c == '\r') {
      column = 0;
    } else if (!continues_character(c)) {
      ++column;
    }
  }
  return result;
}

}  // namespace weft::builtins

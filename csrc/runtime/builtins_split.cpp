// Builtins that cut strings up and put them together.
#include <algorithm>
#include <string_view>

#include "builtin_bodies.h"
#include "core/error.h"
#include "runtime/characters.h"
#include "runtime/list.h"

namespace weft::builtins {
namespace {

using Text = const std::string&;
using Pieces = std::vector<Value>;

void add(Pieces& pieces, std::string_view text) { pieces.emplace_back(std::string(text)); }

void check_separator(const char* op, std::string_view separator) {
  WEFT_CHECK_VALUE(!separator.empty(), op, ": expected a separator, got an empty one");
}

// At most `limit` cuts; a negative limit is none.
Pieces split_at(std::string_view text, std::string_view separator, int64_t limit) {
  check_separator("split", separator);
  Pieces pieces;
  for (size_t found; limit != 0 && (found = text.find(separator)) != text.npos; --limit) {
    add(pieces, text.substr(0, found));
    text.remove_prefix(found + separator.size());
  }
  add(pieces, text);
  return pieces;
}

// From the right, last piece first.
Pieces rsplit_at(std::string_view text, std::string_view separator, int64_t limit) {
  check_separator("rsplit", separator);
  Pieces pieces;
  for (size_t found; limit != 0 && (found = text.rfind(separator)) != text.npos; --limit) {
    add(pieces, text.substr(found + separator.size()));
    text = text.substr(0, found);
  }
  add(pieces, text);
  return pieces;
}

void drop_blanks_left(std::string_view& text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
}
void drop_blanks_right(std::string_view& text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
}

Pieces split_blanks(std::string_view text, int64_t limit) {
  Pieces pieces;
  for (drop_blanks_left(text); !text.empty(); drop_blanks_left(text)) {
    const auto end = limit == 0 ? text.end() : std::ranges::find_if(text, is_space);
    const auto size = static_cast<size_t>(end - text.begin());
    add(pieces, text.substr(0, size));
    text.remove_prefix(size);
    --limit;
  }
  return pieces;
}

Pieces rsplit_blanks(std::string_view text, int64_t limit) {
  Pieces pieces;
  for (drop_blanks_right(text); !text.empty(); drop_blanks_right(text)) {
    size_t start = text.size();
    while (start > 0 && (limit == 0 || !is_space(text[start - 1]))) --start;
    add(pieces, text.substr(start));
    text = text.substr(0, start);
    --limit;
  }
  return pieces;
}

// Bytes of the end of a line at `at`; 0 where there is none. Python's list of them.
size_t line_end(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("\r\n")) return 2;
  if ((rest[0] >= '\n' && rest[0] <= '\r') || (rest[0] >= '\x1c' && rest[0] <= '\x1e')) return 1;
  if (rest.starts_with("\xc2\x85")) return 2;
  return rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9") ? 3 : 0;
}

// Whether the character that starts at `at` is one of `chars`.
bool is_one_of(std::string_view text, size_t at, std::string_view chars) {
  return chars.find(text.substr(at, character_size(text, at))) != chars.npos;
}

void strip_left(std::string_view& text, std::string_view chars) {
  while (!text.empty() && is_one_of(text, 0, chars)) text.remove_prefix(character_size(text, 0));
}
void strip_right(std::string_view& text, std::string_view chars) {
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && continues_character(text[last])) --last;
    if (!is_one_of(text, last, chars)) return;
    text = text.substr(0, last);
  }
}

std::string replace_empty(std::string_view text, Text piece, int64_t limit) {
  std::string result;
  for (size_t at = 0;;) {
    if (limit != 0) {
      result += piece;
      --limit;
    }
    if (at >= text.size()) return result;
    const size_t size = character_size(text, at);
    result += text.substr(at, size);
    at += size;
  }
}

}  // namespace

Value str_split(Text text, const Value& separator, int64_t limit) {
  return Value(separator.is_none() ? split_blanks(text, limit)
                                   : split_at(text, separator.text(), limit));
}

Value str_rsplit(Text text, const Value& separator, int64_t limit) {
  Pieces pieces =
      separator.is_none() ? rsplit_blanks(text, limit) : rsplit_at(text, separator.text(), limit);
  std::ranges::reverse(pieces);
  return Value(std::move(pieces));
}

Value str_splitlines(Text text, bool keep_ends) {
  Pieces lines;
  size_t start = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = line_end(text, at);
    if (end == 0) {
      ++at;
      continue;
    }
    add(lines, std::string_view(text).substr(start, at - start + (keep_ends ? end : 0)));
    start = at = at + end;
  }
  if (start < text.size()) add(lines, std::string_view(text).substr(start));
  return Value(std::move(lines));
}

std::tuple<std::string, std::string, std::string> str_partition(Text text, Text separator) {
  check_separator("partition", separator);
  const size_t at = text.find(separator);
  if (at == std::string::npos) return {text, "", ""};
  return {text.substr(0, at), separator, text.substr(at + separator.size())};
}

std::tuple<std::string, std::string, std::string> str_rpartition(Text text, Text separator) {
  check_separator("rpartition", separator);
  const size_t at = text.rfind(separator);
  if (at == std::string::npos) return {"", "", text};
  return {text.substr(0, at), separator, text.substr(at + separator.size())};
}

std::string str_join(Text separator, const Value& pieces) {
  std::string result;
  const int64_t count = list_len(pieces);
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) result += separator;
    result += list_get(pieces, i).text();
  }
  return result;
}

std::string str_replace(Text text, Text old, Text piece, int64_t limit) {
  if (old.empty()) return replace_empty(text, piece, limit);
  std::string result;
  std::string_view rest = text;
  for (size_t found; limit != 0 && (found = rest.find(old)) != rest.npos; --limit) {
    result += rest.substr(0, found);
    result += piece;
    rest.remove_prefix(found + old.size());
  }
  return result.append(rest);
}

std::string str_strip(Text text, Text chars) {
  std::string_view rest = text;
  strip_left(rest, chars);
  strip_right(rest, chars);
  return std::string(rest);
}
std::string str_lstrip(Text text, Text chars) {
  std::string_view rest = text;
  strip_left(rest, chars);
  return std::string(rest);
}
std::string str_rstrip(Text text, Text chars) {
  std::string_view rest = text;
  strip_right(rest, chars);
  return std::string(rest);
}

std::string str_removeprefix(Text text, Text part) {
  return text.starts_with(part) ? text.substr(part.size()) : text;
}
std::string str_removesuffix(Text text, Text part) {
  return text.ends_with(part) ? text.substr(0, text.size() - part.size()) : text;
}

}  // namespace weft::builtins

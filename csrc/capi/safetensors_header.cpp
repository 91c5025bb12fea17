#include "capi/safetensors_header.h"

#include <charconv>

#include "core/error.h"

namespace weft::capi {
namespace {

constexpr size_t kMostDims = 64;

DType dtype_of(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!name.empty() && info_of(dtype).safetensors == name) return dtype;
  }
  fail(ErrorKind::Value,
       str("weft_module_load_state: expected a known dtype, got '", name.substr(0, 20), "'"));
}

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    if (code < 0x10000) {
      out += static_cast<char>(0xE0 | code >> 12);
    } else {
      out += static_cast<char>(0xF0 | code >> 18);
      out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    }
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// What of JSON these headers consist of: objects, arrays of integers, strings.
class Json {
 public:
  explicit Json(std::string_view text) : text_(text) {}

  // Calls `item(key)` at the value of each member.
  template <class Item>
  void object(Item&& item) {
    expect('{');
    if (accept('}')) return;
    do {
      const std::string key = string();
      expect(':');
      item(key);
    } while (accept(','));
    expect('}');
  }

  template <class Item>
  void array(Item&& item) {
    expect('[');
    if (accept(']')) return;
    do item(integer());
    while (accept(','));
    expect(']');
  }

  int64_t integer() {
    skip_blanks();
    int64_t value = 0;
    const char* first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) refuse("a whole number");
    at_ += static_cast<size_t>(end - first);
    return value;
  }

  std::string string() {
    expect('"');
    std::string out;
    while (peek() != '"') {
      const char c = text_[at_++];
      if (static_cast<unsigned char>(c) < 0x20) refuse("a string");
      if (c == '\\') {
        escaped(out);
      } else {
        out += c;
      }
    }
    ++at_;
    return out;
  }

  void end() {
    skip_blanks();
    if (at_ != text_.size()) refuse("the end");
  }

 private:
  char peek() const {
    if (at_ >= text_.size()) refuse("more text");
    return text_[at_];
  }
  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  bool accept(char c) {
    skip_blanks();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse(std::string("'") + c + "'");
  }

  void escaped(std::string& out) {
    const char c = peek();
    ++at_;
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (const size_t place = kNames.find(c); place != kNames.npos) {
      out += kMeanings[place];
    } else if (c == 'u') {
      append_utf8(out, code_point());
    } else {
      refuse("an escape");
    }
  }
  uint32_t code_point() {
    const uint32_t first = unit();
    if (first < 0xD800 || first > 0xDFFF) return first;
    const bool pairs = first < 0xDC00 && text_.substr(at_, 2) == "\\u";
    if (!pairs) refuse("a pair of surrogates");
    at_ += 2;
    const uint32_t second = unit();
    if (second < 0xDC00 || second > 0xDFFF) refuse("a pair of surrogates");
    return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
  }
  uint32_t unit() {
    uint32_t value = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const char* last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), last, value, 16);
    if (digits.size() < 4 || end != last || error != std::errc()) refuse("four digits");
    at_ += 4;
    return value;
  }

  [[noreturn]] void refuse(std::string_view wanted) const {
    fail(ErrorKind::Value, str("weft_module_load_state: expected ", wanted, " at byte ", at_,
                               " of the header, got another text"));
  }

  std::string_view text_;
  size_t at_ = 0;
};

StateEntry read_entry(Json& json, const std::string& name) {
  StateEntry entry;
  entry.name = name;
  std::string dtype;
  std::vector<int64_t> offsets;
  json.object([&](const std::string& key) {
    if (key == "dtype") {
      dtype = json.string();
    } else if (key == "shape") {
      json.array([&](int64_t size) { entry.sizes.push_back(size); });
    } else {
      WEFT_CHECK_VALUE(key == "data_offsets", "weft_module_load_state: expected dtype, shape and ",
                       "data_offsets of '", name, "', got '", key, "'");
      json.array([&](int64_t offset) { offsets.push_back(offset); });
    }
  });
  WEFT_CHECK_VALUE(offsets.size() == 2 && entry.sizes.size() <= kMostDims,
                   "weft_module_load_state: expected a place and at most 64 dims of '", name,
                   "', got something else");
  entry.dtype = dtype_of(dtype);
  entry.begin = static_cast<uint64_t>(offsets[0]);
  entry.end = static_cast<uint64_t>(offsets[1]);
  return entry;
}

}  // namespace

std::vector<StateEntry> read_state_header(std::string_view text) {
  std::vector<StateEntry> found;
  Json json(text);
  json.object([&](const std::string& name) {
    if (name == "__metadata__") {
      json.object([&](const std::string&) { json.string(); });
    } else {
      found.push_back(read_entry(json, name));
    }
  });
  json.end();
  return found;
}

}  // namespace weft::capi

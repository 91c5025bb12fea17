#include "runtime/format_spec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "runtime/arithmetic.h"
#include "runtime/characters.h"
#include "runtime/print.h"

namespace weft {
namespace {

constexpr int64_t kLargest = 1 << 20;  // of a width and a precision

// Reads a specification from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), rest_(text) {}

  FormatSpec read() {
    FormatSpec spec;
    read_align(spec);
    if (at_one_of("+- ")) spec.sign = take();
    if (at_one_of("z")) spec.no_negative_zero = take();
    if (at_one_of("#")) spec.alternate = take();
    if (at_one_of("0")) spec.zero = take();
    spec.width = std::max<int64_t>(read_number(), 0);
    if (at_one_of(",_")) spec.grouping = take();
    if (at_one_of(".")) {
      take();
      spec.precision = read_number();
      if (spec.precision < 0) fail_spec("a precision after '.'");
    }
    if (!rest_.empty()) spec.type = take();
    if (!rest_.empty()) fail_spec("the end");
    if (spec.zero && !fill_given_) spec.fill = "0";
    return spec;
  }

 private:
  bool at_one_of(std::string_view chars) const {
    return !rest_.empty() && chars.find(rest_[0]) != chars.npos;
  }
  char take() {
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  void read_align(FormatSpec& spec) {
    constexpr std::string_view aligns = "<>=^";
    const size_t size = rest_.empty() ? 0 : character_size(rest_, 0);
    if (size < rest_.size() && aligns.find(rest_[size]) != aligns.npos) {
      spec.fill = rest_.substr(0, size);
      rest_.remove_prefix(size);
      spec.align = take();
      fill_given_ = true;
    } else if (at_one_of(aligns)) {
      spec.align = take();
    }
  }
  int64_t read_number() {
    if (rest_.empty() || !is_digit(rest_[0])) return -1;
    int64_t value = 0;
    const auto end = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (end.ec != std::errc() || value > kLargest) fail_spec("a number of at most 2**20");
    rest_.remove_prefix(static_cast<size_t>(end.ptr - rest_.data()));
    return value;
  }
  [[noreturn]] void fail_spec(const char* expected) const {
    fail(ErrorKind::Value,
         str("format: expected ", expected, " in the format specification '", text_, "'"));
  }

  std::string_view text_, rest_;
  bool fill_given_ = false;
};

[[noreturn]] void fail_type(const FormatSpec& spec, const char* what) {
  fail(ErrorKind::Value,
       str("Unknown format code '", spec.type, "' for object of type '", what, "'"));
}

// A sign, a prefix such as 0x, digits, and what follows them: a fraction, an exponent, '%'.
struct Number {
  std::string sign, prefix, digits, tail;
};

std::string grouped(const std::string& digits, char separator, size_t size) {
  std::string result;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % size == 0) result += separator;
    result += digits[i];
  }
  return result;
}

std::string filled(const std::string& body, const FormatSpec& spec, char align) {
  const int64_t padding = spec.width - count_characters(body);
  if (padding <= 0) return body;
  const int64_t left = align == '<' ? 0 : align == '^' ? padding / 2 : padding;
  std::string result;
  for (int64_t i = 0; i < left; ++i) result += spec.fill;
  result += body;
  for (int64_t i = left; i < padding; ++i) result += spec.fill;
  return result;
}

std::string assemble(Number number, const FormatSpec& spec) {
  const size_t group =
      spec.type != 0 && std::string_view("boxX").find(spec.type) != std::string_view::npos ? 4 : 3;
  const auto body = [&] {
    return spec.grouping ? grouped(number.digits, spec.grouping, group) : number.digits;
  };
  const std::string before = number.sign + number.prefix;
  const char align = spec.align ? spec.align : spec.zero ? '=' : '>';
  if (align != '=') {
    return filled(before + body() + number.tail, spec, align);
  }
  const auto size = [&] {
    return static_cast<int64_t>(before.size() + body().size() + number.tail.size());
  };
  if (spec.fill == "0" && spec.grouping) {
    while (size() < spec.width) number.digits.insert(0, 1, '0');
    return before + body() + number.tail;
  }
  FormatSpec inner = spec;
  inner.width = spec.width - static_cast<int64_t>(before.size());
  return before + filled(body() + number.tail, inner, '>');
}

std::string sign_of(bool negative, const FormatSpec& spec) {
  if (negative) return "-";
  return spec.sign == 0 || spec.sign == '-' ? "" : std::string(1, spec.sign);
}

void check_no_z(const FormatSpec& spec, const char* what) {
  WEFT_CHECK_VALUE(!spec.no_negative_zero, "format: expected no 'z' for an object of type '", what,
                   "'");
}

// ---- ints ----

std::string format_int(int64_t value, const FormatSpec& spec) {
  WEFT_CHECK_VALUE(spec.precision < 0,
                   "Precision not allowed in integer format specifier: expected none, got .",
                   spec.precision);
  check_no_z(spec, "int");
  if (spec.type == 'c') {
    WEFT_CHECK_VALUE(spec.sign == 0 && !spec.alternate && !spec.grouping,
                     "format: expected no sign, '#' or grouping with 'c'");
    std::string text;
    WEFT_CHECK_AS(Overflow, value >= 0 && value <= 0x10ffff,
                  "%c arg not in range(0x110000): expected a code point, got ", value);
    append_character(text, static_cast<uint32_t>(value));
    return filled(text, spec, spec.align ? spec.align : '<');
  }
  const int base = spec.type == 'b'                 ? 2
                   : spec.type == 'o'               ? 8
                   : std::tolower(spec.type) == 'x' ? 16
                                                    : 10;
  WEFT_CHECK_VALUE(base == 10 || spec.grouping != ',', "Cannot specify ',' with '", spec.type,
                   "': expected '_' or no grouping");
  std::array<char, 72> text;
  const uint64_t size =
      value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  char* end = std::to_chars(text.data(), text.data() + text.size(), size, base).ptr;
  Number number{sign_of(value < 0, spec), "", std::string(text.data(), end), ""};
  if (spec.alternate && base != 10) number.prefix = std::string("0") + spec.type;
  if (spec.type == 'X') std::ranges::transform(number.digits, number.digits.begin(), to_upper);
  return assemble(std::move(number), spec);
}

// ---- floats ----

std::string printed(const char* form, int64_t precision, double value) {
  const int size = std::snprintf(nullptr, 0, form, static_cast<int>(precision), value);
  std::string text(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(text.data(), text.size(), form, static_cast<int>(precision), value);
  text.pop_back();
  return text;
}

int exponent_of(const std::string& scientific) {
  return std::atoi(scientific.c_str() + scientific.find('e') + 1);
}

// The alternate form of %g, which keeps zeros at the end. (The C library's own loses them where
// rounding adds a digit: 999999.5.)
std::string general_with_zeros(double value, int64_t precision) {
  precision = std::max<int64_t>(precision, 1);
  const std::string scientific = printed("%#.*e", precision - 1, value);
  const int exponent = exponent_of(scientific);
  if (exponent < -4 || exponent >= precision) return scientific;
  return printed("%#.*f", precision - 1 - exponent, value);
}

// Without a type: as many digits as asked for, and one after the point at least. The alternate form
// keeps zeros at the end.
std::string general(double value, int64_t precision, bool alternate) {
  precision = std::max<int64_t>(precision, 1);
  const std::string scientific = printed(alternate ? "%#.*e" : "%.*e", precision - 1, value);
  const size_t mark = scientific.find('e');
  const int exponent = exponent_of(scientific);
  if (exponent < -4 || exponent + 1 > precision - 1) {
    std::string mantissa = scientific.substr(0, mark);
    if (!alternate && mantissa.find('.') != std::string::npos) {
      mantissa.erase(mantissa.find_last_not_of('0') + 1);
      if (mantissa.back() == '.') mantissa.pop_back();
    }
    return mantissa + scientific.substr(mark);
  }
  const std::string text =
      alternate ? general_with_zeros(value, precision) : printed("%.*g", precision, value);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

// As many digits as tell the number from all others.
std::string shortest(double value, bool alternate) {
  std::string text = to_text(Value(value));
  const size_t mark = text.find('e');
  if (alternate && mark != std::string::npos && text.find('.') == std::string::npos) {
    text.insert(mark, 1, '.');
  }
  return text;
}

std::string magnitude_text(double value, const FormatSpec& spec) {
  const char type = spec.type;
  if (type == 0) {
    return spec.precision < 0 ? shortest(value, spec.alternate)
                              : general(value, spec.precision, spec.alternate);
  }
  const int64_t precision = spec.precision < 0 ? 6 : spec.precision;
  switch (type) {
    case 'e':
    case 'E':
      return printed(spec.alternate ? "%#.*e" : "%.*e", precision, value);
    case 'f':
    case 'F':
    case '%':
      return printed(spec.alternate ? "%#.*f" : "%.*f", precision, value);
    default:
      return spec.alternate ? general_with_zeros(value, precision)
                            : printed("%.*g", precision, value);
  }
}

// Whether the digits before an exponent are all 0.
bool shows_zero(std::string_view text) {
  return text.substr(0, text.find('e')).find_first_of("123456789") == text.npos;
}

std::string format_float(double value, const FormatSpec& spec) {
  bool negative = std::signbit(value) && !std::isnan(value);
  const double magnitude = std::fabs(spec.type == '%' ? value * 100 : value);
  std::string text;
  if (std::isfinite(magnitude)) {
    text = magnitude_text(magnitude, spec);
    if (spec.no_negative_zero && shows_zero(text)) negative = false;
  } else {
    text = std::isnan(magnitude) ? "nan" : "inf";
  }
  if (is_upper(spec.type)) std::ranges::transform(text, text.begin(), to_upper);
  size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  Number number{sign_of(negative, spec), "", text.substr(0, digits), text.substr(digits)};
  if (spec.type == '%') number.tail += '%';
  if (digits == 0) {  // inf and nan are padded with zeros like digits, but not grouped
    std::swap(number.digits, number.tail);
    FormatSpec plain = spec;
    plain.grouping = 0;
    return assemble(std::move(number), plain);
  }
  return assemble(std::move(number), spec);
}

// ---- strings ----

std::string format_text(const std::string& text, const FormatSpec& spec) {
  if (spec.type != 0 && spec.type != 's') fail_type(spec, "str");
  check_no_z(spec, "str");
  WEFT_CHECK_VALUE(spec.align != '=', "'=' alignment not allowed in string format specifier");
  WEFT_CHECK_VALUE(spec.sign == 0 && !spec.alternate && !spec.grouping,
                   "format: expected no sign, '#' or grouping for a str");
  std::string shown = text;
  if (spec.precision >= 0) {
    shown = text.substr(0, byte_offset(text, std::min(spec.precision, count_characters(text))));
  }
  const char align = spec.align ? spec.align : '<';
  return filled(shown, spec, align);
}

constexpr std::string_view kIntTypes = "bcdoxXn", kFloatTypes = "eEfFgGn%";

bool is_one_of(char type, std::string_view types) {
  return type == 0 || types.find(type) != types.npos;
}

std::string format_number(const Value& value, const FormatSpec& spec) {
  if (value.tag() == ValueTag::Double) {
    if (!is_one_of(spec.type, kFloatTypes)) fail_type(spec, "float");
    return format_float(value.to_double(), spec);
  }
  if (is_one_of(spec.type, kIntTypes)) return format_int(value.to_int(), spec);
  if (!is_one_of(spec.type, kFloatTypes)) fail_type(spec, "int");
  return format_float(static_cast<double>(value.to_int()), spec);
}

}  // namespace

FormatSpec parse_format_spec(std::string_view text) { return Reader(text).read(); }

void check_formattable(const Value& value) {
  const bool number = value.tag() >= ValueTag::Bool && value.tag() <= ValueTag::Double;
  const bool scalar = value.tag() == ValueTag::Tensor && value.to_tensor().dim() == 0;
  WEFT_CHECK_TYPE(number || scalar || value.tag() == ValueTag::String,
                  "unsupported format string passed to ", type_name(value),
                  ".__format__: expected a number or a str");
}

std::string format_value(const Value& value, const FormatSpec& spec) {
  check_formattable(value);
  if (value.tag() == ValueTag::String) return format_text(value.text(), spec);
  if (value.tag() == ValueTag::Tensor) {
    return format_value(Value(value.to_tensor().item()), spec);
  }
  return format_number(value, spec);
}

}  // namespace weft

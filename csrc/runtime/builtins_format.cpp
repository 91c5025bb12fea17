// str.format, format(), and the % of strings.
#include <cmath>
#include <string_view>

#include "builtin_bodies.h"
#include "core/error.h"
#include "runtime/arithmetic.h"
#include "runtime/characters.h"
#include "runtime/format_spec.h"
#include "runtime/print.h"
#include "runtime/tuple.h"

namespace weft::builtins {

std::string format_value(const Value& value, const std::string& spec) {
  // A tensor of no dimensions is formatted as its number, also without a format.
  if (value.tag() == ValueTag::Tensor && value.to_tensor().dim() == 0) {
    return format_value(Value(value.to_tensor().item()), spec);
  }
  if (spec.empty()) return to_text(value);
  check_formattable(value);
  return weft::format_value(value, parse_format_spec(spec));
}

namespace {

using Args = std::span<const Value>;

// One call of str.format.
class Formatter {
 public:
  explicit Formatter(Args args) : args_(args) {}

  std::string run(std::string_view text, int depth = 0) {
    std::string result;
    while (!text.empty()) {
      const char c = text[0];
      if (c != '{' && c != '}') {
        result += c;
        text.remove_prefix(1);
      } else if (text.size() > 1 && text[1] == c && depth == 0) {
        result += c;
        text.remove_prefix(2);
      } else {
        WEFT_CHECK_VALUE(c == '{', "Single '}' encountered in format string: expected '}}'");
        const size_t end = field_end(text);
        result += field(text.substr(1, end - 1), depth);
        text.remove_prefix(end + 1);
      }
    }
    return result;
  }

 private:
  // The place of the '}' that closes the field at the start of `text`.
  static size_t field_end(std::string_view text) {
    int open = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '{') ++open;
      if (text[i] == '}' && --open == 0) return i;
    }
    fail(ErrorKind::Value, "Single '{' encountered in format string: expected a '}' after it");
  }

  // name[!conversion][:spec]
  std::string field(std::string_view text, int depth) {
    WEFT_CHECK_VALUE(depth < 2, "format: expected fields in at most one specification, got more");
    const size_t name_end = std::min(text.find_first_of("!:"), text.size());
    const Value& value = argument(text.substr(0, name_end));
    text.remove_prefix(name_end);
    char conversion = 0;
    if (text.starts_with('!')) {
      WEFT_CHECK_VALUE(text.size() > 1, "format: expected a conversion after '!', got none");
      conversion = text[1];
      text.remove_prefix(2);
      WEFT_CHECK_VALUE(text.empty() || text[0] == ':', "format: expected ':' after a conversion");
    }
    const std::string spec = text.empty() ? "" : run(text.substr(1), depth + 1);
    if (conversion == 0) return format_value(value, spec);
    WEFT_CHECK_VALUE(conversion == 'r' || conversion == 's' || conversion == 'a',
                     "format: expected the conversion r, s or a, got '", conversion, "'");
    return format_value(Value(conversion == 's' ? to_text(value) : repr(value)), spec);
  }

  const Value& argument(std::string_view name) {
    int64_t place = 0;
    if (name.empty()) {
      WEFT_CHECK_VALUE(automatic_ >= 0,
                       "cannot switch from manual field specification to "
                       "automatic field numbering");
      place = automatic_++;
    } else {
      for (const char c : name) {
        WEFT_CHECK_VALUE(is_digit(c),
                         "format: expected a field without a name or the number of an "
                         "argument, got '{",
                         name, "}'");
        if (place < 1000000) place = place * 10 + (c - '0');
      }
      WEFT_CHECK_VALUE(automatic_ <= 0,
                       "cannot switch from automatic field numbering to manual "
                       "field specification");
      automatic_ = -1;
    }
    WEFT_CHECK_INDEX(place < static_cast<int64_t>(args_.size()), "Replacement index ", place,
                     " out of range for positional args tuple: expected one below ", args_.size());
    return args_[static_cast<size_t>(place)];
  }

  Args args_;
  int64_t automatic_ = 0;  // the next argument; -1 once fields are numbered
};

// One evaluation of text % args.
class Percent {
 public:
  Percent(std::string_view text, Args args) : rest_(text), args_(args) {}

  std::string run() {
    std::string result;
    while (!rest_.empty()) {
      const char c = take();
      if (c != '%') {
        result += c;
      } else if (rest_.starts_with('%')) {
        result += take();
      } else {
        WEFT_CHECK_VALUE(!rest_.empty(), "incomplete format: expected a conversion after '%'");
        result += conversion();
      }
    }
    WEFT_CHECK_TYPE(next_ == args_.size(),
                    "not all arguments converted during string formatting: expected ", next_,
                    ", got ", args_.size());
    return result;
  }

 private:
  char take() {
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  const Value& argument() {
    WEFT_CHECK_TYPE(next_ < args_.size(),
                    "not enough arguments for format string: expected more than ", args_.size());
    return args_[next_++];
  }
  int64_t number() {
    if (!rest_.empty() && rest_[0] == '*') {
      take();
      const Value& value = argument();
      WEFT_CHECK_TYPE(value.tag() == ValueTag::Int, "* wants int: expected an int, got ",
                      type_name(value));
      return value.to_int();
    }
    int64_t value = 0;
    while (!rest_.empty() && is_digit(rest_[0])) {
      value = value * 10 + (take() - '0');
      WEFT_CHECK_VALUE(value <= 1 << 20, "format: expected a width of at most 2**20");
    }
    return value;
  }

  std::string conversion() {
    FormatSpec spec;
    spec.align = '>';
    bool left = false;
    for (; !rest_.empty() && std::string_view("-+ #0").find(rest_[0]) != std::string_view::npos;) {
      switch (take()) {
        case '-':
          left = true;
          break;
        case '+':
          spec.sign = '+';
          break;
        case ' ':
          if (spec.sign == 0) spec.sign = ' ';
          break;
        case '#':
          spec.alternate = true;
          break;
        default:
          spec.zero = true;
      }
    }
    spec.width = number();
    if (spec.width < 0) {
      left = true;
      spec.width = std::min<int64_t>(-spec.width, 1 << 20);
    }
    if (!rest_.empty() && rest_[0] == '.') {
      take();
      spec.precision = std::max<int64_t>(number(), 0);
    }
    WEFT_CHECK_VALUE(!rest_.empty(), "incomplete format: expected a conversion after '%'");
    if (left) {
      spec.align = '<';
      spec.zero = false;
    }
    return convert(take(), spec);
  }

  std::string convert(char type, FormatSpec spec) {
    switch (type) {
      case 's':
      case 'r':
      case 'a': {
        const Value& value = argument();
        return text(type == 's' ? to_text(value) : repr(value), spec);
      }
      case 'c': {
        const Value& value = argument();
        return text(value.tag() == ValueTag::String ? value.text() : int_chr(value.to_int()), spec);
      }
      case 'd':
      case 'i':
      case 'u':
        return integer(0, spec);
      case 'o':
      case 'x':
      case 'X':
        return integer(type, spec);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return real(type, spec);
      default:
        argument();  // a missing one is reported first, as in Python
        fail(ErrorKind::Value,
             str("unsupported format character '", type, "': expected one of diouxXeEfFgGcrsa%"));
    }
  }

  static std::string text(const std::string& value, FormatSpec spec) {
    spec.type = 0;
    spec.sign = 0;
    spec.alternate = spec.zero = false;
    return weft::format_value(Value(value), spec);
  }

  Value numeric(char type) {
    const Value& value = argument();
    switch (value.tag()) {
      case ValueTag::Bool:
      case ValueTag::Int:
      case ValueTag::Double:
        return value;
      case ValueTag::Tensor:
        return Value(value.to_tensor().item());
      default:
        fail(ErrorKind::Type,
             str("%", type, " format: a real number is required, not ", type_name(value)));
    }
  }

  std::string integer(char type, FormatSpec spec) {
    const Value value = numeric(type ? type : 'd');
    WEFT_CHECK_TYPE(type == 0 || value.tag() != ValueTag::Double, "%", type,
                    " format: an integer is required, not float");
    const int64_t whole =
        value.tag() == ValueTag::Double ? to_int(value.to_double()) : value.to_int();
    spec.type = type ? type : 'd';
    const int64_t digits = std::exchange(spec.precision, -1);
    if (digits > 0) {  // so many digits at least, then blanks
      FormatSpec inner = spec;
      inner.align = '=';
      inner.fill = "0";
      inner.width =
          digits + (whole < 0 || spec.sign != 0) + (spec.alternate && spec.type != 'd' ? 2 : 0);
      if (spec.zero) inner.width = std::max(inner.width, spec.width);
      const std::string body = weft::format_value(Value(whole), inner);
      return text(body, spec);
    }
    zero_fill(spec);
    return weft::format_value(Value(whole), spec);
  }

  std::string real(char type, FormatSpec spec) {
    const Value value = numeric(type);
    spec.type = type;
    zero_fill(spec);
    return weft::format_value(Value(value.to_double()), spec);
  }

  static void zero_fill(FormatSpec& spec) {
    if (!spec.zero) return;
    spec.align = '=';
    spec.fill = "0";
  }

  std::string_view rest_;
  Args args_;
  size_t next_ = 0;
};

}  // namespace

std::string str_format(const std::string& text, const Value& args) {
  return Formatter(tuple_items(args)).run(text);
}

std::string str_percent_format(const std::string& text, const Value& args) {
  return Percent(text, tuple_items(args)).run();
}

}  // namespace weft::builtins

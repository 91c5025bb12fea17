// Functions of C++ as kernels of operators: their arguments, results and schemas.
#pragma once

#include "function_record.h"

namespace c10 {
inline namespace over_weft {

// Sizes are numbers here: none is a symbol.
class SymInt final {
 public:
  SymInt(int64_t value) : value_(value) {}
  operator int64_t() const { return value_; }
  int64_t guard_int(const char* = nullptr, int64_t = 0) const { return value_; }
  int64_t expect_int() const { return value_; }
  std::optional<int64_t> maybe_as_int() const { return value_; }

 private:
  int64_t value_;
};
using SymIntArrayRef = ArrayRef<SymInt>;

namespace detail {

template <class>
inline constexpr bool always_false = false;

// ---- values out of C++ ----

template <class T>
Shared boxed(const T& value);
template <class... Parts>
Shared boxed_tuple(const std::tuple<Parts...>& parts) {
  if constexpr (sizeof...(Parts) == 1) {
    return boxed(std::get<0>(parts));
  } else {
    const Values items =
        std::apply([](const auto&... each) { return Values{boxed(each)...}; }, parts);
    std::vector<const weft_value*> handles;
    for (const Shared& each : items) handles.push_back(each.get());
    return made(
        [&](weft_value** out) { return weft_value_tuple(handles.data(), handles.size(), out); });
  }
}

template <class T>
struct Boxed {
  static Shared from(const T& value) { return IValue(value).shared(); }
};
template <>
struct Boxed<SymInt> {
  static Shared from(SymInt value) { return box(int64_t{value}); }
};
template <>
struct Boxed<SymIntArrayRef> {
  static Shared from(SymIntArrayRef values) {
    return box(IntArrayRef(std::vector<int64_t>(values.begin(), values.end())));
  }
};
template <class T>
struct Boxed<std::optional<T>> {
  static Shared from(const std::optional<T>& value) { return value ? boxed(*value) : none(); }
};
template <class T>
struct Boxed<OptionalArrayRef<T>> {
  static Shared from(const OptionalArrayRef<T>& value) { return value ? boxed(*value) : none(); }
};
template <class... Parts>
struct Boxed<std::tuple<Parts...>> {
  static Shared from(const std::tuple<Parts...>& parts) { return boxed_tuple(parts); }
};
template <class First, class Second>
struct Boxed<std::pair<First, Second>> {
  static Shared from(const std::pair<First, Second>& parts) {
    return boxed_tuple(std::tuple<First, Second>(parts));
  }
};
template <class T>
Shared boxed(const T& value) {
  return Boxed<T>::from(value);
}

// ---- values into C++ ----

template <>
struct Unbox<SymInt> {
  static SymInt from(const Shared& value) { return unbox<int64_t>(value); }
};
template <>
struct Unbox<Device> {
  static Device from(const Shared& value) {
    const char* text = nullptr;
    check(weft_value_get_device(value.get(), &text));
    return Device(text);
  }
};

// What an argument is made from. It lives during the call: references point into it.
template <class T>
class Given {
 public:
  explicit Given(const Shared& value) : value_(unbox<T>(value)) {}
  T& get() { return value_; }

 private:
  T value_;
};
template <class T>
class Given<ArrayRef<T>> {
 public:
  Given(const Given&) = delete;
  explicit Given(const Shared& value) : items_(unbox<std::vector<T>>(value)), view_(items_) {}
  ArrayRef<T>& get() { return view_; }

 private:
  std::vector<T> items_;
  ArrayRef<T> view_;
};
template <>
class Given<std::string_view> {
 public:
  Given(const Given&) = delete;
  explicit Given(const Shared& value) : text_(unbox<std::string>(value)), view_(text_) {}
  std::string_view& get() { return view_; }

 private:
  std::string text_;
  std::string_view view_;
};
// Optional views.
template <class Optional, class View>
class GivenOptional {
 public:
  explicit GivenOptional(const Shared& value) {
    if (weft_value_kind(value.get()) == WEFT_KIND_NONE) return;
    held_ = std::make_unique<Given<View>>(value);
    view_ = held_->get();
  }
  Optional& get() { return view_; }

 private:
  std::unique_ptr<Given<View>> held_;
  Optional view_;
};
template <class T>
struct Given<std::optional<ArrayRef<T>>> : GivenOptional<std::optional<ArrayRef<T>>, ArrayRef<T>> {
  using GivenOptional<std::optional<ArrayRef<T>>, ArrayRef<T>>::GivenOptional;
};
template <class T>
struct Given<OptionalArrayRef<T>> : GivenOptional<OptionalArrayRef<T>, ArrayRef<T>> {
  using GivenOptional<OptionalArrayRef<T>, ArrayRef<T>>::GivenOptional;
};
template <>
struct Given<std::optional<std::string_view>>
    : GivenOptional<std::optional<std::string_view>, std::string_view> {
  using GivenOptional::GivenOptional;
};

// ---- schemas ----

template <class T>
struct SchemaType {
  static_assert(always_false<T>,
                "expected a type of operators (Tensor, int64_t, double, bool, std::string, Scalar, "
                "Device, ScalarType, lists and optionals of them), got another one");
};
#define WEFT_TORCH_SCHEMA_TYPE(type, name)     \
  template <>                                  \
  struct SchemaType<type> {                    \
    static std::string text() { return name; } \
  };
WEFT_TORCH_SCHEMA_TYPE(at::Tensor, "Tensor")
WEFT_TORCH_SCHEMA_TYPE(bool, "bool")
WEFT_TORCH_SCHEMA_TYPE(int64_t, "int")
WEFT_TORCH_SCHEMA_TYPE(int, "int")
WEFT_TORCH_SCHEMA_TYPE(SymInt, "int")
WEFT_TORCH_SCHEMA_TYPE(double, "float")
WEFT_TORCH_SCHEMA_TYPE(float, "float")
WEFT_TORCH_SCHEMA_TYPE(std::complex<double>, "complex")
WEFT_TORCH_SCHEMA_TYPE(std::string, "str")
WEFT_TORCH_SCHEMA_TYPE(std::string_view, "str")
WEFT_TORCH_SCHEMA_TYPE(Scalar, "Scalar")
WEFT_TORCH_SCHEMA_TYPE(ScalarType, "ScalarType")
WEFT_TORCH_SCHEMA_TYPE(Device, "Device")
#undef WEFT_TORCH_SCHEMA_TYPE
#define WEFT_TORCH_SCHEMA_OF(container, mark)                          \
  template <class T>                                                   \
  struct SchemaType<container<T>> {                                    \
    static std::string text() { return SchemaType<T>::text() + mark; } \
  };
WEFT_TORCH_SCHEMA_OF(std::optional, "?")
WEFT_TORCH_SCHEMA_OF(std::vector, "[]")
WEFT_TORCH_SCHEMA_OF(ArrayRef, "[]")
WEFT_TORCH_SCHEMA_OF(List, "[]")
WEFT_TORCH_SCHEMA_OF(OptionalArrayRef, "[]?")
#undef WEFT_TORCH_SCHEMA_OF

template <class T>
struct ResultTypes {
  static std::vector<std::string> list() { return {SchemaType<T>::text()}; }
};
template <>
struct ResultTypes<void> {
  static std::vector<std::string> list() { return {}; }
};
template <class... Parts>
struct ResultTypes<std::tuple<Parts...>> {
  static std::vector<std::string> list() { return {SchemaType<std::decay_t<Parts>>::text()...}; }
};
template <class First, class Second>
struct ResultTypes<std::pair<First, Second>> : ResultTypes<std::tuple<First, Second>> {};

// The types in a schema, without marks of memory and lengths of lists.
struct SchemaParts {
  struct Part {
    std::string type;
    bool is_written = false;
  };
  std::vector<Part> arguments, results;

  explicit SchemaParts(const std::string& schema) {
    const size_t open = schema.find('('), close = end_of(schema, open),
                 arrow = schema.find("->", close);
    TORCH_CHECK_VALUE(arrow != schema.npos,
                      "def: expected a schema 'name(Tensor x) -> Tensor', got '", schema, "'");
    arguments = parts(schema.substr(open + 1, close - open - 1), true);
    std::string given = stripped(schema.substr(arrow + 2));
    if (!given.empty() && given[0] == '(') given = given.substr(1, given.rfind(')') - 1);
    results = parts(given, false);
  }

 private:
  // Where what is open at a place is closed; the end where it is not.
  static size_t end_of(const std::string& text, size_t at) {
    int depth = 0;
    for (; at < text.size(); ++at) {
      if (text[at] == '(') ++depth;
      if (text[at] == ')' && --depth == 0) return at;
    }
    return std::min(at, text.size());
  }
  static std::string stripped(const std::string& text) {
    const size_t start = text.find_first_not_of(' ');
    if (start == text.npos) return {};
    return text.substr(start, text.find_last_not_of(' ') - start + 1);
  }
  static std::vector<Part> parts(const std::string& text, bool have_names) {
    std::vector<Part> found;
    size_t start = 0;
    int depth = 0;
    char quote = 0;
    for (size_t i = 0; i <= text.size(); ++i) {
      const char each = i < text.size() ? text[i] : ',';
      if (quote != 0 && i < text.size()) {
        if (each == quote) quote = 0;
        continue;
      }
      if (each == '\'' || each == '"') quote = each;
      if (each == '(' || each == '[') ++depth;
      if (each == ')' || each == ']') --depth;
      if (each != ',' || (depth > 0 && i < text.size())) continue;
      const std::string part = stripped(text.substr(start, i - start));
      start = i + 1;
      if (!part.empty() && part != "*") found.push_back(part_of(part, have_names));
    }
    return found;
  }
  static Part part_of(const std::string& text, bool has_name) {
    std::string type = stripped(text.substr(0, text.find('=')));
    const size_t mark = type.find('('), mark_end = end_of(type, mark);
    Part part;
    if (mark != type.npos && mark_end < type.size()) {
      part.is_written = type.substr(mark, mark_end - mark).find('!') != type.npos;
      type.erase(mark, mark_end - mark + 1);
    }
    const size_t space = has_name ? type.rfind(' ') : type.find(' ');
    for (const char each : stripped(type.substr(0, space))) {
      if (each < '0' || each > '9') part.type += each;
    }
    if (part.type.rfind("SymInt", 0) == 0) part.type.replace(0, 6, "int");
    return part;
  }
};

// ---- kernels ----

class Kernel {
 public:
  virtual ~Kernel() = default;
  // The result; a null pointer where there is none.
  virtual Shared call(const Values& args) const = 0;
  virtual std::vector<std::string> argument_types() const { return {}; }
  virtual std::vector<std::string> result_types() const { return {}; }
  virtual bool is_typed() const { return true; }

  std::string signature() const {
    std::string text = "(";
    const auto args = argument_types(), results = result_types();
    for (size_t i = 0; i < args.size(); ++i) {
      text += text_of(i > 0 ? ", " : "", args[i], " _", i);
    }
    text += results.size() == 1 ? ") -> " : ") -> (";
    for (size_t i = 0; i < results.size(); ++i) text += (i > 0 ? ", " : "") + results[i];
    return results.size() == 1 ? text : text + ")";
  }
  // TypeError where the function is none of the schema.
  void check(const std::string& name, const SchemaParts& schema) const {
    if (!is_typed()) return;
    check_types(name, "arguments", argument_types(), schema.arguments);
    check_types(name, "results", result_types(), schema.results);
  }

 private:
  static void check_types(const std::string& name, const char* what,
                          const std::vector<std::string>& given,
                          const std::vector<SchemaParts::Part>& wanted) {
    bool fits = given.size() == wanted.size();
    std::string text;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const std::string& type = wanted[i].type;
      text += (i > 0 ? ", " : "") + type;
      fits = fits && (given[i] == type || given[i] + "?" == type ||
                      (given[i] == "int" && type == "ScalarType"));
    }
    TORCH_CHECK_TYPE(fits, name, ": expected a function whose ", what, " are (", text,
                     ") as in the schema, got ", ArrayRef<std::string>(given));
  }
};

template <class Function, class Signature>
class FunctionKernel;
template <class Function, class Result, class... Args>
class FunctionKernel<Function, Result(Args...)> final : public Kernel {
 public:
  explicit FunctionKernel(Function function) : function_(std::move(function)) {}
  Shared call(const Values& args) const override {
    return run(args, std::index_sequence_for<Args...>());
  }
  std::vector<std::string> argument_types() const override {
    return {SchemaType<std::decay_t<Args>>::text()...};
  }
  std::vector<std::string> result_types() const override {
    return ResultTypes<std::decay_t<Result>>::list();
  }

 private:
  template <size_t... I>
  Shared run([[maybe_unused]] const Values& args, std::index_sequence<I...>) const {
    std::tuple<Given<std::decay_t<Args>>...> given(args.at(I)...);  // in place: views point there
    if constexpr (std::is_void_v<Result>) {
      function_(std::forward<Args>(std::get<I>(given).get())...);
      return nullptr;
    } else {
      return boxed<std::decay_t<Result>>(
          function_(std::forward<Args>(std::get<I>(given).get())...));
    }
  }

  mutable Function function_;
};

// A function that is known to the compiler: TORCH_FN.
template <class Signature, Signature* function>
struct FunctionConstant;
template <class Result, class... Args, Result (*function)(Args...)>
struct FunctionConstant<Result(Args...), function> {
  Result operator()(Args... args) const { return function(std::forward<Args>(args)...); }
};

template <class Function>
struct SignatureOf : SignatureOf<decltype(&Function::operator())> {};
template <class Result, class... Args>
struct SignatureOf<Result (*)(Args...)> {
  using type = Result(Args...);
};
template <class Owner, class Result, class... Args>
struct SignatureOf<Result (Owner::*)(Args...) const> {
  using type = Result(Args...);
};
template <class Owner, class Result, class... Args>
struct SignatureOf<Result (Owner::*)(Args...)> {
  using type = Result(Args...);
};
template <class Function>
std::shared_ptr<const Kernel> kernel_of(Function&& function) {
  using Stored = std::decay_t<Function>;
  using Signature = typename SignatureOf<Stored>::type;
  return std::make_shared<FunctionKernel<Stored, Signature>>(std::forward<Function>(function));
}

// An operator of extensions or of the library, called by its name.
Shared call_by_name(const std::string& name, const Values& args);

}  // namespace detail
}  // namespace over_weft
}  // namespace c10

namespace at {
using c10::SymInt;
using c10::SymIntArrayRef;
}  // namespace at

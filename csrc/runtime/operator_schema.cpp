#include "runtime/operator_schema.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"

namespace weft {
namespace {

constexpr size_t kMostSchemaArguments = 64;
constexpr int kMostListDepth = 4;  // of types and of defaults
constexpr std::pair<std::string_view, TypeKind> kSchemaTypes[] = {
    {"Tensor", TypeKind::Tensor},    {"int", TypeKind::Int},       {"SymInt", TypeKind::Int},
    {"float", TypeKind::Float},      {"bool", TypeKind::Bool},     {"complex", TypeKind::Complex},
    {"str", TypeKind::Str},          {"Scalar", TypeKind::Number}, {"Device", TypeKind::Device},
    {"ScalarType", TypeKind::DType},
};
constexpr std::string_view kReservedNamespaces[] = {"aten", "prim", "prims"};

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

Ref<Type> schema_type(TypeKind kind, Ref<Type> child = nullptr) {
  auto made = make_ref<Type>();
  made->kind = kind;
  if (child) made->children.push_back(std::move(child));
  return made;
}

class SchemaReader {
 public:
  explicit SchemaReader(std::string_view text) : text_(text) {}

  OperatorSchema run() {
    OperatorSchema schema;
    schema.text = text_;
    const std::string_view space = word("a namespace");
    check(std::ranges::find(kReservedNamespaces, space) == std::end(kReservedNamespaces),
          "a namespace of the program");
    expect("::");
    schema.name = str(space, "::", word("a name"));
    if (take(".")) schema.name += str(".", word("the name of an overload"));
    read_arguments(schema);
    expect("->");
    read_results(schema);
    check(at_ == text_.size(), "the end");
    return schema;
  }

 private:
  void read_arguments(OperatorSchema& schema) {
    expect("(");
    if (take(")")) return;
    do {
      if (take("*")) continue;  // keyword-only ones: programs give all of them in order
      check(schema.arguments.size() < kMostSchemaArguments, "at most 64 arguments");
      bool is_written = false;
      Ref<Type> type = read_type(is_written);
      const std::string name(word("the name of an argument"));
      const auto same = [&](const OperatorSchema::Argument& each) { return each.name == name; };
      check(std::ranges::none_of(schema.arguments, same), "each name once");
      schema.arguments.push_back({name, std::move(type), is_written});
      if (take("=")) skip_default();
    } while (take(","));
    expect(")");
  }

  void read_results(OperatorSchema& schema) {
    bool is_written = false;
    if (!take("(")) {
      schema.results.push_back(read_type(is_written));
      return;
    }
    if (take(")")) return;
    do {
      check(schema.results.size() < kMostSchemaArguments, "at most 64 results");
      schema.results.push_back(read_type(is_written));
      if (at_ < text_.size() && is_name_character(text_[at_])) word("a name");
    } while (take(","));
    expect(")");
  }

  // A type and its mark: what shares memory is "Tensor(a)", what is written to "Tensor(a!)".
  Ref<Type> read_type(bool& is_written) {
    const size_t start = at_;
    const std::string_view name = word("a type");
    const auto* row =
        std::ranges::find(kSchemaTypes, name, [](const auto& each) { return each.first; });
    if (row == std::end(kSchemaTypes)) at_ = start;
    check(row != std::end(kSchemaTypes), "a type of operators");
    Ref<Type> type = schema_type(row->second);
    if (take("(")) {
      const std::string_view mark = word("the mark of memory", "!|*");
      is_written = mark.ends_with('!');
      if (take("->")) word("the mark of memory", "!|*");
      expect(")");
    }
    for (int depth = 0; depth < kMostListDepth; ++depth) {
      if (take("?")) {
        check(type->kind != TypeKind::Optional, "a type that is optional once");
        type = schema_type(TypeKind::Optional, std::move(type));
      } else if (take("[")) {
        if (!take("]")) {
          word("a length");
          expect("]");
        }
        type = schema_type(TypeKind::List, std::move(type));
      } else {
        break;
      }
    }
    return type;
  }

  // Programs hold the values of defaults: here they are only passed over.
  void skip_default(int depth = 0) {
    if (take("[")) {
      check(depth < kMostListDepth, "lists less deep");
      if (take("]")) return;
      do {
        skip_default(depth + 1);
      } while (take(","));
      return expect("]");
    }
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote == '\'' || quote == '"') {
      const size_t end = text_.find(quote, at_ + 1);
      check(end != text_.npos, "the end of a text");
      at_ = end + 1;
      return skip_spaces();
    }
    take("-");
    word("a default", ".+-");
  }

  std::string_view word(const char* what, std::string_view more = {}) {
    skip_spaces();
    const size_t start = at_;
    while (at_ < text_.size() &&
           (is_name_character(text_[at_]) || more.find(text_[at_]) != more.npos))
      ++at_;
    check(at_ > start, what);
    const std::string_view found = text_.substr(start, at_ - start);
    skip_spaces();
    return found;
  }

  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    skip_spaces();
    return true;
  }
  void expect(std::string_view token) { check(take(token), token); }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  template <class What>
  void check(bool good, const What& what) const {
    WEFT_CHECK_VALUE(good, "operator: expected ", what, " at character ", at_, " of the schema '",
                     text_, "', as in 'my::scale(Tensor x, float by=2.0) -> Tensor'");
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

OperatorSchema OperatorSchema::parse(std::string_view text) { return SchemaReader(text).run(); }

bool OperatorSchema::writes() const {
  return std::ranges::any_of(arguments, &Argument::is_written);
}

bool OperatorSchema::has_types_of(const OperatorSchema& other) const {
  const auto same = [](const Ref<Type>& a, const Ref<Type>& b) { return a->str() == b->str(); };
  const auto type = [](const Argument& each) -> const Ref<Type>& { return each.type; };
  return std::ranges::equal(arguments, other.arguments, same, type, type) &&
         std::ranges::equal(results, other.results, same);
}

}  // namespace weft

#include "runtime/argument.h"

#include <algorithm>

#include "core/error.h"
#include "runtime/dict.h"
#include "runtime/list.h"
#include "runtime/print.h"

namespace weft {
namespace {

bool convert_items(const Type& type, std::vector<Value>& items) {
  return std::ranges::all_of(items, [&](Value& item) { return convert_argument(type, item); });
}

bool convert_list(const Type& type, Value& value) {
  if (!is_list(value.tag())) return false;
  std::vector<Value> items;
  for (int64_t i = 0; i < list_len(value); ++i) items.push_back(list_get(value, i));
  if (!convert_items(*type.children[0], items)) return false;
  value = make_list(type.children[0]->list_tag(), items.data(), items.size());
  return true;
}

bool convert_tuple(const Type& type, Value& value) {
  if (value.tag() != ValueTag::Tuple) return false;
  const std::span<Value> given = tuple_items(value);
  if (given.size() != type.children.size()) return false;
  std::vector<Value> items(given.begin(), given.end());
  for (size_t i = 0; i < items.size(); ++i) {
    if (!convert_argument(*type.children[i], items[i])) return false;
  }
  value = make_tuple_value(std::move(items), type.tuple);
  return true;
}

bool convert_dict(const Type& type, Value& value) {
  if (value.tag() != ValueTag::Dict) return false;
  auto made = make_ref<DictObject>();
  made->value_list = type.children[1]->list_tag();
  bool good = true;
  value.object<DictObject>()->for_each([&](Value key, Value item) {
    good = good && convert_argument(*type.children[0], key) &&
           convert_argument(*type.children[1], item);
    if (good) made->set(key, std::move(item));
  });
  if (good) value = make_dict(std::move(made));
  return good;
}

}  // namespace

bool convert_argument(const Type& type, Value& value) {
  if (matches(type, value)) return true;
  switch (type.kind) {
    case TypeKind::Float:
      if (value.tag() != ValueTag::Int) return false;
      value = Value(value.to_double());
      return true;
    case TypeKind::List:
      return convert_list(type, value);
    case TypeKind::Tuple:
      return convert_tuple(type, value);
    case TypeKind::Dict:
      return convert_dict(type, value);
    case TypeKind::Optional:
    case TypeKind::Union:
      return std::ranges::any_of(
          type.children, [&](const Ref<Type>& child) { return convert_argument(*child, value); });
    default:
      return false;
  }
}

std::vector<Value> bind_arguments(const Function& function, const std::string& name, size_t first,
                                  std::vector<Value> given) {
  WEFT_CHECK_TYPE(function.params.size() >= first, name, ": expected a method, got a function");
  const size_t count = function.params.size() - first;
  WEFT_CHECK_TYPE(given.size() <= count, name, ": expected at most ", count, " arguments, got ",
                  given.size());
  for (size_t i = 0; i < count; ++i) {
    const Param& param = function.params[first + i];
    if (i == given.size()) {
      WEFT_CHECK_TYPE(param.default_value, name, ": expected a value for argument '", *param.name,
                      "', got none");
      given.push_back(*param.default_value);
      continue;
    }
    WEFT_CHECK_TYPE(convert_argument(*param.type, given[i]), name, ": expected argument '",
                    *param.name, "' of type ", param.type->str(), ", got ", type_name(given[i]));
  }
  return given;
}

}  // namespace weft

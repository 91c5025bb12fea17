#include "runtime/type.h"

#include <algorithm>

#include "core/fork.h"
#include "runtime/dict.h"
#include "runtime/list.h"

namespace weft {
namespace {

std::string join(const std::vector<Ref<Type>>& types) {
  std::string text;
  for (const Ref<Type>& type : types) text += (text.empty() ? "" : ", ") + type->str();
  return text;
}

bool all_match(const Type& element, const Value& list) {
  const int64_t count = list_len(list);
  for (int64_t i = 0; i < count; ++i) {
    if (!matches(element, list_get(list, i))) return false;
  }
  return true;
}

bool matches_list(const Type& type, const Value& value) {
  if (!is_list(value.tag()) || value.tag() != type.children[0]->list_tag()) return false;
  return value.tag() != ValueTag::List || all_match(*type.children[0], value);
}

bool matches_dict(const Type& type, const Value& value) {
  if (value.tag() != ValueTag::Dict) return false;
  bool good = true;
  value.object<DictObject>()->for_each([&](const Value& key, const Value& item) {
    good = good && matches(*type.children[0], key) && matches(*type.children[1], item);
  });
  return good;
}

bool matches_tuple(const Type& type, const Value& value) {
  if (value.tag() != ValueTag::Tuple) return false;
  const auto* tuple = value.object<TupleObject>();
  if (tuple->items.size() != type.children.size()) return false;
  if (type.tuple && (!tuple->def || tuple->def->name != type.name)) return false;
  for (size_t i = 0; i < type.children.size(); ++i) {
    if (!matches(*type.children[i], tuple->items[i])) return false;
  }
  return true;
}

bool implements(const Type& interface, const Value& value) {
  if (value.tag() != ValueTag::Object) return false;
  const auto* def = dynamic_cast<const ProgramClass*>(value.object<ClassObject>()->def.get());
  return def && def->has_methods(interface.methods);
}

// Guards the method names of every class: they are asked for when a program is loaded.
GlobalMutex classes_mutex(ForkRank::Programs);

}  // namespace

bool ProgramClass::has_methods(const std::vector<std::string>& names) const {
  const std::lock_guard lock(classes_mutex);
  return std::ranges::all_of(names,
                             [&](const std::string& name) { return methods_.contains(name); });
}

void ProgramClass::add_methods(const std::vector<std::string>& names) {
  const std::lock_guard lock(classes_mutex);
  methods_.insert(names.begin(), names.end());
}

std::string Type::str() const {
  static constexpr const char* kNames[] = {
#define X(id, text) text,
      WEFT_PLAIN_TYPES(X)
#undef X
  };
  switch (kind) {
    case TypeKind::List:
      return "List[" + join(children) + "]";
    case TypeKind::Dict:
      return "Dict[" + join(children) + "]";
    case TypeKind::Tuple:
      return tuple ? std::string(unqualified(name)) : "Tuple[" + join(children) + "]";
    case TypeKind::Optional:
      return "Optional[" + join(children) + "]";
    case TypeKind::Union:
      return "Union[" + join(children) + "]";
    case TypeKind::Future:
      return "Future[" + join(children) + "]";
    case TypeKind::Class:
    case TypeKind::Enum:
    case TypeKind::Interface:
      return std::string(unqualified(name));
    default:
      return kNames[static_cast<size_t>(kind)];
  }
}

ValueTag Type::list_tag() const {
  switch (kind) {
    case TypeKind::Int:
      return ValueTag::IntList;
    case TypeKind::Float:
      return ValueTag::DoubleList;
    case TypeKind::Bool:
      return ValueTag::BoolList;
    case TypeKind::Tensor:
      return ValueTag::TensorList;
    case TypeKind::Optional:
      return children[0]->kind == TypeKind::Tensor ? ValueTag::OptionalTensorList : ValueTag::List;
    default:
      return ValueTag::List;
  }
}

bool matches(const Type& type, const Value& value) {
  const ValueTag tag = value.tag();
  switch (type.kind) {
    case TypeKind::Tensor:
      return tag == ValueTag::Tensor;
    case TypeKind::Int:
    case TypeKind::Layout:
    case TypeKind::MemoryFormat:
      return tag == ValueTag::Int;
    case TypeKind::Float:
      return tag == ValueTag::Double;
    case TypeKind::Bool:
      return tag == ValueTag::Bool;
    case TypeKind::Complex:
      return tag == ValueTag::Complex;
    case TypeKind::Str:
      return tag == ValueTag::String;
    case TypeKind::None:
      return tag == ValueTag::None;
    case TypeKind::Device:
      return tag == ValueTag::Device;
    case TypeKind::DType:
      return tag == ValueTag::DType;
    case TypeKind::Generator:
      return tag == ValueTag::Generator;
    case TypeKind::Number:
      return tag == ValueTag::Int || tag == ValueTag::Double || tag == ValueTag::Bool ||
             tag == ValueTag::Complex;
    case TypeKind::Any:
      return true;
    case TypeKind::AnyList:
      return is_list(tag);
    case TypeKind::AnyTuple:
      return tag == ValueTag::Tuple;
    case TypeKind::AnyDict:
      return tag == ValueTag::Dict;
    case TypeKind::List:
      return matches_list(type, value);
    case TypeKind::Dict:
      return matches_dict(type, value);
    case TypeKind::Tuple:
      return matches_tuple(type, value);
    case TypeKind::Optional:
      return value.is_none() || matches(*type.children[0], value);
    case TypeKind::Union:
      return std::ranges::any_of(type.children,
                                 [&](const Ref<Type>& child) { return matches(*child, value); });
    case TypeKind::Future:
      return tag == ValueTag::Future;
    case TypeKind::Class:
      return tag == ValueTag::Object && value.object<ClassObject>()->def.get() == type.def;
    case TypeKind::Enum:
      return tag == ValueTag::Enum && value.object<EnumObject>()->def->name == type.name;
    case TypeKind::Interface:
      return implements(type, value);
  }
  return false;
}

}  // namespace weft

// Instances of classes and members of enumerations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/value.h"

namespace weft {

// A class of a program: its name and where each attribute lies. The program derives from it to add
// methods.
struct ClassDef : RefCounted {
  std::string name;                     // qualified: "__torch__.pkg.M"
  std::vector<std::string> attributes;  // slot by slot
  bool is_module = false;

  virtual ~ClassDef() = default;
  int find_slot(std::string_view attribute) const noexcept;  // -1: there is none
};

struct ClassObject final : ValueObject {
  Ref<ClassDef> def;
  std::vector<Value> slots;

  explicit ClassObject(Ref<ClassDef> definition)
      : def(std::move(definition)), slots(def->attributes.size()) {}
};
inline Value make_object(Ref<ClassDef> def) {
  return Value(ValueTag::Object, make_ref<ClassObject>(std::move(def)));
}

struct EnumDef final : RefCounted {
  std::string name;  // qualified: "__torch__.pkg.Color"
  std::vector<std::string> members;
  std::vector<Value> values;  // of the members: int, float or str
};

struct EnumObject final : ValueObject {
  Ref<EnumDef> def;
  size_t index;

  EnumObject(Ref<EnumDef> definition, size_t member) : def(std::move(definition)), index(member) {}
};
inline Value make_enum(Ref<EnumDef> def, size_t member) {
  return Value(ValueTag::Enum, make_ref<EnumObject>(std::move(def), member));
}

// "M" of "__torch__.pkg.M".
std::string_view unqualified(std::string_view name) noexcept;

}  // namespace weft

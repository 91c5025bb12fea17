// Types of a program, as far as they matter while it runs: values that cross its border are
// converted by them, and isinstance asks them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/object.h"
#include "runtime/tuple.h"
#include "runtime/value.h"

namespace weft {

// X(enumerator, IR text of a type without children)
#define WEFT_PLAIN_TYPES(X)       \
  X(Tensor, "Tensor")             \
  X(Int, "int")                   \
  X(Float, "float")               \
  X(Bool, "bool")                 \
  X(Complex, "complex")           \
  X(Str, "str")                   \
  X(None, "NoneType")             \
  X(Device, "Device")             \
  X(DType, "dtype")               \
  X(Layout, "Layout")             \
  X(MemoryFormat, "MemoryFormat") \
  X(Generator, "Generator")       \
  X(Number, "Scalar")             \
  X(Any, "Any")                   \
  X(AnyList, "list")              \
  X(AnyTuple, "tuple")            \
  X(AnyDict, "dict")

enum class TypeKind : uint8_t {
#define X(id, text) id,
  WEFT_PLAIN_TYPES(X)
#undef X
      List,  // one child
  Dict,      // key, value
  Tuple,     // any number; named where `tuple` is set
  Optional,  // one child
  Union,     // two or more
  Future,    // one child
  Class,
  Enum,
  Interface,
};
inline constexpr uint8_t kTypeKinds = static_cast<uint8_t>(TypeKind::Interface) + 1;

struct Type final : RefCounted {
  TypeKind kind = TypeKind::None;
  std::vector<Ref<Type>> children;
  std::string name;          // of a class, enumeration, interface or named tuple
  Ref<NamedTupleDef> tuple;  // of a named tuple
  Ref<EnumDef> enumeration;
  const ClassDef* def = nullptr;     // of a class; compared, never followed
  std::vector<std::string> methods;  // of an interface

  // As messages show it: "List[int]", "Optional[Tensor]", "Point".
  std::string str() const;
  // What a list of such elements is stored as.
  ValueTag list_tag() const;
};

// A class of a program: what the interpreter knows of it besides the names of its slots. Programs
// may share a class and bring methods to it one after the other.
class ProgramClass final : public ClassDef {
 public:
  std::vector<Ref<Type>> types;  // slot by slot

  bool has_methods(const std::vector<std::string>& names) const;
  void add_methods(const std::vector<std::string>& names);

 private:
  std::set<std::string, std::less<>> methods_;  // names; each program has the bodies
};

// Whether the value is one of the type, elements included.
bool matches(const Type& type, const Value& value);

}  // namespace weft

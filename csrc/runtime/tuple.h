// Tuples: a fixed number of Values, never changed once shared.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/value.h"

namespace weft {

// What makes a tuple a named one. The definitions of a program live as long as any value of it.
struct NamedTupleDef final : RefCounted {
  std::string name;  // qualified: "__torch__.pkg.Point"
  std::vector<std::string> fields;
};

class TupleObject final : public ValueObject {
 public:
  std::vector<Value> items;
  Ref<NamedTupleDef> def;  // null for a plain tuple

  explicit TupleObject(std::vector<Value> values, Ref<NamedTupleDef> named = nullptr)
      : items(std::move(values)), def(std::move(named)) {}
};

inline Value make_tuple_value(std::vector<Value> items, Ref<NamedTupleDef> def = nullptr) {
  return Value(ValueTag::Tuple, make_ref<TupleObject>(std::move(items), std::move(def)));
}
// TypeError for anything but a tuple.
inline std::span<Value> tuple_items(const Value& tuple) {
  if (tuple.tag() != ValueTag::Tuple) [[unlikely]]
    tuple.fail_tag("a tuple");
  return tuple.object<TupleObject>()->items;
}

}  // namespace weft

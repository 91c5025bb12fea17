// Equality, identity, order and hash of Values, as Python has them.
#pragma once

#include <compare>
#include <cstdint>

#include "runtime/value.h"

namespace weft {

// Python's `==` of two values of a program. Containers compare item by item; a tensor inside one
// compares as `bool(a == b)` does, so one of several elements raises RuntimeError.
bool equal(const Value& a, const Value& b);

// Python's `is`: the same object, or the same value where values have no identity.
bool is_same(const Value& a, const Value& b);

// Python's order of numbers, strings, and lists and tuples of them; NaN is unordered. TypeError for
// anything else.
std::partial_ordering order(const Value& a, const Value& b);
inline bool less(const Value& a, const Value& b) { return order(a, b) < 0; }
inline bool less_or_equal(const Value& a, const Value& b) { return order(a, b) <= 0; }

// Of dict keys: equal numbers are one key whatever their type; tensors are compared by identity.
bool same_key(const Value& a, const Value& b);
// TypeError for what cannot be a key.
uint64_t hash_value(const Value& key);

}  // namespace weft

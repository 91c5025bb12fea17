// Dict: a hash map that remembers the order of insertion.
//
// Entries lie in order in one array; a table of open addressing holds their places. A removed entry
// stays as a gap until the array is next rebuilt. Keys: str, int, float, bool, complex, members of
// enumerations, and tensors by identity. Numbers that are equal are one key, as in Python.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/value.h"

namespace weft {

class DictObject final : public ValueObject {
 public:
  // What a list of its values is stored as: the program's type of the values says so.
  ValueTag value_list = ValueTag::List;

  struct Entry {
    Value key, value;
    uint64_t hash = 0;
    bool used = false;
  };

  size_t size() const noexcept { return size_; }
  Value* find(const Value& key);  // null: not there
  void set(const Value& key, Value value);
  // Takes the value of the key out; false: not there.
  bool remove(const Value& key, Value* value);
  // Takes the last entry out; false: empty.
  bool pop_last(Value* key, Value* value);
  void clear();
  // A copy that shares keys and values.
  Ref<DictObject> copy() const;

  // Calls fn(key, value) in order of insertion.
  template <class Fn>
  void for_each(Fn&& fn) const {
    for (const Entry& entry : entries_) {
      if (entry.used) fn(entry.key, entry.value);
    }
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX, kGap = UINT32_MAX - 1;
  // The slot in table_ of the key, or the free one where the search ended.
  size_t probe(const Value& key, uint64_t hash) const;
  void rebuild(size_t capacity);
  void erase_slot(size_t slot);

  std::vector<Entry> entries_;
  std::vector<uint32_t> table_;  // places in entries_; a power of two, at most 2/3 used
  size_t size_ = 0;
  size_t taken_ = 0;  // slots that are not free: entries and gaps
};
inline Value make_dict(Ref<DictObject> dict = make_ref<DictObject>()) {
  return Value(ValueTag::Dict, std::move(dict));
}

}  // namespace weft

#include "runtime/dict.h"

#include <bit>

#include "core/error.h"
#include "runtime/equality.h"

namespace weft {

size_t DictObject::probe(const Value& key, uint64_t hash) const {
  const size_t mask = table_.size() - 1;
  for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    const uint32_t place = table_[slot];
    if (place == kFree) return slot;
    if (place == kGap) continue;
    const Entry& entry = entries_[place];
    if (entry.hash == hash && same_key(entry.key, key)) return slot;
  }
}

Value* DictObject::find(const Value& key) {
  if (size_ == 0) return nullptr;
  const uint32_t place = table_[probe(key, hash_value(key))];
  return place == kFree ? nullptr : &entries_[place].value;
}

void DictObject::set(const Value& key, Value value) {
  const uint64_t hash = hash_value(key);
  if (!table_.empty()) {
    if (const uint32_t place = table_[probe(key, hash)]; place != kFree) {
      entries_[place].value = std::move(value);
      return;
    }
  }
  // Gaps count: a table without a free slot would be searched for ever.
  if ((taken_ + 1) * 3 > table_.size() * 2) rebuild(size_ + 1);
  table_[probe(key, hash)] = static_cast<uint32_t>(entries_.size());
  entries_.push_back({key, std::move(value), hash, true});
  ++size_;
  ++taken_;
}

void DictObject::rebuild(size_t capacity) {
  WEFT_CHECK(capacity < kGap / 4, "dict: expected fewer than 2**30 entries, got ", capacity);
  std::erase_if(entries_, [](const Entry& entry) { return !entry.used; });
  table_.assign(std::bit_ceil(capacity * 3 < 8 ? size_t{8} : capacity * 3), kFree);
  const size_t mask = table_.size() - 1;
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t slot = entries_[i].hash & mask;
    while (table_[slot] != kFree) slot = (slot + 1) & mask;
    table_[slot] = static_cast<uint32_t>(i);
  }
  taken_ = entries_.size();
}

void DictObject::erase_slot(size_t slot) {
  entries_[table_[slot]] = Entry{};
  table_[slot] = kGap;
  --size_;
}

bool DictObject::remove(const Value& key, Value* value) {
  if (size_ == 0) return false;
  const size_t slot = probe(key, hash_value(key));
  if (table_[slot] == kFree) return false;
  if (value) *value = std::move(entries_[table_[slot]].value);
  erase_slot(slot);
  return true;
}

bool DictObject::pop_last(Value* key, Value* value) {
  while (!entries_.empty() && !entries_.back().used) entries_.pop_back();
  if (entries_.empty()) return false;
  const size_t slot = probe(entries_.back().key, entries_.back().hash);
  *key = std::move(entries_.back().key);
  *value = std::move(entries_.back().value);
  erase_slot(slot);
  return true;
}

void DictObject::clear() {
  // Freed last: a value's end may not see a half-empty dict.
  std::vector<Entry> old = std::move(entries_);
  entries_.clear();
  table_.clear();
  size_ = taken_ = 0;
}

Ref<DictObject> DictObject::copy() const {
  auto result = make_ref<DictObject>();
  result->value_list = value_list;
  for_each([&](const Value& key, const Value& value) { result->set(key, value); });
  return result;
}

}  // namespace weft

// c10::List and c10::Dict: handles, so that copies have the same items.
#pragma once

#include <map>

#include "boxed.h"
#include "types.h"

namespace c10 {
inline namespace over_weft {

class IValue;
namespace detail {
Shared box(const IValue& value);  // which containers have, too
}

template <>
struct TypeOf<at::Tensor> {
  static TypePtr get() { return TensorType::get(); }
};

template <class T>
class List final {
 public:
  using value_type = T;
  using iterator = typename std::vector<T>::iterator;

  List() : items_(std::make_shared<std::vector<T>>()) {}
  explicit List(TypePtr element) : List() { element_ = std::move(element); }
  List(std::initializer_list<T> items) : List(std::vector<T>(items)) {}
  explicit List(ArrayRef<T> items) : List(items.vec()) {}
  explicit List(std::vector<T> items)
      : items_(std::make_shared<std::vector<T>>(std::move(items))) {}

  size_t size() const { return items_->size(); }
  bool empty() const { return items_->empty(); }
  void reserve(size_t count) const { items_->reserve(count); }
  void clear() const { items_->clear(); }
  void push_back(T item) const { items_->push_back(std::move(item)); }
  template <class... Args>
  void emplace_back(Args&&... args) const {
    items_->emplace_back(std::forward<Args>(args)...);
  }
  T get(size_t index) const { return items_->at(index); }
  void set(size_t index, T item) const { items_->at(index) = std::move(item); }
  decltype(auto) operator[](size_t index) const { return (*items_)[index]; }
  iterator begin() const { return items_->begin(); }
  iterator end() const { return items_->end(); }
  const std::vector<T>& vec() const { return *items_; }
  List copy() const {
    List made(*items_);
    made.element_ = element_;
    return made;
  }
  T extract(size_t index) const { return std::move(items_->at(index)); }
  void pop_back() const { items_->pop_back(); }
  void resize(size_t count) const { items_->resize(count); }
  iterator erase(iterator place) const { return items_->erase(place); }
  iterator insert(iterator place, T item) const { return items_->insert(place, std::move(item)); }
  bool is(const List& other) const { return items_ == other.items_; }
  friend bool operator==(const List& a, const List& b) { return *a.items_ == *b.items_; }
  friend bool operator!=(const List& a, const List& b) { return !(a == b); }
  // As it was given; null where the items alone tell it.
  const TypePtr& declared_type() const { return element_; }
  TypePtr elementType() const;

 private:
  std::shared_ptr<std::vector<T>> items_;
  TypePtr element_ = TypeOf<T>::get();
};

// Entries in the order in which they came.
template <class Key, class Value>
class Dict final {
 public:
  class Entry {
   public:
    Entry(Key key, Value value) : key_(std::move(key)), value_(std::move(value)) {}
    const Key& key() const { return key_; }
    const Value& value() const { return value_; }
    void setValue(Value value) { value_ = std::move(value); }

   private:
    Key key_;
    Value value_;
  };
  using iterator = typename std::vector<Entry>::iterator;

  Dict() : entries_(std::make_shared<std::vector<Entry>>()) {}
  Dict(TypePtr key, TypePtr value) : Dict() {
    key_ = std::move(key);
    value_ = std::move(value);
  }

  size_t size() const { return entries_->size(); }
  bool empty() const { return entries_->empty(); }
  void reserve(size_t count) const { entries_->reserve(count); }
  void clear() const { entries_->clear(); }
  iterator begin() const { return entries_->begin(); }
  iterator end() const { return entries_->end(); }
  iterator find(const Key& key) const {
    return std::find_if(begin(), end(), [&](const Entry& each) { return each.key() == key; });
  }
  bool contains(const Key& key) const { return find(key) != end(); }
  const Value& at(const Key& key) const {
    const iterator found = find(key);
    TORCH_CHECK_INDEX(found != end(), "Dict::at: expected a key of the dict, got another one");
    return found->value();
  }
  template <class K, class V>
  std::pair<iterator, bool> insert(K&& given, V&& value) const {
    Key key(std::forward<K>(given));
    const iterator found = find(key);
    if (found != end()) return {found, false};
    entries_->emplace_back(std::move(key), Value(std::forward<V>(value)));
    return {end() - 1, true};
  }
  template <class K, class V>
  std::pair<iterator, bool> insert_or_assign(K&& key, V&& given) const {
    const Value value(std::forward<V>(given));
    const auto made = insert(std::forward<K>(key), value);
    made.first->setValue(value);
    return made;
  }
  size_t erase(const Key& key) const {
    const iterator found = find(key);
    if (found == end()) return 0;
    entries_->erase(found);
    return 1;
  }
  void erase(iterator place) const { entries_->erase(place); }
  Dict copy() const {
    Dict made(key_, value_);
    *made.entries_ = *entries_;
    return made;
  }
  bool is(const Dict& other) const { return entries_ == other.entries_; }
  // As they were given; null where the entries alone tell them.
  const TypePtr& declared_key_type() const { return key_; }
  const TypePtr& declared_value_type() const { return value_; }
  TypePtr keyType() const;
  TypePtr valueType() const;

 private:
  std::shared_ptr<std::vector<Entry>> entries_;
  TypePtr key_ = TypeOf<Key>::get(), value_ = TypeOf<Value>::get();
};

namespace detail {

template <class T>
Shared box(const List<T>& items) {
  std::vector<Shared> boxed;
  for (const T& each : items) boxed.push_back(box(each));
  return list_of(boxed);
}
inline Shared dict_of(const std::vector<Shared>& keys, const std::vector<Shared>& values) {
  std::vector<const weft_value*> names, items;
  for (const Shared& key : keys) names.push_back(key.get());
  for (const Shared& value : values) items.push_back(value.get());
  return made([&](weft_value** out) {
    return weft_value_dict(names.data(), items.data(), names.size(), out);
  });
}
template <class Key, class Value>
Shared box(const Dict<Key, Value>& dict) {
  std::vector<Shared> keys, values;
  for (const auto& entry : dict) {
    keys.push_back(box(entry.key()));
    values.push_back(box(entry.value()));
  }
  return dict_of(keys, values);
}
template <class T>
struct Unbox<List<T>> {
  static List<T> from(const Shared& value) { return List<T>(unbox<std::vector<T>>(value)); }
};
template <class Key, class Value>
struct Unbox<Dict<Key, Value>> {
  static Dict<Key, Value> from(const Shared& value) {
    Dict<Key, Value> made_dict;
    const size_t count = length(value);
    for (size_t i = 0; i < count; ++i) {
      const Shared key =
          made([&](weft_value** out) { return weft_value_key(value.get(), i, out); });
      made_dict.insert(unbox<Key>(key), unbox<Value>(item(value, i)));
    }
    return made_dict;
  }
};

}  // namespace detail
}  // namespace over_weft
}  // namespace c10

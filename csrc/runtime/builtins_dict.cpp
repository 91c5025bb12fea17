// Builtins on dicts.
#include "builtin_bodies.h"
#include "core/error.h"
#include "runtime/builtins_support.h"
#include "runtime/dict.h"
#include "runtime/interpreter.h"
#include "runtime/list.h"
#include "runtime/print.h"
#include "runtime/tuple.h"

namespace weft::builtins {
namespace {

DictObject& dict_of(const Value& dict) { return *dict.object<DictObject>(); }

[[noreturn]] void fail_key(const Value& key) {
  throw ProgramError("KeyError", str("dict: expected a key of the dict, got ", repr(key)), key);
}

Value pair(const Value& key, const Value& value) { return make_tuple_value({key, value}); }

}  // namespace

int64_t dict_len(const Value& dict) { return static_cast<int64_t>(dict_of(dict).size()); }
void dict_clear(const Value& dict) { dict_of(dict).clear(); }
Value dict_copy(const Value& dict) { return make_dict(dict_of(dict).copy()); }
bool dict_contains(const Value& dict, const Value& key) {
  return dict_of(dict).find(key) != nullptr;
}

// ---- reading ----

Value dict_getitem(const Value& dict, const Value& key) {
  const Value* value = dict_of(dict).find(key);
  if (!value) fail_key(key);
  return *value;
}
Value dict_get(const Value& dict, const Value& key) {
  const Value* value = dict_of(dict).find(key);
  return value ? *value : Value();
}
Value dict_get_default(const Value& dict, const Value& key, const Value& fallback) {
  const Value* value = dict_of(dict).find(key);
  return value ? *value : fallback;
}

Value dict_keys(const Value& dict, ValueTag list) {
  const Value keys = make_list(list);
  dict_of(dict).for_each([&](const Value& key, const Value&) { list_append(keys, key); });
  return keys;
}
Value dict_values(const Value& dict) {
  const Value values = make_list(dict_of(dict).value_list);
  dict_of(dict).for_each([&](const Value&, const Value& value) { list_append(values, value); });
  return values;
}
Value dict_items(const Value& dict) {
  const Value items = make_list(ValueTag::List);
  dict_of(dict).for_each(
      [&](const Value& key, const Value& value) { list_append(items, pair(key, value)); });
  return items;
}

// ---- writing ----

void dict_set_item(const Value& dict, const Value& key, const Value& value) {
  dict_of(dict).set(key, value);
}
Value dict_setdefault(const Value& dict, const Value& key, const Value& fallback) {
  if (const Value* value = dict_of(dict).find(key)) return *value;
  dict_of(dict).set(key, fallback);
  return fallback;
}
void dict_delete(const Value& dict, const Value& key) {
  if (!dict_of(dict).remove(key, nullptr)) fail_key(key);
}
Value dict_pop(const Value& dict, const Value& key) {
  Value value;
  if (!dict_of(dict).remove(key, &value)) fail_key(key);
  return value;
}
Value dict_pop_default(const Value& dict, const Value& key, const Value& fallback) {
  Value value;
  return dict_of(dict).remove(key, &value) ? value : fallback;
}
Value dict_popitem(const Value& dict) {
  Value key, value;
  if (!dict_of(dict).pop_last(&key, &value)) {
    fail(ErrorKind::Key, "popitem(): expected a dict with a key, got an empty one");
  }
  return pair(key, value);
}
void dict_update(const Value& dict, const Value& other) {
  DictObject& target = dict_of(dict);
  if (&target == &dict_of(other)) return;
  dict_of(other).for_each([&](const Value& key, const Value& value) { target.set(key, value); });
}

Value dict_from_items(const Value& items) {
  auto dict = make_ref<DictObject>();
  for (int64_t i = 0; i < list_len(items); ++i) {
    const Value item = list_get(items, i);
    WEFT_CHECK_TYPE(tuple_items(item).size() == 2, "dict: expected pairs, got ",
                    tuple_items(item).size(), " items");
    const Value& value = tuple_items(item)[1];
    const ValueTag stored = list_tag_of(value.tag());
    if (i == 0) dict->value_list = stored;
    if (dict->value_list != stored) dict->value_list = ValueTag::List;
    dict->set(tuple_items(item)[0], value);
  }
  return make_dict(std::move(dict));
}

}  // namespace weft::builtins

// Values: what programs take and give besides tensors.
#include "capi/handles.h"
#include "runtime/dict.h"
#include "runtime/list.h"
#include "runtime/object.h"
#include "runtime/print.h"
#include "runtime/tuple.h"

namespace weft::capi {
namespace {

std::vector<Value> items_of(const char* op, const weft_value* const* items, size_t count) {
  std::vector<Value> values;
  values.reserve(count);
  for (size_t i = 0; i < count; ++i) values.push_back(handle(op, handle(op, items + i)).value);
  return values;
}

const Value& expect(const char* op, const weft_value* value, const char* what,
                    std::initializer_list<ValueTag> tags) {
  const Value& given = handle(op, value).value;
  for (const ValueTag tag : tags) {
    if (given.tag() == tag) return given;
  }
  fail(ErrorKind::Type, str(op, ": expected ", what, ", got ", type_name(given)));
}

// The entry of a dict, in order of insertion.
Value entry(const char* op, const Value& dict, size_t index, bool key) {
  Value found;
  size_t at = 0;
  dict.object<DictObject>()->for_each([&](const Value& name, const Value& value) {
    if (at++ == index) found = key ? name : value;
  });
  WEFT_CHECK_INDEX(index < at, op, ": expected an index below ", at, ", got ", index);
  return found;
}

}  // namespace

const Value& attribute(const char* op, const Value& object, std::string_view name) {
  WEFT_CHECK_TYPE(object.tag() == ValueTag::Object, op, ": expected an object with attribute '",
                  name, "', got ", type_name(object));
  const auto& instance = *object.object<ClassObject>();
  const int slot = instance.def->find_slot(name);
  WEFT_CHECK_AS(Key, slot >= 0, op, ": expected an attribute of ", instance.def->name, ", got '",
                name, "'");
  return instance.slots[static_cast<size_t>(slot)];
}

}  // namespace weft::capi

using namespace weft;
using capi::expect;
using capi::guarded;
using capi::handle;
using capi::put;

weft_status weft_value_none(weft_value** out) {
  return guarded([&] { put(out, Value()); });
}
weft_status weft_value_bool(int value, weft_value** out) {
  return guarded([&] { put(out, Value(value != 0)); });
}
weft_status weft_value_int(int64_t value, weft_value** out) {
  return guarded([&] { put(out, Value(value)); });
}
weft_status weft_value_float(double value, weft_value** out) {
  return guarded([&] { put(out, Value(value)); });
}
weft_status weft_value_complex(double real, double imaginary, weft_value** out) {
  return guarded([&] { put(out, Value(std::complex<double>(real, imaginary))); });
}
weft_status weft_value_dtype(weft_dtype dtype, weft_value** out) {
  return guarded([&] { put(out, Value(capi::dtype_of("weft_value_dtype", dtype))); });
}
weft_status weft_value_device(const char* text, weft_value** out) {
  return guarded([&] {
    WEFT_CHECK_VALUE(text, "weft_value_device: expected a text, got NULL");
    put(out, Value(Device::parse(text)));
  });
}
weft_status weft_value_ints(const int64_t* numbers, size_t count, weft_value** out) {
  return guarded([&] {
    WEFT_CHECK_VALUE(numbers || count == 0, "weft_value_ints: expected numbers, got NULL");
    put(out, Value(std::vector<int64_t>(numbers, numbers + count)));
  });
}
weft_status weft_value_floats(const double* numbers, size_t count, weft_value** out) {
  return guarded([&] {
    WEFT_CHECK_VALUE(numbers || count == 0, "weft_value_floats: expected numbers, got NULL");
    put(out, Value(std::vector<double>(numbers, numbers + count)));
  });
}
weft_status weft_value_string(const char* utf8, size_t bytes, weft_value** out) {
  return guarded([&] {
    WEFT_CHECK_VALUE(utf8 || bytes == 0, "weft_value_string: expected a text, got NULL");
    put(out, Value(std::string(utf8 ? utf8 : "", bytes)));
  });
}
weft_status weft_value_tensor(const weft_tensor* tensor, weft_value** out) {
  return guarded([&] { put(out, Value(handle("weft_value_tensor", tensor).tensor)); });
}
weft_status weft_value_list(const weft_value* const* items, size_t count, weft_value** out) {
  return guarded([&] { put(out, Value(capi::items_of("weft_value_list", items, count))); });
}
weft_status weft_value_tuple(const weft_value* const* items, size_t count, weft_value** out) {
  return guarded(
      [&] { put(out, make_tuple_value(capi::items_of("weft_value_tuple", items, count))); });
}
weft_status weft_value_dict(const weft_value* const* keys, const weft_value* const* values,
                            size_t count, weft_value** out) {
  return guarded([&] {
    const std::vector<Value> names = capi::items_of("weft_value_dict", keys, count);
    std::vector<Value> items = capi::items_of("weft_value_dict", values, count);
    auto dict = make_ref<DictObject>();
    for (size_t i = 0; i < count; ++i) dict->set(names[i], std::move(items[i]));
    put(out, make_dict(std::move(dict)));
  });
}
weft_status weft_value_share(const weft_value* value, weft_value** out) {
  return guarded([&] { put(out, handle("weft_value_share", value).value); });
}
void weft_value_release(weft_value* value) { delete value; }

weft_kind weft_value_kind(const weft_value* value) {
  if (!value) return WEFT_KIND_NONE;
  switch (value->value.tag()) {
    case ValueTag::None:
      return WEFT_KIND_NONE;
    case ValueTag::Bool:
      return WEFT_KIND_BOOL;
    case ValueTag::Int:
      return WEFT_KIND_INT;
    case ValueTag::Double:
      return WEFT_KIND_FLOAT;
    case ValueTag::Complex:
      return WEFT_KIND_COMPLEX;
    case ValueTag::String:
      return WEFT_KIND_STRING;
    case ValueTag::Tensor:
      return WEFT_KIND_TENSOR;
    case ValueTag::Tuple:
      return WEFT_KIND_TUPLE;
    case ValueTag::Dict:
      return WEFT_KIND_DICT;
    default:
      return is_list(value->value.tag()) ? WEFT_KIND_LIST : WEFT_KIND_OTHER;
  }
}

weft_status weft_value_get_bool(const weft_value* value, int* out) {
  return guarded(
      [&] { *out = expect("weft_value_get_bool", value, "a bool", {ValueTag::Bool}).to_bool(); });
}
weft_status weft_value_get_int(const weft_value* value, int64_t* out) {
  return guarded(
      [&] { *out = expect("weft_value_get_int", value, "an int", {ValueTag::Int}).to_int(); });
}
weft_status weft_value_get_float(const weft_value* value, double* out) {
  return guarded([&] {
    const auto tags = {ValueTag::Double, ValueTag::Int};
    *out = expect("weft_value_get_float", value, "a float", tags).to_double();
  });
}
weft_status weft_value_get_complex(const weft_value* value, double* real, double* imaginary) {
  return guarded([&] {
    const auto tags = {ValueTag::Complex, ValueTag::Double, ValueTag::Int};
    const Value& given = expect("weft_value_get_complex", value, "a complex", tags);
    const std::complex<double> number = given.to_scalar().to_complex();
    *real = number.real();
    *imaginary = number.imag();
  });
}
weft_status weft_value_get_dtype(const weft_value* value, weft_dtype* out) {
  return guarded([&] {
    const auto tags = {ValueTag::DType};
    *out =
        static_cast<weft_dtype>(expect("weft_value_get_dtype", value, "a dtype", tags).to_dtype());
  });
}
weft_status weft_value_get_device(const weft_value* value, const char** out) {
  return guarded([&] {
    thread_local std::string text;
    const auto tags = {ValueTag::Device};
    text = str(expect("weft_value_get_device", value, "a device", tags).to_device());
    *out = text.c_str();
  });
}
weft_status weft_value_get_string(const weft_value* value, const char** out, size_t* bytes) {
  return guarded([&] {
    const auto tags = {ValueTag::String};
    const std::string& text = expect("weft_value_get_string", value, "a str", tags).text();
    *out = text.c_str();
    if (bytes) *bytes = text.size();
  });
}
weft_status weft_value_get_tensor(const weft_value* value, weft_tensor** out) {
  return guarded([&] {
    const auto tags = {ValueTag::Tensor};
    put(out, expect("weft_value_get_tensor", value, "a tensor", tags).to_tensor());
  });
}

weft_status weft_value_length(const weft_value* value, size_t* out) {
  return guarded([&] {
    const Value& given = handle("weft_value_length", value).value;
    if (given.tag() == ValueTag::Dict) {
      *out = given.object<DictObject>()->size();
    } else if (given.tag() == ValueTag::Tuple) {
      *out = tuple_items(given).size();
    } else {
      *out = static_cast<size_t>(list_len(given));
    }
  });
}

weft_status weft_value_item(const weft_value* value, size_t index, weft_value** out) {
  return guarded([&] {
    const char* op = "weft_value_item";
    const Value& given = handle(op, value).value;
    if (given.tag() == ValueTag::Dict) {
      put(out, capi::entry(op, given, index, false));
    } else if (given.tag() == ValueTag::Tuple) {
      const std::span<Value> items = tuple_items(given);
      WEFT_CHECK_INDEX(index < items.size(), op, ": expected an index below ", items.size(),
                       ", got ", index);
      put(out, items[index]);
    } else {
      WEFT_CHECK_INDEX(index <= INT64_MAX, op, ": expected an index of the list, got ", index);
      put(out, list_get(given, static_cast<int64_t>(index)));
    }
  });
}

weft_status weft_value_key(const weft_value* value, size_t index, weft_value** out) {
  return guarded([&] {
    const Value& dict = expect("weft_value_key", value, "a dict", {ValueTag::Dict});
    put(out, capi::entry("weft_value_key", dict, index, true));
  });
}

size_t weft_value_attribute_count(const weft_value* value) {
  const bool is_object = value && value->value.tag() == ValueTag::Object;
  return is_object ? value->value.object<ClassObject>()->slots.size() : 0;
}

const char* weft_value_attribute_name(const weft_value* value, size_t index) {
  if (index >= weft_value_attribute_count(value)) return nullptr;
  return value->value.object<ClassObject>()->def->attributes[index].c_str();
}

weft_status weft_value_attribute(const weft_value* value, const char* name, weft_value** out) {
  return guarded([&] {
    const char* op = "weft_value_attribute";
    WEFT_CHECK_VALUE(name, op, ": expected a name, got NULL");
    put(out, capi::attribute(op, handle(op, value).value, name));
  });
}

const char* weft_value_type(const weft_value* value) {
  thread_local std::string text;
  text = type_name(value ? value->value : Value());
  return text.c_str();
}

#include "runtime/print.h"

#include <atomic>
#include <cstdio>
#include <iterator>

#include "core/error.h"
#include "ops_views.h"
#include "runtime/dict.h"
#include "runtime/future.h"
#include "runtime/list.h"
#include "runtime/nesting.h"
#include "runtime/object.h"
#include "runtime/tuple.h"

namespace weft {
namespace {

std::string list_text(const Value& list) {
  std::string text = "[";
  const int64_t size = list_len(list);
  for (int64_t i = 0; i < size; ++i) {
    if (i > 0) text += ", ";
    text += repr(list_get(list, i));
  }
  return text + "]";
}

// (1, 2), (1,), Point(x=1, y=2)
std::string tuple_text(const TupleObject& tuple) {
  std::string text = tuple.def ? std::string(unqualified(tuple.def->name)) + "(" : "(";
  for (size_t i = 0; i < tuple.items.size(); ++i) {
    if (i > 0) text += ", ";
    if (tuple.def) text += tuple.def->fields[i] + "=";
    text += repr(tuple.items[i]);
  }
  return text + (tuple.items.size() == 1 && !tuple.def ? ",)" : ")");
}

std::string dict_text(const DictObject& dict) {
  std::string text = "{";
  dict.for_each([&](const Value& key, const Value& value) {
    if (text.size() > 1) text += ", ";
    text += repr(key) + ": " + repr(value);
  });
  return text + "}";
}

// Color.RED
std::string enum_text(const EnumObject& member) {
  return std::string(unqualified(member.def->name)) + "." + member.def->members[member.index];
}

// <Color.RED: 1>
std::string enum_repr(const EnumObject& member) {
  return str("<", enum_text(member), ": ", repr(member.def->values[member.index]), ">");
}

// device(type='cpu'), device(type='cuda', index=1)
std::string device_repr(Device device) {
  const std::string text = device.str();
  const size_t colon = text.find(':');
  const std::string type = "device(type='" + text.substr(0, colon) + "'";
  return type + (colon == text.npos ? ")" : ", index=" + text.substr(colon + 1) + ")");
}

std::atomic<TensorTextHook> tensor_text_hook{nullptr};

std::string number_text(const Scalar& number) {
  switch (number.category()) {
    case DTypeCategory::Bool:
      return number.to_bool() ? "True" : "False";
    case DTypeCategory::Integral:
      return std::to_string(number.to_int());
    default:
      return str(number);
  }
}

// An element of a tensor: 1.0 is shown as 1., as tensors are in Python.
std::string element_text(const Tensor& tensor) {
  std::string text = number_text(tensor.item());
  if (is_floating(tensor.dtype()) && text.ends_with(".0")) text.pop_back();
  return text;
}

constexpr int64_t kShown = 1000, kEdge = 3;

std::string elements_text(const Tensor& tensor, bool all) {
  if (tensor.dim() == 0) return element_text(tensor);
  std::string text = "[";
  const int64_t size = tensor.size(0);
  for (int64_t i = 0; i < size; ++i) {
    if (i > 0) text += ", ";
    if (!all && size > 2 * kEdge && i == kEdge) {
      text += "..., ";
      i = size - kEdge;
    }
    text += elements_text(ops::select(tensor, 0, i), all);
  }
  return text + "]";
}

// By tags; named tuples, enumerations and classes have names of their own.
constexpr const char* kTypeNames[] = {"NoneType",
                                      "bool",
                                      "int",
                                      "float",
                                      "complex",
                                      "Tensor",
                                      "str",
                                      "Device",
                                      "dtype",
                                      "a borrowed list",
                                      "a borrowed list",
                                      "a borrowed list",
                                      "List[int]",
                                      "List[float]",
                                      "List[bool]",
                                      "List[Tensor]",
                                      "List[Optional[Tensor]]",
                                      "List",
                                      "Dict",
                                      "Tuple",
                                      "Enum",
                                      "Future",
                                      "Generator",
                                      "Object"};
static_assert(std::size(kTypeNames) == static_cast<size_t>(ValueTag::Object) + 1);

}  // namespace

std::string to_text(const Value& value) {
  switch (value.tag()) {
    case ValueTag::String:
      return value.text();
    case ValueTag::Device:
      return value.to_device().str();
    case ValueTag::Enum:
      return enum_text(*value.object<EnumObject>());
    default:
      return repr(value);
  }
}

std::string repr(const Value& value) {
  const Nesting nesting;
  if (is_list(value.tag())) return list_text(value);
  switch (value.tag()) {
    case ValueTag::None:
      return "None";
    case ValueTag::Bool:
    case ValueTag::Int:
    case ValueTag::Double:
    case ValueTag::Complex:
      return number_text(value.to_scalar());
    case ValueTag::Tensor:
      return tensor_text(value.to_tensor());
    case ValueTag::String:
      return quoted(value.text());
    case ValueTag::Device:
      return device_repr(value.to_device());
    case ValueTag::DType:
      return str("torch.", dtype_name(value.to_dtype()));
    case ValueTag::Dict:
      return dict_text(*value.object<DictObject>());
    case ValueTag::Tuple:
      return tuple_text(*value.object<TupleObject>());
    case ValueTag::Enum:
      return enum_repr(*value.object<EnumObject>());
    case ValueTag::Object:
      return str("<", value.object<ClassObject>()->def->name, " object at ",
                 static_cast<const void*>(value.object<ClassObject>()), ">");
    default:
      return str("<", type_name(value), " object>");
  }
}

std::string quoted(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string result(1, quote);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      result += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      char escape[5];
      std::snprintf(escape, sizeof(escape), "\\x%02x", byte);
      result += escape;
    } else {
      result += c;
    }
  }
  return result + quote;
}

std::string type_name(const Value& value) {
  const ValueTag tag = value.tag();
  std::string_view name = kTypeNames[static_cast<size_t>(tag)];
  if (tag == ValueTag::Tuple && value.object<TupleObject>()->def) {
    name = value.object<TupleObject>()->def->name;
  } else if (tag == ValueTag::Enum) {
    name = value.object<EnumObject>()->def->name;
  } else if (tag == ValueTag::Object) {
    name = value.object<ClassObject>()->def->name;
  }
  return std::string(unqualified(name));
}

void set_tensor_text_hook(TensorTextHook hook) { tensor_text_hook.store(hook); }

std::string tensor_text(const Tensor& tensor) {
  if (const TensorTextHook hook = tensor_text_hook.load()) return hook(tensor);
  const Tensor plain = ops::detach(tensor);
  std::string text = "tensor(" + elements_text(plain, plain.numel() <= kShown);
  const DType dtype = plain.dtype();
  const bool implied = dtype == DType::Bool || dtype == DType::I64 || dtype == default_dtype();
  if (!implied || plain.numel() == 0) text += str(", dtype=weft.", dtype_name(dtype));
  return text + ")";
}

}  // namespace weft

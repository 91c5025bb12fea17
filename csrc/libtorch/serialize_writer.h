// Writes archives of libtorch: zip files with a pickle of modules, whose tensors are other records.
#pragma once

#include "ivalue.h"
#include "nn_module.h"
#include "zip.h"

namespace torch::serialize {
inline namespace over_weft {

using at::Tensor;

namespace detail {

// Values by name, as a module has them: tensors, numbers, texts, and nodes.
struct Node {
  struct Entry {
    c10::IValue value;
    std::shared_ptr<Node> child;
    bool is_parameter = false, is_buffer = false;
  };
  OrderedDict<std::string, Entry> entries;
};

// X(type, the name of its storages)
// clang-format off
#define WEFT_STORAGES(X) \
  X(Float, "FloatStorage") X(Double, "DoubleStorage") X(Half, "HalfStorage") \
  X(BFloat16, "BFloat16Storage") X(Long, "LongStorage") X(Int, "IntStorage") \
  X(Short, "ShortStorage") X(Char, "CharStorage") X(Byte, "ByteStorage") \
  X(Bool, "BoolStorage") X(ComplexFloat, "ComplexFloatStorage") X(ComplexDouble, "ComplexDoubleStorage")
// clang-format on
inline std::string storage_of(at::ScalarType type) {
#define X(name, text) \
  if (type == at::k##name) return text;
  WEFT_STORAGES(X)
#undef X
  TORCH_CHECK_NOT_IMPLEMENTED(false, "save: expected a dtype of libtorch's archives, got ", type);
}
inline at::ScalarType type_of(const std::string& storage) {
#define X(name, text) \
  if (storage == text) return at::k##name;
  WEFT_STORAGES(X)
#undef X
  TORCH_CHECK_NOT_IMPLEMENTED(false, "load: expected a storage of numbers, got '", storage, "'");
}
#undef WEFT_STORAGES

// Writes nodes as objects of classes, one for each, that libtorch compiles.
class Writer {
 public:
  std::string archive_of(const Node& root) {
    pickle_ = "\x80\2";
    write_node(root, "__torch__");
    zip_.add("data.pkl", pickle_ + ".");
    zip_.add("constants.pkl", std::string_view("\x80\2).", 4));
    zip_.add("version", "3\n");
    zip_.add("byteorder", "little");
    return zip_.finished();
  }
  // Of one value, as torch.save of Python writes it.
  std::string archive_of(const c10::IValue& value) {
    pickle_ = "\x80\2";
    write_value(value);
    zip_.add("data.pkl", pickle_ + ".");
    zip_.add("version", "3\n");
    zip_.add("byteorder", "little");
    return zip_.finished();
  }

 private:
  void write_text(std::string_view text) { (pickle_ += "X" + bytes_of(text.size(), 4)) += text; }
  void write_int(int64_t number) {
    if (number == static_cast<int32_t>(number)) {
      pickle_ += "J" + bytes_of(static_cast<uint64_t>(number), 4);
    } else {
      pickle_ += "\x8a\x08" + bytes_of(static_cast<uint64_t>(number), 8);
    }
  }
  void write_ints(at::IntArrayRef numbers) {
    pickle_ += "(";
    for (const int64_t each : numbers) write_int(each);
    pickle_ += "t";
  }
  void write_tensor(const Tensor& tensor) {
    const Tensor whole = tensor.detach().contiguous();
    const std::string key = std::to_string(storages_++);
    zip_.add("data/" + key, {static_cast<const char*>(whole.data_ptr()), whole.nbytes()});
    pickle_ += "ctorch._utils\n_rebuild_tensor_v2\n((";
    write_text("storage");
    pickle_ += "ctorch\n" + storage_of(whole.scalar_type()) + "\n";
    write_text(key);
    write_text("cpu");
    write_int(whole.numel());
    pickle_ += "tQ";
    write_int(0);
    write_ints(whole.sizes());
    write_ints(whole.strides());
    pickle_ += tensor.requires_grad() ? "\x88" : "\x89";
    pickle_ += "ccollections\nOrderedDict\n)RtR";
  }
  // Puts out the value's type.
  std::string write_value(const c10::IValue& value) {
    if (value.isTensor()) return write_tensor(value.toTensor()), "Tensor";
    if (value.isBool()) return pickle_ += value.toBool() ? "\x88" : "\x89", "bool";
    if (value.isInt()) return write_int(value.toInt()), "int";
    if (value.isString()) return write_text(value.toStringRef()), "str";
    if (value.isDouble()) {
      uint64_t bits = 0;
      const double number = value.toDouble();
      std::memcpy(&bits, &number, sizeof(bits));
      const std::string bytes = bytes_of(bits, 8);
      return pickle_ += "G" + std::string(bytes.rbegin(), bytes.rend()), "float";
    }
    if (value.isNone()) return pickle_ += "N", "NoneType";
    if (value.isList()) return write_list(value);
    if (value.isGenericDict()) return write_dict(value);
    TORCH_CHECK_NOT_IMPLEMENTED(value.isTuple(),
                                "save: expected tensors, numbers, texts and containers of them, "
                                "got ",
                                *value.type());
    std::string type;
    pickle_ += "(";
    for (const c10::IValue& each : value.to<std::vector<c10::IValue>>()) {
      type += (type.empty() ? "Tuple[" : ", ") + write_value(each);
    }
    pickle_ += "t";
    return type + "]";
  }
  std::string write_list(const c10::IValue& value) {
    pickle_ += "](";
    for (const c10::IValue& each : value.to<std::vector<c10::IValue>>()) write_value(each);
    pickle_ += "e";
    return value.type()->annotation_str();
  }
  std::string write_dict(const c10::IValue& value) {
    pickle_ += "}(";
    for (const auto& entry : value.toGenericDict()) {
      write_value(entry.key());
      write_value(entry.value());
    }
    pickle_ += "u";
    return value.type()->annotation_str();
  }
  void write_node(const Node& node, const std::string& module) {
    std::string parameters, buffers, types;
    pickle_ += "c" + module + "\nModule\n)\x81}(";
    for (const auto& each : node.entries) {
      const Node::Entry& entry = each.value();
      const std::string quoted = "\"" + each.key() + "\"";
      if (entry.is_parameter) parameters += quoted + ", ";
      if (entry.is_buffer) buffers += quoted + ", ";
      write_text(each.key());
      std::string type;
      if (entry.child) {
        const std::string below = "__torch__.___torch_mangle_" + std::to_string(classes_++);
        write_node(*entry.child, below);
        type = below + ".Module";
      } else {
        type = write_value(entry.value);
      }
      types += "  __annotations__[" + quoted + "] = " + type + "\n";
    }
    pickle_ += "ub";
    std::string path = module;
    std::replace(path.begin(), path.end(), '.', '/');
    zip_.add("code/" + path + ".py", "class Module(Module):\n  __parameters__ = [" + parameters +
                                         "]\n  __buffers__ = [" + buffers +
                                         "]\n  __annotations__ = []\n" + types);
  }

  ZipWriter zip_;
  std::string pickle_;
  int64_t storages_ = 0, classes_ = 0;
};

}  // namespace detail

}  // namespace over_weft
}  // namespace torch::serialize

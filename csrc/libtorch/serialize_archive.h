// The archives of libtorch: zip files with a pickle of modules, whose tensors are other records.
#pragma once

#include "ivalue.h"
#include "nn_module.h"

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

// Numbers in their bytes, the lowest first.
inline std::string bytes_of(uint64_t number, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<char>(number >> (8 * i) & 255));
  return bytes;
}
inline uint64_t number_at(std::string_view bytes, size_t place, size_t count) {
  TORCH_CHECK(place <= bytes.size() && count <= bytes.size() - place,
              "load: expected an archive of libtorch, got a damaged file");
  uint64_t number = 0;
  for (size_t i = count; i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[place + i]);
  return number;
}
inline uint32_t checksum(std::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      made[i] = i;
      for (int bit = 0; bit < 8; ++bit) {
        made[i] = made[i] >> 1 ^ ((made[i] & 1) != 0 ? 0xEDB88320 : 0);
      }
    }
    return made;
  }();
  uint32_t sum = 0xFFFFFFFF;
  for (const char each : bytes) sum = table[(sum ^ static_cast<uint8_t>(each)) & 255] ^ sum >> 8;
  return ~sum;
}

// A zip file of records that are not compressed.
class ZipWriter {
 public:
  void add(const std::string& record, std::string_view bytes) {
    const std::string name = "archive/" + record;
    TORCH_CHECK_NOT_IMPLEMENTED(file_.size() + bytes.size() < 0xFFFF0000,
                                "save: expected less than 4 GiB, got more");
    const std::string about = std::string(6, '\0') + bytes_of(0x210000, 4) +
                              bytes_of(checksum(bytes), 4) + bytes_of(bytes.size(), 4) +
                              bytes_of(bytes.size(), 4) + bytes_of(name.size(), 2);
    // Contents begin at multiples of 64 bytes, so that they can be mapped.
    const size_t padding = 4 + (128 - (file_.size() + 34 + name.size()) % 64) % 64;
    list_ += "PK\1\2" + bytes_of(0, 2) + about + std::string(12, '\0') + bytes_of(file_.size(), 4) +
             name;
    file_ += "PK\3\4" + about + bytes_of(padding, 2) + name + "FB" + bytes_of(padding - 4, 2) +
             std::string(padding - 4, 'Z');
    file_ += bytes;
    ++count_;
  }
  std::string finished() {
    const std::string end = "PK\5\6" + std::string(4, '\0') + bytes_of(count_, 2) +
                            bytes_of(count_, 2) + bytes_of(list_.size(), 4) +
                            bytes_of(file_.size(), 4) + bytes_of(0, 2);
    return file_ + list_ + end;
  }

 private:
  std::string file_, list_;
  size_t count_ = 0;
};

// The records of a zip file by their names without the folder.
inline std::map<std::string, std::string_view> records_of(std::string_view file) {
  const size_t end = file.rfind(std::string_view("PK\5\6", 4));
  TORCH_CHECK(end != std::string_view::npos,
              "load: expected an archive of libtorch, got no zip file");
  std::map<std::string, std::string_view> records;
  size_t place = number_at(file, end + 16, 4);
  for (uint64_t left = number_at(file, end + 10, 2); left > 0; --left) {
    const uint64_t method = number_at(file, place + 10, 2), size = number_at(file, place + 20, 4),
                   name_size = number_at(file, place + 28, 2), at = number_at(file, place + 42, 4);
    const uint64_t from = at + 30 + number_at(file, at + 26, 2) + number_at(file, at + 28, 2);
    number_at(file, place + 46 + name_size, 0);
    TORCH_CHECK(from <= file.size() && size <= file.size() - from,
                "load: expected an archive of libtorch, got a damaged file");
    const std::string name(file.substr(place + 46, name_size));
    // Code is compressed, and not needed.
    if (method == 0) records[name.substr(name.find('/') + 1)] = file.substr(from, size);
    place += 46 + name_size + number_at(file, place + 30, 2) + number_at(file, place + 32, 2);
  }
  return records;
}

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
    TORCH_CHECK_NOT_IMPLEMENTED(value.isTuple(),
                                "save: expected tensors, numbers, texts and tuples, "
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

// Reads the pickle of an archive: what libtorch's archives of modules and tensors use of it.
class Reader {
 public:
  explicit Reader(std::string_view file) : records_(records_of(file)) {}
  std::shared_ptr<Node> root() {
    const std::string_view pickle = record("data.pkl");
    while (!done_) step(pickle);
    TORCH_CHECK(!stack_.empty() && stack_.back().node,
                "load: expected a module or tensors, got none");
    return stack_.back().node;
  }

 private:
  struct Item {
    c10::IValue value;
    std::shared_ptr<Node> node;
    std::string global;
    std::shared_ptr<std::vector<Item>> items;
    Tensor storage;
    bool is_mark = false;
  };

  std::string_view record(const std::string& name) const {
    const auto found = records_.find(name);
    TORCH_CHECK(found != records_.end(), "load: expected a record '", name, "', got none");
    return found->second;
  }
  uint64_t number(std::string_view pickle, size_t count) {
    const uint64_t found = number_at(pickle, place_, count);
    place_ += count;
    return found;
  }
  std::string text(std::string_view pickle, size_t count) {
    number_at(pickle, place_ + count, 0);
    place_ += count;
    return std::string(pickle.substr(place_ - count, count));
  }
  std::string line(std::string_view pickle) {
    const size_t end = pickle.find('\n', place_);
    TORCH_CHECK(end != std::string_view::npos, "load: expected a name, got the end of the pickle");
    const std::string found(pickle.substr(place_, end - place_));
    place_ = end + 1;
    return found;
  }
  Item pop() {
    TORCH_CHECK(!stack_.empty(), "load: expected a value, got an empty stack");
    Item item = std::move(stack_.back());
    stack_.pop_back();
    return item;
  }
  std::shared_ptr<std::vector<Item>> pop_to_mark() {
    auto items = std::make_shared<std::vector<Item>>();
    for (Item item = pop(); !item.is_mark; item = pop()) items->push_back(std::move(item));
    std::reverse(items->begin(), items->end());
    return items;
  }
  void push(c10::IValue value) { stack_.push_back({std::move(value), {}, {}, {}, {}, false}); }
  void push_tuple(std::shared_ptr<std::vector<Item>> items) {
    std::vector<c10::IValue> values;
    for (const Item& each : *items) values.push_back(each.value);
    push(c10::ivalue::Tuple(std::move(values)));
    stack_.back().items = std::move(items);
  }
  static const std::vector<Item>& items_of(const Item& item, size_t least) {
    TORCH_CHECK(item.items && item.items->size() >= least, "load: expected ", least, " values");
    return *item.items;
  }
  static std::vector<int64_t> ints_of(const Item& item) {
    std::vector<int64_t> numbers;
    for (const Item& each : items_of(item, 0)) numbers.push_back(each.value.toInt());
    return numbers;
  }
  Tensor storage_of_key(const Item& item) {
    const auto& about = items_of(item, 5);
    const std::string type = about[1].global.substr(about[1].global.find(' ') + 1);
    const Tensor made = at::empty({about[4].value.toInt()}, at::TensorOptions(type_of(type)));
    const std::string_view bytes = record("data/" + about[2].value.toStringRef());
    TORCH_CHECK(bytes.size() == made.nbytes(), "load: expected ", made.nbytes(), " bytes, got ",
                bytes.size());
    if (!bytes.empty()) std::memcpy(made.data_ptr(), bytes.data(), bytes.size());
    return made;
  }
  void reduce() {
    const Item args = pop(), callee = pop();
    if (callee.global != "torch._utils _rebuild_tensor_v2") return push({});
    const auto& given = items_of(args, 4);
    push(at::as_strided(given[0].storage, ints_of(given[2]), ints_of(given[3]),
                        given[1].value.toInt())
             .clone());
  }
  void build() {
    const Item state = pop();
    TORCH_CHECK(!stack_.empty() && stack_.back().node, "load: expected an object to build");
    const auto& items = items_of(state, 0);
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      stack_.back().node->entries.insert(
          items[i].value.toStringRef(),
          Node::Entry{items[i + 1].value, items[i + 1].node, false, false});
    }
  }
  void step(std::string_view pickle) {
    const auto code = static_cast<uint8_t>(number(pickle, 1));
    switch (code) {
      case 0x80:  // the protocol
        place_ += 1;
        break;
      case 'c': {
        const std::string module = line(pickle);
        push({});
        stack_.back().global = module + " " + line(pickle);
        break;
      }
      case 'q':
      case 'r':
        TORCH_CHECK(!stack_.empty(), "load: expected a value to remember");
        memo_[number(pickle, code == 'q' ? 1 : 4)] = stack_.back();
        break;
      case 'h':
      case 'j':
        stack_.push_back(memo_[number(pickle, code == 'h' ? 1 : 4)]);
        break;
      case '(':
        push({});
        stack_.back().is_mark = true;
        break;
      case ')':
        push_tuple(std::make_shared<std::vector<Item>>());
        break;
      case '}':
        push({});
        stack_.back().items = std::make_shared<std::vector<Item>>();
        break;
      case 't':
        push_tuple(pop_to_mark());
        break;
      case 0x85:
      case 0x86:
      case 0x87: {
        auto items = std::make_shared<std::vector<Item>>();
        for (int i = code - 0x84; i > 0; --i) items->insert(items->begin(), pop());
        push_tuple(std::move(items));
        break;
      }
      case 'u': {
        const auto added = pop_to_mark();
        TORCH_CHECK(!stack_.empty() && stack_.back().items, "load: expected a dict");
        stack_.back().items->insert(stack_.back().items->end(), added->begin(), added->end());
        break;
      }
      case 'X':
        push(text(pickle, number(pickle, 4)));
        break;
      case 'K':
        push(static_cast<int64_t>(number(pickle, 1)));
        break;
      case 'M':
        push(static_cast<int64_t>(number(pickle, 2)));
        break;
      case 'J':
        push(static_cast<int64_t>(static_cast<int32_t>(number(pickle, 4))));
        break;
      case 0x8a: {
        const size_t count = std::min<uint64_t>(number(pickle, 1), 8);
        const auto bits = static_cast<int>(64 - 8 * count);
        push(count == 0 ? int64_t{0} : static_cast<int64_t>(number(pickle, count) << bits) >> bits);
        break;
      }
      case 'G': {
        std::string bytes = text(pickle, 8);
        std::reverse(bytes.begin(), bytes.end());
        double value = 0;
        std::memcpy(&value, bytes.data(), sizeof(value));
        push(value);
        break;
      }
      case 0x88:
      case 0x89:
        push(code == 0x88);
        break;
      case 'Q': {
        const Tensor storage = storage_of_key(pop());
        push({});
        stack_.back().storage = storage;
        break;
      }
      case 'R':
        reduce();
        break;
      case 0x81:  // an object of a class, from no arguments
        pop();
        pop();
        push({});
        stack_.back().node = std::make_shared<Node>();
        break;
      case 'b':
        build();
        break;
      case '.':
        done_ = true;
        break;
      default:
        TORCH_CHECK_NOT_IMPLEMENTED(false,
                                    "load: expected a pickle of tensors and modules, got the "
                                    "instruction ",
                                    static_cast<int>(code));
    }
  }

  std::map<std::string, std::string_view> records_;
  std::vector<Item> stack_;
  std::map<uint64_t, Item> memo_;
  size_t place_ = 0;
  bool done_ = false;
};

}  // namespace detail

}  // namespace over_weft
}  // namespace torch::serialize

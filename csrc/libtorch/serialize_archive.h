// Reads archives of libtorch: zip files with a pickle of modules, whose tensors are other records.
#pragma once

#include "serialize_writer.h"

namespace torch::serialize {
inline namespace over_weft {

namespace detail {

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
  // What is no module: values that torch.save of Python has written, too.
  c10::IValue value() {
    const std::string_view pickle = record("data.pkl");
    while (!done_) step(pickle);
    TORCH_CHECK_NOT_IMPLEMENTED(!stack_.empty() && !stack_.back().node,
                                "load: expected a value, got a module");
    return value_of(stack_.back());
  }

 private:
  enum class Kind { Value, Tuple, List, Dict, Mark };
  struct Item {
    c10::IValue value;
    std::shared_ptr<Node> node;
    std::string global;
    std::shared_ptr<std::vector<Item>> items;
    Tensor storage;
    Kind kind = Kind::Value;
  };

  // Containers get items after they are made.
  static c10::IValue value_of(const Item& item) {
    if (item.kind == Kind::Value) return item.value;
    if (item.kind == Kind::Dict) {
      c10::impl::GenericDict dict;
      for (size_t i = 0; i + 1 < item.items->size(); i += 2) {
        dict.insert_or_assign(value_of((*item.items)[i]), value_of((*item.items)[i + 1]));
      }
      return dict;
    }
    std::vector<c10::IValue> values;
    for (const Item& each : *item.items) values.push_back(value_of(each));
    if (item.kind == Kind::Tuple) return c10::ivalue::Tuple(std::move(values));
    return c10::impl::GenericList(std::move(values));
  }

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
    for (Item item = pop(); item.kind != Kind::Mark; item = pop())
      items->push_back(std::move(item));
    std::reverse(items->begin(), items->end());
    return items;
  }
  void push(c10::IValue value) { stack_.push_back({std::move(value), {}, {}, {}, {}, {}}); }
  void push_items(Kind kind, std::shared_ptr<std::vector<Item>> items) {
    push({});
    stack_.back().kind = kind;
    stack_.back().items = std::move(items);
  }
  void push_tuple(std::shared_ptr<std::vector<Item>> items) {
    push_items(Kind::Tuple, std::move(items));
  }
  // Adds items to the list or the dict below them.
  void add(const std::vector<Item>& items) {
    TORCH_CHECK(!stack_.empty() && stack_.back().items, "load: expected a list or a dict");
    stack_.back().items->insert(stack_.back().items->end(), items.begin(), items.end());
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
    const auto is = [&](const char* name) { return callee.global == name; };
    if (is("torch._utils _rebuild_tensor_v2")) {
      const auto& given = items_of(args, 4);
      const Tensor tensor = at::as_strided(given[0].storage, ints_of(given[2]), ints_of(given[3]),
                                           given[1].value.toInt())
                                .clone();
      if (given.size() > 4 && given[4].value.isBool() && given[4].value.toBool()) {
        tensor.set_requires_grad(true);
      }
      return push(tensor);
    }
    if (is("torch._utils _rebuild_parameter")) {
      return push(items_of(args, 2)[0].value.toTensor().set_requires_grad(
          items_of(args, 2)[1].value.toBool()));
    }
    if (is("collections OrderedDict")) {
      return push_items(Kind::Dict, std::make_shared<std::vector<Item>>());
    }
    if (callee.global.rfind("torch.jit._pickle ", 0) == 0) {  // lists and dicts with their types
      stack_.push_back(items_of(args, 1)[0]);
      return;
    }
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, "load: expected tensors, numbers, texts and containers, got '", callee.global, "'");
  }
  void build() {
    const Item state = pop();
    TORCH_CHECK(!stack_.empty() && stack_.back().node, "load: expected an object to build");
    const auto& items = items_of(state, 0);
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      stack_.back().node->entries.insert(
          items[i].value.toStringRef(),
          Node::Entry{value_of(items[i + 1]), items[i + 1].node, false, false});
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
        stack_.back().kind = Kind::Mark;
        break;
      case ')':
        push_tuple(std::make_shared<std::vector<Item>>());
        break;
      case '}':
      case ']':
        push_items(code == '}' ? Kind::Dict : Kind::List, std::make_shared<std::vector<Item>>());
        break;
      case 'N':
        push({});
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
      case 'u':
      case 'e':
        add(*pop_to_mark());
        break;
      case 'a':
        add({pop()});
        break;
      case 's': {
        const Item value = pop(), key = pop();
        add({key, value});
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

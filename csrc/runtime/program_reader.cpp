#include "runtime/program_reader.h"

#include <algorithm>

#include "runtime/dict.h"
#include "runtime/list.h"

namespace weft {
namespace {

constexpr std::string_view kProgramMagic = "WEFTPROG";
constexpr int kDeepestConstant = 32;

// How a constant is written.
enum class Literal : uint8_t {
  None,
  Bool,
  Int,
  Double,
  Complex,
  Str,
  Device,
  DType,
  Input,
  List,
  Tuple,
  Dict,
  Enum
};

DType dtype_named(ByteReader& in, const std::string& name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (dtype_name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  in.check(false, "a known dtype", 0);
  return {};
}

}  // namespace

Ref<Program> ProgramReader::run() {
  for (char c : kProgramMagic)
    in_.check(in_.u8() == static_cast<uint8_t>(c), "a program of weft", 0);
  const uint32_t version = in_.u32();
  in_.check(version == kProgramVersion, "version 1", version);
  read_strings();
  read_opcodes();
  read_definitions();
  read_class_names();
  read_types();
  read_classes();
  read_sources();
  read_constants();
  read_externals();
  read_groups();
  read_headers();
  read_bodies();
  in_.check(in_.at_end(), "the end of the bytes", in_.at());
  return std::move(program_);
}

void ProgramReader::read_strings() {
  const uint32_t count = in_.count("a count of strings", 4);
  program_->strings.reserve(count);
  for (uint32_t i = 0; i < count; ++i) program_->strings.emplace_back(in_.text());
}

void ProgramReader::read_opcodes() {
  const uint32_t count = in_.count("a count of instructions", 4);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string& name = string("the name of an instruction");
    Opcode opcode;
    WEFT_CHECK_VALUE(find_opcode(name, &opcode), "JitProgram: expected a known instruction, got '",
                     name, "'; the program was made by another version of weft");
    opcodes_.push_back(opcode);
  }
}

// Named tuples and enumerations.
void ProgramReader::read_definitions() {
  const uint32_t tuples = in_.count("a count of named tuples", 8);
  for (uint32_t i = 0; i < tuples; ++i) {
    auto def = make_ref<NamedTupleDef>();
    def->name = string("the name of a tuple");
    const uint32_t fields = in_.count("a count of fields", 4);
    for (uint32_t k = 0; k < fields; ++k) def->fields.push_back(string("a field"));
    tuples_.push_back(std::move(def));
  }
  const uint32_t enums = in_.count("a count of enumerations", 8);
  for (uint32_t i = 0; i < enums; ++i) {
    auto def = make_ref<EnumDef>();
    def->name = string("the name of an enumeration");
    const uint32_t members = in_.count("a count of members", 5);
    for (uint32_t k = 0; k < members; ++k) {
      def->members.push_back(string("a member"));
      def->values.push_back(read_value(kDeepestConstant));  // numbers and strings only
    }
    program_->enums.push_back(std::move(def));
  }
}

void ProgramReader::read_class_names() {
  const uint32_t count = in_.count("a count of classes", 4);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string& name = string("the name of a class");
    const auto given = inputs_.classes.find(name);
    if (given != inputs_.classes.end()) {
      program_->classes.push_back(given->second);
    } else {
      program_->classes.push_back(make_ref<ProgramClass>());
      program_->classes.back()->name = name;
    }
  }
}

void ProgramReader::read_types() {
  const uint32_t count = in_.count("a count of types", 5);
  for (uint32_t i = 0; i < count; ++i) program_->types.push_back(read_type(i));
}

Ref<Type> ProgramReader::read_type(size_t index) {
  auto type = make_ref<Type>();
  const uint8_t kind = in_.u8();
  in_.check(kind < kTypeKinds, "the kind of a type", kind);
  type->kind = static_cast<TypeKind>(kind);
  const uint32_t children = in_.count("a count of types", 4);
  for (uint32_t i = 0; i < children; ++i) {
    type->children.push_back(program_->types[in_.index("an earlier type", index)]);
  }
  auto expect = [&](bool good) { in_.check(good, "the parameters of a type", children); };
  switch (type->kind) {
    case TypeKind::List:
    case TypeKind::Optional:
    case TypeKind::Future:
      expect(children == 1);
      break;
    case TypeKind::Dict:
      expect(children == 2);
      break;
    case TypeKind::Tuple:
      if (const uint32_t named = in_.u32()) {
        in_.check(named <= tuples_.size(), "a named tuple", named);
        type->tuple = tuples_[named - 1];
        type->name = type->tuple->name;
        expect(type->tuple->fields.size() == children);
      }
      break;
    case TypeKind::Union:
      expect(children >= 1);
      break;
    case TypeKind::Class:
      type->def = program_->classes[in_.index("a class", program_->classes.size())].get();
      type->name = type->def->name;
      break;
    case TypeKind::Enum:
      type->enumeration = program_->enums[in_.index("an enumeration", program_->enums.size())];
      type->name = type->enumeration->name;
      break;
    case TypeKind::Interface: {
      type->name = string("the name of an interface");
      const uint32_t methods = in_.count("a count of methods", 4);
      for (uint32_t i = 0; i < methods; ++i) type->methods.push_back(string("a method"));
      break;
    }
    default:
      expect(children == 0);
  }
  return type;
}

void ProgramReader::read_classes() {
  for (size_t i = 0; i < program_->classes.size(); ++i) bind_class(i);
}

// A class that was given from outside must look as the program says.
void ProgramReader::bind_class(size_t index) {
  const Ref<ProgramClass>& def = program_->classes[index];
  const bool is_new = !inputs_.classes.contains(def->name);
  std::vector<std::string> names;
  std::vector<Ref<Type>> types;
  const bool is_module = in_.u8() != 0;
  const uint32_t attributes = in_.count("a count of attributes", 8);
  for (uint32_t i = 0; i < attributes; ++i) {
    names.push_back(string("an attribute"));
    types.push_back(program_->types[in_.index("a type", program_->types.size())]);
  }
  std::vector<std::string> methods;
  const uint32_t count = in_.count("a count of methods", 4);
  for (uint32_t i = 0; i < count; ++i) methods.push_back(string("a method"));
  def->add_methods(methods);
  if (is_new && def->attributes.empty()) {
    def->attributes = std::move(names);
    def->types = std::move(types);
    def->is_module = is_module;
    return;
  }
  auto text = [](const Ref<Type>& type) { return type->str(); };
  WEFT_CHECK_VALUE(
      def->attributes == names && std::ranges::equal(def->types, types, {}, text, text),
      "JitProgram: expected class ", def->name,
      " with the attributes it has elsewhere, got others");
}

void ProgramReader::read_sources() {
  const uint32_t sources = in_.count("a count of sources", 17);
  for (uint32_t i = 0; i < sources; ++i) {
    SourceText source;
    source.filename = string("a file name");
    source.first_line = in_.u32();
    source.indent = in_.u32();
    source.has_text = in_.u8() != 0;
    source.text = string("a source text");
    program_->sources.push_back(std::move(source));
  }
  const uint32_t places = in_.count("a count of places", 16);
  program_->places.push_back({});  // 0 is no place
  for (uint32_t i = 0; i < places; ++i) {
    SourcePlace place;
    place.source = in_.index("a source", program_->sources.size());
    place.start = in_.u32();
    place.end = in_.u32();
    place.caller = in_.index("an earlier place", program_->places.size());
    program_->places.push_back(place);
  }
}

void ProgramReader::read_constants() {
  const uint32_t count = in_.count("a count of constants");
  program_->constants.reserve(count);
  for (uint32_t i = 0; i < count; ++i) program_->constants.push_back(read_value(0));
}

// Functions outside the program: only the types of their results are in the bytes.
void ProgramReader::read_externals() {
  const uint32_t count = in_.count("a count of outside functions", 4);
  in_.check(count == inputs_.externals.size(), "as many outside functions as were given", count);
  program_->externals = std::move(inputs_.externals);
  for (uint32_t i = 0; i < count; ++i) {
    program_->external_types.push_back(
        program_->types[in_.index("a type", program_->types.size())]);
  }
}

Value ProgramReader::read_value(int depth) {
  const uint8_t kind = in_.u8();
  switch (static_cast<Literal>(kind)) {
    case Literal::None:
      return {};
    case Literal::Bool:
      return Value(in_.u8() != 0);
    case Literal::Int:
      return Value(in_.i64());
    case Literal::Double:
      return Value(in_.f64());
    case Literal::Complex: {
      const double real = in_.f64();
      return Value(std::complex<double>(real, in_.f64()));
    }
    case Literal::Str:
      return Value(string("a text"));
    case Literal::Device:
      return Value(Device::parse(string("a device")));
    case Literal::DType:
      return Value(dtype_named(in_, string("a dtype")));
    case Literal::Input:
      return inputs_.constants[in_.index("a constant given", inputs_.constants.size())];
    case Literal::Enum: {
      const Ref<EnumDef>& def = program_->enums[in_.index("an enum", program_->enums.size())];
      return make_enum(def, in_.index("a member", def->members.size()));
    }
    case Literal::List:
    case Literal::Tuple:
    case Literal::Dict:
      in_.check(depth < kDeepestConstant, "a constant that is not nested so deep", kind);
      return read_items(kind, depth);
  }
  in_.check(false, "the kind of a constant", kind);
  return {};
}

Value ProgramReader::read_items(uint8_t kind, int depth) {
  const auto literal = static_cast<Literal>(kind);
  // Of a list: its tag; of a dict: that of a list of its values; of a tuple: its definition.
  const uint32_t detail = in_.u32();
  const uint32_t count = in_.count("a count of items");
  std::vector<Value> items;
  items.reserve(count);
  for (uint32_t i = 0; i < count; ++i) items.push_back(read_value(depth + 1));
  if (literal == Literal::Tuple) {
    in_.check(detail <= tuples_.size(), "a named tuple", detail);
    Ref<NamedTupleDef> def = detail ? tuples_[detail - 1] : Ref<NamedTupleDef>();
    in_.check(!def || def->fields.size() == count, "an item for each field", count);
    return make_tuple_value(std::move(items), std::move(def));
  }
  const auto tag = static_cast<ValueTag>(detail);
  in_.check(detail <= 255 && is_list(tag), "the kind of a list", detail);
  if (literal == Literal::List) return make_list(tag, items.data(), items.size());
  in_.check(count % 2 == 0, "keys and values", count);
  auto dict = make_ref<DictObject>();
  dict->value_list = tag;
  for (uint32_t i = 0; i < count; i += 2) dict->set(items[i], std::move(items[i + 1]));
  return make_dict(std::move(dict));
}

FusedOperand ProgramReader::read_operand() {
  const uint8_t kind = in_.u8();
  in_.check(kind <= static_cast<uint8_t>(FusedOperand::Kind::Length), "an operand", kind);
  return {static_cast<FusedOperand::Kind>(kind), in_.u8()};
}

void ProgramReader::read_over(FusedStep& step) {
  const uint8_t over = in_.u8();
  in_.check(over <= static_cast<uint8_t>(FusedStep::Over::All), "what a step works over", over);
  step.over = static_cast<FusedStep::Over>(over);
  if (step.over == FusedStep::Over::Elements) return;
  step.dim = static_cast<int8_t>(in_.u8());
  const uint8_t keepdim = in_.u8();
  in_.check(keepdim <= 1, "whether a row is kept", keepdim);
  step.keepdim = keepdim;
  step.length = in_.u32();
}

FusedSpec ProgramReader::read_group(bool with_gradient) {
  FusedSpec spec;
  spec.input_count = in_.u8();
  const uint32_t constants = in_.count("a count of constants", 4);
  for (uint32_t k = 0; k < constants; ++k) spec.constants.push_back(constant("a constant"));
  const uint32_t steps = in_.count("a count of steps", 13);
  for (uint32_t k = 0; k < steps; ++k) {
    FusedStep step;
    step.op = string("an operator");
    read_over(step);
    const uint32_t tensors = in_.count("a count of operands", 2);
    for (uint32_t t = 0; t < tensors; ++t) step.tensors.push_back(read_operand());
    const uint32_t numbers = in_.count("a count of operands", 2);
    for (uint32_t t = 0; t < numbers; ++t) step.numbers.push_back(read_operand());
    spec.steps.push_back(std::move(step));
  }
  const uint32_t outputs = in_.count("a count of outputs");
  for (uint32_t k = 0; k < outputs; ++k) spec.outputs.push_back(in_.u8());
  const uint64_t low = in_.u32();
  spec.squeezed_inputs = low | static_cast<uint64_t>(in_.u32()) << 32;
  const uint8_t differentiable = in_.u8();
  in_.check(differentiable <= (with_gradient ? 1 : 0), "whether there is a gradient",
            differentiable);
  if (differentiable) spec.backward = read_backward();
  return spec;
}

std::shared_ptr<const FusedBackward> ProgramReader::read_backward() {
  auto backward = std::make_shared<FusedBackward>();
  backward->group = make_ref<FusedGroup>(read_group(false));
  const uint32_t edges = in_.count("a count of edges", 3);
  for (uint32_t k = 0; k < edges; ++k) {
    const uint8_t input = in_.u8(), kind = in_.u8();
    in_.check(kind <= 1, "the kind of an edge", kind);
    backward->edges.push_back({input, kind == 1, in_.u8()});
  }
  const uint32_t outputs = in_.count("a count of outputs", 8);
  for (uint32_t k = 0; k < outputs; ++k) {
    const uint64_t low = in_.u32();
    backward->depends.push_back(low | static_cast<uint64_t>(in_.u32()) << 32);
  }
  const uint32_t saved = in_.count("a count of values");
  for (uint32_t k = 0; k < saved; ++k) backward->saved.push_back(in_.u8());
  return backward;
}

void ProgramReader::read_groups() {
  const uint32_t count = in_.count("a count of groups", 22);
  for (uint32_t i = 0; i < count; ++i) {
    program_->groups.push_back(make_ref<FusedGroup>(read_group(true)));
  }
}

void ProgramReader::read_headers() {
  const uint32_t count = in_.count("a count of functions", 32);
  for (uint32_t i = 0; i < count; ++i) {
    auto function = std::make_unique<Function>();
    function->program = program_.get();
    read_header(*function);
    program_->by_name_.emplace(function->name, function.get());
    program_->functions.push_back(std::move(function));
  }
  const uint32_t methods = in_.count("a count of methods", 12);
  for (uint32_t i = 0; i < methods; ++i) {
    const ClassDef* def = program_->classes[in_.index("a class", program_->classes.size())].get();
    const std::string& name = string("a method");
    const size_t function = in_.index("a function", program_->functions.size());
    program_->methods_[{def, name}] = program_->functions[function].get();
  }
}

void ProgramReader::read_header(Function& function) {
  function.name = string("the name of a function");
  const uint32_t params = in_.count("a count of parameters", 16);
  for (uint32_t i = 0; i < params; ++i) {
    Param param;
    param.name = &string("the name of a parameter");
    param.type = &type();
    const uint32_t given = in_.u32();
    in_.check(given <= program_->constants.size(), "a default", given);
    param.default_value = given ? &program_->constants[given - 1] : nullptr;
    const uint32_t place = in_.u32();
    in_.check(place <= UINT16_MAX, "a register", place);
    param.place = static_cast<uint16_t>(place);
    function.params.push_back(param);
  }
  function.result = &type();
  function.objects = in_.u32();
  function.scalars = in_.u32();
  in_.check(function.objects <= UINT16_MAX && function.scalars <= UINT16_MAX &&
                function.objects + function.scalars <= UINT16_MAX,
            "at most 65535 registers", function.objects);
  for (const Param& param : function.params) {
    in_.check(param.place < function.objects + function.scalars, "a register", param.place);
  }
  function.preload_at = in_.u32();
  const uint32_t preload = in_.count("a count of constants", 4);
  in_.check(function.preload_at >= function.objects &&
                function.preload_at <= function.objects + function.scalars &&
                preload <= function.objects + function.scalars - function.preload_at,
            "scalar registers", function.preload_at);
  for (uint32_t i = 0; i < preload; ++i) {
    function.preload.push_back(constant("a constant"));
    in_.check(is_scalar(function.preload.back()), "a scalar constant", i);
  }
}

void ProgramReader::read_bodies() {
  for (const std::unique_ptr<Function>& function : program_->functions) read_body(*function);
}

}  // namespace weft

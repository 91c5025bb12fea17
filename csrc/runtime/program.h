// Program: compiled functions as data, ready to run. Read from bytes (program_reader.cpp), checked
// as a whole before anything runs, never changed afterwards; any number of threads may run it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/fused.h"
#include "runtime/instruction.h"
#include "runtime/operator.h"
#include "runtime/type.h"

namespace weft {

struct Function;
class Program;

// An operand or a result of a site: a register or a constant.
using Word = uint32_t;
inline constexpr Word kConstantBit = Word{1} << 31;  // of the program's constants, else a register
inline constexpr Word kLastUseBit = Word{1} << 30;   // an object register nobody reads afterwards
inline constexpr Word kIndexMask = kLastUseBit - 1;

// Whether a value is plain bits, which scalar registers may hold.
inline bool is_scalar(const Value& value) noexcept {
  constexpr auto bit = [](ValueTag tag) { return uint32_t{1} << static_cast<uint32_t>(tag); };
  constexpr uint32_t scalars = bit(ValueTag::None) | bit(ValueTag::Bool) | bit(ValueTag::Int) |
                               bit(ValueTag::Double) | bit(ValueTag::Device) | bit(ValueTag::DType);
  return scalars >> static_cast<uint32_t>(value.tag()) & 1;
}

// What an instruction with any number of operands works on.
struct Site {
  std::vector<Word> args;
  std::vector<uint32_t> results;             // registers
  std::vector<uint16_t> releases;            // object registers among args that die here
  uint64_t donated = 0;                      // bit i: args[i] is among them
  bool direct = false;                       // the one result goes straight to its object register
  bool scalar = false;                       // the one result goes to a scalar register
  std::atomic<const Operator*> op{nullptr};  // resolved by the first call
  const std::string* name = nullptr;         // of the operator, of the method
  const Function* function = nullptr;
  // The method found for the class last seen.
  std::atomic<const std::pair<const ClassDef*, const Function*>*> method{nullptr};
  const Type* type = nullptr;
  FusedGroup* group = nullptr;
  uint32_t extra = 0;
};

// Python, seen from here: something that can be called.
class External {
 public:
  virtual ~External() = default;
  virtual Value call(std::span<const Value> args) = 0;
};

struct Param {
  const std::string* name;
  const Type* type;
  const Value* default_value;  // null: must be given
  uint16_t place;              // its register
};

struct SourceText {
  std::string filename;
  uint32_t first_line = 1;
  uint32_t indent = 0;
  bool has_text = false;
  std::string text;
};
// Offsets count bytes. `caller`: the place, earlier in the table, of the call this was inlined
// from; 0: none.
struct SourcePlace {
  uint32_t source = 0, start = 0, end = 0, caller = 0;
};

struct Function {
  const Program* program = nullptr;
  std::string name;
  std::vector<Param> params;
  const Type* result = nullptr;
  uint32_t objects = 0;  // registers [0, objects) hold objects,
  uint32_t scalars = 0;  // the next `scalars` ones scalars
  uint32_t scratch = 0;  // then come this many results on their way, and operands
  uint32_t frame_size = 0;
  std::vector<Value> preload;  // scalar constants, copied to registers from `preload_at` on
  uint32_t preload_at = 0;
  std::vector<Instruction> code;
  std::unique_ptr<Site[]> sites;
  uint32_t site_count = 0;
  std::vector<uint32_t> places;  // instruction by instruction, in the program's places; 0: none

  bool is_object(uint32_t place) const noexcept { return place < objects; }
};

// What a program takes besides its bytes.
struct ProgramInputs {
  std::vector<Value> constants;
  std::vector<std::shared_ptr<External>> externals;
  // Classes that exist already: those of the program that have the same name become these. Their
  // attributes must be the same.
  std::map<std::string, Ref<ProgramClass>, std::less<>> classes;
};

class Program final : public RefCounted {
 public:
  // Raises ValueError naming the place where the bytes make no sense.
  static Ref<Program> read(std::span<const std::byte> bytes, ProgramInputs inputs);
  ~Program();

  const Function* find(std::string_view name) const noexcept;  // null: there is none
  const Function* find_method(const ClassDef* def, std::string_view name) const noexcept;
  Ref<ProgramClass> find_class(std::string_view name) const noexcept;
  // Names of operators the program calls that this build does not have.
  std::vector<std::string> missing_operators() const;

  std::vector<std::string> strings;
  std::vector<Ref<Type>> types;
  std::vector<Ref<ProgramClass>> classes;
  std::vector<Ref<EnumDef>> enums;
  std::vector<Value> constants;
  std::vector<SourceText> sources;
  std::vector<SourcePlace> places;
  std::vector<Ref<FusedGroup>> groups;
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<std::shared_ptr<External>> externals;
  std::vector<Ref<Type>> external_types;  // of their results

  // The line of a place in a function with marks below, after those of the calls it was inlined
  // from.
  std::string highlight(uint32_t place, std::string_view function) const;

 private:
  friend class ProgramReader;
  Program() = default;
  std::unordered_map<std::string_view, const Function*> by_name_;
  std::map<std::pair<const ClassDef*, std::string_view>, const Function*> methods_;
};

inline constexpr uint32_t kProgramVersion = 1;

}  // namespace weft

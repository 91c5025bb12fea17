// Programs written by hand, for tests: what weft/jit/codegen/program.py writes, in small.
#pragma once

#include <string>
#include <vector>

#include "runtime/interpreter.h"

namespace weft::testing {

struct AsmSite {
  std::vector<Word> args;
  std::vector<uint32_t> results;
  uint32_t extra = 0;
};

struct AsmInstruction {
  std::string name;
  uint16_t a = 0, b = 0, c = 0;
  int64_t x = 0;
};

struct AsmFunction {
  std::string name = "f";
  // Each parameter: the place of its type, and its register.
  std::vector<std::pair<uint32_t, uint32_t>> params;
  uint32_t objects = 0, scalars = 0;
  std::vector<AsmSite> sites;
  std::vector<AsmInstruction> code;
};

// A program of some functions. Types are the plain ones, in the order of TypeKind; the constants
// are ints; one class "C" has the slots "a" (int) and "b" (Tensor).
class Assembler {
 public:
  std::vector<int64_t> constants;
  std::vector<AsmFunction> functions;
  std::vector<uint32_t> externals;  // the places of the types of their results

  uint32_t string(const std::string& text) {
    for (size_t i = 0; i < strings_.size(); ++i) {
      if (strings_[i] == text) return static_cast<uint32_t>(i);
    }
    strings_.push_back(text);
    return static_cast<uint32_t>(strings_.size() - 1);
  }

  std::vector<std::byte> bytes() {
    std::string body = tail();
    std::string out = "WEFTPROG";
    put(out, kProgramVersion);
    put(out, static_cast<uint32_t>(strings_.size()));
    for (const std::string& text : strings_) {
      put(out, static_cast<uint32_t>(text.size()));
      out += text;
    }
    put(out, static_cast<uint32_t>(opcodes_.size()));
    for (uint32_t name : opcodes_) put(out, name);
    out += body;
    std::vector<std::byte> result(out.size());
    std::memcpy(result.data(), out.data(), out.size());
    return result;
  }
  Ref<Program> load() { return Program::read(bytes(), {}); }

 private:
  template <class T>
  static void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }

  std::string tail() {
    std::string out;
    put<uint32_t>(out, 0);  // named tuples
    put<uint32_t>(out, 0);  // enumerations
    put<uint32_t>(out, 1);
    put(out, string("C"));
    const auto plain = static_cast<uint32_t>(TypeKind::List);
    put(out, plain + 1);
    for (uint32_t kind = 0; kind < plain; ++kind) {
      put(out, static_cast<uint8_t>(kind));
      put<uint32_t>(out, 0);
    }
    put(out, static_cast<uint8_t>(TypeKind::Class));
    put<uint32_t>(out, 0);
    put<uint32_t>(out, 0);
    put<uint8_t>(out, 0);  // the class
    put<uint32_t>(out, 2);
    put(out, string("a"));
    put(out, static_cast<uint32_t>(TypeKind::Int));
    put(out, string("b"));
    put(out, static_cast<uint32_t>(TypeKind::Tensor));
    put<uint32_t>(out, 0);
    sources(out);
    put(out, static_cast<uint32_t>(constants.size()));
    for (int64_t value : constants) {
      put<uint8_t>(out, 2);
      put(out, value);
    }
    put(out, static_cast<uint32_t>(externals.size()));
    for (const uint32_t type : externals) put(out, type);
    put<uint32_t>(out, 0);  // groups
    put(out, static_cast<uint32_t>(functions.size()));
    for (const AsmFunction& function : functions) header(out, function);
    put<uint32_t>(out, 0);  // methods
    for (const AsmFunction& function : functions) code(out, function);
    return out;
  }

  // One source of two lines; place 1 is "second".
  void sources(std::string& out) {
    put<uint32_t>(out, 1);
    put(out, string("file.py"));
    put<uint32_t>(out, 7);
    put<uint32_t>(out, 0);
    put<uint8_t>(out, 1);
    put(out, string("first\nthe second\n"));
    put<uint32_t>(out, 1);
    put<uint32_t>(out, 0);
    put<uint32_t>(out, 10);
    put<uint32_t>(out, 16);
    put<uint32_t>(out, 0);
  }

  void header(std::string& out, const AsmFunction& function) {
    put(out, string(function.name));
    put(out, static_cast<uint32_t>(function.params.size()));
    for (auto [type, place] : function.params) {
      put(out, string("p"));
      put(out, type);
      put<uint32_t>(out, 0);
      put(out, place);
    }
    put(out, static_cast<uint32_t>(TypeKind::Any));
    put(out, function.objects);
    put(out, function.scalars);
    put(out, function.objects);  // nothing is preloaded
    put<uint32_t>(out, 0);
  }

  void code(std::string& out, const AsmFunction& function) {
    put(out, static_cast<uint32_t>(function.sites.size()));
    for (const AsmSite& site : function.sites) {
      put(out, static_cast<uint32_t>(site.args.size()));
      for (Word word : site.args) put(out, word);
      put(out, static_cast<uint32_t>(site.results.size()));
      for (uint32_t place : site.results) put(out, place);
      put(out, site.extra);
    }
    put(out, static_cast<uint32_t>(function.code.size()));
    for (const AsmInstruction& one : function.code) {
      put(out, opcode(one.name));
      put(out, one.a);
      put(out, one.b);
      put(out, one.c);
      put(out, one.x);
    }
    for (size_t i = 0; i < function.code.size(); ++i) put<uint32_t>(out, 1);
  }

  uint16_t opcode(const std::string& name) {
    const uint32_t text = string(name);
    for (size_t i = 0; i < opcodes_.size(); ++i) {
      if (opcodes_[i] == text) return static_cast<uint16_t>(i);
    }
    opcodes_.push_back(text);
    return static_cast<uint16_t>(opcodes_.size() - 1);
  }

  std::vector<std::string> strings_;
  std::vector<uint32_t> opcodes_;
};

inline Value call(const Program& program, std::vector<Value> args, const char* name = "f") {
  return run_function(*program.find(name), args.data(), args.size());
}

inline constexpr uint32_t kInt = static_cast<uint32_t>(TypeKind::Int);
inline constexpr uint32_t kTensor = static_cast<uint32_t>(TypeKind::Tensor);
inline constexpr uint32_t kAny = static_cast<uint32_t>(TypeKind::Any);

}  // namespace weft::testing

// Compiled files, written here byte by byte, for tests: what weft/jit/aot writes, in small.
#pragma once

#include <string>
#include <vector>

#include "runtime/program_testing.h"

namespace weft::testing {

// A zip archive of stored records, with the fields of zip64 or without.
class Zip {
 public:
  explicit Zip(bool is_wide = false) : is_wide_(is_wide) {}

  void add(const std::string& record, const std::string& data) {
    const std::string name = "archive/" + record;
    const uint64_t at = bytes_.size(), size = data.size();
    put<uint32_t>(bytes_, 0x04034b50);
    put<uint16_t>(bytes_, 0);
    bytes_ += checks() + narrow(size) + narrow(size) + lengths(name.size(), 0) + name + data;
    const std::string extra = is_wide_ ? field64(size, at) : "";
    put<uint32_t>(directory_, 0x02014b50);
    put<uint32_t>(directory_, 0);  // versions
    directory_ += checks() + number(size) + number(size) + lengths(name.size(), extra.size());
    directory_ += std::string(10, '\0') + number(at) + name + extra;  // comment, disk, attributes
    ++count_;
  }

  std::string bytes() const {
    std::string out = bytes_ + directory_;
    if (is_wide_) out += end64();
    put<uint32_t>(out, 0x06054b50);
    put<uint32_t>(out, 0);  // disks
    put(out, is_wide_ ? uint16_t{0xFFFF} : count_);
    put(out, is_wide_ ? uint16_t{0xFFFF} : count_);
    out += number(directory_.size()) + number(bytes_.size());
    put<uint16_t>(out, 0);
    return out;
  }

 private:
  template <class T>
  static void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  // Flags, method, time, date, checksum: the reader asks for the method alone.
  static std::string checks() { return std::string(12, '\0'); }
  static std::string narrow(uint64_t value) {
    std::string out;
    put(out, static_cast<uint32_t>(value));
    return out;
  }
  // 32 bits, which say of a wide archive that the number stands elsewhere.
  std::string number(uint64_t value) const { return narrow(is_wide_ ? 0xFFFFFFFF : value); }
  static std::string lengths(size_t name, size_t extra) {
    std::string out;
    put(out, static_cast<uint16_t>(name));
    put(out, static_cast<uint16_t>(extra));
    return out;
  }
  static std::string field64(uint64_t size, uint64_t at) {
    std::string out;
    put<uint16_t>(out, 1);
    put<uint16_t>(out, 24);
    for (const uint64_t value : {size, size, at}) put(out, value);
    return out;
  }
  std::string end64() const {
    const uint64_t at = bytes_.size() + directory_.size();
    std::string out;
    put<uint32_t>(out, 0x06064b50);
    put<uint64_t>(out, 44);
    for (int i = 0; i < 3; ++i) put<uint32_t>(out, 0);  // versions, disks
    for (const uint64_t value : {uint64_t{count_}, uint64_t{count_}}) put(out, value);
    for (const uint64_t value : {directory_.size(), bytes_.size()}) put<uint64_t>(out, value);
    put<uint32_t>(out, 0x07064b50);
    put<uint32_t>(out, 0);
    put(out, at);
    put<uint32_t>(out, 1);
    return out;
  }

  bool is_wide_;
  std::string bytes_, directory_;
  uint16_t count_ = 0;
};

inline constexpr auto kClassC = static_cast<uint32_t>(TypeKind::List);  // behind the plain types

using Code = std::vector<AsmInstruction>;
inline const Code kMakesC = {{"create_object", 0, 0, 0, 0}, {"return_object", 0}};

// __state__() gives a C, unless its code is another; forward(self, p) is p * p.
inline std::string squaring(const Code& state_code = kMakesC) {
  Assembler program;
  AsmFunction state;
  state.name = "__state__";
  state.objects = 1;
  state.code = state_code;
  AsmFunction forward;
  forward.name = "forward";
  forward.params = {{kClassC, 0}, {static_cast<uint32_t>(TypeKind::Tensor), 1}};
  forward.objects = 3;
  forward.sites = {{{1, 1}, {2}, program.string("aten::mul.Tensor")}};
  forward.code = {{"call_operator", 0, 0, 0, 0}, {"return_object", 2}};
  AsmFunction endless;  // count(self, n) gives n - 1, having counted to it
  endless.name = "count";
  endless.params = {{kClassC, 0}, {static_cast<uint32_t>(TypeKind::Int), 1}};
  endless.objects = 1;
  endless.scalars = 2;
  endless.code = {{"loop_start", 2, 1, 0, 2}, {"loop_next", 2, 1, 0, 1}, {"return_scalar", 2}};
  program.functions = {state, forward, endless};
  const std::vector<std::byte> bytes = program.bytes();
  std::string record(sizeof(uint32_t), '\0');  // no constants
  return record.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

inline std::string image(const std::string& version = "1", bool is_wide = false,
                         const Code& state_code = kMakesC) {
  Zip zip(is_wide);
  zip.add("weft/version", version);
  zip.add("weft/inference", squaring(state_code));
  zip.add("weft/gradients", squaring());
  zip.add("weft/tensors", std::string(8, '\0'));
  return zip.bytes();
}

}  // namespace weft::testing

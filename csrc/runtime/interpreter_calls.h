// How values get into registers and operands to what is called. Part of the interpreter's loop:
// every function here is inlined into it.
#pragma once

#include <bit>
#include <cstring>
#include <optional>

#include "core/profiler.h"
#include "ops/donation.h"
#include "runtime/interpreter_ops.h"

namespace weft::interpreter {

// Scalar registers never own anything: written without a look at what was there. A value is two
// words, written and copied one by one: a read of both at once would wait until the writes of each
// have reached the cache.
inline void put_words(Value* place, uint64_t head, uint64_t data) {
  std::memcpy(static_cast<void*>(place), &head, sizeof(head));
  std::memcpy(reinterpret_cast<std::byte*>(place) + sizeof(head), &data, sizeof(data));
}
template <class T>
inline void put(Value* place, T value) {
  static_assert(std::endian::native == std::endian::little);  // the tag is the first byte
  if constexpr (std::is_same_v<T, double>) {
    put_words(place, static_cast<uint64_t>(ValueTag::Double), std::bit_cast<uint64_t>(value));
  } else {
    constexpr ValueTag tag = std::is_same_v<T, bool> ? ValueTag::Bool : ValueTag::Int;
    put_words(place, static_cast<uint64_t>(tag), static_cast<uint64_t>(value));
  }
}
inline void copy_bits(Value* to, const Value* from) {
  uint64_t head, data;
  std::memcpy(&head, from, sizeof(head));
  std::memcpy(&data, reinterpret_cast<const std::byte*>(from) + sizeof(head), sizeof(data));
#if defined(__GNUC__)
  asm("" : "+r"(head));  // or the compiler makes one move of the two
#endif
  put_words(to, head, data);
}

// Copies operands side by side without counting them: their registers keep them alive.
inline void gather(const Site& site, const Operator& op, const Value* registers,
                   const Value* constants, Value* args) {
  const size_t count = site.args.size();
  const Word* words = site.args.data();
  for (size_t i = 0; i < count; ++i) {
    const Value& value = operand(words[i], registers, constants);
    if (!op.accepts(i, value.tag())) [[unlikely]]
      fail_operand(op, i, value);
    copy_bits(args + i, &value);
  }
}

// Puts operands into the registers of a callee's parameters; what dies here moves.
inline void pass(const Site& site, Value* registers, const Value* constants, const Function& callee,
                 Value* into) {
  const size_t count = site.args.size();
  for (size_t i = 0; i < count; ++i) {
    const Word word = site.args[i];
    Value& target = into[callee.params[i].place];
    if (word & kLastUseBit) {
      target = std::move(registers[word & kIndexMask]);
    } else {
      target = operand(word, registers, constants);
    }
  }
}

inline void preload(const Function& function, Value* registers) {
  // Plain bits: scalars only.
  if (!function.preload.empty()) {
    std::memcpy(static_cast<void*>(registers + function.preload_at), function.preload.data(),
                function.preload.size() * sizeof(Value));
  }
}

inline void run_operator(const Operator& op, const Site& site, Value* args, Value* results) {
  if (profiler::recording()) [[unlikely]]
    return run_recorded(op, site, args, results);
  op.call(args, results);
}

inline bool run_group(const Site& site, Value* args, Value* results) {
  if (profiler::recording()) [[unlikely]]
    return run_recorded(site, args, results);
  return site.group->run(args, results, nullptr, site.donated);
}

// Calls the operator of a site on the operands at `args`.
inline void call(const Operator& op, const Function& function, const Site& site, Value* registers,
                 Value* args, Value* results) {
  if (site.direct) {
    run_operator(op, site, args, registers + site.results[0]);
  } else {
    run_operator(op, site, args, results);
    if (site.scalar && is_scalar(*results)) {
      copy_bits(registers + site.results[0], results);
    } else {
      store_results({registers, &function}, site, results);
    }
  }
}

inline const Operator& operator_of(Site& site) {
  const Operator* op = site.op.load(std::memory_order_acquire);
  return op ? *op : resolve(site);
}

// `reuses`: the result may take the memory of an operand that dies.
template <bool reuses>
inline void call_operator(const Function& function, Site& site, Value* registers,
                          const Value* constants) {
  const Operator& op = operator_of(site);
  Value* results = registers + function.objects + function.scalars;
  Value* args = results + function.scratch;
  gather(site, op, registers, constants, args);
  std::optional<tile::Donation> donation;
  if constexpr (reuses) {
    if (const Tensor* donor = find_donor(site, args)) donation.emplace(*donor);
  }
  call(op, function, site, registers, args, results);
  donation.reset();
  for (uint16_t place : site.releases) registers[place] = Value();
}

}  // namespace weft::interpreter

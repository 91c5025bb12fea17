// Sorting works on unsigned keys: every dtype is mapped so that the order of keys is the order of
// values, with NaN above everything and -0 equal to 0.
#pragma once

#include <bit>
#include <cmath>
#include <vector>

#include "ops/support.h"

namespace weft::native {

template <class T>
struct KeyOf {
  static_assert(std::is_integral_v<T>);
  using Key = std::make_unsigned_t<T>;
  static Key make(T value) {
    // Flips the sign bit of signed integers: the smallest becomes 0.
    constexpr Key flip = std::is_signed_v<T> ? Key(Key(1) << (sizeof(T) * 8 - 1)) : Key(0);
    return static_cast<Key>(static_cast<Key>(value) ^ flip);
  }
};

// From the bits of an IEEE number: negative ones reversed, positive ones moved above them.
template <class Bits>
Bits float_key(Bits bits, bool is_nan) {
  constexpr Bits sign = Bits(Bits(1) << (sizeof(Bits) * 8 - 1));
  if (is_nan) return static_cast<Bits>(~Bits(0));
  if (bits == sign) bits = 0;  // -0
  return static_cast<Bits>(bits & sign ? ~bits : bits | sign);
}

template <>
struct KeyOf<bool> {
  using Key = uint8_t;
  static Key make(bool value) { return value; }
};
template <>
struct KeyOf<float> {
  using Key = uint32_t;
  static Key make(float value) { return float_key(std::bit_cast<Key>(value), std::isnan(value)); }
};
template <>
struct KeyOf<double> {
  using Key = uint64_t;
  static Key make(double value) { return float_key(std::bit_cast<Key>(value), std::isnan(value)); }
};
template <>
struct KeyOf<Half> {
  using Key = uint16_t;
  static Key make(Half value) { return float_key(value.bits, (value.bits & 0x7fffu) > 0x7c00u); }
};
template <>
struct KeyOf<BFloat16> {
  using Key = uint16_t;
  static Key make(BFloat16 value) {
    return float_key(value.bits, (value.bits & 0x7fffu) > 0x7f80u);
  }
};

template <class Key>
struct Entry {
  Key key;
  uint32_t index;  // rows longer than 2^32 are refused
  friend bool operator<(const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key < b.key : a.index < b.index;
  }
};

// Sorts by key, equal keys in the order of their indices. `spare` is scratch of the same length;
// entries must come in the order of their indices.
template <class Key>
void sort_entries(std::vector<Entry<Key>>& entries, std::vector<Entry<Key>>& spare) {
  constexpr size_t kRadixFrom = 512;
  if (entries.size() < kRadixFrom) {
    std::sort(entries.begin(), entries.end());
    return;
  }
  // Least significant byte first; all counts come from one pass, bytes that never differ are
  // skipped.
  constexpr size_t kBytes = sizeof(Key);
  std::vector<uint32_t> counts(kBytes * 256);
  for (const Entry<Key>& entry : entries) {
    for (size_t b = 0; b < kBytes; ++b) ++counts[b * 256 + ((entry.key >> (8 * b)) & 0xff)];
  }
  spare.resize(entries.size());
  for (size_t b = 0; b < kBytes; ++b) {
    uint32_t* count = counts.data() + b * 256;
    if (count[(entries[0].key >> (8 * b)) & 0xff] == entries.size()) continue;
    uint32_t start = 0;
    for (size_t digit = 0; digit < 256; ++digit) {
      const uint32_t here = count[digit];
      count[digit] = start;
      start += here;
    }
    for (const Entry<Key>& entry : entries) {
      spare[count[(entry.key >> (8 * b)) & 0xff]++] = entry;
    }
    entries.swap(spare);
  }
}

}  // namespace weft::native

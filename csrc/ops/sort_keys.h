// Sorting works on unsigned keys: every dtype is mapped so that the order of keys is the order of
// values, with NaN above everything and -0 equal to 0.
#pragma once

#include <bit>
#include <cmath>
#include <type_traits>

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
  // The value that has this key; `other` has it too.
  static T value(Key key, const T&) { return static_cast<T>(make(static_cast<T>(key))); }
};

// From the bits of an IEEE number: negative ones reversed, positive ones moved above them.
template <class Bits>
Bits float_key(Bits bits, bool is_nan) {
  constexpr Bits sign = Bits(Bits(1) << (sizeof(Bits) * 8 - 1));
  if (is_nan) return static_cast<Bits>(~Bits(0));
  if (bits == sign) bits = 0;  // -0
  return static_cast<Bits>(bits & sign ? ~bits : bits | sign);
}

// The number that float_key made a key of; `other`, which has that key too, where several share it:
// NaN and the zeros.
template <class T, class Bits>
T float_of_key(Bits key, const T& other) {
  constexpr Bits sign = Bits(Bits(1) << (sizeof(Bits) * 8 - 1));
  if (key == sign || key == static_cast<Bits>(~Bits(0))) return other;
  return std::bit_cast<T>(static_cast<Bits>(key & sign ? key ^ sign : ~key));
}

template <>
struct KeyOf<bool> {
  using Key = uint8_t;
  static Key make(bool value) { return value; }
  static bool value(Key key, const bool&) { return key != 0; }
};
template <>
struct KeyOf<float> {
  using Key = uint32_t;
  static Key make(float value) { return float_key(std::bit_cast<Key>(value), std::isnan(value)); }
  static float value(Key key, const float& other) { return float_of_key(key, other); }
};
template <>
struct KeyOf<double> {
  using Key = uint64_t;
  static Key make(double value) { return float_key(std::bit_cast<Key>(value), std::isnan(value)); }
  static double value(Key key, const double& other) { return float_of_key(key, other); }
};
template <>
struct KeyOf<Half> {
  using Key = uint16_t;
  static Key make(Half value) { return float_key(value.bits, (value.bits & 0x7fffu) > 0x7c00u); }
  static Half value(Key key, const Half& other) { return float_of_key(key, other); }
};
template <Float8Format kFormat>
struct KeyOf<Float8<kFormat>> {  // formats differ in what is NaN, so their order is that of floats
  using T = Float8<kFormat>;
  using Key = uint32_t;
  static Key make(T value) { return KeyOf<float>::make(static_cast<float>(value)); }
  static T value(Key key, const T& other) {
    return T(KeyOf<float>::value(key, static_cast<float>(other)));
  }
};
template <>
struct KeyOf<BFloat16> {
  using Key = uint16_t;
  static Key make(BFloat16 value) {
    return float_key(value.bits, (value.bits & 0x7fffu) > 0x7f80u);
  }
  static BFloat16 value(Key key, const BFloat16& other) { return float_of_key(key, other); }
};

// A key and the index of what has it as one number, whose order is theirs: by key, equal keys by
// index. Rows longer than 2^32 are refused.
__extension__ using Packed128 = unsigned __int128;
template <class Key>
using Packed = std::conditional_t<sizeof(Key) == 8, Packed128, uint64_t>;

template <class Key>
Packed<Key> pack(Key key, int64_t index) {
  return Packed<Key>{key} << 32 | static_cast<uint32_t>(index);
}
template <class Key>
Key key_of(Packed<Key> packed) {
  return static_cast<Key>(packed >> 32);
}
template <class Key>
int64_t index_of(Packed<Key> packed) {
  return static_cast<uint32_t>(packed);
}

}  // namespace weft::native

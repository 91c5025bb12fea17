// Reading a program's bytes: every read is checked, every count against what is left.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/error.h"

namespace weft {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // Little-endian integers and floats.
  template <class T>
  T read() {
    need(sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    static_assert(std::endian::native == std::endian::little);
    at_ += sizeof(T);
    return value;
  }
  uint8_t u8() { return read<uint8_t>(); }
  uint16_t u16() { return read<uint16_t>(); }
  uint32_t u32() { return read<uint32_t>(); }
  int64_t i64() { return read<int64_t>(); }
  double f64() { return read<double>(); }

  std::string_view text() {
    const uint32_t size = u32();
    need(size);
    const std::string_view result(reinterpret_cast<const char*>(bytes_.data() + at_), size);
    at_ += size;
    return result;
  }
  // How many of something follow, each of at least `size` bytes: cannot be more than fit.
  uint32_t count(const char* what, size_t size = 1) {
    const uint32_t n = u32();
    check(n <= (bytes_.size() - at_) / size, what, n);
    return n;
  }
  // A place in a table of `limit` entries.
  uint32_t index(const char* what, size_t limit) {
    const uint32_t i = u32();
    check(i < limit, what, i);
    return i;
  }

  void check(bool good, const char* what, uint64_t got) const {
    if (!good) [[unlikely]]
      fail(ErrorKind::Value,
           weft::str("JitProgram: expected ", what, ", got ", got, " near byte ", at_));
  }
  size_t at() const noexcept { return at_; }
  bool at_end() const noexcept { return at_ == bytes_.size(); }

 private:
  void need(size_t size) const {
    if (bytes_.size() - at_ < size) [[unlikely]]
      fail(ErrorKind::Value,
           weft::str("JitProgram: expected ", size, " more bytes, got ", bytes_.size() - at_));
  }
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

}  // namespace weft

// Machine code that was compiled elsewhere, made callable without a linker.
//
// The image is position independent and complete but for the addresses of the C library's
// functions it calls, which are filled in from a list of names. Layout, little endian:
//   "WFTNATIV"  u32 version  u32 isa  u32 entry  u32 size of code  u32 number of imports
//   imports: u32 offset of an 8-byte cell in the code, u32 length, name
//   code
// An image is trusted like any program: it comes from this user's cache or archive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "ops/tile.h"

namespace weft {

class NativeCode {
 public:
  // Raises RuntimeError on an image that is malformed, of another machine, or that imports a
  // function this library does not offer.
  static std::shared_ptr<const NativeCode> load(std::string_view image);
  ~NativeCode();
  NativeCode(const NativeCode&) = delete;
  NativeCode& operator=(const NativeCode&) = delete;

  tile::KernelFn entry() const noexcept { return entry_; }

 private:
  NativeCode() = default;
  void* memory_ = nullptr;
  size_t nbytes_ = 0;
  tile::KernelFn entry_ = nullptr;
};

}  // namespace weft

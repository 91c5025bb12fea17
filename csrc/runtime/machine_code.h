// Machine code of fusion groups that came with compiled files (weft/jit/aot/machine_code.py), and
// is installed when a group that it was made for has run once.
//
// It is code: a file that has some is to be trusted like a shared library.
#pragma once

#include <cstddef>
#include <span>

namespace weft::machine_code {

// Takes in the images of a record. Those that need wider registers than these are passed over;
// ValueError for a damaged record.
void add(std::span<const std::byte> record);

// Whether files may bring machine code: true unless set.
void set_allowed(bool allowed) noexcept;

}  // namespace weft::machine_code

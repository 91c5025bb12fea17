// AMX: eight registers of 16 rows of 64 bytes, which some x86-64 processors multiply as matrices of
// bfloat16 or int8 (Intel's Software Developer's Manual, volume 1, chapter 18).
#pragma once

#include "ops/packed_tile.h"

namespace weft::blas {

// Whether processor and system have it for both. The first call asks the system for its registers.
bool has_amx();

inline constexpr int64_t kAmxRows = 32;  // of a tile
// Tiles of pairs or quads, on processors that have it.
Tiles amx_tiles(Elements of);
// Behind the last tile: what a thread's registers hold need not be saved for it any longer.
void release_amx();

}  // namespace weft::blas

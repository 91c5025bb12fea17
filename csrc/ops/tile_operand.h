// How the driver reaches operands: spaces to walk, cursors in them, and views that bring a tile of
// an operand to a kernel (in place when it lies contiguous, else through scratch) and back.
#pragma once

#include <algorithm>
#include <span>

#include "core/scratch_cache.h"
#include "ops/convert.h"
#include "ops/tile.h"

namespace weft::tile {

// Elements of a tile that goes through scratch: a few of them fit in L1.
inline constexpr int64_t kTile = 512;
// Elements worth a thread.
inline constexpr int64_t kGrain = 32768;
// Elements of a piece, at least, once there are so many that threads share them.
inline constexpr int64_t kPiece = 8192;

// An iteration space; sizes go fastest dimension first. Never without dimensions.
struct Space {
  Dims sizes;
  int64_t numel = 1;
};

// A place in a space.
class Cursor {
 public:
  Dims index;

  void seek(const Space& space, int64_t element) {
    index.resize(space.sizes.size());
    for (size_t d = 0; d < index.size(); ++d) {
      const int64_t size = space.sizes[d];
      if (element < size) {
        index[d] = element;
        element = 0;
      } else {
        index[d] = element % size;
        element /= size;
      }
    }
  }
  void advance(const Space& space, int64_t count) {
    index[0] += count;
    for (size_t d = 0; index[d] >= space.sizes[d] && d + 1 < index.size(); ++d) {
      const int64_t carry = index[d] / space.sizes[d];
      index[d] -= carry * space.sizes[d];
      index[d + 1] += carry;
    }
  }
  int64_t offset(const Dims& strides) const noexcept {
    int64_t sum = 0;
    for (size_t d = 0; d < index.size(); ++d) sum += index[d] * strides[d];
    return sum;
  }
};

// One operand over one space.
struct View {
  char* base = nullptr;  // its element 0
  DType memory = DType::F32, kernel = DType::F32;
  uint8_t item = 4;            // bytes of an element in memory
  bool linear = false;         // element i of the space lies at i * item
  bool steady = false;         // moves along the fastest dimension only
  bool buffered = false;       // kernels may not write to its memory
  KernelFn convert = nullptr;  // from memory (inputs) or to it (outputs); null when same type
  Dims strides;                // bytes, fastest dimension first

  bool in_place() const noexcept { return !convert && !buffered; }
  bool unit() const noexcept { return strides[0] == item; }
};

// What one thread keeps for a view.
struct Buffer {
  char* tile;          // in the kernels' type
  char* raw;           // in memory's type, when both gathering and converting
  const char* cached;  // `tile` holds cached_count elements read from here; null: nothing of use
  int64_t cached_count;
};

// The tile of n elements at the cursor, for a kernel to read.
void* load(const View& view, Buffer& buffer, const char* base, const Space& space, const Cursor& at,
           int64_t n);
// Where a kernel shall write that tile; `store` then brings it to its place.
void* target(const View& view, const Buffer& buffer, char* base, const Space& space,
             const Cursor& at, int64_t n);
void store(const View& view, const Buffer& buffer, char* base, const Space& space, const Cursor& at,
           int64_t n);

// Sets memory, kernel, item and convert.
void set_types(View& view, DType memory, DType kernel, bool output);
// Byte strides of `tensor` broadcast to `shape`, in the tensor's order of dimensions.
Dims broadcast_strides(const Tensor& tensor, IntList shape);
// Dimensions of the shape, fastest first, as the operands' strides suggest: the first operand
// that tells two dimensions apart decides; row-major where none does.
Dims walk_order(IntList shape, std::span<const Dims> strides);

// Fuses neighbours that every list of strides walks as one; all go fastest first. Leaves at least
// one dimension.
void coalesce(Dims& sizes, std::span<Dims* const> strides);
Space make_space(Dims sizes);
// Fills in `linear` and `steady`.
void describe(View& view, const Space& space);

// How long the tiles of a walk are.
struct TileRule {
  int64_t most = kTile;      // elements of a tile
  int64_t capacity = kTile;  // the most that can go through scratch
  bool whole_rows = false;   // fastest dimension is short: tiles of several rows
  bool linear = false;       // everything is linear: rows do not matter

  int64_t next(const Space& space, const Cursor& at, int64_t left) const noexcept {
    const int64_t row = space.sizes[0];
    if (linear || space.sizes.size() == 1) return std::min(left, most);
    if (whole_rows && at.index[0] == 0) return std::min(left, most / row * row);
    return std::min({left, most, row - at.index[0]});
  }
};
TileRule tile_rule(const Space& space, std::span<const View* const> views, bool single_step);

// Scratch memory cut from one block; small needs come from the stack.
class Arena {
 public:
  explicit Arena(size_t nbytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  // 64-byte aligned; the sum of requests, each rounded by rounded(), must fit.
  char* take(size_t nbytes) noexcept {
    char* block = next_;
    next_ += rounded(nbytes);
    return block;
  }
  static constexpr size_t rounded(size_t nbytes) { return (nbytes + 63) & ~size_t{63}; }

 private:
  static constexpr size_t kInline = 12 * 1024;
  ScratchBlock block_;
  char* next_;
  alignas(64) char inline_[kInline];
};

// Bytes `give_buffer` takes from the arena for tiles of n elements.
size_t buffer_bytes(const View& view, int64_t n);
Buffer give_buffer(const View& view, int64_t n, Arena& arena);

}  // namespace weft::tile

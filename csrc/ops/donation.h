// Donations: memory of a tensor that nobody reads any more, for the result of what reads it last.
//
// A compiled program knows where a tensor dies. The operator there may write its result where the
// tensor lies: nothing is asked of the allocator, and what is written is in the cache already.
#pragma once

#include "ops/tile.h"

namespace weft::tile {

// Results of fewer elements than this take memory of their own: that is cheaper than to ask.
int64_t least_donated() noexcept;
void set_least_donated(int64_t numel) noexcept;

// While it lives, the next tile program of this thread that reads `tensor` may put a result in its
// place, if that has the same dtype, sizes and strides. Requires: nobody else can see the tensor's
// memory, no gradient is recorded, and the caller drops the tensor without reading it again.
class Donation {
 public:
  explicit Donation(const Tensor& tensor) noexcept;
  explicit Donation(std::nullptr_t) noexcept;  // nothing is given, whatever the caller said
  ~Donation();
  Donation(const Donation&) = delete;
  Donation& operator=(const Donation&) = delete;

 private:
  const TensorImpl* outer_;
};

// For drivers: whether there is a donation; a tensor of these sizes and strides in its memory,
// undefined where it does not fit.
bool is_given() noexcept;
Tensor take_donation(const Program& program, const Call& call, const Layout& layout, DType dtype);

// Whether no step reads an input's element after a step before it has written the result's: then a
// result may lie exactly over an input.
bool reads_before_it_writes(const Program& program);

}  // namespace weft::tile

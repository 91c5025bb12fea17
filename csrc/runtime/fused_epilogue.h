// A group as the epilogue of a product: its program runs on each part of the result as soon as the
// part is there; with row operators, on rows of which all parts are there.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "ops/epilogue.h"
#include "ops/tile_walk.h"
#include "runtime/borrowed.h"
#include "runtime/fused.h"
#include "runtime/fused_rows_run.h"

namespace weft {

// The arguments of a group: most that there may be.
using FusedArgs = Borrowed<64>;

class FusedEpilogue final : public Epilogue {
 public:
  // `args`: the group's; the last place is that of the product, and still empty. `keeps`: the
  // product itself is wanted too, so that nothing may be written over it.
  FusedEpilogue(FusedGroup& group, FusedArgs& args, bool keeps)
      : group_(group), args_(args), keeps_(keeps) {}

  bool begin(const Tensor& result, int64_t columns) override;
  void part(const Part& part) override;

  // Whether the parts were wanted.
  bool has_begun() const noexcept { return has_begun_; }
  // Whether it ran on this tensor.
  bool is_of(const Tensor& product) const;
  // Behind the last part: what is left, and the group's results.
  void finish(Value* results);

 private:
  bool begin_elements(const FusedKey& key, const Tensor& result);
  bool begin_rows(const FusedKey& key, const Tensor& result);
  void count(const Part& part);
  int64_t rows_of_block(int64_t block) const;
  bool lays_as_rows(const Dims& shape, const FusedBinding& binding) const;
  void make_results(const Tensor& product, const tile::Program& program);

  FusedGroup& group_;
  FusedArgs& args_;
  const bool keeps_;
  Value product_;  // what the last place of `args_` refers to
  bool has_begun_ = false;
  int64_t columns_ = 0;
  std::vector<Tensor> results_;
  std::optional<tile::Walk> walk_;    // of elements alone
  std::optional<FusedRowsRun> rows_;  // with row operators
  // By block of rows: elements that are not there yet; kDone when its rows have been run.
  static constexpr int64_t kDone = -1;
  std::vector<std::atomic<int64_t>> missing_;
};

}  // namespace weft

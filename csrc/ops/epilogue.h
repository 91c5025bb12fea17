// What is computed together with a matrix product or a convolution, part by part. An epilogue is
// made of the result, by the thread that has just computed a part and still has it in its caches. A
// prologue makes an operand, a part at a time, just before the part is multiplied.
#pragma once

#include "core/tensor.h"

namespace weft {

// A rectangle of a result that is seen as a matrix, as it lies in memory.
struct Part {
  int64_t row, rows, column, columns;
};

class Epilogue {
 public:
  // The result, contiguous, before its values are there; parts count in rows of `columns` elements.
  // False: no parts are wanted.
  virtual bool begin(const Tensor& result, int64_t columns) = 0;
  // These values are final. Called by any thread; each element is in one part.
  virtual void part(const Part& part) = 0;

 protected:
  ~Epilogue() = default;
};

// One operand of a product, or the image of a convolution. The operator gets a tensor of its sizes
// and dtype that has no memory, and asks for the parts that it reads, or for the whole.
class Prologue {
 public:
  // Before the first part; parts count in rows of `columns` elements. False: there is only the
  // whole.
  virtual bool begin(int64_t columns) = 0;
  // This part of the operand without gaps to `out`. Called by any thread.
  virtual void part(const Part& part, void* out) = 0;
  virtual Tensor whole() = 0;

 protected:
  ~Prologue() = default;
};

// Both, or none. `right`: the prologue makes the right operand of the product, not the left one.
struct Around {
  Around(Epilogue* behind = nullptr, Prologue* before = nullptr,  // NOLINT: an epilogue alone
         bool right = false)
      : behind(behind), before(before), right(right) {}

  Prologue* left_of() const { return right ? nullptr : before; }
  Prologue* right_of() const { return right ? before : nullptr; }

  Epilogue* behind;
  Prologue* before;
  bool right;
};

// For operators that are called as programs call them, so that they record what they must: the next
// product or convolution of this thread takes the epilogue, while the scope lasts.
class EpilogueScope {
 public:
  explicit EpilogueScope(Epilogue* epilogue);
  ~EpilogueScope();
  EpilogueScope(const EpilogueScope&) = delete;
  EpilogueScope& operator=(const EpilogueScope&) = delete;

  static Around take();
};

// Elements worth a part of their own.
inline constexpr int64_t kPartElements = 16384;

// What a loop tells of the block of the result that it computes; nothing where there is no
// epilogue.
class Finish {
 public:
  Finish() = default;
  explicit Finish(Epilogue* epilogue) : epilogue_(epilogue) {}

  // Of the block that begins at this row and column of the present one.
  Finish at(int64_t row, int64_t column) const {
    return Finish(epilogue_, row_ + row, column_ + column);
  }
  // The first rows and columns of the block are final.
  void operator()(int64_t rows, int64_t columns) const {
    if (epilogue_ && rows > 0 && columns > 0) {
      epilogue_->part({row_, rows, column_, columns});
    }
  }

 private:
  Finish(Epilogue* epilogue, int64_t row, int64_t column)
      : epilogue_(epilogue), row_(row), column_(column) {}

  Epilogue* epilogue_ = nullptr;
  int64_t row_ = 0, column_ = 0;
};

}  // namespace weft

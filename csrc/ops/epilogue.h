// What is made of the result of a matrix product or a convolution, element by element: part by
// part, by the thread that has just computed a part and still has it in its caches.
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

// Products of a few rows with a matrix. One that is read once is read where it lies: layers of
// small batches, decoders. Memory sets the speed: packing the matrix would double its traffic. One
// that is met again and again is packed: recurrent steps.
#pragma once

#include "core/thread_pool.h"
#include "ops/blas.h"
#include "ops/scratch.h"

namespace weft::blas {

// Whether m rows times b go this way. T: float, double; of unsigned integers one row.
template <class T>
bool takes_few_rows(int64_t m, const Matrix<const T>& b);

// c = alpha * a @ b + beta * c on this thread. Element (p, j) of b lies row by row (column == 1) or
// column by column (row == 1). The values of a column do not depend on its neighbours, but in the
// last n % 64.
template <class T>
void few_rows(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
              const Matrix<const T>& b, T beta, T* c, int64_t c_row);

// A matrix of k rows and groups * n columns that few rows meet at a time, `rows` of them in all. It
// is packed in strips of columns whose sums fit the registers, unless it meets too few. Groups are
// cut alike: who owns some columns of each owns the same hidden units in each gate. T: float,
// double.
template <class T>
class PackedMatrix {
 public:
  // Who keeps so many packed elements, which `fill` writes; null: nobody.
  using Keep = FunctionRef<const T*(int64_t elements, FunctionRef<void(T*)> fill)>;

  // `bias`: what each row of a product starts from, or null.
  PackedMatrix(
      const Matrix<const T>& b, int64_t k, int64_t groups, int64_t n, const T* bias, int64_t rows,
      Keep keep = [](int64_t, FunctionRef<void(T*)>) -> const T* { return nullptr; });

  // Calls body(first, last) for columns [first, last) of a group, on the threads if that pays for m
  // rows: the same columns on the same thread each time.
  void for_each_share(int64_t m, FunctionRef<void(int64_t, int64_t)> body) const;

  // Such a share of all groups of c = a @ b + bias + start. a: m rows without gaps; start: null for
  // zeros, or rows as far apart as those of c.
  void multiply(int64_t first, int64_t last, int64_t m, const T* a, int64_t a_row, const T* start,
                T* c, int64_t c_row) const;

 private:
  int64_t elements() const { return strips_ * groups_ * k_ * width_; }
  void pack(T* to) const;

  const Matrix<const T> b_;
  const T* const bias_;
  const int64_t k_, groups_, n_, width_, strips_;  // width_: columns of a strip
  const T* const kept_;
  mutable Scratch<T> packed_, starts_;
};

}  // namespace weft::blas

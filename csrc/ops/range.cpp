// Tensors with a pattern: arange, linspace, eye, triangles, one_hot.
#include <cmath>

#include "core/thread_pool.h"
#include "native_factories.h"
#include "native_indexing.h"
#include "ops/factory.h"
#include "ops/support.h"

namespace weft::native {
namespace {

// Elements of [start, end) in steps; exact where all three are integers.
int64_t count_steps(const Scalar& start, const Scalar& end, const Scalar& step, bool integers) {
  if (integers) {
    const __int128 distance = static_cast<__int128>(end.to_int()) - start.to_int();
    const int64_t by = step.to_int();
    WEFT_CHECK(by != 0, "arange: expected a step other than 0, got 0");
    WEFT_CHECK((by > 0) == (distance >= 0) || distance == 0,
               "arange: expected a step that leads from ", start, " to ", end, ", got ", step);
    const __int128 count = distance == 0 ? 0 : (distance - (by > 0 ? 1 : -1)) / by + 1;
    WEFT_CHECK(count <= INT64_MAX / 16, "arange: expected a size that fits in memory, got ",
               static_cast<double>(count), " elements");
    return static_cast<int64_t>(count);
  }
  const double from = start.to_double(), to = end.to_double(), by = step.to_double();
  WEFT_CHECK(by != 0, "arange: expected a step other than 0, got 0");
  WEFT_CHECK(std::isfinite(from) && std::isfinite(to), "arange: expected finite bounds, got ",
             start, " and ", end);
  WEFT_CHECK((by > 0 && to >= from) || (by < 0 && to <= from),
             "arange: expected a step that leads from ", start, " to ", end, ", got ", step);
  const double count = std::ceil((to - from) / by);
  WEFT_CHECK(count <= 0x1p59, "arange: expected a size that fits in memory, got ", count,
             " elements");
  return static_cast<int64_t>(count);
}

void check_numeric(const char* op, DType dtype) {
  WEFT_CHECK_AS(NotImplemented, dtype != DType::Bool, op, ": expected a numeric dtype, got bool");
}

}  // namespace

// Integer results as PyTorch makes them: the values are made of start and step without their
// fractions; so is the number of an int64 result, that of a narrower one of the numbers as given.
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, MaybeDType dtype,
              MaybeInt layout, MaybeDevice device, MaybeBool pin_memory) {
  WEFT_CHECK(!start.is_complex() && !end.is_complex() && !step.is_complex(),
             "arange: expected real numbers, got ", start, ", ", end, " and ", step);
  const bool integers = start.is_integral() && end.is_integral() && step.is_integral();
  const DType kind = dtype ? *dtype : integers ? DType::I64 : default_dtype();
  check_numeric("arange", kind);
  WEFT_CHECK_AS(NotImplemented, !is_complex(kind), "arange: expected a real dtype, got ", kind);
  const int64_t size[] = {
      kind == DType::I64 && !integers
          ? count_steps(Scalar(start.to_int()), Scalar(end.to_int()), Scalar(step.to_int()), true)
          : count_steps(start, end, step, integers)};
  Tensor out = make_empty("arange", size, {kind, layout, device, pin_memory, {}});
  dispatch(kind, [&]<class T>(std::type_identity<T>) {
    T* data = out.data_as<T>();
    parallel_for(size[0], 1 << 15, [&](int64_t begin, int64_t last) {
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        // Unsigned: the product may wrap for narrow results, as a cast would.
        const auto from = static_cast<uint64_t>(start.to_int()),
                   by = static_cast<uint64_t>(step.to_int());
        for (int64_t i = begin; i < last; ++i)
          data[i] = static_cast<T>(from + static_cast<uint64_t>(i) * by);
        return;
      }
      const double from = start.to_double(), by = step.to_double();
      for (int64_t i = begin; i < last; ++i)
        data[i] = cast_number<T>(from + static_cast<double>(i) * by);
    });
  });
  return out;
}

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, MaybeDType dtype,
                MaybeInt layout, MaybeDevice device, MaybeBool pin_memory) {
  WEFT_CHECK(steps >= 0, "linspace: expected steps >= 0, got ", steps);
  const bool complex = start.is_complex() || end.is_complex();
  const DType kind = dtype ? *dtype : complex ? complex_of(default_dtype()) : default_dtype();
  WEFT_CHECK(!complex || is_complex(kind),
             "linspace: expected a complex dtype for complex bounds, got ", kind);
  if (steps > 1) check_numeric("linspace", kind);
  check_range(start, kind, "linspace");
  check_range(end, kind, "linspace");
  const int64_t size[] = {steps};
  Tensor out = make_empty("linspace", size, {kind, layout, device, pin_memory, {}});
  dispatch(kind, [&]<class T>(std::type_identity<T>) {
    // Steps are taken in the result's type where it is floating, and from both ends to the middle.
    using Real = std::conditional_t<is_complex_number<T>, std::complex<double>,
                                    std::conditional_t<std::is_same_v<T, float>, float, double>>;
    constexpr bool whole = std::is_integral_v<T> && !std::is_same_v<T, bool>;
    using Bound = std::conditional_t<whole, T, Real>;  // bounds of integers lose their fractions
    const auto from = static_cast<Real>(number_as<Bound>(start));
    const auto to = static_cast<Real>(number_as<Bound>(end));
    const Real by =
        steps > 1 ? (to - from) / static_cast<Real>(static_cast<double>(steps - 1)) : Real(0);
    T* data = out.data_as<T>();
    for (int64_t i = 0; i < steps; ++i) {
      const bool front = i < steps / 2 || steps == 1;
      const auto offset = static_cast<Real>(static_cast<double>(front ? i : steps - 1 - i));
      const Real value = front ? from + by * offset : to - by * offset;
      if constexpr (is_complex_number<T>) {
        data[i] = static_cast<T>(value);
      } else {
        data[i] = cast_number<T>(static_cast<double>(value));
      }
    }
  });
  return out;
}

Tensor eye(int64_t n, int64_t m, MaybeDType dtype, MaybeInt layout, MaybeDevice device,
           MaybeBool pin_memory) {
  WEFT_CHECK(n >= 0 && m >= 0, "eye: expected sizes >= 0, got ", n, " and ", m);
  const int64_t size[] = {n, m};
  Tensor out = zeros(size, dtype, layout, device, pin_memory);
  dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
    for (int64_t i = 0; i < std::min(n, m); ++i) out.data_as<T>()[i * m + i] = cast_number<T>(1);
  });
  return out;
}

namespace {

// Copies of the matrices of self with zeros outside columns [first(row), last(row)).
template <class Range>
Tensor triangle(const char* op, const Tensor& self, Range&& range) {
  WEFT_CHECK(self.dim() >= 2, op, ": expected at least 2 dims, got shape ", AsTuple{self.sizes()});
  const Tensor from = in_order(self);
  Tensor out = Tensor::empty(self.sizes(), self.dtype(), self.device(), op);
  const int64_t rows = self.size(-2), columns = self.size(-1);
  const int64_t lines = columns == 0 ? 0 : self.numel() / columns;
  dispatch_size(self.dtype(), [&]<class T>(std::type_identity<T>) {
    parallel_for(lines, (int64_t{1} << 15) / std::max<int64_t>(columns, 1) + 1,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t line = begin; line < end; ++line) {
                     const auto [first, last] = range(line % rows, columns);
                     const T* source = from.data_as<const T>() + line * columns;
                     T* to = out.data_as<T>() + line * columns;
                     std::fill(to, to + first, T(0));
                     std::copy(source + first, source + last, to + first);
                     std::fill(to + last, to + columns, T(0));
                   }
                 });
  });
  return out;
}

struct Columns {
  int64_t first, last;
};

// row + diagonal held inside [0, columns], whatever the diagonal.
int64_t column_of(int64_t row, int64_t diagonal, int64_t columns) {
  int64_t column = 0;
  if (__builtin_add_overflow(row, diagonal, &column)) return columns;
  return std::clamp<int64_t>(column, 0, columns);
}

}  // namespace

Tensor tril(const Tensor& self, int64_t diagonal) {
  return triangle("tril", self, [&](int64_t row, int64_t columns) {
    return Columns{0, column_of(row + 1, diagonal, columns)};
  });
}

Tensor triu(const Tensor& self, int64_t diagonal) {
  return triangle("triu", self, [&](int64_t row, int64_t columns) {
    return Columns{column_of(row, diagonal, columns), columns};
  });
}

Tensor one_hot(const Tensor& self, int64_t num_classes) {
  WEFT_CHECK(self.dtype() == DType::I64, "one_hot: expected an int64 tensor, got ", self.dtype());
  const Tensor classes = in_order(self);
  const int64_t* values = classes.data_as<const int64_t>();
  int64_t largest = -1;
  for (int64_t i = 0; i < classes.numel(); ++i) {
    WEFT_CHECK(values[i] >= 0, "one_hot: expected classes >= 0, got ", values[i]);
    largest = std::max(largest, values[i]);
  }
  WEFT_CHECK(num_classes > 0 || (num_classes == -1 && largest >= 0),
             "one_hot: expected num_classes > 0, or -1 for classes that are there, got ",
             num_classes);
  if (num_classes == -1) num_classes = largest + 1;
  WEFT_CHECK(largest < num_classes, "one_hot: expected classes in [0, ", num_classes - 1, "], got ",
             largest);
  Dims sizes = self.sizes();
  sizes.push_back(num_classes);
  Tensor out = zeros_of(sizes, DType::I64, classes.device(), "one_hot");
  for (int64_t i = 0; i < classes.numel(); ++i)
    out.data_as<int64_t>()[i * num_classes + values[i]] = 1;
  return out;
}

}  // namespace weft::native

#include "core/thread_pool.h"
#include "ops/tile_testing.h"
#include "ops_views.h"
#include "testing.h"

namespace weft::tile::testing {
namespace {

// --- kernels: all five of a sum; of a maximum and its place; of softmax; of a mean ---

const KernelSet k_sum_row = kernels<int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      T sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += static_cast<const T*>(p[1])[i];
      *static_cast<T*>(p[0]) += sum;
    });
const KernelSet k_sum_rows = kernels<int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      for (int64_t i = 0; i < n; ++i) static_cast<T*>(p[0])[i] += static_cast<const T*>(p[1])[i];
    });
const KernelSet k_zero = kernels<int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      std::fill_n(static_cast<T*>(p[0]), n, T(0));
    });
const KernelSet k_copy = kernels<int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      std::copy_n(static_cast<const T*>(p[1]), n, static_cast<T*>(p[0]));
    });
const KernelSet k_copy_int = kernels<int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      std::copy_n(static_cast<const int64_t*>(p[1]), n, static_cast<int64_t*>(p[0]));
    });
const KernelSet k_mean =
    kernels<float, double>([]<class T>(void* const* p, int64_t n, const ScalarSlot* s) {
      const T length = static_cast<T>(scalar_at<int64_t>(s, kRowLengthSlot));
      for (int64_t i = 0; i < n; ++i) {
        static_cast<T*>(p[0])[i] = static_cast<const T*>(p[1])[i] / length;
      }
    });

template <class T>
void take_greater(T* best, int64_t* where, T value, int64_t index) {
  if (value > *best || (value == *best && index < *where)) {
    *best = value;
    *where = index;
  }
}
const KernelSet k_argmax_row = kernels<int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot* s) {
      const int64_t position = scalar_at<int64_t>(s, kPositionSlot);
      for (int64_t i = 0; i < n; ++i) {
        take_greater(static_cast<T*>(p[0]), static_cast<int64_t*>(p[1]),
                     static_cast<const T*>(p[2])[i], position + i);
      }
    });
const KernelSet k_argmax_rows = kernels<int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot* s) {
      const int64_t position = scalar_at<int64_t>(s, kPositionSlot);
      for (int64_t i = 0; i < n; ++i) {
        take_greater(static_cast<T*>(p[0]) + i, static_cast<int64_t*>(p[1]) + i,
                     static_cast<const T*>(p[2])[i], position);
      }
    });
const KernelSet k_argmax_identity = kernels<int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      std::fill_n(static_cast<T*>(p[0]), n, std::numeric_limits<T>::lowest());
      std::fill_n(static_cast<int64_t*>(p[1]), n, INT64_MAX);
    });
const KernelSet k_argmax_merge = kernels<int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      for (int64_t i = 0; i < n; ++i) {
        take_greater(static_cast<T*>(p[0]) + i, static_cast<int64_t*>(p[1]) + i,
                     static_cast<const T*>(p[2])[i], static_cast<const int64_t*>(p[3])[i]);
      }
    });

template <class T>
T row_value(const ScalarSlot* s, int read) {
  return scalar_at<T>(s, kFirstAttribute + read);
}
const KernelSet k_exp_less_row =
    kernels<float, double>([]<class T>(void* const* p, int64_t n, const ScalarSlot* s) {
      for (int64_t i = 0; i < n; ++i) {
        static_cast<T*>(p[0])[i] = std::exp(static_cast<const T*>(p[1])[i] - row_value<T>(s, 0));
      }
    });
const KernelSet k_exp_less_rows =
    kernels<float, double>([]<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      for (int64_t i = 0; i < n; ++i) {
        static_cast<T*>(p[0])[i] =
            std::exp(static_cast<const T*>(p[1])[i] - static_cast<const T*>(p[2])[i]);
      }
    });
const KernelSet k_divide_row =
    kernels<float, double>([]<class T>(void* const* p, int64_t n, const ScalarSlot* s) {
      for (int64_t i = 0; i < n; ++i) {
        static_cast<T*>(p[0])[i] = static_cast<const T*>(p[1])[i] / row_value<T>(s, 0);
      }
    });
const KernelSet k_divide_rows =
    kernels<float, double>([]<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      for (int64_t i = 0; i < n; ++i) {
        static_cast<T*>(p[0])[i] = static_cast<const T*>(p[1])[i] / static_cast<const T*>(p[2])[i];
      }
    });
const KernelSet k_max_row = kernels<int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      T& best = *static_cast<T*>(p[0]);
      for (int64_t i = 0; i < n; ++i) best = std::max(best, static_cast<const T*>(p[1])[i]);
    });
const KernelSet k_max_rows = kernels<int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      for (int64_t i = 0; i < n; ++i) {
        T& best = static_cast<T*>(p[0])[i];
        best = std::max(best, static_cast<const T*>(p[1])[i]);
      }
    });
const KernelSet k_lowest = kernels<int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      std::fill_n(static_cast<T*>(p[0]), n, std::numeric_limits<T>::lowest());
    });

// --- programs ---

constexpr Slot k_input{SlotKind::Input, SlotType::Compute};
constexpr Slot k_row{SlotKind::Row, SlotType::Compute};
constexpr Slot k_row_output{SlotKind::Output, SlotType::Compute, 0, false, true};
constexpr Pass k_two_steps[] = {{0, 2}};

constexpr Step fold(const KernelSet& row, const KernelSet& rows, const KernelSet& identity,
                    const KernelSet& merge, uint8_t state, uint8_t input) {
  return {.horizontal = &row,
          .vertical = &rows,
          .states = 1,
          .identity = &identity,
          .merge = &merge,
          .operand_count = 2,
          .operands = {state, input}};
}
constexpr Step once_a_row(const KernelSet& kernel, uint8_t result, uint8_t row) {
  return {.vertical = &kernel,
          .operand_count = 1,
          .operands = {result},
          .row_read_count = 1,
          .row_reads = {row}};
}

const Slot k_reduce_slots[] = {k_input, k_row, k_row_output};
const Step k_sum_steps[] = {fold(k_sum_row, k_sum_rows, k_zero, k_sum_rows, 1, 0),
                            once_a_row(k_copy, 2, 1)};
const Step k_mean_steps[] = {fold(k_sum_row, k_sum_rows, k_zero, k_sum_rows, 1, 0),
                             once_a_row(k_mean, 2, 1)};
const Step k_max_steps[] = {fold(k_max_row, k_max_rows, k_lowest, k_max_rows, 1, 0),
                            once_a_row(k_copy, 2, 1)};

Program reduction(const char* name, std::span<const Step> steps, Promotion promotion) {
  return {.name = name,
          .input_count = 1,
          .output_count = 1,
          .attribute_count = 0,
          .promotion = promotion,
          .row = true,
          .slots = k_reduce_slots,
          .steps = steps,
          .passes = k_two_steps};
}
const Program k_sum = reduction("sum", k_sum_steps, Promotion::Sum);
const Program k_mean_program = reduction("mean", k_mean_steps, Promotion::Floating);
const Program k_max = [] {
  Program program = reduction("amax", k_max_steps, Promotion::Common);
  program.needs_elements = true;
  return program;
}();

const Slot k_argmax_slots[] = {k_input,
                               {SlotKind::Output, SlotType::Compute, 0, false, true},
                               {SlotKind::Output, SlotType::Int64, 1, false, true},
                               k_row,
                               {SlotKind::Row, SlotType::Int64}};
const Step k_argmax_steps[] = {{.horizontal = &k_argmax_row,
                                .vertical = &k_argmax_rows,
                                .states = 2,
                                .identity = &k_argmax_identity,
                                .merge = &k_argmax_merge,
                                .operand_count = 3,
                                .operands = {3, 4, 0}},
                               once_a_row(k_copy, 1, 3),
                               once_a_row(k_copy_int, 2, 4)};
const Pass k_argmax_passes[] = {{0, 3}};
const Program k_argmax{.name = "max",
                       .input_count = 1,
                       .output_count = 2,
                       .attribute_count = 0,
                       .promotion = Promotion::Common,
                       .row = true,
                       .needs_elements = true,
                       .uses_position = true,
                       .slots = k_argmax_slots,
                       .steps = k_argmax_steps,
                       .passes = k_argmax_passes};

// The sum of x[i] * (i + 1): which element has which place matters, though no slot holds a place.
const KernelSet k_weigh_row =
    kernels<double>([]<class T>(void* const* p, int64_t n, const ScalarSlot* s) {
      const int64_t position = scalar_at<int64_t>(s, kPositionSlot);
      for (int64_t i = 0; i < n; ++i) {
        *static_cast<T*>(p[0]) += static_cast<const T*>(p[1])[i] * static_cast<T>(position + i + 1);
      }
    });
const KernelSet k_weigh_rows =
    kernels<double>([]<class T>(void* const* p, int64_t n, const ScalarSlot* s) {
      const T weight = static_cast<T>(scalar_at<int64_t>(s, kPositionSlot) + 1);
      for (int64_t i = 0; i < n; ++i) {
        static_cast<T*>(p[0])[i] += static_cast<const T*>(p[1])[i] * weight;
      }
    });
const Step k_weigh_steps[] = {fold(k_weigh_row, k_weigh_rows, k_zero, k_sum_rows, 2, 0),
                              once_a_row(k_copy, 1, 2)};
const Program k_weigh = [] {
  Program program = reduction("weigh", k_weigh_steps, Promotion::Common);
  program.uses_position = true;
  return program;
}();

// pass 0: greatest; pass 1: e = keep(exp(x - greatest)), total; pass 2: e / total
const Slot k_softmax_slots[] = {k_input,
                                {SlotKind::Output, SlotType::Compute},
                                k_row,
                                k_row,
                                {SlotKind::Tile, SlotType::Compute, 0, true}};
const Step k_softmax_steps[] = {fold(k_max_row, k_max_rows, k_lowest, k_max_rows, 2, 0),
                                {.horizontal = &k_exp_less_row,
                                 .vertical = &k_exp_less_rows,
                                 .operand_count = 2,
                                 .operands = {4, 0},
                                 .row_read_count = 1,
                                 .row_reads = {2}},
                                fold(k_sum_row, k_sum_rows, k_zero, k_sum_rows, 3, 4),
                                {.horizontal = &k_divide_row,
                                 .vertical = &k_divide_rows,
                                 .operand_count = 2,
                                 .operands = {1, 4},
                                 .row_read_count = 1,
                                 .row_reads = {3}}};
const Pass k_softmax_passes[] = {{0, 1}, {1, 2}, {3, 1}};
const Program k_softmax{.name = "softmax",
                        .input_count = 1,
                        .output_count = 1,
                        .attribute_count = 0,
                        .promotion = Promotion::Floating,
                        .row = true,
                        .slots = k_softmax_slots,
                        .steps = k_softmax_steps,
                        .passes = k_softmax_passes};

// --- reference ---

struct Rows {
  Dims shape;                             // of the per-row result, without the row
  std::vector<std::vector<size_t>> rows;  // row-major element numbers
};

Rows rows_of(IntList shape, IntList dims) {
  std::vector<bool> in_row(shape.size(), dims.empty());
  for (int64_t d : dims) {
    if (!shape.empty()) in_row[d < 0 ? d + shape.size() : d] = true;
  }
  Rows result;
  size_t rows = 1, numel = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    numel *= shape[d];
    if (in_row[d]) continue;
    result.shape.push_back(shape[d]);
    rows *= shape[d];
  }
  result.rows.resize(rows);
  for (size_t i = 0; i < numel; ++i) {
    size_t rest = i, row = 0, scale = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      if (!in_row[d]) {
        row += rest % shape[d] * scale;
        scale *= shape[d];
      }
      rest /= shape[d];
    }
    result.rows[row].push_back(i);
  }
  return result;
}

Tensor call(const Program& program, const Tensor& input, IntList dims, bool keepdim = false,
            Tensor result = {}) {
  const Tensor* inputs[] = {&input};
  run(program, {.inputs = inputs, .dims = dims, .keepdim = keepdim}, {&result, 1});
  return result;
}

Dims random_dims(Random& random, size_t ndim) {
  Dims dims;
  for (size_t d = 0; d < ndim; ++d) {
    if (random.below(2)) dims.push_back(static_cast<int64_t>(d) - (random.below(2) ? ndim : 0));
  }
  return dims;
}

// Elements are small integers: sums of floats are exact.
void check_sums(const Tensor& x, const Dims& dims, bool keepdim = false) {
  const Rows reference = rows_of(x.sizes(), dims);
  const Tensor sum = call(k_sum, x, dims, keepdim);
  CHECK_EQ(sum.dtype(), is_floating(x.dtype()) ? x.dtype() : DType::I64);
  if (!keepdim) CHECK_EQ(sum.sizes(), reference.shape);
  if (keepdim) CHECK_EQ(sum.dim(), x.dim());
  const auto elements = values(x), sums = values(sum);
  CHECK_EQ(sums.size(), reference.rows.size());
  for (size_t r = 0; r < sums.size(); ++r) {
    double total = 0;
    for (size_t i : reference.rows[r]) total += elements[i];
    if (x.dtype() == DType::F16) {
      total = total > 65504 + 15 ? INFINITY : static_cast<float>(Half(static_cast<float>(total)));
    }
    CHECK_EQ(sums[r], total);
  }
}

constexpr DType kSummed[] = {DType::F32, DType::F64, DType::I64, DType::F16, DType::Bool};

TEST(tile_row_random_sums) {
  Random random(21);
  for (int round = 0; round < 500; ++round) {
    const Dims shape = random.shape(4, round % 20 == 0 ? 300000 : 4000);
    const Tensor x = random.tensor(shape, kSummed[random.below(5)], round % 3 == 0);
    const Dims dims = random_dims(random, shape.size());
    check_sums(x, dims, random.below(2));
  }
}

// Blocks of few columns span neighbours along the row, whatever stands around them.
TEST(tile_row_sums_of_narrow_blocks) {
  Random random(27);
  for (const Dims& shape :
       {Dims{3, 700, 5}, Dims{2, 3, 400, 4}, Dims{5, 130, 64}, Dims{4, 1025, 2}}) {
    for (DType dtype : kSummed) {
      for (bool contiguous : {true, false}) {
        const Tensor x = random.tensor(shape, dtype, contiguous);
        check_sums(x, Dims{-2});
        check_sums(ops::transpose(x, 0, -1), Dims{-2});
        check_sums(ops::slice(x, 0, 1, {}, 2), Dims{-2}, true);
      }
    }
  }
}

TEST(tile_row_random_results) {
  Random random(22);
  for (int round = 0; round < 200; ++round) {
    const Dims shape = random.shape(4, 4000);
    const Tensor x = random.tensor(shape, DType::F32);
    const Dims dims = random_dims(random, shape.size());
    const Rows reference = rows_of(shape, dims);
    const Tensor result = random.tensor(reference.shape, round % 2 ? DType::F32 : DType::F64);
    call(k_sum, x, dims, false, result);
    CHECK_TRUE(values(result) == values(call(k_sum, x, dims)));
  }
}

TEST(tile_row_positions_follow_the_dimensions) {
  Random random(24);
  for (int round = 0; round < 300; ++round) {
    const Dims shape = random.shape(4, 4000);
    const Tensor x = random.tensor(shape, DType::F64);  // any strides
    const Dims dims = random_dims(random, shape.size());
    const Rows reference = rows_of(shape, dims);
    const auto elements = values(x), sums = values(call(k_weigh, x, dims));
    for (size_t r = 0; r < sums.size(); ++r) {
      double total = 0;
      const auto& row = reference.rows[r];
      for (size_t i = 0; i < row.size(); ++i) {
        total += elements[row[i]] * static_cast<double>(i + 1);
      }
      CHECK_EQ(sums[r], total);  // whole numbers: exact in any order
    }
  }
}

TEST(tile_row_random_argmax) {
  Random random(23);
  for (int round = 0; round < 300; ++round) {
    const Dims shape = random.shape(4, round % 20 == 0 ? 300000 : 4000);
    const Tensor x = random.tensor(shape, round % 2 ? DType::F32 : DType::I32, round % 3 == 0);
    const Dims dims = random_dims(random, shape.size());
    const Rows reference = rows_of(shape, dims);
    Tensor results[2];
    const Tensor* inputs[] = {&x};
    run(k_argmax, {.inputs = inputs, .dims = dims}, results);
    CHECK_EQ(results[1].dtype(), DType::I64);
    const auto elements = values(x), best = values(results[0]), where = values(results[1]);
    for (size_t r = 0; r < best.size(); ++r) {
      size_t first = 0;
      const auto& row = reference.rows[r];
      for (size_t i = 1; i < row.size(); ++i) {
        if (elements[row[i]] > elements[row[first]]) first = i;
      }
      CHECK_EQ(best[r], elements[row[first]]);
      CHECK_EQ(where[r], static_cast<double>(first));
    }
  }
}

TEST(tile_row_random_softmax) {
  constexpr DType dtypes[] = {DType::F32, DType::F64, DType::I64, DType::F16};
  Random random(24);
  for (int round = 0; round < 300; ++round) {
    const Dims shape = random.shape(4, round % 20 == 0 ? 300000 : 4000);
    const Tensor x = random.tensor(shape, dtypes[random.below(4)], round % 3 == 0);
    const Dims dims = random_dims(random, shape.size());
    const Rows reference = rows_of(shape, dims);
    // In place where it fits: later passes must still see the input.
    const auto elements = values(x);
    const bool in_place = random.below(3) == 0 && x.dtype() != DType::I64;
    const Tensor result = call(k_softmax, x, dims, false, in_place ? x : Tensor());
    const auto shares = values(result);
    for (const auto& row : reference.rows) {
      double total = 0, greatest = -INFINITY;
      for (size_t i : row) greatest = std::max(greatest, elements[i]);
      for (size_t i : row) total += std::exp(elements[i] - greatest);
      for (size_t i : row) {
        const double share = std::exp(elements[i] - greatest) / total;
        CHECK_NEAR(shares[i], share, (x.dtype() == DType::F16 ? 1e-3 : 1e-5) * share + 1e-7);
      }
    }
  }
}

TEST(tile_row_long_rows_are_summed_pairwise) {
  const int64_t n = 1 << 24;
  const Tensor tenth = Tensor::scalar(0.1, DType::F32);
  const Tensor line = expand(tenth, Dims{n});
  const double exact = static_cast<double>(0.1f) * static_cast<double>(n);
  CHECK_NEAR(call(k_sum, line, {}).item().to_double(), exact, exact * 5e-5);
  const Tensor columns = expand(tenth, Dims{n / 4, 4});
  for (double sum : values(call(k_sum, columns, Dims{0}))) CHECK_NEAR(sum, exact / 4, exact * 5e-5);
}

TEST(tile_row_sum_does_not_depend_on_threads) {
  Random random(25);
  const int before = num_threads();
  const Dims shapes[] = {{1000003},  {2, 400009}, {300007, 3},
                         {9011, 70}, {1025, 530}, {9, 4099, 8}};
  for (const Dims& shape : shapes) {
    const Tensor x = random.tensor(shape, DType::F32, true);
    float* data = x.data_as<float>();
    for (int64_t i = 0; i < x.numel(); ++i) data[i] = std::sin(static_cast<float>(i));
    for (const Dims& dims : {Dims{}, Dims{0}, Dims{x.dim() / 2}, Dims{-1}}) {
      set_num_threads(1);
      const auto one = values(call(k_sum, x, dims));
      set_num_threads(3);
      const auto three = values(call(k_sum, x, dims));
      CHECK_TRUE(one == three);
    }
  }
  set_num_threads(before);
}

TEST(tile_row_long_rows_in_several_passes) {
  Random random(26);
  const Dims shapes[] = {{600001}, {2, 300001}, {300001, 2}, {9001, 65}, {3, 5001, 7}};
  for (const Dims& shape : shapes) {
    const Tensor x = random.tensor(shape, DType::F32, true);
    for (int64_t dim : {int64_t{0}, x.dim() / 2, int64_t{-1}}) {
      const Tensor sums = call(k_sum, call(k_softmax, x, Dims{dim}), Dims{dim});
      for (double sum : values(sums)) CHECK_NEAR(sum, 1, 1e-4);
    }
  }
}

TEST(tile_row_edges) {
  Random random(27);
  const Tensor none = random.tensor(Dims{0, 3}, DType::F32, true);
  CHECK_TRUE(values(call(k_sum, none, Dims{0})) == (std::vector<double>{0, 0, 0}));
  CHECK_EQ(call(k_sum, none, Dims{1}).sizes(), Dims{0});
  CHECK_EQ(call(k_sum, none, {}).item().to_double(), 0.0);
  CHECK_TRUE(std::isnan(call(k_mean_program, none, {}).item().to_double()));
  CHECK_EQ(call(k_max, none, Dims{1}).sizes(), Dims{0});
  CHECK_EQ(call(k_softmax, none, Dims{0}).sizes(), (Dims{0, 3}));
  const Tensor point = Tensor::scalar(4, DType::I32);
  CHECK_EQ(call(k_sum, point, {}).item().to_int(), 4);
  CHECK_EQ(call(k_sum, point, Dims{-1}, true).sizes(), Dims{});
  CHECK_EQ(call(k_mean_program, point, Dims{0}).dtype(), DType::F32);
  CHECK_EQ(call(k_softmax, point, Dims{0}).item().to_double(), 1.0);
  const Tensor* inputs[] = {&point};
  Tensor result;
  run(k_sum, {.inputs = inputs, .dtype = DType::F64}, {&result, 1});
  CHECK_EQ(result.dtype(), DType::F64);
}

// x less its mean, and the mean: row values beside element results keep the row's dimensions.
const Slot k_centre_slots[] = {k_input,
                               {SlotKind::Output, SlotType::Compute, 0},
                               {SlotKind::Output, SlotType::Compute, 1, false, true},
                               k_row,
                               k_row};
const KernelSet k_less_row =
    kernels<float, double>([]<class T>(void* const* p, int64_t n, const ScalarSlot* s) {
      for (int64_t i = 0; i < n; ++i) {
        static_cast<T*>(p[0])[i] = static_cast<const T*>(p[1])[i] - row_value<T>(s, 0);
      }
    });
const KernelSet k_less_rows =
    kernels<float, double>([]<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      for (int64_t i = 0; i < n; ++i) {
        static_cast<T*>(p[0])[i] = static_cast<const T*>(p[1])[i] - static_cast<const T*>(p[2])[i];
      }
    });
const Step k_centre_steps[] = {fold(k_sum_row, k_sum_rows, k_zero, k_sum_rows, 3, 0),
                               once_a_row(k_mean, 4, 3),
                               once_a_row(k_mean, 2, 3),
                               {.horizontal = &k_less_row,
                                .vertical = &k_less_rows,
                                .operand_count = 2,
                                .operands = {1, 0},
                                .row_read_count = 1,
                                .row_reads = {4}}};
const Pass k_centre_passes[] = {{0, 3}, {3, 1}};
const Program k_centre{.name = "centre",
                       .input_count = 1,
                       .output_count = 2,
                       .attribute_count = 0,
                       .promotion = Promotion::Common,
                       .row = true,
                       .slots = k_centre_slots,
                       .steps = k_centre_steps,
                       .passes = k_centre_passes};

TEST(tile_row_values_beside_elements_keep_dims) {
  Random random(29);
  for (int round = 0; round < 100; ++round) {
    const Dims shape{1 + random.below(40), 1 + random.below(300)};
    const Tensor x = random.tensor(shape, DType::F64, round % 2);
    const Tensor* inputs[] = {&x};
    const int64_t dim = round % 3 == 0 ? 0 : 1;
    const Dims dims{dim};
    Tensor results[2];
    run(k_centre, {.inputs = inputs, .dims = dims}, results);
    Dims kept = shape;
    kept[dim] = 1;
    CHECK_EQ(results[1].sizes(), kept);
    const auto elements = values(x), centred = values(results[0]);
    const auto means = values(expand(results[1], shape));
    for (size_t i = 0; i < elements.size(); ++i) {
      CHECK_NEAR(centred[i], elements[i] - means[i], 1e-12);
    }
  }
}

TEST(tile_row_errors) {
  Random random(28);
  const Tensor x = random.tensor(Dims{2, 3}, DType::F32, true);
  const Tensor none = random.tensor(Dims{0, 3}, DType::F32, true);
  CHECK_THROWS_AS(Index, call(k_sum, x, Dims{2}), "sum: expected dim in [-2, 1], got 2");
  CHECK_THROWS_AS(Index, call(k_max, none, Dims{0}),
                  "amax: expected a non-empty row, got shape (0, 3)");
  CHECK_THROWS_AS(Runtime, call(k_max, none, {}),
                  "amax: expected a non-empty row, got shape (0, 3)");
  CHECK_THROWS_AS(Runtime, call(k_sum, x, Dims{0}, false, x),
                  "sum: expected an output of shape (3,), got (2, 3)");
}

}  // namespace
}  // namespace weft::tile::testing

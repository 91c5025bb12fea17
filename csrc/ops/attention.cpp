#include "ops/attention.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "core/thread_pool.h"
#include "native_linalg.h"
#include "ops/blas.h"
#include "ops/copy.h"
#include "ops/programs.h"
#include "ops/support.h"
#include "ops/views.h"

namespace weft::attention {
namespace {

using native::as_dtype;

// The matrices of an operand whose dimensions in front are those of the result.
template <class T>
class Matrices {
 public:
  Matrices(const Tensor& tensor, IntList front) {
    Dims sizes(front);
    for (const int64_t at : {-2, -1}) sizes.push_back(tensor.size(at));
    layout_ = views::expand(tensor.layout(), sizes);
    data_ = tensor.data_as<T>();
  }

  blas::Matrix<T> at(int64_t index) const {
    const size_t last = layout_.sizes.size() - 1;
    int64_t start = 0;
    for (size_t d = last - 1; d-- > 0;) {
      start += index % layout_.sizes[d] * layout_.strides[d];
      index /= layout_.sizes[d];
    }
    return {data_ + start, layout_.strides[last - 1], layout_.strides[last]};
  }

 private:
  Layout layout_;
  T* data_;
};

template <class T>
struct Gradients {
  Matrices<T> query, key, value;
};

template <class T>
blas::Matrix<const T> from_row(const blas::Matrix<const T>& matrix, int64_t row) {
  return {matrix.data + row * matrix.row, matrix.row, matrix.column};
}

template <class T>
blas::Matrix<const T> dense(const T* data, int64_t columns) {
  return {data, columns, 1};
}

struct Sizes {
  Dims front;
  int64_t rows, keys, features, results;  // t, s, e, v
  bool is_causal;

  explicit Sizes(const Operands& o)
      : rows(o.query.size(-2)),
        keys(o.key.size(-2)),
        features(o.query.size(-1)),
        results(o.value.size(-1)),
        is_causal(o.is_causal) {
    const auto before = [](const Tensor& x) {
      const size_t dims = x.sizes().size();
      return Dims(IntList(x.sizes()).first(dims < 2 ? 0 : dims - 2));
    };
    front = broadcast_sizes("attention", before(o.query), before(o.key));
    front = broadcast_sizes("attention", front, before(o.value));
    if (o.mask.defined()) front = broadcast_sizes("attention", front, before(o.mask));
  }
  Dims with(int64_t height, int64_t width) const {
    Dims sizes = front;
    sizes.push_back(height);
    sizes.push_back(width);
    return sizes;
  }
  int64_t count() const {
    int64_t count = 1;
    for (const int64_t size : front) count *= size;
    return count;
  }
  // Query rows of a block. Each block packs keys and values again, so it has many rows; fewer where
  // its rows see different keys, and where their scores would leave the caches.
  int64_t height() const {
    constexpr int64_t kScores = 512 * 1024, kLeast = 32;
    const int64_t most = is_causal ? 64 : 128;
    return std::clamp(kScores / std::max<int64_t>(1, keys), kLeast, most);
  }
  int64_t blocks() const { return (rows + height() - 1) / height(); }  // of a matrix
  // Matrices of a block: small ones share a softmax.
  int64_t group() const {
    constexpr int64_t kShared = 4096;
    const int64_t each = std::max<int64_t>(1, rows * keys);
    return blocks() > 1 ? 1 : std::clamp(kShared / each, int64_t{1}, std::max<int64_t>(1, count()));
  }
  int64_t groups() const { return (count() + group() - 1) / group(); }
  int64_t grain(int64_t lines) const {
    const int64_t work = group() * lines * keys * (features + results);
    return (int64_t{1} << 17) / std::max<int64_t>(1, work) + 1;
  }
};

// Rows [first, first + height) of `count` matrices, and the keys that any of the rows sees.
struct Block {
  int64_t matrix, count, first, height, width;

  Block(const Sizes& s, int64_t group, int64_t row)
      : matrix(group * s.group()),
        count(std::min(s.group(), s.count() - matrix)),
        first(row),
        height(std::min(s.height(), s.rows - row)),
        width(s.is_causal ? std::min(s.keys, row + height) : s.keys) {}
  int64_t scores() const { return height * width; }  // of a matrix
};

const tile::Program& softmax() {
  static const tile::Program& program = *tile_ops::find("softmax_int");
  return program;
}
const tile::Program& softmax_backward() {
  static const tile::Program& program = *tile_ops::find("_softmax_backward_data");
  return program;
}

// A tile program over the rows of a block, in place of its first input.
void run_rows(const tile::Program& program, std::initializer_list<const Tensor*> inputs,
              const Tensor& result) {
  const int64_t last[] = {1};
  Tensor results[] = {result};
  tile::run(program, {.inputs = {inputs.begin(), inputs.size()}, .dims = last}, results);
}

// One operation on some blocks after the other; each thread has its own.
template <class T>
class Worker {
 public:
  Worker(const Operands& o, const Sizes& sizes)
      : o_(o),
        sizes_(sizes),
        query_(o.query, sizes.front),
        key_(o.key, sizes.front),
        value_(o.value, sizes.front),
        scores_(make_scores()) {
    if (!o.mask.defined()) return;
    const Dims all = sizes.with(sizes.rows, sizes.keys);
    const Tensor mask = o.mask.with_layout(views::expand(o.mask.layout(), all));
    if (mask.dtype() == DType::Bool) {
      allows_.emplace(mask, sizes.front);
    } else {
      added_.emplace(mask, sizes.front);
    }
  }

  void forward(const Block& b, const Matrices<T>& out) {
    const T* const weights = weigh(b).template data_as<const T>();
    for (int64_t m = 0; m < b.count; ++m) {
      const blas::Matrix<T> to = out.at(b.matrix + m);
      blas::gemm<T>(b.height, sizes_.results, b.width, T(1),
                    dense(weights + m * b.scores(), b.width), value_.at(b.matrix + m), T(0),
                    to.data + b.first * to.row, to.row);
    }
  }

  // Writes the gradients of the block's queries and adds to those of keys and values.
  void backward(const Block& b, const Matrices<const T>& grads, const Gradients<T>& to) {
    if (!products_.defined()) products_ = make_scores();
    const Tensor weights = weigh(b), products = part(products_, b);
    const T* const p = weights.data_as<const T>();
    T* const d = products.data_as<T>();
    const int64_t e = sizes_.features, v = sizes_.results;
    for (int64_t m = 0; m < b.count; ++m) {
      const int64_t i = b.matrix + m, at = m * b.scores();
      const blas::Matrix<T> value = to.value.at(i);
      const auto grad = from_row(grads.at(i), b.first);
      blas::gemm<T>(b.width, v, b.height, T(1), dense(p + at, b.width).transposed(), grad, T(1),
                    value.data, value.row);
      blas::gemm<T>(b.height, b.width, v, T(1), grad, value_.at(i).transposed(), T(0), d + at,
                    b.width);
    }
    run_rows(softmax_backward(), {&products, &weights}, products);
    const T scale = static_cast<T>(o_.scale);
    for (int64_t m = 0; m < b.count; ++m) {
      const int64_t i = b.matrix + m;
      const blas::Matrix<T> query = to.query.at(i), key = to.key.at(i);
      const auto inner = dense<T>(d + m * b.scores(), b.width);
      blas::gemm<T>(b.height, e, b.width, scale, inner, key_.at(i), T(0),
                    query.data + b.first * query.row, query.row);
      blas::gemm<T>(b.width, e, b.height, scale, inner.transposed(),
                    from_row(query_.at(i), b.first), T(1), key.data, key.row);
    }
  }

 private:
  Tensor make_scores() const {
    const int64_t lines = sizes_.group() * std::min(sizes_.height(), sizes_.rows);
    return Tensor::empty(Dims{lines * sizes_.keys}, o_.query.dtype());
  }
  static Tensor part(const Tensor& all, const Block& b) {
    return all.with_layout({{b.count * b.height, b.width}, {b.width, 1}, all.offset()});
  }

  // What each row of a block takes of each value.
  Tensor weigh(const Block& b) {
    const Tensor scores = part(scores_, b);
    blind_.clear();
    for (int64_t m = 0; m < b.count; ++m) {
      const int64_t i = b.matrix + m;
      T* const at = scores.data_as<T>() + m * b.scores();
      blas::gemm<T>(b.height, b.width, sizes_.features, static_cast<T>(o_.scale),
                    from_row(query_.at(i), b.first), key_.at(i).transposed(), T(0), at, b.width);
      if (sizes_.is_causal) hide_later_keys(b, at);
      if (allows_) {
        mask_rows(b, at, allows_->at(i),
                  [](T score, bool allows) { return allows ? score : kNever; });
      } else if (added_) {
        mask_rows(b, at, added_->at(i), [](T score, T added) { return score + added; });
      }
    }
    run_rows(softmax(), {&scores}, scores);
    for (T* const row : blind_) std::fill_n(row, b.width, T(0));
    return scores;
  }

  static void hide_later_keys(const Block& b, T* scores) {
    for (int64_t row = 0; row < b.height; ++row) {
      const int64_t seen = std::min(b.width, b.first + row + 1);
      std::fill_n(scores + row * b.width + seen, b.width - seen, kNever);
    }
  }

  // Notes rows that see no key: their weights are zeros.
  template <class M, class Fn>
  void mask_rows(const Block& b, T* scores, const blas::Matrix<const M>& mask, Fn&& fn) {
    for (int64_t i = 0; i < b.height; ++i) {
      T* const row = scores + i * b.width;
      const M* const from = mask.data + (b.first + i) * mask.row;
      bool sees = false;
      for (int64_t j = 0; j < b.width; ++j) {
        row[j] = fn(row[j], from[j * mask.column]);
        sees |= row[j] != kNever;
      }
      if (!sees) blind_.push_back(row);
    }
  }

  static constexpr T kNever = -std::numeric_limits<T>::infinity();
  const Operands& o_;
  const Sizes& sizes_;
  const Matrices<const T> query_, key_, value_;
  std::optional<Matrices<const bool>> allows_;
  std::optional<Matrices<const T>> added_;
  Tensor scores_, products_;
  std::vector<T*> blind_;
};

// Of a batch of heads (N, H, t, e) the result lies as the operand does, mostly as (N, t, H, e):
// what puts the heads beside each other again, then copies nothing. Others are row-major.
Tensor empty_like_heads(const Tensor& operand, const Dims& sizes) {
  if (sizes.size() == 4 && operand.sizes() == sizes) {
    Tensor made = empty_preserve(operand, operand.dtype(), operand.device());
    if (made.layout().strides.back() == 1) return made;
  }
  return Tensor::empty(sizes, operand.dtype(), operand.device(), "attention");
}

// Operands in the dtype that arithmetic happens in.
Operands computed(const Operands& o) {
  const DType dtype = compute_type(o.query.dtype());
  const bool added = o.mask.defined() && o.mask.dtype() != DType::Bool;
  return {as_dtype(o.query, dtype),
          as_dtype(o.key, dtype),
          as_dtype(o.value, dtype),
          added ? as_dtype(o.mask, dtype) : o.mask,
          o.is_causal,
          o.scale};
}

}  // namespace

void check(const Operands& o) {
  const char* op = "scaled_dot_product_attention";
  const DType dtype = o.query.dtype();
  WEFT_CHECK_AS(NotImplemented, is_floating(dtype), op, ": expected a floating dtype, got ", dtype);
  WEFT_CHECK(o.key.dtype() == dtype && o.value.dtype() == dtype, op,
             ": expected query, key and value of one dtype, got ", dtype, ", ", o.key.dtype(),
             " and ", o.value.dtype());
  const bool fit = o.query.dim() >= 2 && o.key.dim() >= 2 && o.value.dim() >= 2 &&
                   o.query.size(-1) == o.key.size(-1) && o.key.size(-2) == o.value.size(-2);
  WEFT_CHECK(fit, op, ": expected shapes (*, t, e), (*, s, e) and (*, s, v), got ",
             AsTuple{o.query.sizes()}, ", ", AsTuple{o.key.sizes()}, " and ",
             AsTuple{o.value.sizes()});
  if (!o.mask.defined()) return;
  const DType mask = o.mask.dtype();
  WEFT_CHECK(mask == DType::Bool || mask == DType::F32 || mask == dtype, op,
             ": expected a mask of dtype bool, float32 or ", dtype, ", got ", mask);
  const Sizes sizes(o);
  const Dims all = sizes.with(sizes.rows, sizes.keys);
  WEFT_CHECK(broadcast_sizes(op, o.mask.sizes(), all) == all, op,
             ": expected a mask that broadcasts to ", AsTuple{all}, ", got ",
             AsTuple{o.mask.sizes()});
}

Tensor forward(const Operands& given) {
  check(given);
  const Operands o = computed(given);
  const Sizes sizes(o);
  const Dims shape = sizes.with(sizes.rows, sizes.results);
  const Tensor out = empty_like_heads(o.query, shape);
  if (out.numel() == 0) return as_dtype(out, given.query.dtype());
  native::dispatch_float("attention", o.query.dtype(), [&]<class T>(std::type_identity<T>) {
    const int64_t blocks = sizes.blocks();
    const Matrices<T> to(out, sizes.front);
    parallel_for(sizes.groups() * blocks, sizes.grain(sizes.height()),
                 [&](int64_t begin, int64_t end) {
                   Worker<T> worker(o, sizes);
                   for (int64_t i = begin; i < end; ++i) {
                     worker.forward(Block(sizes, i / blocks, i % blocks * sizes.height()), to);
                   }
                 });
  });
  return as_dtype(out, given.query.dtype());
}

// Threads take whole matrices: the gradients of key and value are sums over query rows.
std::tuple<Tensor, Tensor, Tensor> backward(const Operands& given, const Tensor& grad_output) {
  check(given);
  const Operands o = computed(given);
  const Sizes sizes(o);
  const DType dtype = o.query.dtype();
  const Dims shape = sizes.with(sizes.rows, sizes.results);
  WEFT_CHECK(grad_output.sizes() == shape, "attention: expected a gradient of shape ",
             AsTuple{shape}, ", got ", AsTuple{grad_output.sizes()});
  const Tensor grad = as_dtype(grad_output, dtype);
  const auto zeros = [&](const Tensor& like, int64_t height, int64_t width) {
    Tensor made = empty_like_heads(like, sizes.with(height, width));
    fill(made, Scalar(0), "attention");
    return made;
  };
  const int64_t e = sizes.features, v = sizes.results;
  const Tensor query = zeros(o.query, sizes.rows, e), key = zeros(o.key, sizes.keys, e),
               value = zeros(o.value, sizes.keys, v);
  native::dispatch_float("attention", dtype, [&]<class T>(std::type_identity<T>) {
    const Matrices<const T> grads(grad, sizes.front);
    const Gradients<T> to{{query, sizes.front}, {key, sizes.front}, {value, sizes.front}};
    parallel_for(sizes.groups(), sizes.grain(sizes.rows), [&](int64_t begin, int64_t end) {
      Worker<T> worker(o, sizes);
      for (int64_t group = begin; group < end; ++group) {
        for (int64_t first = 0; first < sizes.rows; first += sizes.height()) {
          worker.backward(Block(sizes, group, first), grads, to);
        }
      }
    });
  });
  const DType wanted = given.query.dtype();
  return {as_dtype(query, wanted), as_dtype(key, wanted), as_dtype(value, wanted)};
}

}  // namespace weft::attention

namespace weft::native {

Tensor _attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                  bool is_causal, double scale) {
  return attention::forward({query, key, value, mask, is_causal, scale});
}

}  // namespace weft::native

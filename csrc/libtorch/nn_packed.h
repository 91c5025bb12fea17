// Items of several lengths: packed sequences, bags of embeddings.
#pragma once

#include "nn_weights.h"

namespace torch::nn {
inline namespace over_weft {
namespace utils {
namespace rnn {

using at::Tensor;

inline Tensor invert_permutation(const Tensor& order) {
  return order.defined() ? at::argsort(order) : order;
}

// The steps of all sequences, one step behind the other, without what fills them up.
class PackedSequence {
 public:
  explicit PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted = {}, Tensor unsorted = {})
      : data_(std::move(data)),
        batch_sizes_(std::move(batch_sizes)),
        sorted_(std::move(sorted)),
        unsorted_(unsorted.defined() ? std::move(unsorted) : invert_permutation(sorted_)) {}

  const Tensor& data() const { return data_; }
  const Tensor& batch_sizes() const { return batch_sizes_; }
  const Tensor& sorted_indices() const { return sorted_; }
  const Tensor& unsorted_indices() const { return unsorted_; }
  PackedSequence to(const at::TensorOptions& options) const {
    return PackedSequence(data_.to(options), batch_sizes_, sorted_, unsorted_);
  }
  PackedSequence cpu() const { return *this; }
  PackedSequence cuda() const { return to(at::kCUDA); }
  PackedSequence pin_memory() const { return *this; }
  bool is_cuda() const { return false; }
  bool is_pinned() const { return false; }

 private:
  Tensor data_, batch_sizes_, sorted_, unsorted_;
};

inline std::vector<int64_t> numbers_of(const Tensor& tensor) {
  const Tensor numbers = tensor.to(at::kLong).contiguous();
  return {numbers.data_ptr<int64_t>(), numbers.data_ptr<int64_t>() + numbers.numel()};
}

// Of steps [t, n, ...], or [n, t, ...] where the batch is first.
inline PackedSequence pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first = false,
                                           bool enforce_sorted = true) {
  Tensor order;
  if (!enforce_sorted) {
    std::tie(lengths, order) = at::sort(lengths.to(at::kLong), -1, true);
    input = input.index_select(batch_first ? 0 : 1, order);
  }
  if (batch_first) input = input.transpose(0, 1);
  const std::vector<int64_t> counts = numbers_of(lengths);
  TORCH_CHECK(!counts.empty() && std::is_sorted(counts.rbegin(), counts.rend()) &&
                  counts.back() > 0 && counts.size() == static_cast<size_t>(input.size(1)),
              "pack_padded_sequence: expected lengths of ", input.size(1),
              " sequences, each at least 1 and none longer than the one before, got ", lengths);
  std::vector<Tensor> steps;
  std::vector<int64_t> sizes;
  for (int64_t step = 0; step < counts.front(); ++step) {
    sizes.push_back(
        std::count_if(counts.begin(), counts.end(), [&](int64_t n) { return n > step; }));
    steps.push_back(input[step].narrow(0, 0, sizes.back()));
  }
  return PackedSequence(at::cat(steps), at::tensor(at::IntArrayRef(sizes)), order);
}
// The sequences and their lengths.
inline std::tuple<Tensor, Tensor> pad_packed_sequence(
    const PackedSequence& sequence, bool batch_first = false, double padding_value = 0.0,
    std::optional<int64_t> total_length = std::nullopt) {
  const std::vector<int64_t> sizes = numbers_of(sequence.batch_sizes());
  const int64_t n = sizes.at(0), rank = sequence.data().dim(),
                longest = static_cast<int64_t>(sizes.size());
  TORCH_CHECK(!total_length || *total_length >= longest,
              "pad_packed_sequence: expected a total_length of at least ", longest, ", got ",
              total_length.value_or(0));
  std::vector<Tensor> steps;
  std::vector<int64_t> lengths(static_cast<size_t>(n), 0), sides(static_cast<size_t>(2 * rank), 0);
  int64_t from = 0;
  for (const int64_t size : sizes) {
    sides.back() = n - size;
    steps.push_back(
        at::constant_pad_nd(sequence.data().narrow(0, from, size), sides, padding_value));
    for (int64_t i = 0; i < size; ++i) ++lengths[static_cast<size_t>(i)];
    from += size;
  }
  while (static_cast<int64_t>(steps.size()) < total_length.value_or(longest)) {
    steps.push_back(at::full_like(steps[0], padding_value));
  }
  Tensor padded = at::stack(steps, batch_first ? 1 : 0),
         counts = at::tensor(at::IntArrayRef(lengths));
  if (sequence.unsorted_indices().defined()) {
    padded = padded.index_select(batch_first ? 0 : 1, sequence.unsorted_indices());
    counts = counts.index_select(0, sequence.unsorted_indices());
  }
  return {padded, counts};
}
inline PackedSequence pack_sequence(const std::vector<Tensor>& sequences,
                                    bool enforce_sorted = true) {
  std::vector<int64_t> lengths;
  for (const Tensor& each : sequences) lengths.push_back(each.size(0));
  return pack_padded_sequence(pad_sequence(sequences), at::tensor(at::IntArrayRef(lengths)), false,
                              enforce_sorted);
}

}  // namespace rnn
}  // namespace utils

// ---- bags ----

using EmbeddingBagMode = Word;
struct EmbeddingBagOptions {
  EmbeddingBagOptions(int64_t count, int64_t dim) : num_embeddings_(count), embedding_dim_(dim) {}
  TORCH_ARG(int64_t, num_embeddings);
  TORCH_ARG(int64_t, embedding_dim);
  TORCH_ARG(std::optional<double>, max_norm) = std::nullopt;
  TORCH_ARG(double, norm_type) = 2.0;
  TORCH_ARG(bool, scale_grad_by_freq) = false;
  TORCH_ARG(Word, mode) = kMean;
  TORCH_ARG(bool, sparse) = false;
  TORCH_ARG(at::Tensor, _weight);
  TORCH_ARG(bool, include_last_offset) = false;
  TORCH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};

namespace functional {

struct EmbeddingBagFuncOptions {
  TORCH_ARG(at::Tensor, offsets);
  TORCH_ARG(std::optional<double>, max_norm) = std::nullopt;
  TORCH_ARG(double, norm_type) = 2.0;
  TORCH_ARG(bool, scale_grad_by_freq) = false;
  TORCH_ARG(Word, mode) = kMean;
  TORCH_ARG(bool, sparse) = false;
  TORCH_ARG(at::Tensor, per_sample_weights);
  TORCH_ARG(bool, include_last_offset) = false;
  TORCH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};

// Each row of indices is a bag; of indices in one dim, bags begin at the offsets.
inline at::Tensor embedding_bag(const at::Tensor& indices, const at::Tensor& weight,
                                const EmbeddingBagFuncOptions& options = {}) {
  const bool are_rows = indices.dim() == 2;
  TORCH_CHECK(are_rows != options.offsets().defined(),
              "embedding_bag: expected offsets for indices of 1 dim alone, got indices of ",
              indices.dim());
  const at::Tensor starts =
      are_rows ? at::arange(0, indices.numel(), indices.size(1), at::TensorOptions(at::kLong))
               : options.offsets();
  std::optional<at::Tensor> shares;
  if (options.per_sample_weights().defined()) shares = options.per_sample_weights().reshape({-1});
  const at::Tensor places = indices.reshape({-1});
  if (options.max_norm()) {
    at::NoGradGuard no_grad;
    at::Tensor rows = weight.detach();
    at::embedding_renorm_(rows, places, *options.max_norm(), options.norm_type());
  }
  const int64_t mode = options.mode() == kSum ? 0 : options.mode() == kMean ? 1 : 2;
  return std::get<0>(at::embedding_bag(weight, places, starts, options.scale_grad_by_freq(), mode,
                                       options.sparse(), shares, options.include_last_offset(),
                                       options.padding_idx()));
}

}  // namespace functional

struct EmbeddingBagImpl : Cloneable<EmbeddingBagImpl> {
  WEFT_LAYER_BEGIN(EmbeddingBag, EmbeddingBagOptions);
  void reset() override {
    const bool is_given = options._weight().defined();
    weight = register_parameter(
        "weight", is_given ? options._weight()
                           : at::empty({options.num_embeddings(), options.embedding_dim()}));
    if (!is_given) reset_parameters();
  }
  void reset_parameters() {
    init::normal_(weight);
    at::NoGradGuard no_grad;
    if (options.padding_idx()) weight[*options.padding_idx()].fill_(0);
  }
  at::Tensor forward(const at::Tensor& indices, const at::Tensor& offsets = {},
                     const at::Tensor& per_sample_weights = {}) {
    return F::embedding_bag(indices, weight,
                            F::EmbeddingBagFuncOptions()
                                .offsets(offsets)
                                .max_norm(options.max_norm())
                                .norm_type(options.norm_type())
                                .scale_grad_by_freq(options.scale_grad_by_freq())
                                .mode(options.mode())
                                .sparse(options.sparse())
                                .per_sample_weights(per_sample_weights)
                                .include_last_offset(options.include_last_offset())
                                .padding_idx(options.padding_idx()));
  }
  WEFT_PRETTY(EmbeddingBag, "num_embeddings=", o.num_embeddings(),
              ", embedding_dim=", o.embedding_dim())
  at::Tensor weight;
};
class EmbeddingBag : public ModuleHolder<EmbeddingBagImpl> {
 public:
  using Impl = EmbeddingBagImpl;
  using ModuleHolder<EmbeddingBagImpl>::ModuleHolder;
  static EmbeddingBag from_pretrained(const at::Tensor& weight, bool freeze = true) {
    EmbeddingBag made(EmbeddingBagOptions(weight.size(0), weight.size(1))._weight(weight));
    made->weight.set_requires_grad(!freeze);
    return made;
  }
};

// ---- patches of images ----

struct FoldOptions {
  FoldOptions(ExpandingArray<2> output, ExpandingArray<2> kernel)
      : output_size_(output), kernel_size_(kernel) {}
  TORCH_ARG(ExpandingArray<2>, output_size);
  TORCH_ARG(ExpandingArray<2>, kernel_size);
  TORCH_ARG(ExpandingArray<2>, dilation) = 1;
  TORCH_ARG(ExpandingArray<2>, padding) = 0;
  TORCH_ARG(ExpandingArray<2>, stride) = 1;
};
struct UnfoldOptions {
  UnfoldOptions(ExpandingArray<2> kernel) : kernel_size_(kernel) {}
  TORCH_ARG(ExpandingArray<2>, kernel_size);
  TORCH_ARG(ExpandingArray<2>, dilation) = 1;
  TORCH_ARG(ExpandingArray<2>, padding) = 0;
  TORCH_ARG(ExpandingArray<2>, stride) = 1;
};

namespace functional {

using FoldFuncOptions = FoldOptions;
using UnfoldFuncOptions = UnfoldOptions;
inline at::Tensor fold(const at::Tensor& x, const FoldOptions& options) {
  return at::col2im(x, options.output_size(), options.kernel_size(), options.dilation(),
                    options.padding(), options.stride());
}
inline at::Tensor unfold(const at::Tensor& x, const UnfoldOptions& options) {
  return at::im2col(x, options.kernel_size(), options.dilation(), options.padding(),
                    options.stride());
}
inline at::Tensor affine_grid(const at::Tensor& theta, at::IntArrayRef size,
                              bool align_corners = false) {
  return at::affine_grid_generator(theta, size, align_corners);
}

}  // namespace functional

WEFT_PLAIN_LAYER(Fold, nn::FoldOptions, WEFT_X, F::fold(x, options),
                 "output_size=", o.output_size(), ", kernel_size=", o.kernel_size(),
                 ", dilation=", o.dilation(), ", padding=", o.padding(), ", stride=", o.stride());
WEFT_PLAIN_LAYER(Unfold, nn::UnfoldOptions, WEFT_X, F::unfold(x, options),
                 "kernel_size=", o.kernel_size(), ", dilation=", o.dilation(),
                 ", padding=", o.padding(), ", stride=", o.stride());

}  // namespace over_weft
}  // namespace torch::nn

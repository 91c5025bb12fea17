// Options of layers and of their functions: settings by name, which chain.
#pragma once

#include "autograd.h"

// A setting of type T: name(value) sets it and gives the whole, name() reads it.
#define TORCH_ARG(T, name)                           \
 public:                                             \
  auto name(const T& value) -> decltype(*this) {     \
    this->name##_ = value;                           \
    return *this;                                    \
  }                                                  \
  auto name(T&& value) -> decltype(*this) {          \
    this->name##_ = std::move(value);                \
    return *this;                                    \
  }                                                  \
  const T& name() const noexcept { return name##_; } \
  T& name() noexcept { return name##_; }             \
                                                     \
 private:                                            \
  T name##_

namespace torch {
inline namespace over_weft {

// ---- words among settings: torch::kMean, torch::kBilinear ----

// clang-format off
#define WEFT_TORCH_WORDS(X) \
  X(Linear) X(Conv1D) X(Conv2D) X(Conv3D) X(ConvTranspose1D) X(ConvTranspose2D) \
  X(ConvTranspose3D) X(Sigmoid) X(Tanh) X(ReLU) X(GELU) X(SiLU) X(Mish) X(LeakyReLU) \
  X(FanIn) X(FanOut) X(Constant) X(Reflect) X(Replicate) X(Circular) X(Nearest) X(Bilinear) \
  X(Bicubic) X(Trilinear) X(Area) X(NearestExact) X(Sum) X(Mean) X(Max) X(None) X(BatchMean) \
  X(Zeros) X(Border) X(Reflection) X(RNN_TANH) X(RNN_RELU) X(LSTM) X(GRU) X(Valid) X(Same)
// clang-format on

#define X(name) name,
enum class WordName { WEFT_TORCH_WORDS(X) };
#undef X
// A word of a type of its own, as libtorch's are.
namespace enumtype {
#define X(name)                                                    \
  struct k##name final {                                           \
    constexpr operator WordName() const { return WordName::name; } \
  };
WEFT_TORCH_WORDS(X)
#undef X
}  // namespace enumtype
#define X(name) inline constexpr enumtype::k##name k##name{};
WEFT_TORCH_WORDS(X)
#undef X
// Any of them.
class Word final {
 public:
  constexpr Word() = default;
  constexpr Word(WordName name) : name_(name) {}
  template <class T,
            std::enable_if_t<std::is_empty_v<T> && std::is_convertible_v<T, WordName>, int> = 0>
  constexpr Word(T word) : name_(word) {}
  template <class... Words>
  Word(const std::variant<Words...>& words)
      : name_(std::visit([](auto word) -> WordName { return word; }, words)) {}
  constexpr operator WordName() const { return name_; }

 private:
  WordName name_{};
};
namespace enumtype {
inline std::string get_enum_name(Word word) {
#define X(name) "k" #name,
  static const char* const names[] = {WEFT_TORCH_WORDS(X)};
#undef X
  return names[static_cast<size_t>(static_cast<WordName>(word))];
}
}  // namespace enumtype
#undef WEFT_TORCH_WORDS

// A number for each of D dims; one stands for all.
template <size_t D, class T = int64_t>
class ExpandingArray {
 public:
  ExpandingArray(std::initializer_list<T> items) : ExpandingArray(at::ArrayRef<T>(items)) {}
  ExpandingArray(const std::vector<T>& items) : ExpandingArray(at::ArrayRef<T>(items)) {}
  ExpandingArray(at::ArrayRef<T> items) {
    TORCH_CHECK(items.size() == D || items.size() == 1, "ExpandingArray: expected ", D,
                " numbers, got ", items.size());
    for (size_t i = 0; i < D; ++i) items_[i] = items[items.size() == 1 ? 0 : i];
  }
  ExpandingArray(T item) { items_.fill(item); }
  ExpandingArray(const std::array<T, D>& items) : items_(items) {}
  operator at::ArrayRef<T>() const { return items_; }
  std::array<T, D>& operator*() { return items_; }
  const std::array<T, D>& operator*() const { return items_; }
  std::array<T, D>* operator->() { return &items_; }
  const std::array<T, D>* operator->() const { return &items_; }
  size_t size() const { return D; }
  friend std::ostream& operator<<(std::ostream& out, const ExpandingArray& array) {
    if (D == 1) return out << array.items_[0];
    return out << at::ArrayRef<T>(array.items_);
  }

 private:
  std::array<T, D> items_{};
};

}  // namespace over_weft
}  // namespace torch

namespace torch::nn {
inline namespace over_weft {

namespace detail {

inline int64_t reduction_of(const char* op, Word word) {
  TORCH_CHECK(word == kNone || word == kMean || word == kSum, op,
              ": expected the reduction kNone, kMean or kSum, got ", enumtype::get_enum_name(word));
  return word == kNone ? 0 : word == kMean ? 1 : 2;
}
// Parts in a row; bools as words, from then on, as libtorch writes them.
template <class... Parts>
void write(std::ostream& out, const Parts&... parts) {
  if constexpr ((std::is_same_v<Parts, bool> || ...)) out << std::boolalpha;
  (out << ... << parts);
}

}  // namespace detail

// Options that begin with one setting, and may have more behind it.
#define WEFT_OPTIONS_OF(Name, T, first)                  \
  Name##Options(T given) : first##_(std::move(given)) {} \
  TORCH_ARG(T, first)
// Options that have a default for all.
#define WEFT_DEFAULT_OPTIONS(Name, T, first, otherwise)              \
  Name##Options(T given = otherwise) : first##_(std::move(given)) {} \
  TORCH_ARG(T, first)
// A word, with libtorch's name of its type.
#define WEFT_WORD(name)  \
 public:                 \
  using name##_t = Word; \
  TORCH_ARG(Word, name)
#define WEFT_REDUCTION(Name)                          \
  WEFT_DEFAULT_OPTIONS(Name, Word, reduction, kMean); \
                                                      \
 public:                                              \
  using reduction_t = Word

// ---- products ----

struct LinearOptions {
  LinearOptions(int64_t inputs, int64_t outputs) : in_features_(inputs), out_features_(outputs) {}
  TORCH_ARG(int64_t, in_features);
  TORCH_ARG(int64_t, out_features);
  TORCH_ARG(bool, bias) = true;
};
struct BilinearOptions {
  BilinearOptions(int64_t first, int64_t second, int64_t outputs)
      : in1_features_(first), in2_features_(second), out_features_(outputs) {}
  TORCH_ARG(int64_t, in1_features);
  TORCH_ARG(int64_t, in2_features);
  TORCH_ARG(int64_t, out_features);
  TORCH_ARG(bool, bias) = true;
};
struct EmbeddingOptions {
  EmbeddingOptions(int64_t count, int64_t dim) : num_embeddings_(count), embedding_dim_(dim) {}
  TORCH_ARG(int64_t, num_embeddings);
  TORCH_ARG(int64_t, embedding_dim);
  TORCH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  TORCH_ARG(at::Tensor, _weight);
};
struct FlattenOptions {
  WEFT_DEFAULT_OPTIONS(Flatten, int64_t, start_dim, 1);
  TORCH_ARG(int64_t, end_dim) = -1;
};

// Padding in numbers, or kSame or kValid.
template <size_t D>
struct Padding {
  ExpandingArray<D> numbers = 0;
  std::optional<Word> word;
  template <class T, std::enable_if_t<std::is_constructible_v<ExpandingArray<D>, T>, int> = 0>
  Padding(const T& given) : numbers(given) {}
  Padding(std::initializer_list<int64_t> given) : numbers(given) {}
  template <class T, std::enable_if_t<std::is_convertible_v<T, Word> &&
                                          !std::is_constructible_v<ExpandingArray<D>, T>,
                                      int> = 0>
  Padding(const T& given) : word(Word(given)) {}
};
template <size_t D, bool Transposed = false>
struct ConvOptions {
  ConvOptions(int64_t inputs, int64_t outputs, ExpandingArray<D> kernel)
      : in_channels_(inputs), out_channels_(outputs), kernel_size_(kernel) {}
  TORCH_ARG(int64_t, in_channels);
  TORCH_ARG(int64_t, out_channels);
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride) = 1;
  TORCH_ARG(Padding<D>, padding) = 0;
  TORCH_ARG(ExpandingArray<D>, output_padding) = 0;
  TORCH_ARG(ExpandingArray<D>, dilation) = 1;
  TORCH_ARG(int64_t, groups) = 1;
  TORCH_ARG(bool, bias) = true;
  WEFT_WORD(padding_mode) = kZeros;
};
template <size_t D>
using ConvTransposeOptions = ConvOptions<D, true>;
template <size_t D, bool Transposed = false>
struct ConvFuncOptions {
  TORCH_ARG(at::Tensor, bias);
  TORCH_ARG(ExpandingArray<D>, stride) = 1;
  TORCH_ARG(Padding<D>, padding) = 0;
  TORCH_ARG(ExpandingArray<D>, output_padding) = 0;
  TORCH_ARG(ExpandingArray<D>, dilation) = 1;
  TORCH_ARG(int64_t, groups) = 1;
};

// ---- normalisation and dropout ----

struct BatchNormOptions {
  WEFT_OPTIONS_OF(BatchNorm, int64_t, num_features);
  TORCH_ARG(double, eps) = 1e-5;
  TORCH_ARG(std::optional<double>, momentum) = 0.1;
  TORCH_ARG(bool, affine) = true;
  TORCH_ARG(bool, track_running_stats) = true;
};
struct InstanceNormOptions {
  WEFT_OPTIONS_OF(InstanceNorm, int64_t, num_features);
  TORCH_ARG(double, eps) = 1e-5;
  TORCH_ARG(double, momentum) = 0.1;
  TORCH_ARG(bool, affine) = false;
  TORCH_ARG(bool, track_running_stats) = false;
};
struct LayerNormOptions {
  WEFT_OPTIONS_OF(LayerNorm, std::vector<int64_t>, normalized_shape);
  TORCH_ARG(double, eps) = 1e-5;
  TORCH_ARG(bool, elementwise_affine) = true;
};
struct GroupNormOptions {
  GroupNormOptions(int64_t groups, int64_t channels)
      : num_groups_(groups), num_channels_(channels) {}
  TORCH_ARG(int64_t, num_groups);
  TORCH_ARG(int64_t, num_channels);
  TORCH_ARG(double, eps) = 1e-5;
  TORCH_ARG(bool, affine) = true;
};
struct DropoutOptions {
  WEFT_DEFAULT_OPTIONS(Dropout, double, p, 0.5);
  TORCH_ARG(bool, inplace) = false;
};
struct DropoutFuncOptions {
  TORCH_ARG(double, p) = 0.5;
  TORCH_ARG(bool, training) = true;
  TORCH_ARG(bool, inplace) = false;
};
struct NormalizeFuncOptions {
  TORCH_ARG(double, p) = 2.0;
  TORCH_ARG(int64_t, dim) = 1;
  TORCH_ARG(double, eps) = 1e-12;
};

// ---- pooling, padding, resampling ----

template <size_t D>
struct MaxPoolOptions {
  MaxPoolOptions(ExpandingArray<D> kernel) : kernel_size_(kernel), stride_(kernel) {}
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride);
  TORCH_ARG(ExpandingArray<D>, padding) = 0;
  TORCH_ARG(ExpandingArray<D>, dilation) = 1;
  TORCH_ARG(bool, ceil_mode) = false;
};
template <size_t D>
struct AvgPoolOptions {
  AvgPoolOptions(ExpandingArray<D> kernel) : kernel_size_(kernel), stride_(kernel) {}
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride);
  TORCH_ARG(ExpandingArray<D>, padding) = 0;
  TORCH_ARG(bool, ceil_mode) = false;
  TORCH_ARG(bool, count_include_pad) = true;
  TORCH_ARG(std::optional<int64_t>, divisor_override) = std::nullopt;
};
template <size_t D>
struct AdaptivePoolOptions {
  AdaptivePoolOptions(ExpandingArray<D> size) : output_size_(size) {}
  TORCH_ARG(ExpandingArray<D>, output_size);
};
template <size_t D>
struct PadOptions {
  PadOptions(ExpandingArray<2 * D> sides) : padding_(sides) {}
  TORCH_ARG(ExpandingArray<2 * D>, padding);
};
template <size_t D>
struct ConstantPadOptions {
  ConstantPadOptions(ExpandingArray<2 * D> sides, double number)
      : padding_(sides), value_(number) {}
  TORCH_ARG(ExpandingArray<2 * D>, padding);
  TORCH_ARG(double, value);
};
struct PadFuncOptions {
  PadFuncOptions(std::vector<int64_t> sides) : pad_(std::move(sides)) {}
  TORCH_ARG(std::vector<int64_t>, pad);
  WEFT_WORD(mode) = kConstant;
  TORCH_ARG(double, value) = 0;
};
struct InterpolateFuncOptions {
  TORCH_ARG(std::optional<std::vector<int64_t>>, size) = std::nullopt;
  TORCH_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
  WEFT_WORD(mode) = kNearest;
  TORCH_ARG(std::optional<bool>, align_corners) = std::nullopt;
  TORCH_ARG(std::optional<bool>, recompute_scale_factor) = std::nullopt;
};
using UpsampleOptions = InterpolateFuncOptions;
struct GridSampleFuncOptions {
  WEFT_WORD(mode) = kBilinear;
  WEFT_WORD(padding_mode) = kZeros;
  TORCH_ARG(std::optional<bool>, align_corners) = std::nullopt;
};
struct PixelShuffleOptions {
  WEFT_OPTIONS_OF(PixelShuffle, int64_t, upscale_factor);
};

// ---- activations ----

struct NoOptions {};
struct InplaceOptions {
  WEFT_DEFAULT_OPTIONS(Inplace, bool, inplace, false);
};
struct DimOptions {
  WEFT_OPTIONS_OF(Dim, int64_t, dim);
  TORCH_ARG(std::optional<at::ScalarType>, dtype) = std::nullopt;
};
struct AlphaOptions {
  WEFT_DEFAULT_OPTIONS(Alpha, double, alpha, 1.0);
  TORCH_ARG(bool, inplace) = false;
};
struct LambdaOptions {
  WEFT_DEFAULT_OPTIONS(Lambda, double, lambda, 0.5);
};
struct GLUOptions {
  WEFT_DEFAULT_OPTIONS(GLU, int64_t, dim, -1);
};
struct GELUOptions {
  TORCH_ARG(std::string, approximate) = "none";
};
struct HardtanhOptions {
  TORCH_ARG(double, min_val) = -1.0;
  TORCH_ARG(double, max_val) = 1.0;
  TORCH_ARG(bool, inplace) = false;
};
struct LeakyReLUOptions {
  TORCH_ARG(double, negative_slope) = 1e-2;
  TORCH_ARG(bool, inplace) = false;
};
struct PReLUOptions {
  TORCH_ARG(int64_t, num_parameters) = 1;
  TORCH_ARG(double, init) = 0.25;
};
struct SoftplusOptions {
  TORCH_ARG(double, beta) = 1.0;
  TORCH_ARG(double, threshold) = 20.0;
};
struct ThresholdOptions {
  ThresholdOptions(double bound, double number) : threshold_(bound), value_(number) {}
  TORCH_ARG(double, threshold);
  TORCH_ARG(double, value);
  TORCH_ARG(bool, inplace) = false;
};

// ---- losses and distances ----

struct LossOptions {
  WEFT_REDUCTION(Loss);
};
struct WeightedLossOptions {
  WEFT_REDUCTION(WeightedLoss);
  TORCH_ARG(at::Tensor, weight);
  TORCH_ARG(at::Tensor, pos_weight);
};
struct ClassLossOptions {
  WEFT_REDUCTION(ClassLoss);
  TORCH_ARG(at::Tensor, weight);
  TORCH_ARG(int64_t, ignore_index) = -100;
  TORCH_ARG(double, label_smoothing) = 0.0;
};
struct KLDivOptions {
  WEFT_REDUCTION(KLDiv);
  TORCH_ARG(bool, log_target) = false;
};
struct SmoothL1LossOptions {
  WEFT_REDUCTION(SmoothL1Loss);
  TORCH_ARG(std::optional<double>, beta) = std::nullopt;
};
struct HuberLossOptions {
  WEFT_REDUCTION(HuberLoss);
  TORCH_ARG(double, delta) = 1.0;
};
struct HingeLossOptions {
  TORCH_ARG(double, margin) = 1.0;
  WEFT_WORD(reduction) = kMean;
};
struct MarginLossOptions {
  TORCH_ARG(double, margin) = 0;
  WEFT_WORD(reduction) = kMean;
};
struct TripletMarginLossOptions {
  TORCH_ARG(double, margin) = 1.0;
  TORCH_ARG(double, p) = 2.0;
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(bool, swap) = false;
  WEFT_WORD(reduction) = kMean;
};
struct CosineSimilarityOptions {
  TORCH_ARG(int64_t, dim) = 1;
  TORCH_ARG(double, eps) = 1e-8;
};
struct PairwiseDistanceOptions {
  TORCH_ARG(double, p) = 2.0;
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(bool, keepdim) = false;
};

// ---- recurrent layers ----

struct RNNOptions {
  RNNOptions(int64_t inputs, int64_t hidden, int64_t layers = 1)
      : input_size_(inputs), hidden_size_(hidden), num_layers_(layers) {}
  TORCH_ARG(int64_t, input_size);
  TORCH_ARG(int64_t, hidden_size);
  TORCH_ARG(int64_t, num_layers) = 1;
  WEFT_WORD(nonlinearity) = kTanh;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(bool, batch_first) = false;
  TORCH_ARG(double, dropout) = 0.0;
  TORCH_ARG(bool, bidirectional) = false;
  TORCH_ARG(int64_t, proj_size) = 0;
};

#undef WEFT_OPTIONS_OF
#undef WEFT_DEFAULT_OPTIONS
#undef WEFT_REDUCTION
#undef WEFT_WORD

}  // namespace over_weft
}  // namespace torch::nn

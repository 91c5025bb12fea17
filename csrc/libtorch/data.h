// torch::data: datasets, transforms, samplers, and loaders that make batches of them.
#pragma once

#include <deque>
#include <future>

#include "context.h"
#include "nn_options.h"
#include "print.h"

namespace torch::data {
inline namespace over_weft {

namespace example {
struct NoTarget {};
}  // namespace example
template <class Data = at::Tensor, class Target = at::Tensor>
struct Example {
  using DataType = Data;
  using TargetType = Target;
  Example() = default;
  Example(Data given, Target wanted) : data(std::move(given)), target(std::move(wanted)) {}
  Data data;
  Target target;
};
template <class Data>
struct Example<Data, example::NoTarget> {
  using DataType = Data;
  using TargetType = example::NoTarget;
  Example() = default;
  Example(Data given) : data(std::move(given)) {}
  operator Data&() { return data; }
  operator const Data&() const { return data; }
  Data data;
};
using TensorExample = Example<at::Tensor, example::NoTarget>;

namespace datasets {

template <class Source, class Transform>
class MapDataset;

// What gives a batch for a request, by default for indices.
template <class Self, class Batch, class Request = at::ArrayRef<size_t>>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = Request;
  static constexpr bool is_stateful = false;
  virtual ~BatchDataset() = default;
  virtual Batch get_batch(Request request) = 0;
  virtual std::optional<size_t> size() const = 0;
  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) & {
    return {static_cast<Self&>(*this), std::move(transform)};
  }
  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) && {
    return {std::move(static_cast<Self&>(*this)), std::move(transform)};
  }
};
// What gives one example for an index.
template <class Self, class SingleExample = Example<>>
class Dataset : public BatchDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;
  virtual ExampleType get(size_t index) = 0;
  std::vector<ExampleType> get_batch(at::ArrayRef<size_t> indices) override {
    std::vector<ExampleType> batch;
    for (const size_t index : indices) batch.push_back(get(index));
    return batch;
  }
};

// A dataset behind whose batches a transform stands.
template <class Source, class Transform>
class MapDataset
    : public BatchDataset<MapDataset<Source, Transform>, typename Transform::OutputBatchType,
                          typename Source::BatchRequestType> {
 public:
  using DatasetType = Source;
  using TransformType = Transform;
  MapDataset(Source source, Transform transform)
      : source_(std::move(source)), transform_(std::move(transform)) {}
  typename Transform::OutputBatchType get_batch(
      typename Source::BatchRequestType indices) override {
    return transform_.apply_batch(source_.get_batch(std::move(indices)));
  }
  std::optional<size_t> size() const noexcept override { return source_.size(); }
  const Source& dataset() const { return source_; }
  const Transform& transform() const { return transform_; }

 private:
  Source source_;
  Transform transform_;
};

// The rows of a tensor.
struct TensorDataset : Dataset<TensorDataset, TensorExample> {
  explicit TensorDataset(const std::vector<at::Tensor>& tensors) : tensor(at::stack(tensors)) {}
  explicit TensorDataset(at::Tensor rows) : tensor(std::move(rows)) {}
  TensorExample get(size_t index) override { return tensor[static_cast<int64_t>(index)]; }
  std::optional<size_t> size() const override { return static_cast<size_t>(tensor.size(0)); }
  at::Tensor tensor;
};

// Handwritten digits: images [n, 1, 28, 28] of floats from 0 to 1, from the idx files of a folder.
class MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain)
      : is_train_(mode == Mode::kTrain) {
    const std::string prefix = root + (is_train_ ? "/train" : "/t10k");
    images_ = read(prefix + "-images-idx3-ubyte", 3).to(at::kFloat).div_(255).unsqueeze(1);
    targets_ = read(prefix + "-labels-idx1-ubyte", 1).to(at::kLong);
    TORCH_CHECK(images_.size(0) == targets_.size(0), "MNIST: expected a label for each image, got ",
                targets_.size(0), " for ", images_.size(0));
  }
  Example<> get(size_t index) override {
    const auto place = static_cast<int64_t>(index);
    return {images_[place], targets_[place]};
  }
  std::optional<size_t> size() const override { return static_cast<size_t>(images_.size(0)); }
  bool is_train() const noexcept { return is_train_; }
  const at::Tensor& images() const { return images_; }
  const at::Tensor& targets() const { return targets_; }

 private:
  // An idx file of bytes: a word with the number of dims, the sizes, the bytes; words end with
  // their lowest byte.
  static at::Tensor read(const std::string& path, int dims) {
    std::ifstream file(path, std::ios::binary);
    TORCH_CHECK(file, "MNIST: expected a file that opens, got '", path, "'");
    const auto word = [&] {
      int64_t number = 0;
      for (int i = 0; i < 4; ++i) number = number << 8 | (file.get() & 255);
      return number;
    };
    TORCH_CHECK(word() == 0x800 + dims, "MNIST: expected an idx file of bytes in ", dims,
                " dims, got '", path, "'");
    std::vector<int64_t> sizes;
    for (int i = 0; i < dims; ++i) sizes.push_back(word());
    TORCH_CHECK(file, "MNIST: expected the sizes of a tensor, got the end of '", path, "'");
    at::Tensor bytes = at::empty(sizes, at::TensorOptions(at::kByte));
    file.read(static_cast<char*>(bytes.data_ptr()), bytes.numel());
    TORCH_CHECK(file.gcount() == bytes.numel(), "MNIST: expected ", bytes.numel(), " bytes, got ",
                file.gcount(), " in '", path, "'");
    return bytes;
  }

  bool is_train_;
  at::Tensor images_, targets_;
};

}  // namespace datasets

namespace transforms {

template <class Input, class Output>
struct BatchTransform {
  using InputBatchType = Input;
  using OutputBatchType = Output;
  virtual ~BatchTransform() = default;
  virtual Output apply_batch(Input input) = 0;
};
template <class Input, class Output>
struct Transform : BatchTransform<std::vector<Input>, std::vector<Output>> {
  using InputType = Input;
  using OutputType = Output;
  virtual Output apply(Input input) = 0;
  std::vector<Output> apply_batch(std::vector<Input> batch) override {
    std::vector<Output> made;
    for (Input& each : batch) made.push_back(apply(std::move(each)));
    return made;
  }
};
template <class T, class Batch = std::vector<T>>
using Collation = BatchTransform<Batch, T>;
template <class T>
using Collate = Collation<T>;

template <class Input, class Output = Input>
class Lambda : public Transform<Input, Output> {
 public:
  explicit Lambda(std::function<Output(Input)> function) : function_(std::move(function)) {}
  Output apply(Input input) override { return function_(std::move(input)); }

 private:
  std::function<Output(Input)> function_;
};
template <class Input, class Output = Input>
class BatchLambda : public BatchTransform<Input, Output> {
 public:
  explicit BatchLambda(std::function<Output(Input)> function) : function_(std::move(function)) {}
  Output apply_batch(Input input) override { return function_(std::move(input)); }

 private:
  std::function<Output(Input)> function_;
};

// Changes the data of examples, not the target.
template <class Target = at::Tensor>
struct TensorTransform : Transform<Example<at::Tensor, Target>, Example<at::Tensor, Target>> {
  virtual at::Tensor operator()(at::Tensor input) = 0;
  Example<at::Tensor, Target> apply(Example<at::Tensor, Target> input) override {
    input.data = (*this)(std::move(input.data));
    return input;
  }
};
template <class Target = at::Tensor>
class TensorLambda : public TensorTransform<Target> {
 public:
  explicit TensorLambda(std::function<at::Tensor(at::Tensor)> function)
      : function_(std::move(function)) {}
  at::Tensor operator()(at::Tensor input) override { return function_(std::move(input)); }

 private:
  std::function<at::Tensor(at::Tensor)> function_;
};
// (x - mean) / stddev, numbers of each channel of [c, h, w], or one for all.
template <class Target = at::Tensor>
struct Normalize : TensorTransform<Target> {
  Normalize(at::ArrayRef<double> means, at::ArrayRef<double> deviations)
      : mean(column(means)), stddev(column(deviations)) {}
  at::Tensor operator()(at::Tensor input) override { return input.sub(mean).div(stddev); }
  at::Tensor mean, stddev;

 private:
  static at::Tensor column(at::ArrayRef<double> numbers) {
    return at::tensor(numbers, at::TensorOptions(at::kFloat)).unsqueeze(1).unsqueeze(2);
  }
};

// Examples side by side.
template <class T = Example<>>
struct Stack : Collation<T> {
  T apply_batch(std::vector<T> examples) override {
    std::vector<at::Tensor> data, targets;
    for (T& each : examples) data.push_back(std::move(each.data));
    if constexpr (std::is_same_v<typename T::TargetType, example::NoTarget>) {
      return at::stack(data);
    } else {
      for (T& each : examples) targets.push_back(std::move(each.target));
      return {at::stack(data), at::stack(targets)};
    }
  }
};

}  // namespace transforms

namespace samplers {

template <class BatchRequest = std::vector<size_t>>
class Sampler {
 public:
  using BatchRequestType = BatchRequest;
  virtual ~Sampler() = default;
  virtual void reset(std::optional<size_t> new_size) = 0;
  virtual std::optional<BatchRequest> next(size_t batch_size) = 0;
};
class SequentialSampler : public Sampler<> {
 public:
  explicit SequentialSampler(size_t size) : size_(size) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override {
    size_ = new_size.value_or(size_);
    index_ = 0;
  }
  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    if (index_ == size_) return std::nullopt;
    std::vector<size_t> found(std::min(batch_size, size_ - index_));
    for (size_t& each : found) each = index_++;
    return found;
  }
  size_t index() const { return index_; }

 private:
  size_t size_, index_ = 0;
};
// Draws an order when it is made, and one for each time through.
class RandomSampler : public Sampler<> {
 public:
  explicit RandomSampler(int64_t size) : order_(drawn(size)) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override {
    order_ = drawn(static_cast<int64_t>(new_size.value_or(order_.size())));
    index_ = 0;
  }
  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    if (index_ == order_.size()) return std::nullopt;
    const size_t count = std::min(batch_size, order_.size() - index_);
    const auto from = order_.begin() + static_cast<std::ptrdiff_t>(index_);
    index_ += count;
    return std::vector<size_t>(from, from + static_cast<std::ptrdiff_t>(count));
  }
  size_t index() const { return index_; }

 private:
  static std::vector<size_t> drawn(int64_t size) {
    const at::Tensor order = at::randperm(size, at::TensorOptions(at::kLong));
    const auto* first = order.data_ptr<int64_t>();
    return {first, first + size};
  }
  std::vector<size_t> order_;
  size_t index_ = 0;
};

}  // namespace samplers

struct DataLoaderOptions {
  DataLoaderOptions() = default;
  DataLoaderOptions(size_t size) : batch_size_(size) {}
  TORCH_ARG(size_t, batch_size) = 1;
  TORCH_ARG(size_t, workers) = 0;
  TORCH_ARG(std::optional<size_t>, max_jobs);
  TORCH_ARG(std::optional<std::chrono::milliseconds>, timeout);
  TORCH_ARG(bool, enforce_ordering) = true;
  TORCH_ARG(bool, drop_last) = false;
};

// Batches, one behind the other.
template <class Batch>
class Iterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = Batch;
  using pointer = Batch*;
  using reference = Batch&;
  using iterator_category = std::input_iterator_tag;
  explicit Iterator(std::function<std::optional<Batch>()> next = {}) : next_(std::move(next)) {
    if (next_) ++*this;
  }
  Iterator& operator++() {
    batch_ = next_();
    return *this;
  }
  Batch& operator*() { return *batch_; }
  Batch* operator->() { return &*batch_; }
  // All that have no batch are at the end.
  bool operator==(const Iterator& other) const {
    return batch_.has_value() == other.batch_.has_value();
  }
  bool operator!=(const Iterator& other) const { return !(*this == other); }

 private:
  std::function<std::optional<Batch>()> next_;
  std::optional<Batch> batch_;
};

// Batches of a dataset in the order of a sampler; workers make those that come next, each with a
// dataset of its own.
template <class Dataset, class Sampler>
class StatelessDataLoader {
 public:
  using BatchType = typename Dataset::BatchType;
  using Iterator = data::Iterator<BatchType>;

  StatelessDataLoader(Dataset dataset, Sampler sampler, DataLoaderOptions options)
      : datasets_(std::max<size_t>(options.workers(), 1), dataset),
        locks_(datasets_.size()),
        sampler_(std::move(sampler)),
        options_(std::move(options)) {}
  Iterator begin() {
    jobs_.clear();
    sampler_.reset(datasets_[0].size());
    return Iterator([this] { return next(); });
  }
  Iterator end() { return Iterator(); }
  void join() { jobs_.clear(); }
  const DataLoaderOptions& options() const { return options_; }

 private:
  std::optional<BatchType> next() {
    if (options_.workers() == 0) {
      const auto request = next_request();
      if (!request) return std::nullopt;
      return datasets_[0].get_batch(*request);
    }
    const size_t most = std::max<size_t>(1, options_.max_jobs().value_or(2 * options_.workers()));
    while (jobs_.size() < most) {
      auto request = next_request();
      if (!request) break;
      const size_t worker = started_++ % datasets_.size();
      jobs_.push_back(std::async(std::launch::async, [this, worker, request] {
        const std::lock_guard<std::mutex> lock(locks_[worker]);
        return datasets_[worker].get_batch(*request);
      }));
    }
    if (jobs_.empty()) return std::nullopt;
    std::optional<BatchType> batch = jobs_.front().get();
    jobs_.pop_front();
    return batch;
  }
  std::optional<typename Sampler::BatchRequestType> next_request() {
    auto request = sampler_.next(options_.batch_size());
    if (request && options_.drop_last() && request->size() < options_.batch_size()) return {};
    return request;
  }

  std::vector<Dataset> datasets_;
  std::vector<std::mutex> locks_;
  Sampler sampler_;
  DataLoaderOptions options_;
  size_t started_ = 0;
  std::deque<std::future<BatchType>> jobs_;  // last, so that they end before what they use does
};

template <class Dataset, class Sampler>
std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(Dataset dataset,
                                                                        DataLoaderOptions options,
                                                                        Sampler sampler) {
  return std::make_unique<StatelessDataLoader<Dataset, Sampler>>(
      std::move(dataset), std::move(sampler), std::move(options));
}
template <class Sampler = samplers::RandomSampler, class Dataset>
std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(
    Dataset dataset, DataLoaderOptions options = {}) {
  const std::optional<size_t> size = dataset.size();
  TORCH_CHECK(size.has_value(),
              "make_data_loader: expected a dataset with a size, got one without");
  return make_data_loader(std::move(dataset), std::move(options), Sampler(*size));
}

}  // namespace over_weft
}  // namespace torch::data

// Batches of datasets: of idx files in a folder, of tensors, of a class.
#include <torch/torch.h>

#include <iostream>

#include "words.h"

namespace batches {

namespace data = torch::data;

struct Squares : data::datasets::Dataset<Squares> {
  data::Example<> get(size_t index) override {
    const auto number = static_cast<int64_t>(index);
    return {torch::tensor({number}), torch::tensor(number * number)};
  }
  torch::optional<size_t> size() const override { return 7; }
};

void program(const Words& words) {
  torch::manual_seed(0);
  auto digits = data::datasets::MNIST(words.at(0))
                    .map(data::transforms::Normalize<>(0.5, 0.25))
                    .map(data::transforms::Stack<>());
  std::cout << *digits.size() << '\n';
  auto in_order = data::make_data_loader<data::samplers::SequentialSampler>(std::move(digits), 2);
  for (const auto& batch : *in_order) {
    std::cout << batch.data.sizes() << batch.data.sum().item<float>() << ' '
              << batch.target.sum().item<int64_t>() << '\n';
  }

  auto squares = Squares().map(data::transforms::Stack<>());
  for (const size_t workers : {0, 2}) {
    torch::manual_seed(5);
    auto loader = data::make_data_loader(
        squares, data::DataLoaderOptions().batch_size(2).workers(workers).drop_last(true));
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (auto& batch : *loader) {
        std::cout << batch.data[0].item<int64_t>() << '-' << batch.target[1].item<int64_t>() << ' ';
      }
    }
    std::cout << '\n';
  }

  auto rows = data::datasets::TensorDataset(torch::arange(6, torch::kFloat).view({3, 2}))
                  .map(data::transforms::Lambda<data::TensorExample>(
                      [](data::TensorExample each) { return data::TensorExample(each.data * 2); }))
                  .map(data::transforms::Stack<data::TensorExample>());
  auto all = data::make_data_loader<data::samplers::SequentialSampler>(std::move(rows), 3);
  std::cout << all->begin()->data.sum().item<float>() << '\n';
}

}  // namespace batches

// Trains a compiled model without Python, until it reads handwritten digits:
//
//     python digits_model.py model.weft digits.bin
//     c++ -std=c++17 train_digits.cpp $(python -m weft --flags) -o train_digits
//     ./train_digits model.weft digits.bin state.safetensors
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <random>
#include <weft.hpp>

namespace {

constexpr int64_t kPixels = 64, kBatch = 64, kEpochs = 30, kTest = 360;

struct Digits {
  std::vector<float> images;    // rows of kPixels
  std::vector<int64_t> labels;  // 0 to 9

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
};

// The file: the count as int64, the images, the labels.
Digits read_digits(const char* path) {
  std::ifstream file(path, std::ios::binary);
  int64_t count = 0;
  file.read(reinterpret_cast<char*>(&count), sizeof(count));
  if (!file || count <= kTest || count > 1'000'000) throw std::runtime_error("expected digits");
  Digits digits{std::vector<float>(count * kPixels), std::vector<int64_t>(count)};
  file.read(reinterpret_cast<char*>(digits.images.data()), count * kPixels * sizeof(float));
  file.read(reinterpret_cast<char*>(digits.labels.data()), count * sizeof(int64_t));
  if (!file) throw std::runtime_error("expected more digits");
  return digits;
}

// The rows of some digits as tensors of their own.
std::pair<weft::Tensor, weft::Tensor> batch_of(const Digits& digits, const int64_t* rows,
                                               int64_t count) {
  weft::Tensor images = weft::Tensor::empty<float>({count, kPixels});
  weft::Tensor labels = weft::Tensor::empty<int64_t>({count});
  for (int64_t i = 0; i < count; ++i) {
    const float* image = &digits.images[rows[i] * kPixels];
    std::copy(image, image + kPixels, images.data<float>() + i * kPixels);
    labels.data<int64_t>()[i] = digits.labels[rows[i]];
  }
  return {images, labels};
}

double accuracy(const weft::Module& model, const Digits& digits, const std::vector<int64_t>& rows) {
  const weft::NoGrad no_grad;
  const auto [images, labels] = batch_of(digits, rows.data(), static_cast<int64_t>(rows.size()));
  const std::vector<float> scores = model(images).to_vector<float>();
  int64_t right = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto first = scores.begin() + static_cast<int64_t>(i) * 10;
    right += std::max_element(first, first + 10) - first == digits.labels[rows[i]];
  }
  return static_cast<double>(right) / static_cast<double>(rows.size());
}

void train(weft::Module& model, const Digits& digits, std::vector<int64_t> rows) {
  weft::Optimizer optimizer = weft::Optimizer::adam(model, 2e-3);
  std::mt19937 random(1);
  model.train();
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    std::shuffle(rows.begin(), rows.end(), random);
    double total = 0;
    for (size_t at = 0; at + kBatch <= rows.size(); at += kBatch) {
      const auto [images, labels] = batch_of(digits, &rows[at], kBatch);
      const weft::Tensor loss = model.call("loss", {images, labels}).to_tensor();
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      total += loss.item();
    }
    if (epoch % 10 == 9)
      std::printf("epoch %d: loss %.4f\n", epoch + 1, total * kBatch / rows.size());
  }
  model.eval();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fputs("usage: train_digits model.weft digits.bin state\n", stderr), 2;
  try {
    const Digits digits = read_digits(argv[2]);
    std::vector<int64_t> rows(digits.count());
    std::iota(rows.begin(), rows.end(), 0);
    std::shuffle(rows.begin(), rows.end(), std::mt19937(0));
    const std::vector<int64_t> test(rows.begin(), rows.begin() + kTest);
    weft_manual_seed(0);  // of dropout
    weft::Module model(argv[1]);
    train(model, digits, {rows.begin() + kTest, rows.end()});
    std::printf("accuracy %.4f\n", accuracy(model, digits, test));
    model.save_state(argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

// Runs a compiled model without Python:
//
//     weft compile model.pt -o model.weft
//     c++ -std=c++17 inference.cpp $(python -m weft --flags) -o inference && ./inference model.weft
#include <cstdio>
#include <weft.hpp>

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: inference model.weft\n", stderr), 2;
  try {
    const weft::NoGrad no_grad;  // nothing is kept for a backward pass
    const weft::Module model(argv[1]);
    const std::vector<float> row = {0.5f, -1.0f, 2.0f, 0.25f};
    const weft::Tensor y = model(weft::Tensor::over(row.data(), {1, 4}));
    for (const float value : y.to_vector<float>()) std::printf("%.9g\n", value);
  } catch (const weft::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

// The streams are PyTorch's: the numbers here come from it, after manual_seed(0).
#include "ops/random.h"

#include "native_randoms.h"
#include "ops/samples_testing.h"
#include "ops/views.h"
#include "testing.h"

namespace weft {
namespace {

using namespace samples;

Ref<Generator> seeded() { return make_ref<Generator>(0); }
Tensor room(Dims sizes, DType dtype = DType::F32) { return Tensor::empty(sizes, dtype); }

template <class T>
void check_near(const Tensor& tensor, const std::vector<double>& expected, double tolerance) {
  const auto got = values<T>(tensor);
  for (size_t i = 0; i < expected.size(); ++i) CHECK_NEAR(got[i], expected[i], tolerance);
}

}  // namespace

TEST(random_streams) {
  check_near<float>(native::uniform_(room({4}), 0, 1, seeded()),
                    {0.49625659, 0.768221796, 0.0884774327, 0.132030487}, 1e-7);
  check_near<double>(native::uniform_(room({3}, DType::F64), -2, 3, seeded()),
                     {2.85026501, 1.53909932, 0.296914716}, 1e-8);
  check_near<float>(native::normal_(room({5}), 0, 1, seeded()),
                    {1.54099607, -0.293428898, -2.17878938, 0.568431258, -1.08452237}, 1e-6);
  check_near<float>(native::normal_(room({18}), 1, 2, seeded()),
                    {-1.25167966, -1.3047204, 2.13330126, 2.58701658, 2.19767904, -2.11019015,
                     0.31727922, 4.70601225, 1.93619275, 0.684575081, 0.653206468, 1.36695588,
                     3.7787323, 4.17266846, 2.89259672, -0.687353492, 2.86365318, 3.51801848},
                    3e-6);
  check_near<double>(
      native::normal_(room({17}, DType::F64), 0, 1, seeded()),
      {-2.3104118, -0.633274609, -1.26092466, -0.726951062, -0.0199647509, 0.21029989, 0.177189351,
       -0.830510051, 0.238718058, -0.242679382, -0.773011277, -1.59518149, -0.687003694, 1.48807432,
       -0.448415805, -0.891003035, 0.674857544},
      1e-8);
  check_near<float>(
      native::as_dtype(native::normal_(room({16}, DType::F16), 0, 1, seeded()), DType::F32),
      {-1.12597656, -1.15234375, -0.250488281, -0.433837891, 0.848632812, 0.691894531, -0.315917969,
       -2.11523438, 0.322265625, -1.26367188, 0.350097656, 0.308105469, 0.119812012, 1.23730469,
       1.1171875, -0.247314453},
      2e-3);
  check_near<float>(native::bernoulli_(room({8}), 0.3, seeded()), {0, 0, 0, 0, 0, 0, 1, 0}, 0);
  check_near<float>(
      native::bernoulli_(room({8}), tensor_of<float>({8}, std::vector<float>(8, 0.3f)), seeded()),
      {0, 0, 1, 1, 0, 0, 0, 0}, 0);
  check_near<int64_t>(native::random_(room({4}, DType::I64), 0, 10, seeded()), {4, 9, 3, 0}, 0);
  check_near<int32_t>(native::random_(room({3}, DType::I32), -5, 1000000000, seeded()),
                      {129954393, 531349338, 458254532}, 0);
  check_near<float>(native::random_(room({3}), seeded()), {8325664, 12888472, 1484222}, 0);
  check_near<float>(native::exponential_(room({4}), 2, seeded()),
                    {1.75416315, 0.615192354, 0.307522058, 1.26755929}, 1e-6);
  check_near<int64_t>(native::randperm(7, seeded(), {}, {}, {}, {}), {4, 0, 5, 3, 2, 6, 1}, 0);
  check_near<int64_t>(
      native::multinomial(tensor_of<float>({4}, {.1f, .2f, .3f, .4f}), 3, true, seeded()),
      {3, 3, 2}, 0);
  check_near<int64_t>(
      native::multinomial(tensor_of<float>({4}, {.1f, .2f, .3f, .4f}), 3, false, seeded()),
      {2, 1, 3}, 0);
  check_near<double>(
      native::poisson(tensor_of<double>({8}, {0, 0.4, 3, 9.5, 10, 70, 1e5, 1e15}), seeded()),
      {0, 2, 4, 9, 7, 58, 99732, 1000000007845922}, 0);
}

TEST(random_fills_in_memory_order) {
  const Tensor plain = native::uniform_(room({3, 4}), 0, 1, seeded());
  const Tensor other = room({4, 3});
  const Tensor t = viewed(other, views::transpose(other.layout(), 0, 1));
  native::uniform_(t, 0, 1, seeded());
  CHECK_EQ(values<float>(other), values<float>(plain));
  const Tensor wide = room({3, 8});
  native::uniform_(viewed(wide, views::slice(wide.layout(), 1, 0, 8, 2)), 0, 1, seeded());
  CHECK_EQ(wide.data_as<float>()[2], plain.data_as<float>()[1]);
}

TEST(random_errors) {
  CHECK_THROWS_MSG(native::uniform_(room({2}), 1, 0, nullptr),
                   "uniform_: expected from <= to, got 1 and 0");
  CHECK_THROWS_MSG(native::normal_(room({2}), 0, -1, nullptr),
                   "normal_: expected std >= 0, got -1");
  CHECK_THROWS_MSG(native::bernoulli_(room({2}), 2, nullptr),
                   "bernoulli_: expected p in [0, 1], got 2");
  CHECK_THROWS_MSG(native::random_(room({2}, DType::U8), 0, 300, nullptr),
                   "random_: expected a range inside uint8, got [0, 299]");
  CHECK_THROWS_MSG(native::uniform_(room({2}, DType::I64), 0, 1, nullptr),
                   "uniform_: expected a floating or complex dtype, got int64");
}

}  // namespace weft

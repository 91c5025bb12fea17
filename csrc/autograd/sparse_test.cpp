#include "autograd/sparse.h"

#include <map>

#include "autograd/test_nodes.h"
#include "testing.h"

namespace weft::autograd::test {
namespace {

using Doubles = std::vector<double>;

// Values at some places of a vector of `size` elements.
struct Places {
  int64_t size;
  std::vector<int64_t> at;
};
std::map<const TensorImpl*, Places> known;
std::vector<Tensor> alive;  // no other tensor may get the address of one that is known

Tensor sparse_of(int64_t size, std::vector<int64_t> at, std::initializer_list<double> entries) {
  Tensor made = make(entries);
  known[made.impl()] = {size, std::move(at)};
  made.impl()->wrapper.object = &known;
  alive.push_back(made);
  return made;
}

bool holds(const Tensor& tensor) { return known.contains(tensor.impl()); }
Dims sizes(const Tensor& tensor) { return {known.at(tensor.impl()).size}; }
Tensor dense_of(const Tensor& tensor) {
  if (!holds(tensor)) return tensor;
  const Places& places = known.at(tensor.impl());
  Tensor result = arith::flat_zeros(places.size, DType::F64, {});
  const Doubles entries = values(tensor);
  for (size_t i = 0; i < entries.size(); ++i) {
    result.data_as<double>()[places.at[i]] += entries[i];
  }
  return result;
}
Tensor total(const Tensor& a, const Tensor& b) { return arith::add(dense_of(a), dense_of(b)); }
constexpr sparse::Wrappers kWrappers{holds, sizes, dense_of, total};

struct Registered {
  Registered() { sparse::wrappers = &kWrappers; }
  ~Registered() {
    sparse::wrappers = nullptr;
    for (const Tensor& one : alive) one.impl()->wrapper = {};
    known.clear();
    alive.clear();
  }
};

struct GiveNode final : Node {
  const char* name() const override { return "GiveBackward0"; }
  TensorList apply(TensorList) override { return {gradient}; }
  Tensor gradient;
};

// The first element, whose gradient is said to be `gradient`.
Tensor give(const Tensor& a, const Tensor& gradient) {
  Tensor result = make({values(a)[0]});
  auto node = make_ref<GiveNode>();
  node->add_input(a);
  node->gradient = gradient;
  set_history(result, node);
  return result;
}

void run(const Tensor& root) { backward({root}, {make({1})}, {}, {}); }

TEST(autograd_sparse_gradient_reaches_a_leaf) {
  const Registered registered;
  const Tensor x = make({1, 2, 3}, true), gradient = sparse_of(3, {2, 0}, {5, 7});
  run(give(x, gradient));
  CHECK_TRUE(grad(x).is_same(gradient));
  run(give(x, sparse_of(3, {2}, {1})));
  CHECK_EQ(values(grad(x)), (Doubles{7, 0, 6}));
  run(give(x, sparse_of(3, {1}, {2})));
  CHECK_EQ(values(grad(x)), (Doubles{7, 2, 6}));
}

TEST(autograd_sparse_and_dense_gradients_add_up) {
  const Registered registered;
  const Tensor x = make({1, 2, 3}, true);
  const Tensor y = give(x, sparse_of(3, {2, 0}, {5, 7})), z = pass(x);
  backward({y, z}, {make({1}), make({1, 1, 1})}, {}, {});
  CHECK_EQ(values(grad(x)), (Doubles{8, 1, 6}));
}

TEST(autograd_sparse_gradient_of_a_result_becomes_dense) {
  const Registered registered;
  const Tensor x = make({1, 2, 3}, true);
  run(give(mul(x, make({2, 2, 2})), sparse_of(3, {2, 0}, {5, 7})));
  CHECK_EQ(values(grad(x)), (Doubles{14, 0, 10}));
}

TEST(autograd_sparse_gradient_of_values) {
  const Registered registered;
  const Tensor x = make({1, 2}, true);  // the values of a sparse tensor of three elements
  run(give(x, sparse_of(3, {2, 0}, {5, 7})));
  CHECK_EQ(values(grad(x)), (Doubles{5, 7}));
  CHECK_FALSE(holds(grad(x)));
}

TEST(autograd_sparse_gradient_of_wrong_sizes) {
  const Registered registered;
  const Tensor x = make({1, 2, 3}, true), wrong = sparse_of(4, {0}, {1});
  CHECK_THROWS_MSG(run(give(x, wrong)),
                   "GiveBackward0: expected gradient of shape (3,), got (4,) (sparse)");
  CHECK_THROWS_MSG(set_grad(x, wrong), "grad: expected a gradient of shape (3,), got (4,)");
  set_grad(x, sparse_of(3, {0}, {1}));
  CHECK_TRUE(holds(grad(x)));
}

}  // namespace
}  // namespace weft::autograd::test

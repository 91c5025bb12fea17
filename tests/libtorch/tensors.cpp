// Tensors as programs of libtorch use them. It prints; the text beside this file is what PyTorch's
// own library prints.
#include <torch/torch.h>

#include <numeric>

#include "words.h"

namespace tensors {

using torch::indexing::Ellipsis;
using torch::indexing::None;
using torch::indexing::Slice;

static void title(const char* text) { std::cout << "-- " << text << "\n"; }

template <class Error, class Body>
static void fails(const char* what, Body&& body) {
  try {
    body();
    std::cout << what << ": no error\n";
  } catch (const Error&) {
    std::cout << what << ": refused\n";
  }
}

static void factories() {
  title("factories");
  const auto options = torch::TensorOptions().dtype(torch::kFloat64).requires_grad(true);
  torch::Tensor x = torch::zeros({2, 3}, options);
  std::cout << x.requires_grad() << x.is_leaf() << " " << x.dtype() << " " << x.sizes() << "\n";
  std::cout << torch::ones({2}, torch::kInt32) << "\n";
  std::cout << torch::full({2, 2}, 1.5) << "\n" << torch::arange(5) << "\n";
  std::cout << torch::arange(0, 1, 0.25) << "\n" << torch::eye(3, torch::kLong) << "\n";
  std::cout << torch::tensor({1, 2, 3}) << "\n" << torch::tensor({{1.5, 2.0}, {3.0, 4.25}}) << "\n";
  std::cout << torch::tensor(std::vector<double>{0.1, 0.2}) << "\n" << torch::tensor(7) << "\n";
  std::cout << torch::tensor({true, false}) << "\n";
  std::cout << torch::linspace(0, 1, 3) << "\n" << torch::zeros_like(x).dtype() << "\n";
  std::cout << at::empty({0, 4}) << "\n" << torch::Tensor() << "\n";
  const std::vector<int64_t> sizes{3, 1};
  std::cout << torch::ones(sizes).expand({3, 2}).strides() << "\n";
  std::cout << torch::ones({3}, torch::dtype<int64_t>()) << "\n";
}

static void formats() {
  title("formats");
  const torch::Tensor x = torch::ones({2, 3, 4, 5});
  const auto last = torch::MemoryFormat::ChannelsLast;
  std::cout << x.to(x.options(), false, false, last).strides()
            << x.to(x.options().memory_format(last)).strides() << x.contiguous(last).strides()
            << x.contiguous(last).is_contiguous() << x.contiguous(last).is_contiguous(last)
            << x.to(torch::kFloat).is_same(x) << x.to(torch::kFloat, false, true).is_same(x)
            << "\n";
}

static void memory() {
  title("memory");
  std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  torch::Tensor x = torch::from_blob(numbers.data(), {2, 3});
  x[1][2] = 60.0;
  std::move(x[0]) = torch::tensor({7.0, 8.0, 9.0});
  std::cout << numbers[5] << " " << numbers[0] << " " << numbers[2] << "\n";
  torch::Tensor strided = torch::from_blob(numbers.data(), {3, 2}, {1, 3}, torch::kFloat32);
  std::cout << strided << "\n";
  int released = 0;
  {
    torch::Tensor held =
        torch::from_blob(numbers.data(), {6}, [&](void*) { ++released; }, torch::kFloat32);
    torch::Tensor view = held.slice(0, 1, 3);
    held = torch::Tensor();
    std::cout << released << " " << view.sum().item<float>() << "\n";
  }
  std::cout << released << "\n";
  const auto elements = x.accessor<float, 2>();
  float total = 0;
  for (int64_t i = 0; i < elements.size(0); ++i) {
    for (int64_t j = 0; j < elements.size(1); ++j) total += elements[i][j];
  }
  std::cout << total << " " << x.data_ptr<float>()[4] << " " << x.nbytes() << "\n";
  torch::Tensor copy = x.clone();
  copy.fill_(0);
  std::cout << x.sum().item().toDouble() << " " << x.is_same(x) << x.is_same(copy) << "\n";
  fails<c10::Error>("data_ptr of another type", [&] { x.data_ptr<double>(); });
  fails<std::exception>("an undefined tensor", [] { torch::Tensor().sum(); });
}

static void indices() {
  title("indices");
  torch::Tensor x = torch::arange(24).reshape({2, 3, 4});
  std::cout << x.index({0, Slice(1, None), Slice(None, None, 2)}) << "\n";
  std::cout << x.index({Ellipsis, -1}) << "\n" << x.index({"...", 0}).sizes() << "\n";
  std::cout << x.index({None, 1}).sizes() << x.index({x > 20}) << "\n";
  std::cout << x.index({torch::tensor({1, 0}), torch::tensor({2, 1})}) << "\n";
  std::cout << x.index({Slice(), torch::tensor({0, 2}), 1}) << "\n";
  x.index_put_({0, Slice(), 0}, -1);
  x.index_put_({1, 2}, torch::zeros({4}, torch::kLong));
  x.index({0, 1}) = 5;
  std::cout << x << "\n" << x[1][0].select(0, 3).item<int>() << "\n";
  std::cout << x[torch::tensor(1)].sizes() << x.narrow(2, 1, 2).sizes() << "\n";
  fails<c10::IndexError>("an index beyond the end", [&] { x[2]; });
  fails<c10::Error>("too many indices", [&] { x.index({0, 0, 0, 0}); });
}

static void arithmetic() {
  title("arithmetic");
  torch::Tensor a = torch::tensor({1.0, 2.0, 4.0}), b = torch::tensor({3.0, 2.0, 0.5});
  std::cout << a + b * 2 - 1 << "\n" << 1 / a << "\n" << 2 - a << "\n" << -a << "\n";
  std::cout << (a > b) << "\n"
            << (a == 2) << "\n"
            << ((a > 1) & (b > 1)) << "\n"
            << (a % 3) << "\n";
  a += b;
  a *= 2;
  a /= torch::tensor(2.0);
  std::cout << a << "\n" << torch::pow(a, 2) << "\n" << a.pow(0.5) << "\n";
  std::cout << torch::matmul(torch::eye(3), a) << "\n" << torch::stack({a, b}).sizes() << "\n";
  std::cout << torch::cat({a.unsqueeze(0), b.unsqueeze(0)}, 0).t() << "\n";
  auto [values, places] = torch::cat({a, b}).sort(0, true);
  std::cout << values << "\n" << places << "\n" << std::get<1>(a.max(0)).item<int64_t>() << "\n";
  std::cout << a.mean().item<double>() << " " << a.std().item<float>() << " " << a.argmax() << "\n";
  std::cout << torch::softmax(a, 0).sum() << "\n" << torch::where(a > 3, a, 0) << "\n";
  std::cout << a.clamp(3, 4) << "\n" << torch::norm(a).item<float>() << "\n";
  std::cout << a.sum({0}, true).sizes() << a.view({-1, 1}).squeeze().dim() << "\n";
  std::cout << torch::einsum("i,j->ij", {a, b}) << "\n";
  for (const torch::Tensor& part : torch::chunk(torch::arange(5), 2)) std::cout << part << "\n";
  std::cout << torch::conv2d(torch::ones({1, 1, 4, 4}), torch::ones({1, 1, 3, 3}), {}, 1, 1)
            << "\n";
  std::cout << torch::max_pool2d(torch::arange(16.0).view({1, 1, 4, 4}), 2) << "\n";
  std::cout << a.to(torch::kInt) << "\n"
            << a.to(torch::kBool).dtype() << a.toType(at::kHalf) << "\n";
  std::cout << torch::allclose(a, a + 1e-9) << torch::equal(a, b) << "\n";
  torch::Tensor out = torch::empty({3});
  torch::add_out(out, a, b);
  std::cout << out << "\n" << torch::isnan(torch::tensor({NAN, 1.0f})) << "\n";
}

static void compositions() {
  title("compositions");
  const torch::Tensor a = torch::tensor({1.0, -2.0, 3.0}), b = torch::arange(2.0);
  std::cout << torch::absolute(a) << a.clip(0, 2) << a.multiply(2) << torch::subtract(a, 1) << "\n";
  std::cout << torch::hstack({a, a}) << torch::vstack({a, a}) << torch::dstack({a, a}) << "\n";
  for (const char* order : {"ij", "xy"}) {
    const std::vector<torch::Tensor> grids = torch::meshgrid({a, b}, order);
    std::cout << grids[0] << grids[1] << "\n";
  }
  std::cout << torch::complex(a, a).dtype() << torch::view_as_real(torch::polar(a.abs(), a))
            << "\n";
  std::cout << torch::broadcast_tensors({a.view({3, 1}), b})[0] << torch::is_nonzero(a[0])
            << torch::promote_types(torch::kInt, torch::kHalf)
            << torch::result_type(a, torch::ones({1}, torch::kDouble)) << torch::concat({a, b})
            << torch::atleast_3d(a).sizes() << "\n";
}

static void containers() {
  title("containers");
  c10::Dict<std::string, int64_t> dict;
  dict.insert("a", 1);
  dict.insert("a", 2);
  dict.insert_or_assign("b", 3);
  const auto shared = dict;
  const auto copied = dict.copy();
  std::cout << shared.erase("a") << dict.erase("a") << dict.size() << dict.contains("a")
            << dict.contains("b") << dict.at("b") << copied.size() << "\n";
  c10::List<int64_t> list({4, 5});
  const c10::List<int64_t> same = list;
  list.push_back(6);
  list.set(0, 7);
  std::cout << same.size() << same.get(0) << same.get(2) << list.copy().vec() << "\n";
  at::set_num_threads(3);
  std::vector<int64_t> squares(1000);
  at::parallel_for(0, 1000, 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) squares[static_cast<size_t>(i)] = i * i;
  });
  at::set_num_threads(1);
  std::cout << at::Scalar(300).toInt() << torch::tensor(123456.75, torch::kDouble)
            << torch::tensor({12345678.5, 2345678.5}, torch::kDouble) << "\n";
  std::cout << std::accumulate(squares.begin(), squares.end(), int64_t{0}) << "\n";
  std::cout << torch::view_as_real(torch::tensor({c10::complex<double>(1, -2)})) << "\n";
  for (const auto i : c10::irange(2, 5)) std::cout << i;
  std::cout << c10::IntArrayRef({1, 2, 3}).slice(1) << c10::makeArrayRef(squares).at(3) << "\n";
}

static void gradients() {
  title("gradients");
  torch::Tensor x = torch::tensor({1.0, 2.0, 3.0}, torch::requires_grad());
  (x * x).sum().backward();
  std::cout << x.grad() << "\n";
  x.mutable_grad().zero_();
  torch::Tensor y = (x * x * x).sum();
  const auto first = torch::autograd::grad({y}, {x}, {}, true, true);
  const auto second = torch::autograd::grad({first[0].sum()}, {x});
  std::cout << first[0].detach() << "\n" << second[0] << "\n" << x.grad() << "\n";
  {
    torch::NoGradGuard no_grad;
    std::cout << (x * 2).requires_grad() << torch::GradMode::is_enabled() << "\n";
    torch::AutoGradMode with(true);
    std::cout << (x * 2).requires_grad() << "\n";
  }
  {
    c10::InferenceMode inference(true);
    std::cout << (x * 2).requires_grad() << "\n";
  }
  torch::Tensor w = torch::ones({2}, torch::kDouble).set_requires_grad(true), v = w * 3;
  v.retain_grad();
  v.backward(torch::tensor({1.0, 2.0}, torch::kDouble));
  std::cout << w.grad() << "\n" << v.grad() << "\n" << v.is_leaf() << "\n";
  fails<c10::Error>("a second pass", [&] { y.backward(), y.backward(); });
}

static void types() {
  title("types");
  const torch::Device device("cpu");
  std::cout << device << " " << torch::Device(torch::kCUDA, 1) << " " << torch::kFloat << " "
            << torch::Device("cuda:1").index() << " " << device.is_cpu() << "\n";
  std::cout << torch::kFloat16 << torch::kBFloat16 << torch::kUInt8 << torch::kComplexFloat << "\n";
  const torch::Tensor x = torch::ones({2, 2});
  std::cout << (x.dtype() == torch::kFloat32) << (x.scalar_type() == at::kFloat)
            << (x.dtype() == caffe2::TypeMeta::Make<float>()) << (x.device() == torch::kCPU)
            << x.element_size() << x.options().dtype() << "\n";
  const at::Scalar scalar = x.sum().item();
  std::cout << scalar.isFloatingPoint() << scalar.toFloat() << at::Scalar(3).to<double>()
            << at::Scalar(true).isBoolean() << "\n";
  const c10::IntArrayRef sizes = x.sizes();
  std::cout << sizes << sizes.size() << sizes.vec() << (sizes == c10::IntArrayRef({2, 2})) << "\n";
  std::cout << static_cast<float>(at::Half(1.0f / 3)) << " "
            << static_cast<float>(at::BFloat16(1.0f / 3)) << " "
            << static_cast<float>(at::Half(1e-7f)) << " " << float(at::Half(70000.0f)) << "\n";
  const auto size =
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "size", [&] { return sizeof(scalar_t); });
  std::cout << size << "\n";
  fails<c10::Error>("a device by a wrong name", [] { torch::Device("toaster"); });
  fails<c10::Error>("a check", [] { TORCH_CHECK(1 > 2, "expected ", 1, " above 2"); });
  try {
    TORCH_CHECK(false, "number ", 3);
  } catch (const torch::Error& error) {
    std::cout << std::string(error.what()).substr(0, 8) << "\n";
  }
}

static void printing() {
  title("printing");
  std::cout << torch::tensor({1.0, 1000.5}) << "\n" << torch::tensor({0.001, 0.002}) << "\n";
  std::cout << torch::tensor({1e-8, 1.0}) << "\n" << torch::tensor({1e10, 1.0}) << "\n";
  std::cout << torch::tensor({-1.5, 22.25}) << "\n" << torch::tensor({100000.0, 2.0}) << "\n";
  std::cout << torch::tensor({{1.0, -2.0}, {0.5, 100.0}}) << "\n"
            << torch::arange(30).view({1, 30}) << "\n";
  std::cout << torch::tensor({INFINITY, NAN, 1.0f}) << "\n" << torch::zeros({2, 2, 2}) << "\n";
  std::cout << torch::tensor(2.5) << "\n"
            << torch::tensor({0.0, 0.0}) << "\n"
            << torch::ones({1, 2, 1, 2}) << "\n";
  std::cout << torch::tensor({123456.0, 0.5}) << "\n" << torch::tensor({0.1}) << "\n";
  std::cout << torch::tensor({12345678, -1}) << "\n" << torch::zeros({2, 0}) << "\n";
}

void program(const Words&) {
  factories();
  formats();
  memory();
  indices();
  arithmetic();
  compositions();
  containers();
  gradients();
  types();
  printing();
}

}  // namespace tensors

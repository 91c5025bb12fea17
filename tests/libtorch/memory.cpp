// Storages, tensors that get other memory or sizes in place, and functions that write to tensors of
// the caller: the forms that bindings of other languages call.
#include <torch/torch.h>

#include <iostream>

#include "words.h"

namespace memory {

namespace {

// What was done, and whether it was refused.
template <class Do>
void attempt(const char* what, Do&& act) {
  try {
    act();
    std::cout << what << ": done\n";
  } catch (const c10::Error&) {
    std::cout << what << ": refused\n";
  }
}

void show(const char* name, const torch::Tensor& x) {
  std::cout << name << " " << x.sizes() << " " << x.strides() << " " << x.storage_offset() << " "
            << x.scalar_type() << "\n"
            << x << "\n";
}

void storages() {
  torch::Tensor x = torch::arange(12, torch::kFloat).view({3, 4});
  const at::Storage storage = x[1].storage();
  std::cout << storage.nbytes() << " " << storage.device() << " "
            << (storage.data_ptr().get() == x.data_ptr()) << " " << (storage.data() == x.data_ptr())
            << " " << static_cast<const float*>(storage.data())[5] << "\n";
  std::cout << x.is_alias_of(x[2]) << x.is_alias_of(x.clone()) << "\n";
  torch::Tensor y = torch::zeros({2});
  y.set_(x.storage(), 1, {2, 3}, {4, 1});
  show("set at", y);
  y.fill_(-1);
  show("written through", x);
  torch::Tensor other = torch::empty({0}), none = torch::ones({2});
  show("set to a tensor", other.set_(x.t()));
  other.set_(x.storage());
  std::cout << other.sizes() << " " << none.set_().sizes() << "\n";
  attempt("set beyond", [&] { y.set_(x.storage(), 8, {2, 3}, {4, 1}); });
}

void sizes() {
  torch::Tensor x = torch::arange(6);
  show("smaller", x.resize_({2, 2}));
  x.resize_({3, 3}).fill_(7);
  show("larger", x);
  show("as another", x.resize_as_(torch::empty({1, 2})));
  show("function", torch::resize_as_(x, torch::empty({2, 1})));
}

void histories() {
  torch::Tensor leaf = torch::ones({2}, torch::requires_grad());
  torch::Tensor made = leaf * 3;
  std::cout << made.requires_grad() << made.is_leaf();
  made.detach_();
  std::cout << made.requires_grad() << made.is_leaf() << "\n";
  attempt("resize of a leaf", [&] { leaf.resize_({4}); });
  attempt("set of a leaf", [&] { leaf.set_(torch::ones({4})); });
  attempt("detach of a view", [&] { (leaf * 2)[0].detach_(); });
}

void results() {
  const torch::Tensor x = torch::arange(1, 7, torch::kFloat).view({2, 3});
  torch::Tensor out = torch::empty({0}), values = torch::empty({0}),
                places = torch::empty({0}, torch::kLong);
  show("add_out", torch::add_out(out, x, x, 2));
  show("add_outf", torch::add_outf(x, x, 3, out));
  show("flip_out", at::flip_out(out, x, {1}));
  show("flip_outf", at::flip_outf(x, {0}, out));
  std::tuple<torch::Tensor&, torch::Tensor&> found = torch::max_out(values, places, x, 1);
  show("max_out", std::get<0>(found));
  show("places", places);
  torch::max_outf(x, 0, true, values, places);
  show("max_outf", values);
  torch::Tensor spread = torch::empty({0}), middle = torch::empty({0});
  at::var_mean_out(spread, middle, x, at::OptionalIntArrayRef(1), 1);
  show("variances", spread);
  show("means", middle);
  at::var_mean_outf(x, at::OptionalIntArrayRef(0), 0, true, spread, middle);
  show("variances", spread);
  show("means", middle);
  torch::Tensor narrow = torch::empty({0}, torch::kDouble);
  show("zeros_out", torch::zeros_out(narrow, {2}));
  show("full_outf", torch::full_outf({2}, 3.5, narrow));
  show("arange_out", torch::arange_out(narrow, 2, 8, 3));
  show("apart", at::full({2}, 2, torch::kInt, c10::nullopt, c10::Device("cpu"), false));
  show("empty apart",
       at::empty({0, 2}, torch::kDouble, c10::nullopt, c10::nullopt, c10::nullopt, c10::nullopt));
  attempt("out of another dtype", [&] { torch::add_out(places, x, x); });
  torch::Tensor leaf = torch::ones({2, 3}, torch::requires_grad());
  attempt("out that needs a gradient", [&] { torch::add_out(leaf, x, x); });
}

}  // namespace

void program(const Words&) {
  storages();
  sizes();
  histories();
  results();
}

}  // namespace memory

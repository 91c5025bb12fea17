// What the native parts of bindings in other languages ask of libtorch, in their forms.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/code_template.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <iostream>
#include <sstream>

#include "words.h"

namespace bindings {

template <class... Parts>
void show(const Parts&... parts) {
  ((std::cout << parts << ' '), ...);
  std::cout << '\n';
}

// ---- functions of a host in the history of gradients ----

struct HostNode : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&& inputs) override {
    [[maybe_unused]] const at::OptionalDeviceGuard guard;
    torch::autograd::variable_list found;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (task_should_compute_output(i)) found.push_back(inputs[i] * 3 * saved.unpack(nullptr));
    }
    return found;
  }
  torch::autograd::SavedVariable saved;
};

void autograd() {
  const auto x = torch::tensor({1.0, 2.0}, torch::requires_grad());
  const torch::autograd::variable_list inputs{x};
  const auto node = c10::make_intrusive<HostNode>();
  node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  node->clear_input_metadata();
  node->saved = torch::autograd::SavedVariable(x, false);
  torch::Tensor y;
  {
    const at::NoGradGuard no_grad;
    y = x * 3;
  }
  const torch::autograd::_jvp_fn_t jvp = [](const auto&, const auto& tangents) { return tangents; };
  const auto outputs = torch::autograd::_wrap_outputs(
      inputs, {}, {}, torch::autograd::to_optional(y), node, jvp, {},
      [](const at::Tensor& each) { return each.view_as(each); }, false);
  outputs[0]->sum().backward();
  show(outputs[0]->requires_grad(), outputs[0]->is_leaf(), x.grad());

  using torch::autograd::impl::gradient_edge;
  auto& engine = torch::autograd::Engine::get_default_engine();
  const auto found = engine.execute({gradient_edge((x * x).sum())}, {torch::ones({})}, false, false,
                                    false, {gradient_edge(x)});
  show(found[0], gradient_edge(x).is_valid(), gradient_edge(x).input_nr);
  torch::autograd::backward({(x * x).sum()}, {}, true, false, {x});
  show(x.grad());
  x.mutable_grad() = torch::ones_like(x);
  x.mutable_grad().mul_(2);
  show(x.grad(), torch::autograd::GradMode::is_enabled());
}

// ---- random numbers, storages, modes ----

void state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(5);
  }
  const auto first = torch::rand({3}, c10::nullopt, torch::kFloat);
  torch::manual_seed(5);
  show(torch::equal(first, torch::rand({3})), generator.current_seed(), generator.device());
  const auto own = at::make_generator<at::CPUGeneratorImpl>(9);
  show(own.current_seed(), own.clone().current_seed(), own == generator);
  show(torch::randint(0, 5, {2}, c10::nullopt, torch::kLong).sizes(),
       torch::randperm(3, c10::nullopt, torch::kInt).dtype());

  const auto x = torch::arange(6.0).reshape({2, 3});
  const c10::Storage storage = x[1].storage();
  show(storage.nbytes(), storage.data_ptr().get() == x.data_ptr(), x[1].storage_offset(),
       x[1].is_alias_of(x));
  show(x.suggest_memory_format(), x.is_sparse(), x.is_quantized(), x.is_mkldnn(), x.to_dense());

  auto& context = at::globalContext();
  context.setBenchmarkCuDNN(true);
  show(context.benchmarkCuDNN(), context.allowTF32CuDNN(), context.deterministicAlgorithms());
  at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
  show(at::autocast::is_autocast_enabled(at::kCPU), at::autocast::get_autocast_dtype(at::kCPU),
       at::autocast::is_autocast_cache_enabled(), at::autocast::increment_nesting());
  at::jit::TemplateEnv names;
  names.s("name", "x");
  names.d("count", 3);
  show(at::jit::CodeTemplate("${name}: ${count};").format(names));

  auto grown = torch::zeros({1}, torch::kInt), found = torch::zeros({1});
  auto scale = torch::full({1}, 4.0),
       gradient = torch::tensor({1.0, std::numeric_limits<double>::infinity()});
  torch::_amp_foreach_non_finite_check_and_unscale_({gradient}, found, torch::full({1}, 0.5));
  show(gradient, found, torch::_amp_update_scale_(scale, grown, found, 2.0, 0.5, 1));
  found.zero_();
  show(torch::_amp_update_scale_(scale, grown, found, 2.0, 0.5, 1), grown);
}

// ---- values of programs ----

void values() {
  const auto x = torch::ones({2});
  c10::impl::GenericDict dict(c10::StringType::get(), c10::TensorType::get());
  dict.insert("y", x);
  c10::impl::GenericList tensors(c10::TensorType::get());
  const c10::IValue empty(tensors);
  tensors.push_back(x);
  const c10::IValue tuple(c10::ivalue::Tuple::create({true, 3, "text"}));
  for (const auto& each : std::vector<c10::IValue>{
           true, 3, 1.5, "text", dict, tensors, empty, tuple, c10::IValue(),
           c10::List<int64_t>({1, 2}), std::vector<double>{2.5}, std::make_tuple(1.5, x)}) {
    show(each.type()->str(), each.isTensorList(), each.isIntList(), each.isScalar(), each.isNone(),
         each.type()->kind() == c10::TypeKind::ListType);
  }
  const auto& elements = tuple.toTuple()->elements();
  show(elements.size(), elements[1].toInt(), tuple.toTupleRef().elements()[2].toStringRef());
  const auto key = c10::IValue(dict).type()->expect<c10::DictType>()->getKeyType();
  show(key == c10::StringType::get(), *key, dict.contains("y"), dict.at("y").toTensor().sizes());
  show(torch::tensor(c10::Half(1.5F)).dtype(), torch::elementSize(torch::kDouble));

  const std::vector<char> pickled = torch::pickle_save(c10::IValue(std::make_tuple(dict, 7)));
  const auto read = torch::pickle_load(pickled).toTuple();
  show(read->elements()[0].toGenericDict().at("y").toTensor(), read->elements()[1].toInt());
  std::ostringstream out;
  torch::save(std::vector<torch::Tensor>{x, x * 2}, out);
  std::istringstream in(out.str());
  std::vector<torch::Tensor> loaded;
  torch::load(loaded, in);
  show(loaded.size(), loaded[1]);
}

// ---- modules of files ----

struct Memory final : caffe2::serialize::ReadAdapterInterface {
  explicit Memory(std::string bytes) : bytes_(std::move(bytes)) {}
  size_t size() const override { return bytes_.size(); }
  size_t read(uint64_t from, void* to, size_t count, const char* = "") const override {
    std::memcpy(to, bytes_.data() + from, count);
    return count;
  }

 private:
  std::string bytes_;
};

std::string bytes_of(const torch::jit::Module& module) {
  std::ostringstream out;
  module.save(out);
  return out.str();
}

void modules(const std::string& path) {
  const auto x = torch::ones({1, 3});
  auto module = torch::jit::load(path, torch::Device(c10::kCPU, -1));
  const torch::Tensor was = module.forward({x}).toTensor();
  const auto method = module.get_method("energy");
  torch::jit::Function& function = method.function();
  show(method.name(), function.num_inputs(), function.getSchema().arguments()[1].name());
  show(module.find_method("energy").has_value(), module.find_method("none").has_value());

  module.setattr("r_max", torch::full({}, 2.0));
  for (const auto& each : module.named_parameters()) each.value.detach().mul_(2);
  auto copy = module.deepcopy();
  for (const auto& each : copy.parameters()) each.detach().zero_();
  show(module.attr("r_max"), copy.forward({x}).toTensor(), was.sizes());
  auto again = torch::jit::load(std::make_unique<Memory>(bytes_of(module)), c10::kCPU);
  show(torch::equal(again.forward({x}).toTensor(), module.forward({x}).toTensor()),
       again.attr("r_max"));
  module.to(torch::kDouble);
  show(module.forward({x.to(torch::kDouble)}).toTensor().dtype(),
       module.attr("r_max").toTensor().dtype());
}

// ---- layers ----

void layers() {
  namespace nn = torch::nn;
  const torch::NoGradGuard no_grad;
  const auto filled = [](nn::Module& module) {
    double value = 0.1;
    for (auto& each : module.parameters()) each.fill_(value += 0.05);
  };
  nn::LSTM lstm(nn::LSTMOptions(3, 2).num_layers(2).bidirectional(true));
  filled(*lstm);
  const auto data = torch::arange(18, torch::kFloat).reshape({3, 2, 3}) / 18;
  const auto sequences = torch::arange(27, torch::kFloat).reshape({3, 3, 3}) / 27;
  const auto packed =
      nn::utils::rnn::pack_padded_sequence(sequences, torch::tensor({1, 3, 2}), false, false);
  show(packed.data(), packed.batch_sizes(), packed.sorted_indices(), packed.unsorted_indices());
  const auto [output, last] = lstm->forward_with_packed_input(packed);
  const auto [padded, lengths] = nn::utils::rnn::pad_packed_sequence(output, true, -1, 4);
  show(padded, lengths, std::get<0>(last), std::get<1>(last));
  nn::GRU gru(3, 2);
  filled(*gru);
  show(std::get<1>(gru->forward_with_packed_input(packed)));

  nn::EmbeddingBag bag(nn::EmbeddingBagOptions(4, 2).mode(torch::kMax));
  bag->weight.copy_(torch::arange(8.0).reshape({4, 2}));
  show(bag->forward(torch::tensor({{0, 2}, {3, 1}})),
       bag->forward(torch::tensor({1, 0, 2}), torch::tensor({0, 2})));
  const auto options = nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(3).dropout(0);
  nn::TransformerEncoder encoder(
      nn::TransformerEncoderOptions(nn::TransformerEncoderLayer(options), 2));
  nn::TransformerDecoder decoder(
      nn::TransformerDecoderLayer(
          nn::TransformerDecoderLayerOptions(4, 2).dim_feedforward(3).dropout(0)),
      1);
  filled(*encoder);
  filled(*decoder);
  encoder->to(torch::kDouble);
  decoder->to(torch::kDouble);
  const auto steps = torch::arange(24, torch::kDouble).reshape({3, 2, 4}).sin();
  const auto mask = nn::TransformerImpl::generate_square_subsequent_mask(3).to(torch::kDouble);
  const auto memory = encoder->forward(steps, mask);
  show(memory, (decoder->forward(steps, memory, mask) * 100).round());
  nn::MultiheadAttention attention(
      nn::MultiheadAttentionOptions(4, 2).kdim(3).vdim(3).add_bias_kv(true).add_zero_attn(true));
  filled(*attention);
  const auto [attended, weights] = attention->forward(steps.to(torch::kFloat), data, data + 1);
  show(attended, weights);

  namespace F = nn::functional;
  show(F::fold(torch::ones({1, 4, 4}), F::FoldFuncOptions({3, 3}, {2, 2})),
       F::unfold(torch::arange(9.0).view({1, 1, 3, 3}), F::UnfoldFuncOptions({2, 2}).stride(2)));
  nn::BCELossOptions::reduction_t reduction = torch::kSum;
  show(F::binary_cross_entropy(torch::full({2}, 0.5), torch::ones({2}),
                               F::BinaryCrossEntropyFuncOptions().reduction(reduction)));
}

void program(const Words& words) {
  std::cout << std::boolalpha;
  autograd();
  state();
  values();
  modules(words.at(0));
  layers();
}

}  // namespace bindings

// torch::optim: optimizers with PyTorch's rules and defaults.
#pragma once

#include "nn_module.h"

namespace torch::optim {
inline namespace over_weft {

using at::Tensor;

class OptimizerOptions {
 public:
  using Betas = std::tuple<double, double>;
  using Field = std::variant<double*, bool*, Betas*>;
  // What archives have of them, by name.
  virtual std::vector<std::pair<const char*, Field>> fields() { return {}; }
  virtual ~OptimizerOptions() = default;
  virtual std::unique_ptr<OptimizerOptions> clone() const = 0;
  virtual double get_lr() const = 0;
  virtual void set_lr(double lr) = 0;
};
// Options with a learning rate and a decay of weights.
template <class Derived>
class OptionsOf : public OptimizerOptions {
 public:
  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
  double get_lr() const override { return static_cast<const Derived&>(*this).lr(); }
  void set_lr(double lr) override { static_cast<Derived&>(*this).lr(lr); }
};

#define WEFT_OPTIMIZER_OPTIONS(Name, lr_parameter) \
  Name##Options(lr_parameter) : lr_(lr) {}         \
  TORCH_ARG(double, lr);                           \
  TORCH_ARG(double, weight_decay)
#define WEFT_FIELD(name) {#name, &name##_}
struct SGDOptions : OptionsOf<SGDOptions> {
  WEFT_OPTIMIZER_OPTIONS(SGD, double lr) = 0;
  TORCH_ARG(double, momentum) = 0;
  TORCH_ARG(double, dampening) = 0;
  TORCH_ARG(bool, nesterov) = false;

 public:
  std::vector<std::pair<const char*, Field>> fields() override {
    return {WEFT_FIELD(lr), WEFT_FIELD(weight_decay), WEFT_FIELD(momentum), WEFT_FIELD(dampening),
            WEFT_FIELD(nesterov)};
  }
};
#define WEFT_ADAM_OPTIONS(Name, decay)                                                      \
  struct Name##Options : OptionsOf<Name##Options> {                                         \
    WEFT_OPTIMIZER_OPTIONS(Name, double lr = 1e-3) = decay;                                 \
    TORCH_ARG(Betas, betas) = Betas(0.9, 0.999);                                            \
    TORCH_ARG(double, eps) = 1e-8;                                                          \
    TORCH_ARG(bool, amsgrad) = false;                                                       \
                                                                                            \
   public:                                                                                  \
    std::vector<std::pair<const char*, Field>> fields() override {                          \
      return {WEFT_FIELD(lr), WEFT_FIELD(weight_decay), WEFT_FIELD(betas), WEFT_FIELD(eps), \
              WEFT_FIELD(amsgrad)};                                                         \
    }                                                                                       \
  }
WEFT_ADAM_OPTIONS(Adam, 0);
WEFT_ADAM_OPTIONS(AdamW, 1e-2);
#undef WEFT_ADAM_OPTIONS
struct RMSpropOptions : OptionsOf<RMSpropOptions> {
  WEFT_OPTIMIZER_OPTIONS(RMSprop, double lr = 1e-2) = 0;
  TORCH_ARG(double, alpha) = 0.99;
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, momentum) = 0;
  TORCH_ARG(bool, centered) = false;

 public:
  std::vector<std::pair<const char*, Field>> fields() override {
    return {WEFT_FIELD(lr),  WEFT_FIELD(weight_decay), WEFT_FIELD(alpha),
            WEFT_FIELD(eps), WEFT_FIELD(momentum),     WEFT_FIELD(centered)};
  }
};
struct AdagradOptions : OptionsOf<AdagradOptions> {
  WEFT_OPTIMIZER_OPTIONS(Adagrad, double lr = 1e-2) = 0;
  TORCH_ARG(double, lr_decay) = 0;
  TORCH_ARG(double, initial_accumulator_value) = 0;
  TORCH_ARG(double, eps) = 1e-10;

 public:
  std::vector<std::pair<const char*, Field>> fields() override {
    return {WEFT_FIELD(lr), WEFT_FIELD(weight_decay), WEFT_FIELD(lr_decay),
            WEFT_FIELD(initial_accumulator_value), WEFT_FIELD(eps)};
  }
};
struct LBFGSOptions : OptionsOf<LBFGSOptions> {
  WEFT_OPTIMIZER_OPTIONS(LBFGS, double lr = 1) = 0;
  TORCH_ARG(int64_t, max_iter) = 20;
  TORCH_ARG(std::optional<int64_t>, max_eval) = std::nullopt;
  TORCH_ARG(double, tolerance_grad) = 1e-7;
  TORCH_ARG(double, tolerance_change) = 1e-9;
  TORCH_ARG(int64_t, history_size) = 100;
  TORCH_ARG(std::optional<std::string>, line_search_fn) = std::nullopt;
};
#undef WEFT_OPTIMIZER_OPTIONS
#undef WEFT_FIELD

// Parameters that share options; those of the optimizer where they have none.
class OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  OptimizerParamGroup(const OptimizerParamGroup& other)
      : params_(other.params_), options_(other.options_ ? other.options_->clone() : nullptr) {}
  OptimizerParamGroup(OptimizerParamGroup&&) = default;
  OptimizerParamGroup& operator=(OptimizerParamGroup&&) = default;

  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options() { return *expect(); }
  const OptimizerOptions& options() const { return *expect(); }
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }
  std::vector<Tensor>& params() { return params_; }
  const std::vector<Tensor>& params() const { return params_; }

 private:
  OptimizerOptions* expect() const {
    TORCH_CHECK(options_, "options: expected a group with options, got one without");
    return options_.get();
  }

  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
};

// What an optimizer keeps of a parameter.
struct OptimizerParamState {
  int64_t step = 0;
  OrderedDict<std::string, Tensor> tensors;

  // A tensor of the state, which begins as `first`.
  template <class Make>
  Tensor get(const std::string& name, Make&& first) {
    Tensor* found = tensors.find(name);
    return found ? *found : tensors.insert(name, first());
  }
};

class Optimizer {
 public:
  using LossClosure = std::function<Tensor()>;

  Optimizer(std::vector<OptimizerParamGroup> groups, std::unique_ptr<OptimizerOptions> defaults)
      : defaults_(std::move(defaults)) {
    for (OptimizerParamGroup& each : groups) add_param_group(std::move(each));
  }
  Optimizer(const Optimizer&) = delete;
  Optimizer(Optimizer&&) = default;
  virtual ~Optimizer() = default;

  virtual Tensor step(LossClosure closure = nullptr) = 0;
  void add_param_group(OptimizerParamGroup group) {
    for (const Tensor& each : group.params()) {
      TORCH_CHECK(each.is_leaf(),
                  "add_param_group: expected leaves, got the result of an operator");
    }
    if (!group.has_options()) group.set_options(defaults_->clone());
    groups_.push_back(std::move(group));
  }
  void add_parameters(const std::vector<Tensor>& parameters) {
    groups_.at(0).params().insert(groups_[0].params().end(), parameters.begin(), parameters.end());
  }
  void zero_grad(bool set_to_none = true) {
    for (const auto& group : groups_) torch::detail::zero_grads(group.params(), set_to_none);
  }
  std::vector<OptimizerParamGroup>& param_groups() { return groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const { return groups_; }
  OptimizerOptions& defaults() { return *defaults_; }
  const OptimizerOptions& defaults() const { return *defaults_; }
  std::vector<Tensor>& parameters() { return groups_.at(0).params(); }
  size_t size() const {
    size_t count = 0;
    for (const OptimizerParamGroup& group : groups_) count += group.params().size();
    return count;
  }
  const std::map<const weft_tensor*, OptimizerParamState>& state() const { return states_; }
  OptimizerParamState& state_of(const Tensor& parameter) { return states_[parameter.get()]; }

 protected:
  static Tensor loss_of(const LossClosure& closure) {
    if (!closure) return {};
    at::AutoGradMode grad(true);
    return closure();
  }

 private:
  std::unique_ptr<OptimizerOptions> defaults_;
  std::vector<OptimizerParamGroup> groups_;
  std::map<const weft_tensor*, OptimizerParamState> states_;
};

// An optimizer whose Derived::update moves one parameter along its gradient.
template <class Derived, class Options>
class OptimizerOf : public Optimizer {
 public:
  explicit OptimizerOf(std::vector<OptimizerParamGroup> groups, Options options = {})
      : Optimizer(std::move(groups), std::make_unique<Options>(std::move(options))) {}
  explicit OptimizerOf(std::vector<Tensor> params, Options options = {})
      : OptimizerOf(one_group(std::move(params)), std::move(options)) {}

  Tensor step(LossClosure closure = nullptr) override {
    at::NoGradGuard no_grad;
    Tensor loss = loss_of(closure);
    for (OptimizerParamGroup& group : param_groups()) {
      const auto& options = static_cast<const Options&>(group.options());
      for (Tensor& each : group.params()) {
        const Tensor grad = each.grad();
        if (!grad.defined()) continue;
        OptimizerParamState& state = state_of(each);
        ++state.step;
        Derived::update(each, grad, options, state);
      }
    }
    return loss;
  }

 protected:
  static std::vector<OptimizerParamGroup> one_group(std::vector<Tensor> params) {
    std::vector<OptimizerParamGroup> groups;
    groups.emplace_back(std::move(params));
    return groups;
  }
  static Tensor decayed(const Tensor& grad, const Tensor& param, const Options& options) {
    return options.weight_decay() != 0 ? grad.add(param, options.weight_decay()) : grad;
  }
};

struct SGD : OptimizerOf<SGD, SGDOptions> {
  explicit SGD(std::vector<OptimizerParamGroup> groups, SGDOptions options)
      : OptimizerOf(std::move(groups), std::move(options)) {}
  explicit SGD(std::vector<Tensor> params, SGDOptions options)
      : OptimizerOf(std::move(params), std::move(options)) {}
  static void update(Tensor& param, Tensor grad, const SGDOptions& options,
                     OptimizerParamState& state) {
    grad = decayed(grad, param, options);
    const double momentum = options.momentum();
    if (momentum != 0) {
      const bool is_first = state.step == 1;
      Tensor buffer = state.get("momentum_buffer", [&] { return grad.clone(); });
      if (!is_first) buffer.mul_(momentum).add_(grad, 1 - options.dampening());
      grad = options.nesterov() ? grad.add(buffer, momentum) : buffer;
    }
    param.add_(grad, -options.lr());
  }
};

namespace detail {

// Adam's step, for gradients and decay as they come.
template <class Options>
void adam(Tensor& param, const Tensor& grad, const Options& options, OptimizerParamState& state) {
  const auto [beta1, beta2] = options.betas();
  const auto zeros = [&] { return at::zeros_like(param); };
  Tensor mean = state.get("exp_avg", zeros);
  mean.mul_(beta1).add_(grad, 1 - beta1);
  Tensor square = state.get("exp_avg_sq", zeros);
  square.mul_(beta2).addcmul_(grad, grad, 1 - beta2);
  if (options.amsgrad()) {
    Tensor largest = state.get("max_exp_avg_sq", zeros);
    largest.copy_(at::maximum(largest, square));
    square = largest;
  }
  const auto step = static_cast<double>(state.step);
  const double first = 1 - std::pow(beta1, step), second = 1 - std::pow(beta2, step);
  param.addcdiv_(mean, square.sqrt().div_(std::sqrt(second)).add_(options.eps()),
                 -options.lr() / first);
}

}  // namespace detail

struct Adam : OptimizerOf<Adam, AdamOptions> {
  using OptimizerOf::OptimizerOf;
  static void update(Tensor& param, const Tensor& grad, const AdamOptions& options,
                     OptimizerParamState& state) {
    detail::adam(param, decayed(grad, param, options), options, state);
  }
};
struct AdamW : OptimizerOf<AdamW, AdamWOptions> {
  using OptimizerOf::OptimizerOf;
  static void update(Tensor& param, const Tensor& grad, const AdamWOptions& options,
                     OptimizerParamState& state) {
    if (options.weight_decay() != 0) param.mul_(1 - options.lr() * options.weight_decay());
    detail::adam(param, grad, options, state);
  }
};
struct RMSprop : OptimizerOf<RMSprop, RMSpropOptions> {
  using OptimizerOf::OptimizerOf;
  static void update(Tensor& param, Tensor grad, const RMSpropOptions& options,
                     OptimizerParamState& state) {
    grad = decayed(grad, param, options);
    const double alpha = options.alpha();
    const auto zeros = [&] { return at::zeros_like(param); };
    Tensor square = state.get("square_avg", zeros);
    square.mul_(alpha).addcmul_(grad, grad, 1 - alpha);
    if (options.centered()) {
      Tensor mean = state.get("grad_avg", zeros);
      mean.mul_(alpha).add_(grad, 1 - alpha);
      square = square.addcmul(mean, mean, -1);
    }
    const Tensor divisor = square.sqrt().add_(options.eps());
    if (options.momentum() > 0) {
      Tensor buffer = state.get("momentum_buffer", zeros);
      buffer.mul_(options.momentum()).addcdiv_(grad, divisor);
      param.add_(buffer, -options.lr());
    } else {
      param.addcdiv_(grad, divisor, -options.lr());
    }
  }
};
struct Adagrad : OptimizerOf<Adagrad, AdagradOptions> {
  using OptimizerOf::OptimizerOf;
  static void update(Tensor& param, Tensor grad, const AdagradOptions& options,
                     OptimizerParamState& state) {
    grad = decayed(grad, param, options);
    const double rate =
        options.lr() / (1 + static_cast<double>(state.step - 1) * options.lr_decay());
    Tensor sum =
        state.get("sum", [&] { return at::full_like(param, options.initial_accumulator_value()); });
    sum.addcmul_(grad, grad, 1);
    param.addcdiv_(grad, sum.sqrt().add_(options.eps()), -rate);
  }
};

// Steps of the two-loop recursion over all parameters as one vector; without a line search.
class LBFGS : public OptimizerOf<LBFGS, LBFGSOptions> {
 public:
  using OptimizerOf::OptimizerOf;
  static void update(Tensor&, const Tensor&, const LBFGSOptions&, OptimizerParamState&) {}
  Tensor step(LossClosure closure) override {
    TORCH_CHECK(closure, "LBFGS: expected a closure that computes the loss again, got none");
    const auto& options = static_cast<const LBFGSOptions&>(param_groups().at(0).options());
    TORCH_CHECK_NOT_IMPLEMENTED(!options.line_search_fn(),
                                "LBFGS: expected no line_search_fn, got '",
                                *options.line_search_fn(), "'");
    at::NoGradGuard no_grad;
    const Tensor first_loss = loss_of(closure);
    Tensor grad = flat_grad(), loss = first_loss;
    int64_t evaluations = 1;
    const int64_t most = options.max_eval().value_or(options.max_iter() * 5 / 4);
    const auto is_small = [&] { return largest(grad) <= options.tolerance_grad(); };
    for (int64_t i = 0; i < options.max_iter() && !is_small();) {
      ++i;
      const Tensor direction = next_direction(grad, options.history_size());
      const double slope = grad.dot(direction).template item<double>();
      if (slope > -options.tolerance_change()) break;
      const double rate =
          count_ == 1 ? std::min(1.0, 1 / grad.abs().sum().template item<double>()) * options.lr()
                      : options.lr();
      move(direction, rate);
      before_ = grad;
      taken_ = direction * rate;
      if (i == options.max_iter() || evaluations >= most) break;
      const double loss_before = loss.template item<double>();
      loss = loss_of(closure);
      ++evaluations;
      grad = flat_grad();
      if (largest(taken_) <= options.tolerance_change()) break;
      if (std::abs(loss.template item<double>() - loss_before) < options.tolerance_change()) break;
    }
    return first_loss;
  }

 private:
  static double largest(const Tensor& vector) { return vector.abs().max().item<double>(); }
  Tensor flat_grad() {
    std::vector<Tensor> parts;
    for (const Tensor& each : parameters()) {
      parts.push_back((each.grad().defined() ? each.grad() : at::zeros_like(each)).reshape({-1}));
    }
    return at::cat(parts);
  }
  void move(const Tensor& direction, double rate) {
    int64_t from = 0;
    for (Tensor& each : parameters()) {
      each.add_(direction.narrow(0, from, each.numel()).view_as(each), rate);
      from += each.numel();
    }
  }
  Tensor next_direction(const Tensor& grad, int64_t most) {
    if (++count_ == 1) return grad.neg();
    const Tensor change = grad - before_;
    const double product = change.dot(taken_).item<double>();
    if (product > 1e-10) {
      if (static_cast<int64_t>(changes_.size()) == most) {
        changes_.erase(changes_.begin());
        steps_.erase(steps_.begin());
      }
      changes_.push_back(change);
      steps_.push_back(taken_);
      scale_ = product / change.dot(change).item<double>();
    }
    Tensor found = grad.neg();
    std::vector<double> shares(steps_.size());
    const auto inverse = [&](size_t i) { return 1 / changes_[i].dot(steps_[i]).item<double>(); };
    for (size_t i = steps_.size(); i-- > 0;) {
      shares[i] = steps_[i].dot(found).item<double>() * inverse(i);
      found.add_(changes_[i], -shares[i]);
    }
    found.mul_(scale_);
    for (size_t i = 0; i < steps_.size(); ++i) {
      const double back = changes_[i].dot(found).item<double>() * inverse(i);
      found.add_(steps_[i], shares[i] - back);
    }
    return found;
  }

  int64_t count_ = 0;
  double scale_ = 1;
  Tensor before_, taken_;
  std::vector<Tensor> changes_, steps_;
};

}  // namespace over_weft
}  // namespace torch::optim

#include "runtime/custom_operator.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "autograd/node.h"
#include "core/error.h"
#include "core/fork.h"
#include "runtime/argument.h"
#include "runtime/gradient_search.h"
#include "runtime/list.h"
#include "runtime/print.h"
#include "runtime/tuple.h"

namespace weft {
namespace {

using CustomOperators = std::map<std::string, CustomOperatorRef, std::less<>>;
GlobalMutex custom_registry_mutex(ForkRank::Programs);
CustomOperators& custom_registry() {
  static auto* const operators = new CustomOperators;
  return *operators;
}

// Replaces each tensor in a value by what `change` gives for it.
template <class Change>
void change_tensors(Value& value, Change&& change) {
  if (value.tag() == ValueTag::Tensor) {
    value = Value(change(value.to_tensor()));
  } else if (value.tag() == ValueTag::TensorList || value.tag() == ValueTag::OptionalTensorList) {
    TensorList tensors = value.to_tensors();
    bool has_none = value.tag() == ValueTag::OptionalTensorList;
    for (Tensor& tensor : tensors) {
      tensor = change(tensor);
      has_none = has_none || !tensor.defined();
    }
    std::vector<Value> items(tensors.begin(), tensors.end());
    value = make_list(has_none ? ValueTag::OptionalTensorList : ValueTag::TensorList, items.data(),
                      items.size());
  }
}

// The tensors of values in order; undefined ones for None in lists.
TensorList tensors_of(std::span<const Value> values) {
  TensorList found;
  for (const Value& value : values) {
    if (value.tag() == ValueTag::Tensor) {
      found.push_back(value.to_tensor());
    } else if (value.tag() == ValueTag::TensorList || value.tag() == ValueTag::OptionalTensorList) {
      for (const Tensor& tensor : value.to_tensors()) found.push_back(tensor);
    }
  }
  return found;
}

// Values whose tensors are saved for backward, which unpack in the same order.
class SavedValues {
 public:
  void save(std::span<const Value> values, bool are_results, const char* op) {
    uint32_t index = 0;
    for (const Value& value : values) {
      values_.push_back(value);
      change_tensors(values_.back(), [&](const Tensor& tensor) {
        tensors_.emplace_back();
        if (tensor.defined()) tensors_.back().save(tensor, are_results, op, index);
        ++index;
        return tensor.defined() ? Tensor(empty_place()) : tensor;
      });
    }
  }
  std::vector<Value> unpack(autograd::Node& node) const {
    std::vector<Value> values = values_;
    size_t next = 0;
    for (Value& value : values) {
      change_tensors(value, [&](const Tensor& place) {
        const autograd::SavedTensor& saved = tensors_[next++];
        return place.defined() ? saved.unpack(&node, Ref<autograd::Node>(&node)) : place;
      });
    }
    return values;
  }
  void reset() {
    for (autograd::SavedTensor& tensor : tensors_) tensor.reset();
  }

 private:
  // Stands in `values_` for a tensor, which must not be kept alive there.
  static const Tensor& empty_place() {
    static const Tensor place = Tensor::empty(IntList(), DType::U8);
    return place;
  }

  std::vector<Value> values_;
  std::vector<autograd::SavedTensor> tensors_;
};

// The gradients that a host gives for `count` tensors: one, a list, or None.
TensorList gradients_in(const Value& value, size_t count) {
  if (value.is_none()) return TensorList(count);
  if (!is_list(value.tag())) return tensors_of({&value, 1});
  TensorList found;
  for (int64_t i = 0; i < list_len(value); ++i) {
    const Value item = list_get(value, i);
    found.push_back(item.is_none() ? Tensor() : item.to_tensor());
  }
  return found;
}

class CustomNode final : public autograd::Node {
 public:
  explicit CustomNode(CustomOperatorRef op) : op_(std::move(op)), name_(op_->schema().name) {}

  void save(std::span<const Value> args, std::span<const Value> results) {
    if (!op_->has_gradient()) return;
    args_.save(args, false, name_.c_str());
    results_.save(results, true, name_.c_str());
  }

  const char* name() const override { return name_.c_str(); }

  TensorList apply(TensorList grads) override {
    WEFT_CHECK_AS(NotImplemented, op_->has_gradient(), name_,
                  ": expected an operator with a gradient in backward, got one without; ",
                  "weft_register_operator takes one");
    std::vector<Value> args = args_.unpack(*this), given = results_.unpack(*this);
    const std::vector<Value> inputs = args;
    const size_t first = args.size();
    args.insert(args.end(), given.begin(), given.end());
    size_t next = 0;
    for (Value& result : given) {
      change_tensors(result, [&](const Tensor&) { return grads[next++]; });
      args.push_back(std::move(result));
    }
    const bool records = autograd::grad_enabled();
    std::vector<Value> found;
    {
      const autograd::NoGradGuard guard;
      found = op_->gradient(args);
    }
    WEFT_CHECK_TYPE(found.size() == first, name_, ": expected a gradient for each of ", first,
                    " arguments, got ", found.size());
    return for_edges(inputs, found, records);
  }

  void release_saved() override {
    args_.reset();
    results_.reset();
  }

 private:
  // The gradients of the tensors, out of those of the arguments.
  TensorList for_edges(std::span<const Value> args, std::span<const Value> found, bool records) {
    TensorList gradients;
    for (size_t i = 0; i < args.size(); ++i) {
      const TensorList tensors = tensors_of(args.subspan(i, 1));
      if (tensors.empty()) continue;
      TensorList given = gradients_in(found[i], tensors.size());
      WEFT_CHECK_TYPE(given.size() == tensors.size(), name_, ": expected ", tensors.size(),
                      " gradients of argument '", op_->schema().arguments[i].name, "', got ",
                      given.size());
      for (size_t k = 0; k < given.size(); ++k) {
        WEFT_CHECK(
            !given[k].defined() || !tensors[k].defined() || given[k].sizes() == tensors[k].sizes(),
            name_, ": expected a gradient of sizes ", AsTuple{tensors[k].sizes()}, " of argument '",
            op_->schema().arguments[i].name, "', got ", AsTuple{given[k].sizes()});
        if (records && given[k].defined()) refuse_second(given[k]);
        gradients.push_back(std::move(given[k]));
      }
    }
    return gradients;
  }
  // The host's gradient has none itself.
  void refuse_second(Tensor& gradient) const {
    gradient = autograd::detach(gradient);
    autograd::set_history(gradient, autograd::not_differentiable("gradient of a custom operator"));
  }

  const CustomOperatorRef op_;
  const std::string name_;
  SavedValues args_, results_;
};

// Results are new to autograd: one that is an argument, or has a history, goes on without it.
void detach_results(std::vector<Value>& results) {
  for (Value& result : results) {
    change_tensors(result, [](const Tensor& tensor) {
      return tensor.defined() ? autograd::detach(tensor) : tensor;
    });
  }
}

void record_custom(const CustomOperatorRef& op, std::span<const Value> args,
                   std::span<const Value> results) {
  const auto node = make_ref<CustomNode>(op);
  for (const Tensor& tensor : tensors_of(args)) node->add_input(tensor);
  for (const Tensor& tensor : tensors_of(results)) autograd::set_history(tensor, node);
  node->save(args, results);
}

std::vector<Value> checked_arguments(const OperatorSchema& schema, std::span<const Value> args) {
  WEFT_CHECK_TYPE(args.size() == schema.arguments.size(), schema.name, ": expected ",
                  schema.arguments.size(), " arguments, got ", args.size());
  std::vector<Value> values(args.begin(), args.end());
  for (size_t i = 0; i < values.size(); ++i) {
    const OperatorSchema::Argument& wanted = schema.arguments[i];
    WEFT_CHECK_TYPE(convert_argument(*wanted.type, values[i]), schema.name, ": expected argument '",
                    wanted.name, "' of type ", wanted.type->str(), ", got ", type_name(values[i]));
  }
  return values;
}

void check_results(const OperatorSchema& schema, std::vector<Value>& results) {
  WEFT_CHECK_TYPE(results.size() == schema.results.size(), schema.name, ": expected ",
                  schema.results.size(), " results, got ", results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    WEFT_CHECK_TYPE(convert_argument(*schema.results[i], results[i]), schema.name,
                    ": expected a result of type ", schema.results[i]->str(), ", got ",
                    type_name(results[i]));
  }
}

std::vector<Value> run(const CustomOperatorRef& op, std::span<const Value> args) {
  std::vector<Value> results;
  {
    const autograd::NoGradGuard guard;
    results = op->compute(args);
  }
  check_results(op->schema(), results);
  detach_results(results);
  const auto wanted = [](const Value& value) { return GradientSearch().in_value(value); };
  if (autograd::grad_enabled() && std::ranges::any_of(args, wanted))
    record_custom(op, args, results);
  return results;
}

// What is written to counts as written from the start, so that what the operator saves is later.
std::vector<Value> run_composed(const CustomOperator& op, std::span<const Value> args) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (!op.schema().arguments[i].is_written) continue;
    for (const Tensor& tensor : tensors_of(args.subspan(i, 1))) {
      if (tensor.defined()) tensor.check_writable(op.schema().name.c_str());
    }
  }
  std::vector<Value> results = op.compute(args);
  check_results(op.schema(), results);
  return results;
}

std::atomic<uint64_t> last_id{0};
std::atomic<OperatorFallback> operator_fallback{nullptr};

}  // namespace

CustomOperator::CustomOperator(OperatorSchema schema)
    : schema_(std::move(schema)), id_(++last_id) {}

void register_custom_operator(CustomOperatorRef made) {
  const std::string& name = made->schema().name;
  const std::lock_guard lock(custom_registry_mutex);
  const bool is_new = custom_registry().try_emplace(name, made).second;
  WEFT_CHECK(is_new, name, ": expected an operator that is not registered yet, got it twice");
}

void unregister_custom_operator(std::string_view name) {
  CustomOperatorRef removed;  // let go of without the lock: that runs code of the host
  {
    const std::lock_guard lock(custom_registry_mutex);
    const auto found = custom_registry().find(name);
    WEFT_CHECK_AS(Key, found != custom_registry().end(), name,
                  ": expected an operator that is registered, got none");
    removed = std::move(found->second);
    custom_registry().erase(found);
  }
}

CustomOperatorRef find_custom_operator(std::string_view name) {
  const std::lock_guard lock(custom_registry_mutex);
  const auto found = custom_registry().find(name);
  return found == custom_registry().end() ? nullptr : found->second;
}

std::vector<CustomOperatorRef> custom_operators() {
  const std::lock_guard lock(custom_registry_mutex);
  std::vector<CustomOperatorRef> all;
  for (const auto& [name, op] : custom_registry()) all.push_back(op);
  return all;
}

Value call_custom_operator(const CustomOperatorRef& op, std::span<const Value> args) {
  const std::vector<Value> values = checked_arguments(op->schema(), args);
  std::vector<Value> results = op->is_composed() ? run_composed(*op, values) : run(op, values);
  if (results.size() == 1) return std::move(results[0]);
  return results.empty() ? Value() : make_tuple_value(std::move(results));
}

void set_operator_fallback(OperatorFallback fallback) { operator_fallback = fallback; }

NamedOperator::NamedOperator(std::string schema) : schema_(std::move(schema)) {
  name_ = schema_.substr(0, schema_.find('('));
}

Value NamedOperator::call(std::span<const Value> args) {
  const CustomOperatorRef op = find_custom_operator(name_);
  if (!op) {
    if (const std::shared_ptr<External> other = find_fallback()) return other->call(args);
  }
  WEFT_CHECK_AS(NotImplemented, op, name_,
                ": expected an operator that the host has registered, got none; ",
                "weft_register_operator gives it one for the schema ", schema_);
  if (checked_.load(std::memory_order_acquire) != op->id()) check(*op);
  return call_custom_operator(op, args);
}

std::shared_ptr<External> NamedOperator::find_fallback() const {
  const OperatorFallback fallback = operator_fallback.load();
  if (!fallback) return nullptr;
  const OperatorSchema schema = OperatorSchema::parse(schema_);
  auto result = make_ref<Type>();
  if (schema.results.size() == 1) return fallback(name_, schema.results[0]);
  result->kind = schema.results.empty() ? TypeKind::None : TypeKind::Tuple;
  result->children = schema.results;
  return fallback(name_, result);
}

void NamedOperator::check(const CustomOperator& op) {
  WEFT_CHECK_TYPE(op.schema().has_types_of(OperatorSchema::parse(schema_)), name_,
                  ": expected the schema that the file was compiled with, ", schema_, ", got ",
                  op.schema().text);
  checked_.store(op.id(), std::memory_order_release);
}

}  // namespace weft

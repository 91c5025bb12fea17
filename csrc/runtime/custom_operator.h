// Operators that a host registers by name, and the calls of them in compiled files.
//
// Programs find such an operator at each call, so a file may be loaded before the operators are
// there, and what is on a branch never taken may stay missing.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/operator_schema.h"
#include "runtime/program.h"

namespace weft {

// What a host knows to compute. Any number of threads may call one at a time.
class CustomOperator {
 public:
  explicit CustomOperator(OperatorSchema schema);
  virtual ~CustomOperator() = default;

  // A value for each result, by the arguments of the schema; without recording gradients, unless it
  // is composed.
  virtual std::vector<Value> compute(std::span<const Value> args) const = 0;
  // A gradient for each argument, None where there is none, by the arguments, the results and the
  // gradients of the results.
  virtual std::vector<Value> gradient(std::span<const Value> args) const = 0;
  virtual bool has_gradient() const = 0;
  // Whether it records gradients itself: it runs in the caller's mode, and results stay as they
  // are.
  virtual bool is_composed() const { return false; }

  const OperatorSchema& schema() const noexcept { return schema_; }
  uint64_t id() const noexcept { return id_; }  // no other one of the process has it

 private:
  OperatorSchema schema_;
  uint64_t id_;
};
using CustomOperatorRef = std::shared_ptr<const CustomOperator>;

// RuntimeError where there is one of the name.
void register_custom_operator(CustomOperatorRef made);
// KeyError where there is none. Calls under way keep it alive.
void unregister_custom_operator(std::string_view name);
CustomOperatorRef find_custom_operator(std::string_view name);  // null: there is none
std::vector<CustomOperatorRef> custom_operators();              // in the order of their names

// The result: a tuple of several, None of none. It records its gradient as other operators do;
// where the operator has none, backward raises. TypeError for values that do not fit the schema.
Value call_custom_operator(const CustomOperatorRef& op, std::span<const Value> args);

// Asked for an operator that nobody has registered, by its name and the type of its result; null:
// there is none. Python sets it.
using OperatorFallback = std::shared_ptr<External> (*)(const std::string& name,
                                                       const Ref<Type>& result);
void set_operator_fallback(OperatorFallback fallback);

// An operator of a compiled file, which knows its schema from when it was compiled.
class NamedOperator final : public External {
 public:
  explicit NamedOperator(std::string schema);
  Value call(std::span<const Value> args) override;
  const std::string& name() const noexcept { return name_; }

 private:
  void check(const CustomOperator& op);
  std::shared_ptr<External> find_fallback() const;

  std::string schema_, name_;
  std::atomic<uint64_t> checked_{0};  // the id of the operator that was found to fit
};

}  // namespace weft

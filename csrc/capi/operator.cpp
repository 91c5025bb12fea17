// Operators of the host: functions in C behind a CustomOperator.
#include <memory>

#include "capi/handles.h"
#include "runtime/custom_operator.h"
#include "runtime/tuple.h"

namespace weft::capi {
namespace {

class HostOperator final : public CustomOperator {
 public:
  using Release = void (*)(void*);

  HostOperator(OperatorSchema schema, weft_operator_call call, weft_operator_call gradient,
               void* context)
      : CustomOperator(std::move(schema)), call_(call), gradient_(gradient), context_(context) {}
  ~HostOperator() override {
    if (release_) release_(context_);
  }
  // What happens to the context when the operator goes.
  void own(Release release) { release_ = release; }

  std::vector<Value> compute(std::span<const Value> args) const override {
    Value result = run(call_, args);
    if (schema().results.size() != 1) return items_of(result);
    return {std::move(result)};
  }
  std::vector<Value> gradient(std::span<const Value> args) const override {
    return items_of(run(gradient_, args));
  }
  bool has_gradient() const override { return gradient_ != nullptr; }

 private:
  std::vector<Value> items_of(const Value& result) const {
    if (result.is_none()) return {};
    WEFT_CHECK_TYPE(result.tag() == ValueTag::Tuple, schema().name,
                    ": expected a tuple of values from the host, got another value");
    const std::span<Value> items = tuple_items(result);
    return {items.begin(), items.end()};
  }

  Value run(weft_operator_call function, std::span<const Value> args) const {
    std::vector<weft_value> held;
    held.reserve(args.size());
    std::vector<const weft_value*> handles;
    for (const Value& arg : args) {
      held.push_back({arg});
      handles.push_back(&held.back());
    }
    const uint64_t before = failures();
    weft_value* out = nullptr;
    const weft_status status = guarded_call(function, handles, &out);
    const std::unique_ptr<weft_value> result(out);
    if (status != WEFT_OK) {
      const bool has_text = failures() != before && *weft_last_error() != '\0';
      const std::string got = str("expected WEFT_OK from the host, got the status ", int{status});
      throw_status(status, str(schema().name, ": ", has_text ? weft_last_error() : got));
    }
    return result ? std::move(result->value) : Value();
  }
  // A host in C++ may throw, though it should not: nothing goes through the frames of C.
  weft_status guarded_call(weft_operator_call function, const std::vector<const weft_value*>& args,
                           weft_value** out) const noexcept {
    try {
      return function(args.data(), args.size(), out, context_);
    } catch (...) {
      return capi::status_of_exception();
    }
  }

  weft_operator_call call_, gradient_;
  void* context_;
  Release release_ = nullptr;
};

}  // namespace
}  // namespace weft::capi

using namespace weft;
using capi::guarded;

weft_status weft_register_operator(const char* schema, weft_operator_call call,
                                   weft_operator_call gradient, void (*release)(void*),
                                   void* context) {
  return guarded([&] {
    WEFT_CHECK_VALUE(schema, "weft_register_operator: expected a schema, got NULL");
    WEFT_CHECK_VALUE(call, "weft_register_operator: expected a function, got NULL");
    auto made = std::make_shared<capi::HostOperator>(OperatorSchema::parse(schema), call, gradient,
                                                     context);
    made->own(release);
    try {
      register_custom_operator(made);
    } catch (...) {
      made->own(nullptr);
      throw;
    }
  });
}

weft_status weft_unregister_operator(const char* name) {
  return guarded([&] {
    WEFT_CHECK_VALUE(name, "weft_unregister_operator: expected a name, got NULL");
    unregister_custom_operator(name);
  });
}

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
               void* context, bool is_composed)
      : CustomOperator(std::move(schema)),
        call_(call),
        gradient_(gradient),
        context_(context),
        is_composed_(is_composed) {}
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
  bool is_composed() const override { return is_composed_; }

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
    weft_value* out = nullptr;
    call_host(schema().name,
              [&] { return function(handles.data(), handles.size(), &out, context_); });
    const std::unique_ptr<weft_value> result(out);
    return result ? std::move(result->value) : Value();
  }

  weft_operator_call call_, gradient_;
  void* context_;
  bool is_composed_ = false;
  Release release_ = nullptr;
};

void register_operator(const char* op, const char* schema, weft_operator_call call,
                       weft_operator_call gradient, HostOperator::Release release, void* context,
                       bool is_composed) {
  WEFT_CHECK_VALUE(schema, op, ": expected a schema, got NULL");
  WEFT_CHECK_VALUE(call, op, ": expected a function, got NULL");
  auto made = std::make_shared<HostOperator>(OperatorSchema::parse(schema), call, gradient, context,
                                             is_composed);
  WEFT_CHECK_VALUE(is_composed || !made->schema().writes(), op,
                   ": expected a schema that writes to no argument, got ", schema);
  made->own(release);
  try {
    register_custom_operator(made);
  } catch (...) {
    made->own(nullptr);
    throw;
  }
}

}  // namespace
}  // namespace weft::capi

using namespace weft;
using capi::guarded;

weft_status weft_register_operator(const char* schema, weft_operator_call call,
                                   weft_operator_call gradient, void (*release)(void*),
                                   void* context) {
  return guarded([&] {
    capi::register_operator("weft_register_operator", schema, call, gradient, release, context,
                            false);
  });
}

weft_status weft_register_composed_operator(const char* schema, weft_operator_call call,
                                            void (*release)(void*), void* context) {
  return guarded([&] {
    capi::register_operator("weft_register_composed_operator", schema, call, nullptr, release,
                            context, true);
  });
}

weft_status weft_unregister_operator(const char* name) {
  return guarded([&] {
    WEFT_CHECK_VALUE(name, "weft_unregister_operator: expected a name, got NULL");
    unregister_custom_operator(name);
  });
}

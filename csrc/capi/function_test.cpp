// Functions of the host with their own gradients, and operators that record gradients themselves.
#include <cstring>

#include "capi/weft.h"
#include "testing.h"

namespace weft {
namespace {

weft_tensor* leaf_of(double value, bool requires_grad = false) {
  weft_tensor* made = nullptr;
  CHECK_EQ(weft_tensor_empty(WEFT_FLOAT64, 0, nullptr, &made), WEFT_OK);
  *static_cast<double*>(weft_tensor_data(made)) = value;
  CHECK_EQ(weft_tensor_set_requires_grad(made, requires_grad), WEFT_OK);
  return made;
}
double value_of(const weft_tensor* tensor) {
  double found = 0;
  CHECK_EQ(weft_tensor_item(tensor, &found), WEFT_OK);
  return found;
}

// The gradient of a * b, which saves both. The context counts calls.
weft_status product_gradient(const weft_tensor* const* gradients, const weft_tensor* const* saved,
                             const int* wanted, weft_tensor** out, void* context) {
  ++*static_cast<int*>(context);
  if (value_of(saved[0]) == 0) return weft_fail(WEFT_VALUE_ERROR, "expected no zero");
  for (int i = 0; i < 2; ++i) {
    if (wanted[i]) out[i] = leaf_of(value_of(gradients[0]) * value_of(saved[1 - i]));
  }
  return WEFT_OK;
}

struct Product {
  explicit Product(double first, double second)
      : a(leaf_of(first, true)), b(leaf_of(second)), made(leaf_of(first * second)) {
    const weft_tensor* inputs[] = {a, b};
    const weft_tensor* outputs[] = {made};
    const weft_function function = {"Product",
                                    inputs,
                                    2,
                                    outputs,
                                    1,
                                    nullptr,
                                    inputs,
                                    2,
                                    1,
                                    product_gradient,
                                    [](void* count) { *static_cast<int*>(count) += 100; },
                                    &calls};
    CHECK_EQ(weft_record_function(&function, &result), WEFT_OK);
  }
  ~Product() {
    for (weft_tensor* each : {a, b, made, result}) weft_tensor_release(each);
  }
  weft_tensor *a, *b, *made, *result = nullptr;
  int calls = 0;
};

TEST(capi_function_records_its_gradient) {
  Product product(3, 4);
  CHECK_TRUE(weft_tensor_is_same(product.made, product.result) != 0);
  CHECK_EQ(weft_tensor_backward(product.result, nullptr, 0), WEFT_OK);
  weft_tensor* grad = nullptr;
  CHECK_EQ(weft_tensor_grad(product.a, &grad), WEFT_OK);
  CHECK_EQ(value_of(grad), 4.0);
  weft_tensor_release(grad);
  CHECK_EQ(weft_tensor_grad(product.b, &grad), WEFT_OK);
  CHECK_TRUE(grad == nullptr);
  CHECK_EQ(product.calls, 1);
  CHECK_EQ(weft_tensor_backward(product.result, nullptr, 0), WEFT_RUNTIME_ERROR);  // a second time
  for (weft_tensor** each : {&product.made, &product.result}) {
    weft_tensor_release(*each);
    *each = nullptr;
  }
  CHECK_EQ(product.calls, 101);  // released
}

TEST(capi_function_fails_as_its_gradient_does) {
  const Product product(0, 4);
  CHECK_EQ(weft_tensor_backward(product.result, nullptr, 0), WEFT_VALUE_ERROR);
  CHECK_TRUE(std::strstr(weft_last_error(), "Product: expected no zero") != nullptr);
}

TEST(capi_function_saves_what_it_was) {
  const Product product(3, 4);
  const weft_tensor* other = leaf_of(5);
  CHECK_EQ(weft_tensor_copy(product.b, other), WEFT_OK);
  CHECK_EQ(weft_tensor_backward(product.result, nullptr, 0), WEFT_RUNTIME_ERROR);
  weft_tensor_release(const_cast<weft_tensor*>(other));
}

TEST(capi_function_is_checked) {
  weft_tensor* out = nullptr;
  weft_function function = {};
  CHECK_EQ(weft_record_function(nullptr, &out), WEFT_VALUE_ERROR);
  CHECK_EQ(weft_record_function(&function, &out), WEFT_VALUE_ERROR);
  function.name = "f";
  function.backward = product_gradient;
  function.output_count = 1;
  CHECK_EQ(weft_record_function(&function, &out), WEFT_VALUE_ERROR);
  weft_tensor* leaf = leaf_of(1, true);
  const int written = WEFT_OUTPUT_WRITTEN;
  const weft_tensor* tensors[] = {leaf};
  function.inputs = function.outputs = tensors;
  function.input_count = 1;
  function.output_flags = &written;
  CHECK_EQ(weft_record_function(&function, &out), WEFT_RUNTIME_ERROR);
  CHECK_TRUE(std::strstr(weft_last_error(), "leaf") != nullptr);
  weft_tensor_release(leaf);
}

TEST(capi_composed_operators_are_registered) {
  const auto same = [](const weft_value* const* args, size_t, weft_value** out, void*) {
    return weft_value_share(args[0], out);
  };
  const char* schema = "composed::fill_(Tensor(a!) x, Tensor (b -> *) y) -> Tensor(a!)";
  CHECK_EQ(weft_register_composed_operator(schema, same, nullptr, nullptr), WEFT_OK);
  CHECK_EQ(weft_register_composed_operator(schema, same, nullptr, nullptr), WEFT_RUNTIME_ERROR);
  CHECK_EQ(weft_unregister_operator("composed::fill_"), WEFT_OK);
  CHECK_EQ(weft_register_composed_operator(nullptr, same, nullptr, nullptr), WEFT_VALUE_ERROR);
}

TEST(capi_devices_have_names) {
  weft_tensor* x = leaf_of(1);
  CHECK_EQ(std::string(weft_tensor_device(x)), std::string("cpu"));
  weft_tensor_release(x);
  weft_value* device = nullptr;
  const char* text = nullptr;
  CHECK_EQ(weft_value_device("meta", &device), WEFT_OK);
  CHECK_EQ(weft_value_get_device(device, &text), WEFT_OK);
  CHECK_EQ(std::string(text), std::string("meta"));
  weft_value_release(device);
  CHECK_EQ(weft_value_int(1, &device), WEFT_OK);
  CHECK_EQ(weft_value_get_device(device, &text), WEFT_TYPE_ERROR);
  weft_value_release(device);
}

}  // namespace
}  // namespace weft

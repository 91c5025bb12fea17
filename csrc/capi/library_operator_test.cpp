// Operators, values and gradients through the C interface.
#include <cstring>
#include <memory>
#include <vector>

#include "capi/compiled_testing.h"
#include "capi/weft.h"
#include "testing.h"

namespace weft {
namespace {

using TensorHandle = std::unique_ptr<weft_tensor, void (*)(weft_tensor*)>;
using ValueHandle = std::unique_ptr<weft_value, void (*)(weft_value*)>;

ValueHandle made_by(weft_status (*make)(int64_t, weft_value**), int64_t number) {
  weft_value* made = nullptr;
  CHECK_EQ(make(number, &made), WEFT_OK);
  return {made, weft_value_release};
}
ValueHandle integer(int64_t given) { return made_by(weft_value_int, given); }
ValueHandle ints(const std::vector<int64_t>& numbers) {
  weft_value* made = nullptr;
  CHECK_EQ(weft_value_ints(numbers.data(), numbers.size(), &made), WEFT_OK);
  return {made, weft_value_release};
}
TensorHandle tensor(std::vector<double> elements) {
  const auto count = static_cast<int64_t>(elements.size());
  weft_tensor* made = nullptr;
  CHECK_EQ(weft_tensor_empty(WEFT_FLOAT64, 1, &count, &made), WEFT_OK);
  std::memcpy(weft_tensor_data(made), elements.data(), elements.size() * sizeof(double));
  return {made, weft_tensor_release};
}
ValueHandle boxed(const TensorHandle& given) {
  weft_value* made = nullptr;
  CHECK_EQ(weft_value_tensor(given.get(), &made), WEFT_OK);
  return {made, weft_value_release};
}
TensorHandle unboxed(const ValueHandle& given) {
  weft_tensor* found = nullptr;
  CHECK_EQ(weft_value_get_tensor(given.get(), &found), WEFT_OK);
  return {found, weft_tensor_release};
}
double item(const TensorHandle& given) {
  double found = 0;
  CHECK_EQ(weft_tensor_item(given.get(), &found), WEFT_OK);
  return found;
}

weft_status status_of(const char* name, const std::vector<const weft_value*>& args,
                      weft_value** out) {
  const weft_operator* op = nullptr;
  CHECK_EQ(weft_find_operator(name, &op), WEFT_OK);
  return weft_call_operator(op, args.data(), args.size(), out);
}
ValueHandle call(const char* name, const std::vector<const weft_value*>& args) {
  weft_value* out = nullptr;
  CHECK_EQ(status_of(name, args, &out), WEFT_OK);
  return {out, weft_value_release};
}
void check_fails(const char* name, const std::vector<const weft_value*>& args, weft_status status,
                 const char* text) {
  weft_value* out = nullptr;
  CHECK_EQ(status_of(name, args, &out), status);
  CHECK_TRUE(out == nullptr);
  CHECK_EQ(std::string(weft_last_error()), text);
}

TEST(capi_calls_operators_of_the_library) {
  const ValueHandle x = boxed(tensor({3, 1, 2})), two = integer(2), dim = integer(0);
  // The default of alpha stands for what is left out, and for NULL.
  CHECK_EQ(item(unboxed(call("aten::sum", {call("aten::add.Tensor", {x.get(), x.get()}).get()}))),
           12.0);
  CHECK_EQ(item(unboxed(call("aten::sum", {x.get(), nullptr}))), 6.0);
  // Two results are a tuple.
  const ValueHandle sorted = call("aten::sort", {x.get(), dim.get()});
  CHECK_EQ(weft_value_kind(sorted.get()), WEFT_KIND_TUPLE);
  // An int stands for a list of a given length; a list of values for one of ints.
  const ValueHandle sizes = ints({3, 1});
  const ValueHandle shaped = call("aten::reshape", {x.get(), sizes.get()});
  CHECK_EQ(weft_tensor_ndim(unboxed(shaped).get()), 2);
  const weft_value* items[] = {two.get(), two.get()};
  weft_value* listed = nullptr;
  CHECK_EQ(weft_value_list(items, 2, &listed), WEFT_OK);
  const ValueHandle list(listed, weft_value_release);
  CHECK_EQ(weft_tensor_numel(unboxed(call("aten::zeros", {list.get()})).get()), 4);
  const ValueHandle summed = call("aten::sum.dim_IntList", {shaped.get(), dim.get()});
  CHECK_EQ(weft_tensor_ndim(unboxed(summed).get()), 1);
}

TEST(capi_says_why_an_operator_cannot_be_called) {
  const weft_operator* op = nullptr;
  CHECK_EQ(weft_find_operator("aten::nothing", &op), WEFT_KEY_ERROR);
  CHECK_TRUE(std::string(weft_last_error())
                 .starts_with("weft_find_operator: expected an operator of the library, got "
                              "'aten::nothing'"));
  CHECK_EQ(weft_find_operator("aten::len.t", &op), WEFT_KEY_ERROR);  // of programs alone
  CHECK_EQ(weft_find_operator(nullptr, &op), WEFT_VALUE_ERROR);
  CHECK_TRUE(op == nullptr);
  const ValueHandle x = boxed(tensor({1, 2})), one = integer(1), format = integer(9);
  check_fails("aten::add.Tensor", {x.get()}, WEFT_TYPE_ERROR,
              "add: expected a value for argument 'other', got none");
  check_fails("aten::relu", {one.get()}, WEFT_TYPE_ERROR,
              "relu: expected argument 'self' of type Tensor, got int");
  check_fails("aten::relu", {x.get(), one.get()}, WEFT_TYPE_ERROR,
              "relu: expected at most 1 arguments, got 2");
  check_fails("aten::reshape", {x.get(), x.get()}, WEFT_TYPE_ERROR,
              "reshape: expected argument 'shape' of type int[], got Tensor");
  check_fails("aten::clone", {x.get(), format.get()}, WEFT_VALUE_ERROR,
              "clone: expected a memory format from 0 to 3, got another number");
  CHECK_EQ(weft_call_operator(nullptr, nullptr, 0, nullptr), WEFT_VALUE_ERROR);
  CHECK_TRUE(weft_operator_schema(nullptr) == nullptr);
}

TEST(capi_lists_the_operators_of_the_library) {
  size_t count = 0;
  while (weft_operator_schema_at(count)) ++count;
  CHECK_TRUE(count > 600);
  const weft_operator* op = nullptr;
  CHECK_EQ(weft_find_operator("aten::relu", &op), WEFT_OK);
  CHECK_EQ(std::string(weft_operator_schema(op)), "relu(Tensor self) -> Tensor");
}

TEST(capi_gradients_of_inputs) {
  const TensorHandle x = tensor({3}), unused = tensor({1});
  for (weft_tensor* each : {x.get(), unused.get()}) {
    CHECK_EQ(weft_tensor_set_requires_grad(each, 1), WEFT_OK);
  }
  const ValueHandle boxed_x = boxed(x),
                    square = call("aten::mul.Tensor", {boxed_x.get(), boxed_x.get()});
  const TensorHandle y = unboxed(call("aten::mul.Tensor", {square.get(), boxed_x.get()}));
  CHECK_TRUE(weft_tensor_is_leaf(x.get()) && !weft_tensor_is_leaf(y.get()));
  weft_tensor *first = nullptr, *second = nullptr;
  const weft_tensor *output = y.get(), *input = x.get();
  CHECK_EQ(weft_grad(&output, 1, nullptr, &input, 1, WEFT_CREATE_GRAPH, &first), WEFT_OK);
  const TensorHandle slope(first, weft_tensor_release);
  CHECK_EQ(item(slope), 27.0);
  output = slope.get();
  CHECK_EQ(weft_grad(&output, 1, nullptr, &input, 1, WEFT_RETAIN_GRAPH, &second), WEFT_OK);
  CHECK_EQ(item({second, weft_tensor_release}), 18.0);
  weft_tensor* none = second;
  const weft_tensor* other = unused.get();
  CHECK_EQ(weft_grad(&output, 1, nullptr, &other, 1, WEFT_RETAIN_GRAPH, &none), WEFT_RUNTIME_ERROR);
  CHECK_EQ(weft_grad(&output, 1, nullptr, &other, 1, WEFT_RETAIN_GRAPH | WEFT_ALLOW_UNUSED, &none),
           WEFT_OK);
  CHECK_TRUE(none == nullptr);
  CHECK_EQ(weft_grad(&output, 1, nullptr, &other, 1, 8, &none), WEFT_VALUE_ERROR);
  CHECK_EQ(weft_grad(nullptr, 0, nullptr, &other, 1, 0, &none), WEFT_VALUE_ERROR);
  CHECK_EQ(weft_tensor_set_grad(x.get(), slope.get()), WEFT_OK);
  weft_tensor* own = nullptr;
  CHECK_EQ(weft_tensor_grad(x.get(), &own), WEFT_OK);
  CHECK_TRUE(weft_tensor_is_same(own, slope.get()) && !weft_tensor_is_same(own, x.get()));
  weft_tensor_release(own);
  CHECK_EQ(weft_tensor_set_grad(x.get(), nullptr), WEFT_OK);  // its history holds x
}

TEST(capi_attributes_and_records) {
  const std::string bytes = testing::image();
  weft_module* module = nullptr;
  CHECK_EQ(weft_module_load_memory(bytes.data(), bytes.size(), &module), WEFT_OK);
  weft_value* found = nullptr;
  CHECK_EQ(weft_module_attribute(module, "", &found), WEFT_OK);
  CHECK_EQ(weft_value_kind(found), WEFT_KIND_OTHER);
  CHECK_EQ(weft_value_attribute_count(found), 2);
  CHECK_EQ(std::string(weft_value_attribute_name(found, 0)), "a");
  CHECK_TRUE(weft_value_attribute_name(found, 2) == nullptr);
  weft_value* own = nullptr;
  CHECK_EQ(weft_value_attribute(found, "b", &own), WEFT_OK);
  CHECK_EQ(weft_value_kind(own), WEFT_KIND_NONE);
  weft_value_release(own);
  weft_value* none = nullptr;
  CHECK_EQ(weft_module_attribute(module, "scale", &none), WEFT_KEY_ERROR);
  CHECK_EQ(weft_value_attribute(found, "scale", &none), WEFT_KEY_ERROR);
  CHECK_EQ(weft_value_attribute(integer(1).get(), "scale", &none), WEFT_TYPE_ERROR);
  CHECK_TRUE(none == nullptr);
  CHECK_EQ(std::string(weft_module_method_argument(module, "forward", 0)), "p: Tensor");
  CHECK_TRUE(weft_module_method_argument(module, "forward", 1) == nullptr);
  CHECK_TRUE(weft_module_method_argument(module, "nothing", 0) == nullptr);
  const void* data = nullptr;
  size_t size = 0;
  CHECK_EQ(weft_module_record(module, "weft/version", &data, &size), WEFT_OK);
  CHECK_EQ(std::string(static_cast<const char*>(data), size), "1");
  CHECK_EQ(weft_module_record(module, "extra/none", &data, &size), WEFT_KEY_ERROR);
  weft_value_release(found);
  weft_module_release(module);
}

TEST(capi_values_of_other_types) {
  weft_value* made = nullptr;
  CHECK_EQ(weft_value_complex(1, -2, &made), WEFT_OK);
  double real = 0, imaginary = 0;
  CHECK_EQ(weft_value_get_complex(made, &real, &imaginary), WEFT_OK);
  CHECK_EQ(real + imaginary, -1.0);
  CHECK_EQ(std::string(weft_value_type(made)), "complex");
  weft_value_release(made);
  CHECK_EQ(weft_value_dtype(WEFT_FLOAT16, &made), WEFT_OK);
  weft_dtype dtype = WEFT_BOOL;
  CHECK_EQ(weft_value_get_dtype(made, &dtype), WEFT_OK);
  CHECK_EQ(dtype, WEFT_FLOAT16);
  CHECK_EQ(weft_value_get_complex(made, &real, &imaginary), WEFT_TYPE_ERROR);
  weft_value_release(made);
  CHECK_EQ(weft_value_device("cpu", &made), WEFT_OK);
  weft_value_release(made);
  weft_value* none = nullptr;
  CHECK_EQ(weft_value_device("toaster", &none), WEFT_RUNTIME_ERROR);
  CHECK_EQ(weft_value_dtype(static_cast<weft_dtype>(99), &none), WEFT_VALUE_ERROR);
  CHECK_TRUE(none == nullptr);
}

}  // namespace
}  // namespace weft

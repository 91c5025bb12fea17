// Operators of the host, in a compiled file that is written here byte by byte.
#include <cstring>
#include <stdexcept>
#include <thread>

#include "capi/compiled_testing.h"
#include "capi/weft.h"
#include "testing.h"

namespace weft {
namespace {

using namespace testing;

constexpr const char* kScale = "my::scale(Tensor x, float by=2.0) -> Tensor";

// A compiled file of a program that calls an operator of the host.
std::string file_of(Assembler& program, const std::string& schema) {
  const std::vector<std::byte> bytes = program.bytes();
  std::string record(sizeof(uint32_t), '\0');  // no constants
  record.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string operators(2 * sizeof(uint32_t), '\0');
  operators[0] = 1;
  operators[4] = static_cast<char>(schema.size());
  operators += schema;
  Zip zip;
  zip.add("weft/version", "2");
  for (const char* name : {"weft/inference", "weft/gradients"}) {
    zip.add(name, record);
    zip.add(std::string(name) + ".operators", operators);
  }
  zip.add("weft/tensors", std::string(8, '\0'));
  return zip.bytes();
}

// forward(p: Tensor, q: Any) gives ops.my.scale(p, q); skip(p) gives p where the operator is on a
// branch that is not taken.
std::string calling(const std::string& schema, uint32_t result = kTensor) {
  Assembler program;
  program.externals = {result};
  AsmFunction forward;
  forward.name = "forward";
  forward.params = {{kTensor, 0}, {kAny, 1}};
  forward.objects = 3;
  forward.sites = {{{0, 1}, {2}, 0}};
  forward.code = {{"call_external", 0, 0, 0, 0}, {"return_object", 2}};
  AsmFunction skip;
  skip.name = "skip";
  skip.params = {{kTensor, 0}};
  skip.objects = 2;
  skip.sites = {{{0, 0}, {1}, 0}};
  skip.code = {{"jump", 0, 0, 0, 2}, {"call_external", 0, 0, 0, 0}, {"return_object", 0}};
  program.functions = {forward, skip};
  return file_of(program, schema);
}

struct Module {
  explicit Module(const std::string& bytes) {
    CHECK_EQ(weft_module_load_memory(bytes.data(), bytes.size(), &handle), WEFT_OK);
  }
  ~Module() { weft_module_release(handle); }
  weft_module* handle = nullptr;
};

// A float64 of one element.
weft_tensor* number(double value, bool requires_grad = false) {
  weft_tensor* made = nullptr;
  CHECK_EQ(weft_tensor_empty(WEFT_FLOAT64, 0, nullptr, &made), WEFT_OK);
  *static_cast<double*>(weft_tensor_data(made)) = value;
  CHECK_EQ(weft_tensor_set_requires_grad(made, requires_grad), WEFT_OK);
  return made;
}

// forward(x, by); the result where it succeeds.
weft_status call(const Module& module, const weft_tensor* x, weft_value* by, weft_tensor** out) {
  weft_value *given = nullptr, *result = nullptr;
  CHECK_EQ(weft_value_tensor(x, &given), WEFT_OK);
  const weft_value* args[] = {given, by};
  const weft_status status = weft_module_call(module.handle, "forward", args, 2, &result);
  if (status == WEFT_OK) CHECK_EQ(weft_value_get_tensor(result, out), WEFT_OK);
  weft_value_release(given);
  weft_value_release(result);
  return status;
}
weft_status call_by(const Module& module, double x, double by, double* out) {
  weft_tensor *given = number(x), *result = nullptr;
  weft_value* factor = nullptr;
  CHECK_EQ(weft_value_float(by, &factor), WEFT_OK);
  const weft_status status = call(module, given, factor, &result);
  if (status == WEFT_OK) CHECK_EQ(weft_tensor_item(result, out), WEFT_OK);
  weft_tensor_release(given);
  weft_tensor_release(result);
  weft_value_release(factor);
  return status;
}
bool says(const char* text) { return std::strstr(weft_last_error(), text) != nullptr; }

double number_of(const weft_value* value) {
  double found = 0;
  weft_tensor* tensor = nullptr;
  if (weft_value_kind(value) != WEFT_KIND_TENSOR) {
    CHECK_EQ(weft_value_get_float(value, &found), WEFT_OK);
    return found;
  }
  CHECK_EQ(weft_value_get_tensor(value, &tensor), WEFT_OK);
  CHECK_EQ(weft_tensor_item(tensor, &found), WEFT_OK);
  weft_tensor_release(tensor);
  return found;
}
weft_status put_number(double value, weft_value** out) {
  weft_tensor* made = number(value);
  const weft_status status = weft_value_tensor(made, out);
  weft_tensor_release(made);
  return status;
}

weft_status scale(const weft_value* const* args, size_t count, weft_value** out, void*) {
  if (count != 2) return weft_fail(WEFT_VALUE_ERROR, "two arguments");
  if (number_of(args[1]) == 0) return weft_fail(WEFT_VALUE_ERROR, "expected a factor, got 0");
  return put_number(number_of(args[0]) * number_of(args[1]), out);
}
// Of x, by, the result and its gradient.
weft_status scale_gradient(const weft_value* const* args, size_t count, weft_value** out, void*) {
  CHECK_EQ(count, 4);
  CHECK_EQ(number_of(args[2]), number_of(args[0]) * number_of(args[1]));
  weft_value *grad = nullptr, *none = nullptr;
  CHECK_EQ(put_number(number_of(args[3]) * number_of(args[1]), &grad), WEFT_OK);
  CHECK_EQ(weft_value_none(&none), WEFT_OK);
  const weft_value* items[] = {grad, none};
  const weft_status status = weft_value_tuple(items, 2, out);
  weft_value_release(grad);
  weft_value_release(none);
  return status;
}

struct Registered {
  explicit Registered(weft_operator_call function, weft_operator_call gradient = nullptr,
                      const char* schema = kScale) {
    CHECK_EQ(weft_register_operator(schema, function, gradient, count, &released), WEFT_OK);
  }
  ~Registered() {
    CHECK_EQ(weft_unregister_operator("my::scale"), WEFT_OK);
    CHECK_EQ(released, 1);
  }
  static void count(void* context) { ++*static_cast<int*>(context); }
  int released = 0;
};

TEST(capi_operator_is_found_when_it_is_called) {
  const Module module(calling(kScale));
  double got = 0;
  CHECK_EQ(call_by(module, 3, 2, &got), WEFT_NOT_IMPLEMENTED);
  CHECK_TRUE(
      says("my::scale: expected an operator that the host has registered, got none; "
           "weft_register_operator gives it one for the schema my::scale(Tensor x"));
  weft_tensor *x = number(5), *y = nullptr;
  weft_value *given = nullptr, *result = nullptr;
  CHECK_EQ(weft_value_tensor(x, &given), WEFT_OK);
  CHECK_EQ(weft_module_call(module.handle, "skip", &given, 1, &result), WEFT_OK);
  for (weft_value* each : {given, result}) weft_value_release(each);
  for (weft_tensor* each : {x, y}) weft_tensor_release(each);
  const Registered registered(scale);
  CHECK_EQ(call_by(module, 3, 2, &got), WEFT_OK);
  CHECK_EQ(got, 6.0);
}

TEST(capi_operator_failures_have_its_name) {
  const Module module(calling(kScale));
  double got = 7;
  {
    const Registered registered(scale);
    CHECK_EQ(call_by(module, 3, 0, &got), WEFT_VALUE_ERROR);
    CHECK_TRUE(says("my::scale: expected a factor, got 0"));
    CHECK_TRUE(says("second"));  // the line of the program
    weft_tensor* x = number(1);
    weft_value* wrong = nullptr;
    CHECK_EQ(weft_value_string("two", 3, &wrong), WEFT_OK);
    CHECK_EQ(call(module, x, wrong, nullptr), WEFT_TYPE_ERROR);
    CHECK_TRUE(says("my::scale: expected argument 'by' of type float, got str"));
    weft_value_release(wrong);
    weft_tensor_release(x);
  }
  {
    const Registered registered([](const weft_value* const*, size_t, weft_value**, void*) {
      return static_cast<weft_status>(77);
    });
    CHECK_EQ(call_by(module, 3, 2, &got), WEFT_RUNTIME_ERROR);
    CHECK_TRUE(says("my::scale: expected WEFT_OK from the host, got the status 77"));
  }
  {
    const Registered registered([](const weft_value* const*, size_t, weft_value** out, void*) {
      return weft_value_int(3, out);
    });
    CHECK_EQ(call_by(module, 3, 2, &got), WEFT_TYPE_ERROR);
    CHECK_TRUE(says("my::scale: expected a result of type Tensor, got int"));
  }
  {
    const Registered registered(
        [](const weft_value* const*, size_t, weft_value**, void*) { return WEFT_OK; });
    CHECK_EQ(call_by(module, 3, 2, &got), WEFT_TYPE_ERROR);
    CHECK_TRUE(says("my::scale: expected a result of type Tensor, got None"));
  }
  {
    const Registered registered([](const weft_value* const*, size_t, weft_value**,
                                   void*) -> weft_status { throw std::runtime_error("from C++"); });
    CHECK_EQ(call_by(module, 3, 2, &got), WEFT_RUNTIME_ERROR);
    CHECK_TRUE(says("my::scale: from C++"));
  }
  CHECK_EQ(got, 7.0);
}

TEST(capi_operator_schemas_are_checked) {
  const auto refuses = [](const char* schema, const char* why) {
    CHECK_EQ(weft_register_operator(schema, scale, nullptr, nullptr, nullptr), WEFT_VALUE_ERROR);
    if (!says(why)) CHECK_EQ(std::string(weft_last_error()), std::string(why));
  };
  refuses("scale(Tensor x) -> Tensor", "expected :: at character 5");
  refuses("aten::scale(Tensor x) -> Tensor", "expected a namespace of the program");
  refuses("my::scale(Tensor x", "expected ) at character 18");
  refuses("my::scale(Tensor x)", "expected -> at character 19");
  refuses("my::scale(Tenser x) -> Tensor", "expected a type of operators at character 10");
  refuses("my::scale(Tensor(a!) x) -> Tensor", "expected a schema that writes to no argument");
  refuses("my::scale(Tensor(a! x) -> Tensor", "expected )");
  refuses("my::scale(Tensor() x) -> Tensor", "expected the mark of memory");
  refuses("my::scale(Tensor x, int x) -> Tensor", "expected each name once");
  refuses("my::scale(Tensor x) -> Tensor more", "expected the end");
  refuses("my::scale(Tensor x=) -> Tensor", "expected a default");
  refuses("", "expected a namespace at character 0");
  const std::string deep = "my::scale(int[] x=" + std::string(1 << 20, '[');
  refuses(deep.c_str(), "expected lists less deep at character");
  CHECK_EQ(weft_register_operator(nullptr, scale, nullptr, nullptr, nullptr), WEFT_VALUE_ERROR);
  CHECK_EQ(weft_register_operator(kScale, nullptr, nullptr, nullptr, nullptr), WEFT_VALUE_ERROR);
  CHECK_EQ(weft_unregister_operator("my::scale"), WEFT_KEY_ERROR);
  int released = 0;
  {
    const Registered registered(scale);
    CHECK_EQ(weft_register_operator(kScale, scale, nullptr, Registered::count, &released),
             WEFT_RUNTIME_ERROR);
    CHECK_TRUE(says("my::scale: expected an operator that is not registered yet, got it twice"));
  }
  CHECK_EQ(released, 0);
  const char* all =
      "my::scale(Tensor? a, Tensor[] b, int[2] c=[1, -2], *, str d='x, y', Scalar e=1e-3, "
      "ScalarType? f=None) -> (Tensor first, Tensor[], int)";
  CHECK_EQ(weft_register_operator(all, scale, nullptr, nullptr, nullptr), WEFT_OK);
  CHECK_EQ(weft_unregister_operator("my::scale"), WEFT_OK);
}

TEST(capi_operator_of_another_schema_is_refused) {
  const Module module(calling("my::scale(Tensor x, int by) -> Tensor"));
  const Registered registered(scale);
  double got = 0;
  CHECK_EQ(call_by(module, 3, 2, &got), WEFT_TYPE_ERROR);
  CHECK_TRUE(
      says("my::scale: expected the schema that the file was compiled with, "
           "my::scale(Tensor x, int by) -> Tensor, got my::scale(Tensor x, float by=2.0)"));
}

TEST(capi_operator_gradients) {
  const Module module(calling(kScale));
  weft_value* by = nullptr;
  CHECK_EQ(weft_value_float(4, &by), WEFT_OK);
  weft_tensor *x = number(3, true), *y = nullptr, *grad = nullptr;
  {
    const Registered registered(scale);
    CHECK_EQ(call(module, x, by, &y), WEFT_OK);
    CHECK_EQ(weft_tensor_requires_grad(y), 1);
    CHECK_EQ(weft_tensor_backward(y, nullptr, 0), WEFT_NOT_IMPLEMENTED);
    CHECK_TRUE(says("my::scale: expected an operator with a gradient in backward"));
    weft_tensor_release(y);
  }
  {
    const Registered registered(scale, scale_gradient);
    CHECK_EQ(call(module, x, by, &y), WEFT_OK);
    CHECK_EQ(weft_tensor_backward(y, nullptr, 0), WEFT_OK);
    CHECK_EQ(weft_tensor_grad(x, &grad), WEFT_OK);
    double value = 0;
    CHECK_EQ(weft_tensor_item(grad, &value), WEFT_OK);
    CHECK_EQ(value, 4.0);
    weft_tensor_release(y);  // the node keeps the operator
  }
  for (weft_tensor* each : {x, grad}) weft_tensor_release(each);
  weft_value_release(by);
}

// Of xs, the result and its gradient: the gradient for each of xs, in a list.
weft_status sum_gradient(const weft_value* const* args, size_t, weft_value** out, void*) {
  const weft_value* grads[] = {args[2], args[2]};
  weft_value* list = nullptr;
  CHECK_EQ(weft_value_list(grads, 2, &list), WEFT_OK);
  const weft_status status = weft_value_tuple(&list, 1, out);
  weft_value_release(list);
  return status;
}

TEST(capi_operator_gradients_of_lists) {
  Assembler program;  // forward(p, q): ops.my.scale([p, q])
  program.externals = {kTensor};
  AsmFunction forward;
  forward.name = "forward";
  forward.params = {{kTensor, 0}, {kTensor, 1}};
  forward.objects = 4;
  forward.sites = {{{0, 1}, {2}, static_cast<uint32_t>(ValueTag::TensorList)}, {{2}, {3}, 0}};
  forward.code = {{"make_list", 0, 0, 0, 0}, {"call_external", 0, 0, 0, 1}, {"return_object", 3}};
  program.functions = {forward};
  const char* schema = "my::scale(Tensor[] xs) -> Tensor";
  const Module module(file_of(program, schema));
  const Registered registered(
      [](const weft_value* const* args, size_t, weft_value** out, void*) {
        weft_value *a = nullptr, *b = nullptr;
        CHECK_EQ(weft_value_item(args[0], 0, &a), WEFT_OK);
        CHECK_EQ(weft_value_item(args[0], 1, &b), WEFT_OK);
        const weft_status status = put_number(number_of(a) + number_of(b), out);
        for (weft_value* each : {a, b}) weft_value_release(each);
        return status;
      },
      sum_gradient, schema);
  weft_tensor *x = number(3, true), *y = number(4, true), *z = nullptr;
  const weft_tensor* inputs[] = {x, y};
  CHECK_EQ(weft_module_forward(module.handle, inputs, 2, &z), WEFT_OK);
  CHECK_EQ(weft_tensor_backward(z, nullptr, 0), WEFT_OK);
  for (weft_tensor* each : {x, y}) {
    weft_tensor* grad = nullptr;
    double value = 0;
    CHECK_EQ(weft_tensor_grad(each, &grad), WEFT_OK);
    CHECK_EQ(weft_tensor_item(grad, &value), WEFT_OK);
    CHECK_EQ(value, 1.0);
    weft_tensor_release(grad);
  }
  for (weft_tensor* each : {x, y, z}) weft_tensor_release(each);
}

TEST(capi_operator_that_gives_its_argument_leaves_it_alone) {
  const Module module(calling(kScale));
  const Registered registered([](const weft_value* const* args, size_t, weft_value** out, void*) {
    weft_tensor* x = nullptr;
    CHECK_EQ(weft_value_get_tensor(args[0], &x), WEFT_OK);
    const weft_status status = weft_value_tensor(x, out);
    weft_tensor_release(x);
    return status;
  });
  weft_value* by = nullptr;
  CHECK_EQ(weft_value_float(4, &by), WEFT_OK);
  weft_tensor *x = number(3, true), *y = nullptr;
  CHECK_EQ(call(module, x, by, &y), WEFT_OK);
  CHECK_EQ(weft_tensor_backward(x, nullptr, 0), WEFT_OK);  // still a leaf
  CHECK_EQ(weft_tensor_backward(y, nullptr, 0), WEFT_NOT_IMPLEMENTED);
  for (weft_tensor* each : {x, y}) weft_tensor_release(each);
  weft_value_release(by);
}

TEST(capi_operator_threads) {
  const Module module(calling(kScale));
  std::atomic<int> wrong{0};
  const Registered registered(scale);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        double got = 0;
        if (call_by(module, i, t + 1, &got) != WEFT_OK || got != i * (t + 1)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace weft

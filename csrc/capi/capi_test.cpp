// The C interface, on a compiled file that is written here byte by byte.
#include <atomic>
#include <cstring>
#include <thread>

#include "capi/compiled_testing.h"
#include "capi/weft.h"
#include "testing.h"

namespace weft {
namespace {

using testing::image;

weft_module* loaded(const std::string& bytes = image()) {
  weft_module* module = nullptr;
  const weft_status status = weft_module_load_memory(bytes.data(), bytes.size(), &module);
  CHECK_EQ(status, WEFT_OK);
  return module;
}

TEST(capi_runs_a_module) {
  weft_module* module = loaded();
  CHECK_EQ(weft_module_method_count(module), 2);
  CHECK_EQ(std::string(weft_module_method_name(module, 0)), "forward");
  CHECK_TRUE(weft_module_method_name(module, 2) == nullptr);
  float data[] = {1, -2, 3};
  const int64_t sizes[] = {3};
  int released = 0;
  weft_tensor *x = nullptr, *y = nullptr;
  CHECK_EQ(weft_tensor_wrap(
               data, WEFT_FLOAT32, 1, sizes, nullptr,
               [](void* count) { ++*static_cast<int*>(count); }, &released, &x),
           WEFT_OK);
  CHECK_EQ(weft_module_forward(module, &x, 1, &y), WEFT_OK);
  CHECK_EQ(static_cast<float*>(weft_tensor_data(y))[2], 9.0f);
  CHECK_EQ(weft_tensor_numel(y), 3);
  weft_tensor_release(y);
  CHECK_EQ(released, 0);
  weft_tensor_release(x);
  CHECK_EQ(released, 1);
  weft_module_release(module);
}

TEST(capi_reads_archives_of_zip64) {
  weft_module* module = loaded(image("1", true));
  CHECK_EQ(weft_module_method_count(module), 2);
  weft_module_release(module);
}

TEST(capi_gradients) {
  weft_module* module = loaded();
  weft_tensor *x = nullptr, *y = nullptr, *grad = nullptr;
  CHECK_EQ(weft_tensor_empty(WEFT_FLOAT64, 0, nullptr, &x), WEFT_OK);
  *static_cast<double*>(weft_tensor_data(x)) = 3;
  CHECK_EQ(weft_tensor_set_requires_grad(x, 1), WEFT_OK);
  CHECK_EQ(weft_module_forward(module, &x, 1, &y), WEFT_OK);
  CHECK_EQ(weft_tensor_backward(y, nullptr, 0), WEFT_OK);
  CHECK_EQ(weft_tensor_grad(x, &grad), WEFT_OK);
  double value = 0;
  CHECK_EQ(weft_tensor_item(grad, &value), WEFT_OK);
  CHECK_EQ(value, 6.0);
  for (weft_tensor* each : {x, y, grad}) weft_tensor_release(each);
  weft_module_release(module);
}

TEST(capi_says_what_was_expected) {
  weft_module* module = nullptr;
  CHECK_EQ(weft_module_load("/nowhere.weft", &module), WEFT_RUNTIME_ERROR);
  CHECK_TRUE(std::strstr(weft_last_error(), "/nowhere.weft") != nullptr);
  const std::string newer = image("4");
  CHECK_EQ(weft_module_load_memory(newer.data(), newer.size(), &module), WEFT_RUNTIME_ERROR);
  CHECK_EQ(
      std::string(weft_last_error()),
      "load: expected a compiled file of version 1 to 3, got '4'; compile it with this version of "
      "weft");
  CHECK_TRUE(module == nullptr);
  module = loaded();
  weft_value *value = nullptr, *result = nullptr;
  CHECK_EQ(weft_value_int(3, &value), WEFT_OK);
  CHECK_EQ(weft_module_call(module, "forward", &value, 1, &result), WEFT_TYPE_ERROR);
  CHECK_EQ(std::string(weft_last_error()),
           "forward: expected argument 'p' of type Tensor, got int");
  CHECK_EQ(weft_module_call(module, "backward", nullptr, 0, &result), WEFT_KEY_ERROR);
  CHECK_EQ(weft_module_call(nullptr, "forward", nullptr, 0, &result), WEFT_VALUE_ERROR);
  CHECK_EQ(weft_set_num_threads(0), WEFT_RUNTIME_ERROR);
  CHECK_EQ(weft_module_method_count(nullptr) + weft_module_parameter_count(nullptr), 0);
  CHECK_TRUE(weft_module_method_name(nullptr, 0) == nullptr);
  CHECK_EQ(weft_tensor_ndim(nullptr) + weft_tensor_requires_grad(nullptr), 0);
  CHECK_TRUE(weft_tensor_data(nullptr) == nullptr && weft_tensor_sizes(nullptr) == nullptr);
  CHECK_EQ(weft_value_kind(nullptr), WEFT_KIND_NONE);
  weft_value_release(value);
  weft_module_release(module);
}

TEST(capi_values) {
  weft_value *one = nullptr, *text = nullptr, *list = nullptr, *item = nullptr;
  CHECK_EQ(weft_value_float(1.5, &one), WEFT_OK);
  CHECK_EQ(weft_value_string("ab", 2, &text), WEFT_OK);
  const weft_value* items[] = {one, text};
  CHECK_EQ(weft_value_list(items, 2, &list), WEFT_OK);
  CHECK_EQ(weft_value_kind(list), WEFT_KIND_LIST);
  size_t length = 0;
  CHECK_EQ(weft_value_length(list, &length), WEFT_OK);
  CHECK_EQ(length, 2);
  CHECK_EQ(weft_value_item(list, 1, &item), WEFT_OK);
  const char* characters = nullptr;
  CHECK_EQ(weft_value_get_string(item, &characters, nullptr), WEFT_OK);
  CHECK_EQ(std::string(characters), "ab");
  int64_t number = 0;
  CHECK_EQ(weft_value_get_int(one, &number), WEFT_TYPE_ERROR);
  weft_value_release(item);
  CHECK_EQ(weft_value_item(list, 2, &item), WEFT_INDEX_ERROR);
  for (weft_value* each : {one, text, list}) weft_value_release(each);
  weft_value_release(nullptr);
}

TEST(capi_cancels) {
  weft_module* module = loaded();
  weft_value *many = nullptr, *result = nullptr;
  CHECK_EQ(weft_value_int(int64_t{1} << 62, &many), WEFT_OK);
  std::atomic<bool> is_cancelled{true};
  const auto ask = [](void* flag) -> int { return static_cast<std::atomic<bool>*>(flag)->load(); };
  CHECK_EQ(weft_set_cancellation(ask, &is_cancelled), WEFT_OK);
  const weft_status status = weft_module_call(module, "count", &many, 1, &result);
  CHECK_EQ(weft_set_cancellation(nullptr, nullptr), WEFT_OK);
  CHECK_EQ(status, WEFT_CANCELLED);
  CHECK_TRUE(result == nullptr);
  weft_value_release(many);
  weft_module_release(module);
}

TEST(capi_threads_run_one_module) {
  weft_module* module = loaded();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        weft_tensor *x = nullptr, *y = nullptr;
        const int64_t sizes[] = {4};
        bool good = weft_tensor_empty(WEFT_FLOAT32, 1, sizes, &x) == WEFT_OK;
        for (int k = 0; k < 4; ++k)
          static_cast<float*>(weft_tensor_data(x))[k] = static_cast<float>(t + 1);
        if (t % 2 != 0) weft_tensor_set_requires_grad(x, 1);  // two programs at a time
        good = good && weft_module_forward(module, &x, 1, &y) == WEFT_OK &&
               static_cast<float*>(weft_tensor_data(y))[3] == static_cast<float>((t + 1) * (t + 1));
        if (!good) ++wrong;
        weft_tensor_release(x);
        weft_tensor_release(y);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(wrong.load(), 0);
  weft_module_release(module);
}

TEST(capi_memory_of_the_host) {
  struct Counts {
    int allocated = 0, released = 0;
  } counts;
  CHECK_EQ(weft_set_allocator(
               [](size_t bytes, void* context) {
                 ++static_cast<Counts*>(context)->allocated;
                 return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
               },
               [](void* block, size_t, void* context) {
                 ++static_cast<Counts*>(context)->released;
                 std::free(block);
               },
               &counts),
           WEFT_OK);
  weft_tensor* x = nullptr;
  const int64_t sizes[] = {100};
  CHECK_EQ(weft_tensor_empty(WEFT_FLOAT32, 1, sizes, &x), WEFT_OK);
  CHECK_EQ(weft_set_allocator(nullptr, nullptr, nullptr), WEFT_OK);
  CHECK_EQ(counts.allocated, 1);
  weft_tensor_release(x);
  CHECK_EQ(counts.released, 1);
}

TEST(capi_places_tensors) {
  float numbers[] = {0, 1, 2, 3, 4, 5};
  const int64_t six[] = {6}, square[] = {2, 2}, steps[] = {3, 1}, far[] = {9, 1};
  weft_tensor *x = nullptr, *y = nullptr, *bytes = nullptr;
  CHECK_EQ(weft_tensor_wrap(numbers, WEFT_FLOAT32, 1, six, nullptr, nullptr, nullptr, &x), WEFT_OK);
  CHECK_EQ(weft_tensor_empty(WEFT_FLOAT32, 1, six, &y), WEFT_OK);
  CHECK_EQ(weft_tensor_set_storage(y, x, 1, 2, square, steps), WEFT_OK);
  CHECK_TRUE(weft_tensor_data(y) == numbers + 1 && weft_tensor_strides(y)[0] == 3);
  CHECK_EQ(weft_tensor_set_storage(y, x, 0, 2, square, far), WEFT_RUNTIME_ERROR);
  CHECK_EQ(weft_tensor_set_storage(y, x, -1, 2, square, nullptr), WEFT_RUNTIME_ERROR);
  CHECK_EQ(weft_tensor_set_storage(y, nullptr, 0, 2, square, nullptr), WEFT_VALUE_ERROR);
  CHECK_EQ(weft_tensor_storage(y, &bytes), WEFT_OK);
  CHECK_TRUE(weft_tensor_numel(bytes) == 24 && weft_tensor_data(bytes) == numbers);
  weft_tensor_release(y);
  CHECK_EQ(weft_tensor_empty(WEFT_INT64, 1, six, &y), WEFT_OK);
  CHECK_EQ(weft_tensor_write(x, y), WEFT_RUNTIME_ERROR);  // integers hold no fractions
  CHECK_EQ(weft_tensor_write(bytes, y), WEFT_OK);
  CHECK_EQ(weft_tensor_numel(y), 24);
  CHECK_EQ(weft_tensor_set_requires_grad(x, 1), WEFT_OK);
  CHECK_EQ(weft_tensor_write(x, x), WEFT_RUNTIME_ERROR);
  CHECK_EQ(weft_tensor_set_storage(x, bytes, 0, 2, square, nullptr), WEFT_RUNTIME_ERROR);
  for (weft_tensor* each : {x, y, bytes}) weft_tensor_release(each);
}

TEST(capi_objects_that_a_file_cannot_make) {
  const testing::Code wrong = {
      {"create_object", 0, 0, 0, 0}, {"get_attribute", 0, 0, 0, 20}, {"return_object", 0}};
  const std::string file = testing::image("1", false, wrong);
  weft_module* module = nullptr;
  CHECK_EQ(weft_module_load_memory(file.data(), file.size(), &module), WEFT_RUNTIME_ERROR);
  CHECK_TRUE(std::strstr(weft_last_error(),
                         "load: expected objects that the file makes, got TypeError: ") != nullptr);
}

TEST(capi_damaged_files) {
  const std::string whole = image();
  for (size_t size = 0; size < whole.size(); size += 7) {
    weft_module* module = nullptr;
    CHECK_TRUE(weft_module_load_memory(whole.data(), size, &module) != WEFT_OK);
  }
  // Every byte, changed in three ways: loads or says why not.
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {1, 0x80, 0xFF}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      weft_module* module = nullptr;
      if (weft_module_load_memory(damaged.data(), damaged.size(), &module) == WEFT_OK)
        weft_module_release(module);
    }
  }
}

}  // namespace
}  // namespace weft

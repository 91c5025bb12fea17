// weft.hpp: weft.h for C++17. Handles release themselves, failures are exceptions, values convert.
//
//     weft::Module module("model.weft");
//     weft::Tensor y = module(weft::Tensor::over(pixels, {1, 3, 224, 224}));
//
// Only weft.h crosses the border of the library, so programs of any compiler and standard library
// may use it.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft.h"

namespace weft {
// Apart from the library's own classes, which a program that links libweft.a has under these names.
inline namespace api {

// A call that failed, with the text of weft_last_error.
class Error : public std::runtime_error {
 public:
  explicit Error(weft_status status) : std::runtime_error(weft_last_error()), status_(status) {}
  weft_status status() const noexcept { return status_; }

 private:
  weft_status status_;
};

namespace detail {

inline void check(weft_status status) {
  if (status != WEFT_OK) throw Error(status);
}

template <class T, void (*release)(T*)>
struct Release {
  void operator()(T* handle) const noexcept { release(handle); }
};
template <class T, void (*release)(T*)>
using Handle = std::unique_ptr<T, Release<T, release>>;

// The number of a C++ type among the dtypes.
template <class T>
constexpr weft_dtype dtype_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return WEFT_BOOL;
  } else if constexpr (std::is_same_v<T, float>) {
    return WEFT_FLOAT32;
  } else if constexpr (std::is_same_v<T, double>) {
    return WEFT_FLOAT64;
  } else {
    static_assert(std::is_integral_v<T> && sizeof(T) <= 8, "expected a type of numbers");
    constexpr weft_dtype is_signed[] = {WEFT_INT8, WEFT_INT16, WEFT_INT32, WEFT_INT64};
    constexpr weft_dtype is_unsigned[] = {WEFT_UINT8, WEFT_UINT16, WEFT_UINT32, WEFT_UINT64};
    constexpr int size = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? is_signed[size] : is_unsigned[size];
  }
}

}  // namespace detail

// A handle of a tensor: copies are the same tensor.
class Tensor {
 public:
  explicit Tensor(weft_tensor* owned = nullptr) : handle_(owned) {}
  Tensor(const Tensor& other) : Tensor(other.handle_ ? shared(other.get()) : nullptr) {}
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor other) noexcept {
    handle_ = std::move(other.handle_);
    return *this;
  }

  // Over memory that outlives every use of the tensor.
  template <class T>
  static Tensor over(T* data, const std::vector<int64_t>& sizes) {
    return over(data, sizes, nullptr, nullptr);
  }
  // Over memory that release(context) gives back after the last use.
  template <class T>
  static Tensor over(T* data, const std::vector<int64_t>& sizes, void (*release)(void*),
                     void* context) {
    weft_tensor* made = nullptr;
    using Element = std::remove_const_t<T>;
    detail::check(weft_tensor_wrap(const_cast<Element*>(data), detail::dtype_of<Element>(),
                                   static_cast<int>(sizes.size()), sizes.data(), nullptr, release,
                                   context, &made));
    return Tensor(made);
  }
  // A copy of the elements, row by row.
  template <class T>
  static Tensor of(const std::vector<T>& elements, const std::vector<int64_t>& sizes) {
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    if (count != static_cast<int64_t>(elements.size()))
      throw std::invalid_argument("Tensor::of: expected an element for each place");
    Tensor made = empty<T>(sizes);
    for (size_t i = 0; i < elements.size(); ++i) made.data<T>()[i] = elements[i];
    return made;
  }
  template <class T>
  static Tensor empty(const std::vector<int64_t>& sizes) {
    weft_tensor* made = nullptr;
    detail::check(weft_tensor_empty(detail::dtype_of<T>(), static_cast<int>(sizes.size()),
                                    sizes.data(), &made));
    return Tensor(made);
  }

  weft_tensor* get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  weft_dtype dtype() const { return weft_tensor_dtype(get()); }
  std::vector<int64_t> sizes() const {
    const int64_t* first = weft_tensor_sizes(get());
    return {first, first + weft_tensor_ndim(get())};
  }
  int64_t numel() const { return weft_tensor_numel(get()); }
  // The first element; in order for a contiguous tensor. Throws where T is not the dtype.
  template <class T>
  T* data() const {
    if (detail::dtype_of<std::remove_const_t<T>>() != dtype())
      throw std::invalid_argument("Tensor::data: expected the type of the elements");
    return static_cast<T*>(weft_tensor_data(get()));
  }
  // The elements, row by row.
  template <class T>
  std::vector<T> to_vector() const {
    const Tensor whole = contiguous();
    const T* first = whole.data<T>();
    return {first, first + whole.numel()};
  }
  Tensor contiguous() const {
    weft_tensor* made = nullptr;
    detail::check(weft_tensor_contiguous(get(), &made));
    return Tensor(made);
  }
  double item() const {
    double value = 0;
    detail::check(weft_tensor_item(get(), &value));
    return value;
  }
  void copy_from(const Tensor& source) { detail::check(weft_tensor_copy(get(), source.get())); }

  void set_requires_grad(bool value) { detail::check(weft_tensor_set_requires_grad(get(), value)); }
  bool requires_grad() const { return weft_tensor_requires_grad(get()) != 0; }
  void backward(bool retain_graph = false) const {
    detail::check(weft_tensor_backward(get(), nullptr, retain_graph));
  }
  void backward(const Tensor& gradient, bool retain_graph = false) const {
    detail::check(weft_tensor_backward(get(), gradient.get(), retain_graph));
  }
  // No tensor where there is none.
  Tensor grad() const {
    weft_tensor* found = nullptr;
    detail::check(weft_tensor_grad(get(), &found));
    return Tensor(found);
  }

 private:
  static weft_tensor* shared(const weft_tensor* tensor) {
    weft_tensor* made = nullptr;
    detail::check(weft_tensor_share(tensor, &made));
    return made;
  }
  detail::Handle<weft_tensor, weft_tensor_release> handle_;
};

// What programs take and give.
class Value {
 public:
  explicit Value(weft_value* owned) : handle_(owned, weft_value_release) {}
  Value() : Value(made([](weft_value** out) { return weft_value_none(out); })) {}
  Value(bool value) : Value(made([&](weft_value** out) { return weft_value_bool(value, out); })) {}
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Value(T value)
      : Value(made(
            [&](weft_value** out) { return weft_value_int(static_cast<int64_t>(value), out); })) {}
  Value(double value)
      : Value(made([&](weft_value** out) { return weft_value_float(value, out); })) {}
  Value(const std::string& text)
      : Value(made(
            [&](weft_value** out) { return weft_value_string(text.data(), text.size(), out); })) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(const Tensor& tensor)
      : Value(made([&](weft_value** out) { return weft_value_tensor(tensor.get(), out); })) {}
  template <class T>
  Value(const std::vector<T>& items) : Value(list({items.begin(), items.end()})) {}

  static Value list(std::vector<Value> items) {
    const std::vector<const weft_value*> handles = handles_of(items);
    return Value(made(
        [&](weft_value** out) { return weft_value_list(handles.data(), handles.size(), out); }));
  }
  static Value tuple(std::vector<Value> items) {
    const std::vector<const weft_value*> handles = handles_of(items);
    return Value(made(
        [&](weft_value** out) { return weft_value_tuple(handles.data(), handles.size(), out); }));
  }
  static Value dict(const std::vector<std::pair<Value, Value>>& entries) {
    std::vector<const weft_value*> keys, values;
    for (const auto& [key, value] : entries) {
      keys.push_back(key.get());
      values.push_back(value.get());
    }
    return Value(made([&](weft_value** out) {
      return weft_value_dict(keys.data(), values.data(), keys.size(), out);
    }));
  }

  weft_value* get() const noexcept { return handle_.get(); }
  weft_kind kind() const { return weft_value_kind(get()); }
  bool is_none() const { return kind() == WEFT_KIND_NONE; }
  bool to_bool() const { return read<int>(weft_value_get_bool) != 0; }
  int64_t to_int() const { return read<int64_t>(weft_value_get_int); }
  double to_double() const { return read<double>(weft_value_get_float); }
  Tensor to_tensor() const { return Tensor(read<weft_tensor*>(weft_value_get_tensor)); }
  std::string to_string() const {
    const char* text = nullptr;
    size_t bytes = 0;
    detail::check(weft_value_get_string(get(), &text, &bytes));
    return {text, bytes};
  }
  // Items of a list or a tuple, values of a dict.
  size_t size() const { return read<size_t>(weft_value_length); }
  Value operator[](size_t index) const {
    return Value(made([&](weft_value** out) { return weft_value_item(get(), index, out); }));
  }
  // The key of an entry of a dict.
  Value key(size_t index) const {
    return Value(made([&](weft_value** out) { return weft_value_key(get(), index, out); }));
  }

 private:
  template <class Make>
  static weft_value* made(Make&& make) {
    weft_value* out = nullptr;
    detail::check(make(&out));
    return out;
  }
  static std::vector<const weft_value*> handles_of(const std::vector<Value>& items) {
    std::vector<const weft_value*> handles;
    for (const Value& item : items) handles.push_back(item.get());
    return handles;
  }
  template <class T>
  T read(weft_status (*get_as)(const weft_value*, T*)) const {
    T out{};
    detail::check(get_as(get(), &out));
    return out;
  }
  std::shared_ptr<weft_value> handle_;
};

// A compiled file. Several threads may call one module at a time.
class Module {
 public:
  explicit Module(const std::string& path) {
    weft_module* made = nullptr;
    detail::check(weft_module_load(path.c_str(), &made));
    handle_.reset(made);
  }

  weft_module* get() const noexcept { return handle_.get(); }
  // forward of tensors that gives one tensor.
  template <class... Inputs>
  Tensor operator()(const Inputs&... inputs) const {
    return call("forward", {Value(inputs)...}).to_tensor();
  }
  Value call(const std::string& method, const std::vector<Value>& args) const {
    std::vector<const weft_value*> handles;
    for (const Value& arg : args) handles.push_back(arg.get());
    weft_value* out = nullptr;
    detail::check(weft_module_call(get(), method.c_str(), handles.data(), handles.size(), &out));
    return Value(out);
  }
  std::vector<std::string> methods() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < weft_module_method_count(get()); ++i)
      names.emplace_back(weft_module_method_name(get(), i));
    return names;
  }

  void train(bool mode = true) { detail::check(weft_module_train(get(), mode)); }
  void eval() { train(false); }
  std::vector<std::pair<std::string, Tensor>> parameters() const {
    return listed(weft_module_parameter_count(get()), weft_module_parameter);
  }
  std::vector<std::pair<std::string, Tensor>> buffers() const {
    return listed(weft_module_buffer_count(get()), weft_module_buffer);
  }
  void save_state(const std::string& path) const {
    detail::check(weft_module_save_state(get(), path.c_str()));
  }
  void load_state(const std::string& path) {
    detail::check(weft_module_load_state(get(), path.c_str()));
  }

 private:
  template <class Read>
  std::vector<std::pair<std::string, Tensor>> listed(size_t count, Read read) const {
    std::vector<std::pair<std::string, Tensor>> found;
    for (size_t i = 0; i < count; ++i) {
      const char* name = nullptr;
      weft_tensor* tensor = nullptr;
      detail::check(read(get(), i, &name, &tensor));
      found.emplace_back(name, Tensor(tensor));
    }
    return found;
  }
  detail::Handle<weft_module, weft_module_release> handle_;
};

// What computes an operator: a value by the arguments, a tuple of several results. What it throws
// ends the program that called it.
using Operator = std::function<Value(const std::vector<Value>&)>;

namespace detail {

struct Operators {
  Operator call, gradient;

  static weft_status run(const Operator& function, const weft_value* const* args, size_t count,
                         weft_value** out) noexcept {
    try {
      std::vector<Value> given;
      for (size_t i = 0; i < count; ++i) {
        weft_value* arg = nullptr;
        check(weft_value_share(args[i], &arg));
        given.emplace_back(arg);
      }
      return weft_value_share(function(given).get(), out);
    } catch (const Error& error) {
      return weft_fail(error.status(), error.what());
    } catch (const std::exception& error) {
      return weft_fail(WEFT_RUNTIME_ERROR, error.what());
    } catch (...) {
      return weft_fail(WEFT_RUNTIME_ERROR, "expected an exception of std::exception");
    }
  }
};

}  // namespace detail

// Registers the operator of a schema "my::scale(Tensor x, float by) -> Tensor". `gradient` gets the
// arguments, the results and the gradients of the results; it gives a tuple with a gradient, or
// none, for each argument.
inline void register_operator(const std::string& schema, Operator call, Operator gradient = {}) {
  using Made = detail::Operators;
  auto made = std::make_unique<Made>(Made{std::move(call), std::move(gradient)});
  const weft_operator_call run = [](const weft_value* const* args, size_t count, weft_value** out,
                                    void* context) {
    return Made::run(static_cast<Made*>(context)->call, args, count, out);
  };
  const weft_operator_call back = [](const weft_value* const* args, size_t count, weft_value** out,
                                     void* context) {
    return Made::run(static_cast<Made*>(context)->gradient, args, count, out);
  };
  detail::check(weft_register_operator(
      schema.c_str(), run, made->gradient ? back : nullptr,
      [](void* context) { delete static_cast<Made*>(context); }, made.get()));
  made.release();
}

// SGD or Adam over the parameters of a module.
class Optimizer {
 public:
  static Optimizer sgd(const Module& module, double lr, double momentum = 0,
                       double weight_decay = 0) {
    weft_optimizer* made = nullptr;
    detail::check(weft_sgd(module.get(), lr, momentum, weight_decay, &made));
    return Optimizer(made);
  }
  static Optimizer adam(const Module& module, double lr = 1e-3, double beta1 = 0.9,
                        double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0) {
    weft_optimizer* made = nullptr;
    detail::check(weft_adam(module.get(), lr, beta1, beta2, eps, weight_decay, &made));
    return Optimizer(made);
  }
  void step() { detail::check(weft_optimizer_step(handle_.get())); }
  void zero_grad() { detail::check(weft_optimizer_zero_grad(handle_.get())); }
  void set_lr(double lr) { detail::check(weft_optimizer_set_lr(handle_.get(), lr)); }

 private:
  explicit Optimizer(weft_optimizer* owned) : handle_(owned) {}
  detail::Handle<weft_optimizer, weft_optimizer_release> handle_;
};

// While it lives the thread records no gradients.
class NoGrad {
 public:
  NoGrad() : before_(weft_set_grad_enabled(0)) {}
  ~NoGrad() { weft_set_grad_enabled(before_); }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  int before_;
};

}  // namespace api
}  // namespace weft

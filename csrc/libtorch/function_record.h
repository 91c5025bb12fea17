// Functions of the host behind weft.h: what they throw, and calls with gradients of their own.
#pragma once

#include "autograd.h"
#include "ivalue.h"

namespace c10 {
inline namespace over_weft {
namespace detail {

using Values = std::vector<Shared>;

// Gives what a body throws as a status of weft.h.
template <class Body>
weft_status guarded(Body&& body) noexcept {
  const auto failed = [](weft_status status, const std::exception& error) {
    return weft_fail(status, error.what());
  };
  try {
    body();
    return WEFT_OK;
  } catch (const IndexError& error) {
    return failed(WEFT_INDEX_ERROR, error);
  } catch (const ValueError& error) {
    return failed(WEFT_VALUE_ERROR, error);
  } catch (const TypeError& error) {
    return failed(WEFT_TYPE_ERROR, error);
  } catch (const NotImplementedError& error) {
    return failed(WEFT_NOT_IMPLEMENTED, error);
  } catch (const OutOfMemoryError& error) {
    return failed(WEFT_OUT_OF_MEMORY, error);
  } catch (const std::exception& error) {
    return failed(WEFT_RUNTIME_ERROR, error);
  } catch (...) {
    return weft_fail(WEFT_RUNTIME_ERROR, "expected an exception of C++, got another one");
  }
}

inline bool is_among(const at::Tensor& tensor, const std::vector<at::Tensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const at::Tensor& each) {
    return each.defined() && tensor.defined() && each.is_same(tensor);
  });
}

// The tensors in a value, those of lists and tuples one by one.
inline void add_tensors(const Shared& value, std::vector<at::Tensor>& found) {
  const weft_kind kind = weft_value_kind(value.get());
  if (kind == WEFT_KIND_TENSOR) return found.push_back(unbox<at::Tensor>(value));
  if (kind != WEFT_KIND_LIST && kind != WEFT_KIND_TUPLE) return;
  for (size_t i = 0; i < length(value); ++i) add_tensors(item(value, i), found);
}
// The value with others in their place, from number `next` on.
inline Shared with_tensors(const Shared& value, const std::vector<at::Tensor>& tensors,
                           size_t& next) {
  const weft_kind kind = weft_value_kind(value.get());
  if (kind == WEFT_KIND_TENSOR) return box(tensors.at(next++));
  if (kind != WEFT_KIND_LIST && kind != WEFT_KIND_TUPLE) return value;
  Values items;
  std::vector<const weft_value*> handles;
  for (size_t i = 0; i < length(value); ++i) {
    items.push_back(with_tensors(item(value, i), tensors, next));
    handles.push_back(items.back().get());
  }
  const auto make = kind == WEFT_KIND_LIST ? weft_value_list : weft_value_tuple;
  return made([&](weft_value** out) { return make(handles.data(), handles.size(), out); });
}

// A call of a function with its own gradient: see weft_record_function.
struct FunctionRecord {
  std::string name;
  std::vector<at::Tensor> inputs, saved, written, constants;
  bool fills_gradients = true;

  // The outputs with their history. The context is the library's from then on.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& outputs, weft_backward_call backward,
                              void (*release)(void*), void* context) const {
    using torch::autograd::detail::handles_of;
    const auto given = handles_of(inputs), results = handles_of(outputs), kept = handles_of(saved);
    std::vector<int> flags;
    for (const at::Tensor& each : outputs) {
      flags.push_back((is_among(each, written) ? WEFT_OUTPUT_WRITTEN : 0) |
                      (is_among(each, constants) ? WEFT_OUTPUT_CONSTANT : 0));
    }
    const weft_function function = {name.c_str(),    given.data(), given.size(), results.data(),
                                    results.size(),  flags.data(), kept.data(),  kept.size(),
                                    fills_gradients, backward,     release,      context};
    std::vector<weft_tensor*> found(outputs.size());
    check(weft_record_function(&function, found.data()));
    std::vector<at::Tensor> finished;
    for (weft_tensor* each : found) finished.push_back(each ? at::Tensor(each) : at::Tensor());
    return finished;
  }
};

}  // namespace detail
}  // namespace over_weft
}  // namespace c10

#include "bindings/op_old_order.h"

#include <algorithm>

#include "bindings/bindings.h"
#include "bindings/torch_function.h"

namespace weft::py {
namespace {

bool is_out_name(PyObject* name) { return PyUnicode_CompareWithASCIIString(name, "out") == 0; }

bool stands_for_number(PyObject* object) {
  return is_number(object) || (is_plain_tensor(object) && unwrap(object).dim() == 0);
}

}  // namespace

std::optional<OldOrder> old_order(const Signature& signature, const CallArgs& call, bool method) {
  std::vector<PyObject*> numbers, tensors;
  for (const Param& param : signature.params) {
    (param.kind == ArgumentKind::Scalar ? numbers : tensors).push_back(param.key);
  }
  OldOrder order;
  size_t given = call.count;
  for (size_t i = 0; i < call.name_count(); ++i) {
    PyObject* const name = PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i));
    order.names.push_back(name);
    if (is_out_name(name)) continue;
    if (std::ranges::find(tensors, name) == tensors.end()) return {};
    ++given;
  }
  if (given <= signature.positional || given > signature.positional + numbers.size()) return {};
  // Of two numbers a function has one before its tensors; each other one stands behind a tensor.
  const size_t first = numbers.size() > 1 && !method ? 0 : 1;
  const size_t positions[] = {first, 2};
  numbers.resize(given - signature.positional);
  std::vector<PyObject*> found;
  for (size_t i = 0; i < call.count; ++i) {
    const bool here = found.size() < numbers.size() && i == positions[found.size()];
    if (here ? !stands_for_number(call.args[i]) : !is_plain_tensor(call.args[i])) return {};
    (here ? found : order.args).push_back(call.args[i]);
  }
  if (found.size() < numbers.size()) return {};
  order.count = order.args.size();
  order.args.insert(order.args.end(), call.args + call.count,
                    call.args + call.count + call.name_count());
  order.args.insert(order.args.end(), found.begin(), found.end());
  order.names.insert(order.names.end(), numbers.begin(), numbers.end());
  return order;
}

}  // namespace weft::py

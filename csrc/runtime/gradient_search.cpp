#include "runtime/gradient_search.h"

#include "autograd/node.h"
#include "runtime/dict.h"
#include "runtime/list.h"
#include "runtime/object.h"
#include "runtime/tuple.h"

namespace weft {

bool GradientSearch::in_value(const Value& value, int depth) {
  if (!spend(depth)) return true;
  const auto in_items = [&](const std::vector<Value>& items) {
    for (const Value& item : items) {
      if (in_value(item, depth + 1)) return true;
    }
    return false;
  };
  switch (value.tag()) {
    case ValueTag::Tensor:
      return autograd::requires_grad(value.to_tensor());
    case ValueTag::TensorSpan:
    case ValueTag::TensorList:
    case ValueTag::OptionalTensorList:
      for (const Tensor& tensor : value.to_tensors()) {
        if (tensor.defined() && autograd::requires_grad(tensor)) return true;
      }
      return false;
    case ValueTag::List:
      return in_items(value.object<ListObject<Value>>()->items);
    case ValueTag::Tuple:
      return in_items(value.object<TupleObject>()->items);
    case ValueTag::Object:
      return in_items(value.object<ClassObject>()->slots);
    case ValueTag::Dict: {
      bool found = false;
      value.object<DictObject>()->for_each([&](const Value& key, const Value& item) {
        found = found || in_value(key, depth + 1) || in_value(item, depth + 1);
      });
      return found;
    }
    case ValueTag::Future:
      return true;
    default:
      return false;
  }
}

}  // namespace weft

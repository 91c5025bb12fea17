// x[...] and x[...] = value.
//
// An index is walked once from left to right: ints, slices, None and bools become views at once;
// tensors, lists and arrays are collected and go to ops::index or ops::index_put_ in the end.
#include "bindings/bindings.h"
#include "bindings/errors.h"
#include "bindings/tensor_object.h"
#include "core/error.h"
#include "ops/copy.h"
#include "ops_copying.h"
#include "ops_indexing.h"
#include "ops_views.h"

namespace weft::py {
namespace {

constexpr const char* kWanted =
    "index: expected int, slice, None, Ellipsis, bool, tensor or list, got ";

bool is_bool_index(const Tensor& tensor) {
  return tensor.dtype() == DType::Bool || tensor.dtype() == DType::U8;
}

// What one item of an index is.
struct Item {
  enum Kind { Int, Slice, NewDim, Ellipsis, Bool, Tensor } kind;
  PyObject* object = nullptr;  // Slice
  int64_t number = 0;          // Int
  bool truth = false;          // Bool
  weft::Tensor tensor = {};    // Tensor
  int64_t dims() const {       // dimensions it consumes
    if (kind == Int || kind == Slice) return 1;
    if (kind != Tensor) return 0;
    return is_bool_index(tensor) ? tensor.dim() : 1;
  }
};

Item tensor_item_of(Tensor tensor) {
  WEFT_CHECK_INDEX(category(tensor.dtype()) <= DTypeCategory::Integral,
                   "index: expected an integer or bool tensor as index, got ", tensor.dtype());
  Item item{Item::Tensor};
  if (tensor.dim() == 0) {
    if (is_bool_index(tensor)) {
      item.kind = Item::Bool;
      item.truth = tensor.item().to_bool();
    } else {
      item.kind = Item::Int;
      item.number = tensor.item().to_int();
    }
    return item;
  }
  item.tensor = std::move(tensor);
  return item;
}

Item classify(PyObject* object) {
  if (PySlice_Check(object)) return {Item::Slice, object};
  if (object == Py_None) return {Item::NewDim};
  if (object == Py_Ellipsis) return {Item::Ellipsis};
  if (is_tensor(object)) return tensor_item_of(unwrap(object));
  Item item{Item::Int};
  if (to_int(object, &item.number)) return item;
  if (to_bool(object, &item.truth)) {
    item.kind = Item::Bool;
    return item;
  }
  WEFT_CHECK_TYPE(!PyUnicode_Check(object) && !PyBytes_Check(object), kWanted,
                  short_type_name(object));
  WEFT_CHECK_INDEX(PySequence_Check(object), kWanted, short_type_name(object));
  Tensor tensor = tensor_from_data("index", object, {});
  if (tensor.numel() == 0 && is_floating(tensor.dtype()))
    tensor = Tensor::empty(tensor.sizes(), DType::I64);
  return tensor_item_of(std::move(tensor));
}

std::optional<int64_t> slice_bound(PyObject* object) {
  if (object == Py_None) return {};
  int64_t value;
  if (!PyLong_Check(object) && to_int(object, &value)) return value;
  if (PyIndex_Check(object)) {
    // Python's slices clip ints of any size, and take True and False.
    Py_ssize_t clipped = PyNumber_AsSsize_t(object, nullptr);
    if (clipped == -1 && PyErr_Occurred()) throw PythonError{};
    return clipped;
  }
  fail(ErrorKind::Type, str("slice: expected int or None, got ", short_type_name(object)));
}

Tensor take_slice(const Tensor& tensor, int64_t dim, PyObject* object) {
  auto* slice = reinterpret_cast<PySliceObject*>(object);
  if (slice->start == Py_None && slice->stop == Py_None && slice->step == Py_None) {
    return ops::alias(tensor);
  }
  return ops::slice(tensor, dim, slice_bound(slice->start), slice_bound(slice->stop),
                    slice_bound(slice->step).value_or(1));
}

// `shown`: the dimension as the user counts it.
Tensor take_int(const Tensor& tensor, int64_t dim, int64_t index, int64_t shown) {
  int64_t size = tensor.sizes()[static_cast<size_t>(dim)];
  WEFT_CHECK_INDEX(index >= -size && index < size, "index: expected index in [", -size, ", ",
                   size - 1, "] for dim ", shown, ", got ", index);
  return ops::select(tensor, dim, index);
}

struct Plan {
  Tensor view;         // after ints, slices, None and bools
  TensorList indices;  // for ops::index; empty: the view is all
};

class Walk {
 public:
  explicit Walk(const Tensor& self) : self_(self) { plan_.view = self; }

  Plan run(PyObject* const* items, size_t count) {
    std::vector<Item> parts;
    parts.reserve(count);
    for (size_t i = 0; i < count; ++i) parts.push_back(classify(items[i]));
    int64_t dims = 0;
    for (const Item& part : parts) dims += part.dims();
    check_count(dims);
    bool expanded = false;
    for (const Item& part : parts) {
      if (part.kind != Item::Ellipsis) {
        step(part);
      } else if (!std::exchange(expanded, true)) {  // a second Ellipsis stands for nothing
        dim_ += self_.dim() - dims;
        shown_ += self_.dim() - dims;
      }
    }
    return std::move(plan_);
  }

 private:
  void check_count(int64_t dims) const {
    WEFT_CHECK_INDEX(
        self_.dim() > 0 || dims == 0,
        "index: expected no index for a 0-d tensor, got one; use item() for its number");
    WEFT_CHECK_INDEX(dims <= self_.dim(), "index: expected at most ", self_.dim(), " indices, got ",
                     dims);
  }

  void step(const Item& item) {
    Tensor& view = plan_.view;
    switch (item.kind) {
      case Item::Int:
        view = take_int(view, dim_, item.number, shown_++);
        break;
      case Item::Slice:
        view = take_slice(view, dim_++, item.object);
        ++shown_;
        break;
      case Item::NewDim:
        view = ops::unsqueeze(view, dim_++);
        break;
      case Item::Bool:
        view = ops::unsqueeze(view, dim_);
        record(bool_mask(item.truth), 1);
        break;
      case Item::Tensor:
        check_mask(item);
        shown_ += item.dims();
        record(item.tensor, item.dims());
        break;
      case Item::Ellipsis:
        break;
    }
  }

  static Tensor bool_mask(bool truth) {
    Tensor mask = Tensor::empty(Dims{1}, DType::Bool);
    *mask.data_as<bool>() = truth;
    return mask;
  }

  void check_mask(const Item& item) const {
    if (!is_bool_index(item.tensor)) return;
    for (int64_t i = 0; i < item.tensor.dim(); ++i) {
      auto at = static_cast<size_t>(dim_ + i);
      WEFT_CHECK_INDEX(item.tensor.sizes()[static_cast<size_t>(i)] == plan_.view.sizes()[at],
                       "index: expected a mask that fits shape ", AsTuple{self_.sizes()},
                       " at dim ", shown_, ", got mask shape ", AsTuple{item.tensor.sizes()});
    }
  }

  // A mask of k dimensions is one entry of the list that stands for k.
  void record(const Tensor& index, int64_t dims) {
    for (; listed_ < dim_; ++listed_) plan_.indices.emplace_back();
    plan_.indices.push_back(index);
    listed_ += dims;
    dim_ += dims;
  }

  const Tensor& self_;
  Plan plan_;
  int64_t dim_ = 0;     // of the view
  int64_t shown_ = 0;   // of the tensor that is indexed
  int64_t listed_ = 0;  // dimensions of the view that the list covers
};

// Whether a list or the like stands for a tuple, as in NumPy of old and in PyTorch: it holds what
// is no number. With 32 items or more it is data.
bool is_like_tuple(PyObject* index) {
  if (is_tensor(index) || is_numpy_array(index) || !PySequence_Check(index)) return false;
  if (PyUnicode_Check(index) || PyBytes_Check(index)) return false;
  const Py_ssize_t count = PySequence_Size(index);
  if (count < 0) PyErr_Clear();
  if (count <= 0 || count >= 32) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Object item = Object::checked(PySequence_GetItem(index, i));
    PyObject* const one = item.get();
    if (is_tensor(one) || PySequence_Check(one) || PySlice_Check(one)) return true;
    if (one == Py_None || one == Py_Ellipsis) return true;
  }
  return false;
}

Plan plan(const Tensor& self, PyObject* index) {
  Walk walk(self);
  if (!PyTuple_Check(index) && is_like_tuple(index)) [[unlikely]] {
    const Object items = Object::checked(PySequence_Tuple(index));
    return plan(self, items.get());
  }
  if (PyTuple_Check(index)) {
    return walk.run(PySequence_Fast_ITEMS(index), static_cast<size_t>(PyTuple_GET_SIZE(index)));
  }
  return walk.run(&index, 1);
}

// ---- assignment ----

Tensor value_tensor(const Tensor& target, PyObject* value) {
  if (is_tensor(value)) return unwrap(value);
  if (is_numpy_array(value)) return tensor_from_numpy("index", value);
  Scalar number;
  WEFT_CHECK_TYPE(to_scalar(value, &number), "index: expected a Tensor or Number to assign, got ",
                  short_type_name(value));
  WEFT_CHECK(!number.is_complex() || is_complex(target.dtype()),
             "index: expected a real number for a ", target.dtype(), " tensor, got ", number);
  check_range(number, target.dtype(), "index");
  return Tensor::scalar(number, target.dtype());
}

// Leading dimensions of size 1 that the target does not have do not count.
Tensor drop_leading_ones(Tensor value, int64_t dims) {
  while (value.dim() > dims && value.sizes()[0] == 1) value = ops::select(value, 0, 0);
  return value;
}

void assign(const Plan& plan, PyObject* object) {
  const Tensor& target = plan.view;
  Scalar number;
  if (plan.indices.empty() && PyFloat_CheckExact(object)) {
    ops::fill_(target, Scalar(PyFloat_AS_DOUBLE(object)));
    return;
  }
  Tensor value = value_tensor(target, object);
  if (plan.indices.empty()) {
    ops::copy_(target, drop_leading_ones(std::move(value), target.dim()));
  } else {
    value = drop_leading_ones(std::move(value), 0);  // broadcasting brings back what is missing
    if (value.dtype() != target.dtype()) value = ops::_to_copy(value, target.dtype());
    ops::index_put_(target, plan.indices, value);
  }
}

bool is_plain_int(PyObject* object) { return PyLong_CheckExact(object); }

}  // namespace

PyObject* tensor_subscript(PyObject* self, PyObject* index) {
  return guarded([&] {
    const Tensor& tensor = unwrap(self);
    int64_t number;
    if (is_plain_int(index) && tensor.dim() > 0 && to_int(index, &number)) {
      return wrap(take_int(tensor, 0, number, 0));
    }
    if (PySlice_Check(index) && tensor.dim() > 0) return wrap(take_slice(tensor, 0, index));
    Plan found = plan(tensor, index);
    if (!found.indices.empty()) return wrap(ops::index(found.view, found.indices));
    // x[...] and x[()] are new tensors, too.
    if (found.view.is_same(tensor)) found.view = ops::alias(tensor);
    return wrap(std::move(found.view));
  });
}

int tensor_assign_subscript(PyObject* self, PyObject* index, PyObject* value) {
  return guarded([&] {
    WEFT_CHECK_TYPE(value, "index: expected an assignment, got del; tensors keep their elements");
    if (index != Py_False) assign(plan(unwrap(self), index), value);  // x[False] takes any shape
    return 0;
  });
}

}  // namespace weft::py

// Python's operators on tensors, straight to the operator functions.
//
// Tensor with Tensor and Tensor with number are handled here; anything else gives NotImplemented,
// so that the other operand gets its turn.
#include "bindings/tensor_slots.h"

#include "autograd/node.h"
#include "bindings/bindings.h"
#include "bindings/errors.h"
#include "bindings/hooked.h"
#include "bindings/tensor_object.h"
#include "ops_arithmetic.h"
#include "ops_compare.h"
#include "ops_linalg.h"
#include "ops_math.h"
#include "ops_unary.h"

namespace weft::py {
namespace {

template <class Fn>
Tensor run(bool large, Fn&& fn) {
  if (!large) [[likely]]
    return fn();
  ReleaseGil release;
  return fn();
}

// An operator: how it is computed from two tensors, a tensor and a number, a number and a tensor.
#define WEFT_BINARY(Name, TENSOR, NUMBER, REFLECTED)                           \
  struct Name {                                                                \
    static Tensor call(const Tensor& a, const Tensor& b) { return TENSOR; }    \
    static Tensor call(const Tensor& a, const Scalar& b) { return NUMBER; }    \
    static Tensor call(const Scalar& a, const Tensor& b) { return REFLECTED; } \
  };
WEFT_BINARY(Add, ops::add(a, b), ops::add(a, b), ops::add(b, a))
WEFT_BINARY(Sub, ops::sub(a, b), ops::sub(a, b), ops::rsub(b, a))
WEFT_BINARY(Mul, ops::mul(a, b), ops::mul(a, b), ops::mul(b, a))
WEFT_BINARY(Div, ops::div(a, b), ops::div(a, b), ops::mul(ops::reciprocal(b), a))
WEFT_BINARY(FloorDiv, ops::div(a, b, "floor"), ops::div(a, b, "floor"),
            ops::div(number_beside("floor_divide", a, b), b, "floor"))
WEFT_BINARY(Remainder, ops::remainder(a, b), ops::remainder(a, b),
            ops::remainder(number_beside("remainder", a, b), b))
WEFT_BINARY(Pow, ops::pow(a, b), ops::pow(a, b), ops::pow(a, b))
WEFT_BINARY(And, ops::bitwise_and(a, b), ops::bitwise_and(a, b), ops::bitwise_and(b, a))
WEFT_BINARY(Or, ops::bitwise_or(a, b), ops::bitwise_or(a, b), ops::bitwise_or(b, a))
WEFT_BINARY(Xor, ops::bitwise_xor(a, b), ops::bitwise_xor(a, b), ops::bitwise_xor(b, a))
WEFT_BINARY(LeftShift, ops::bitwise_left_shift(a, b),
            ops::bitwise_left_shift(a, number_beside("bitwise_left_shift", b, a)),
            ops::bitwise_left_shift(number_beside("bitwise_left_shift", a, b), b))
WEFT_BINARY(RightShift, ops::bitwise_right_shift(a, b),
            ops::bitwise_right_shift(a, number_beside("bitwise_right_shift", b, a)),
            ops::bitwise_right_shift(number_beside("bitwise_right_shift", a, b), b))
#undef WEFT_BINARY

template <class Op>
PyObject* call(const Tensor& left, const Tensor& right) {
  return wrap(run(is_large(left) || is_large(right), [&] { return Op::call(left, right); }));
}

// Whether NumPy answers: its array stands on the right of a tensor that needs no gradient. The
// result has the dtype that NumPy promotes to, as in PyTorch, and is a tensor (__array_wrap__).
bool is_left_to_numpy(const Tensor& left, PyObject* right) {
  return is_numpy_array(right) && !autograd::requires_grad(left) && left.on_cpu();
}

// An operand that is neither exactly what the fast path takes: a number, or a NumPy array.
bool to_operand(PyObject* object, Scalar* number, Tensor* tensor) {
  if (to_scalar(object, number)) return true;
  if (!is_numpy_array(object)) return false;
  *tensor = tensor_from_numpy("from_numpy", object);
  return true;
}

template <class Op>
PyObject* binary(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    Scalar number;
    Tensor array;
    if (is_tensor(a)) [[likely]] {
      const Tensor& left = unwrap(a);
      if (is_tensor(b)) return call<Op>(left, unwrap(b));
      if (is_left_to_numpy(left, b) || !to_operand(b, &number, &array)) Py_RETURN_NOTIMPLEMENTED;
      if (array.defined()) return call<Op>(left, array);
      return wrap(run(is_large(left), [&] { return Op::call(left, number); }));
    }
    if (!to_operand(a, &number, &array)) Py_RETURN_NOTIMPLEMENTED;
    const Tensor& right = unwrap(b);
    if (array.defined()) return call<Op>(array, right);
    return wrap(run(is_large(right), [&] { return Op::call(number, right); }));
  });
}

template <class Fn>
PyObject* inplace(PyObject* self, PyObject* other, Fn&& fn) {
  return guarded([&]() -> PyObject* {
    const Tensor& left = unwrap(self);
    Scalar number;
    Tensor right;
    if (is_tensor(other)) {
      right = unwrap(other);
    } else if (is_left_to_numpy(left, other) || !to_operand(other, &number, &right)) {
      Py_RETURN_NOTIMPLEMENTED;
    }
    run(is_large(left), [&] { return right.defined() ? fn(left, right) : fn(left, number); });
    return new_ref(self);
  });
}

template <class Fn>
PyObject* unary(PyObject* self, Fn&& fn) {
  return guarded([&] {
    const Tensor& tensor = unwrap(self);
    return wrap(run(is_large(tensor), [&] { return fn(tensor); }));
  });
}

template <class Fn>
PyObject* compare(PyObject* a, PyObject* b, Fn&& fn) {
  return guarded([&]() -> PyObject* {
    const Tensor& left = unwrap(a);
    Scalar number;
    Tensor right;
    if (is_tensor(b)) {
      right = unwrap(b);
    } else if (!to_operand(b, &number, &right)) {
      Py_RETURN_NOTIMPLEMENTED;
    }
    bool large = is_large(left) || (right.defined() && is_large(right));
    return wrap(run(large, [&] { return right.defined() ? fn(left, right) : fn(left, number); }));
  });
}

#define WEFT_COMPARE(op)                                                                \
  PyObject* compare_##op(PyObject* a, PyObject* b) {                                    \
    return compare(a, b, [](const Tensor& x, const auto& y) { return ops::op(x, y); }); \
  }
WEFT_COMPARE(eq)
WEFT_COMPARE(ne)
WEFT_COMPARE(lt)
WEFT_COMPARE(le)
WEFT_COMPARE(gt)
WEFT_COMPARE(ge)
#undef WEFT_COMPARE

}  // namespace

PyObject* tensor_add(PyObject* a, PyObject* b) { return binary<Add>(a, b); }
PyObject* tensor_subtract(PyObject* a, PyObject* b) { return binary<Sub>(a, b); }
PyObject* tensor_multiply(PyObject* a, PyObject* b) { return binary<Mul>(a, b); }
PyObject* tensor_true_divide(PyObject* a, PyObject* b) { return binary<Div>(a, b); }
PyObject* tensor_floor_divide(PyObject* a, PyObject* b) { return binary<FloorDiv>(a, b); }
PyObject* tensor_remainder(PyObject* a, PyObject* b) { return binary<Remainder>(a, b); }
PyObject* tensor_and(PyObject* a, PyObject* b) { return binary<And>(a, b); }
PyObject* tensor_or(PyObject* a, PyObject* b) { return binary<Or>(a, b); }
PyObject* tensor_xor(PyObject* a, PyObject* b) { return binary<Xor>(a, b); }
PyObject* tensor_lshift(PyObject* a, PyObject* b) { return binary<LeftShift>(a, b); }
PyObject* tensor_rshift(PyObject* a, PyObject* b) { return binary<RightShift>(a, b); }

PyObject* tensor_power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary<Pow>(a, b);
}

PyObject* tensor_matrix_multiply(PyObject* a, PyObject* b) {
  if (!is_tensor(a) || !is_tensor(b)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] {
    const Tensor& left = unwrap(a);
    const Tensor& right = unwrap(b);
    return wrap(run(is_large(left) || is_large(right), [&] { return ops::matmul(left, right); }));
  });
}

#define WEFT_INPLACE(slot, call)                                                    \
  PyObject* tensor_inplace_##slot(PyObject* a, PyObject* b) {                       \
    return inplace(a, b, [](const Tensor& x, const auto& y) { return ops::call; }); \
  }
WEFT_INPLACE(add, add_(x, y))
WEFT_INPLACE(subtract, sub_(x, y))
WEFT_INPLACE(multiply, mul_(x, y))
WEFT_INPLACE(true_divide, div_(x, y))
WEFT_INPLACE(floor_divide, div_(x, y, "floor"))
WEFT_INPLACE(remainder, remainder_(x, y))
WEFT_INPLACE(and, bitwise_and_(x, y))
WEFT_INPLACE(or, bitwise_or_(x, y))
WEFT_INPLACE(xor, bitwise_xor_(x, y))
WEFT_INPLACE(lshift, bitwise_left_shift_(x, y))
WEFT_INPLACE(rshift, bitwise_right_shift_(x, y))
#undef WEFT_INPLACE

PyObject* tensor_inplace_power(PyObject* a, PyObject* b, PyObject*) {
  return inplace(a, b, [](const Tensor& x, const auto& y) { return ops::pow_(x, y); });
}

PyObject* tensor_negative(PyObject* self) {
  return unary(self, [](const Tensor& x) { return ops::neg(x); });
}
PyObject* tensor_absolute(PyObject* self) {
  return unary(self, [](const Tensor& x) { return ops::abs(x); });
}
PyObject* tensor_invert(PyObject* self) {
  return unary(self, [](const Tensor& x) {
    const DType kind = x.dtype();
    WEFT_CHECK_TYPE(!is_floating(kind) && !is_complex(kind),
                    "~: expected a dtype of integers or bool, got ", kind);
    return ops::bitwise_not(x);
  });
}
PyObject* tensor_positive(PyObject* self) {
  return guarded([&] {
    WEFT_CHECK(unwrap(self).dtype() != DType::Bool, "positive: expected a numeric dtype, got bool");
    return new_ref(self);
  });
}

PyObject* tensor_richcompare(PyObject* a, PyObject* b, int op) {
  switch (op) {
    case Py_EQ:
      return Traced<"eq", compare_eq>::call(a, b);
    case Py_NE:
      return Traced<"ne", compare_ne>::call(a, b);
    case Py_LT:
      return Traced<"lt", compare_lt>::call(a, b);
    case Py_LE:
      return Traced<"le", compare_le>::call(a, b);
    case Py_GT:
      return Traced<"gt", compare_gt>::call(a, b);
    case Py_GE:
      return Traced<"ge", compare_ge>::call(a, b);
    default:
      Py_RETURN_NOTIMPLEMENTED;
  }
}

}  // namespace weft::py

// Python's operators on tensors, straight to the operator functions.
//
// Tensor with Tensor and Tensor with number are handled here; anything else gives NotImplemented,
// so that the other operand gets its turn.
#include "bindings/tensor_slots.h"

#include "autograd/node.h"
#include "bindings/bindings.h"
#include "bindings/errors.h"
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

// An operator: how it is computed from two tensors, a tensor and a number, a number and a tensor,
// and in place.
#define WEFT_BINARY(Name, TENSOR, NUMBER, REFLECTED, INPLACE)                  \
  struct Name {                                                                \
    static Tensor call(const Tensor& a, const Tensor& b) { return TENSOR; }    \
    static Tensor call(const Tensor& a, const Scalar& b) { return NUMBER; }    \
    static Tensor call(const Scalar& a, const Tensor& b) { return REFLECTED; } \
    static Tensor into(const Tensor& a, const auto& b) { return INPLACE; }     \
  };
WEFT_BINARY(Add, ops::add(a, b), ops::add(a, b), ops::add(b, a), ops::add_(a, b))
WEFT_BINARY(Sub, ops::sub(a, b), ops::sub(a, b), ops::rsub(b, a), ops::sub_(a, b))
WEFT_BINARY(Mul, ops::mul(a, b), ops::mul(a, b), ops::mul(b, a), ops::mul_(a, b))
WEFT_BINARY(Div, ops::div(a, b), ops::div(a, b), ops::mul(ops::reciprocal(b), a), ops::div_(a, b))
WEFT_BINARY(FloorDiv, ops::div(a, b, "floor"), ops::div(a, b, "floor"),
            ops::div(number_beside("floor_divide", a, b), b, "floor"), ops::div_(a, b, "floor"))
WEFT_BINARY(Remainder, ops::remainder(a, b), ops::remainder(a, b),
            ops::remainder(number_beside("remainder", a, b), b), ops::remainder_(a, b))
WEFT_BINARY(Pow, ops::pow(a, b), ops::pow(a, b), ops::pow(a, b), ops::pow_(a, b))
WEFT_BINARY(And, ops::bitwise_and(a, b), ops::bitwise_and(a, b), ops::bitwise_and(b, a),
            ops::bitwise_and_(a, b))
WEFT_BINARY(Or, ops::bitwise_or(a, b), ops::bitwise_or(a, b), ops::bitwise_or(b, a),
            ops::bitwise_or_(a, b))
WEFT_BINARY(Xor, ops::bitwise_xor(a, b), ops::bitwise_xor(a, b), ops::bitwise_xor(b, a),
            ops::bitwise_xor_(a, b))
WEFT_BINARY(LeftShift, ops::bitwise_left_shift(a, b),
            ops::bitwise_left_shift(a, number_beside("bitwise_left_shift", b, a)),
            ops::bitwise_left_shift(number_beside("bitwise_left_shift", a, b), b),
            ops::bitwise_left_shift_(a, b))
WEFT_BINARY(RightShift, ops::bitwise_right_shift(a, b),
            ops::bitwise_right_shift(a, number_beside("bitwise_right_shift", b, a)),
            ops::bitwise_right_shift(number_beside("bitwise_right_shift", a, b), b),
            ops::bitwise_right_shift_(a, b))
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

template <class Op>
PyObject* inplace(PyObject* self, PyObject* other) {
  return guarded([&]() -> PyObject* {
    const Tensor& left = unwrap(self);
    Scalar number;
    Tensor right;
    if (is_tensor(other)) {
      right = unwrap(other);
    } else if (is_left_to_numpy(left, other) || !to_operand(other, &number, &right)) {
      Py_RETURN_NOTIMPLEMENTED;
    }
    run(is_large(left),
        [&] { return right.defined() ? Op::into(left, right) : Op::into(left, number); });
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

PyObject* richcompare(PyObject* a, PyObject* b, int op) {
  static_assert(Py_LT == 0 && Py_LE == 1 && Py_EQ == 2 && Py_NE == 3 && Py_GT == 4 && Py_GE == 5);
  constexpr binaryfunc functions[] = {
      Traced<"lt", compare_lt>::call, Traced<"le", compare_le>::call,
      Traced<"eq", compare_eq>::call, Traced<"ne", compare_ne>::call,
      Traced<"gt", compare_gt>::call, Traced<"ge", compare_ge>::call};
  return functions[op](a, b);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary<Pow>(a, b);
}
PyObject* inplace_power(PyObject* a, PyObject* b, PyObject*) { return inplace<Pow>(a, b); }

PyObject* matrix_multiply(PyObject* a, PyObject* b) {
  if (!is_tensor(a) || !is_tensor(b)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] {
    const Tensor& left = unwrap(a);
    const Tensor& right = unwrap(b);
    return wrap(run(is_large(left) || is_large(right), [&] { return ops::matmul(left, right); }));
  });
}

PyObject* negative(PyObject* self) {
  return unary(self, [](const Tensor& x) { return ops::neg(x); });
}
PyObject* absolute(PyObject* self) {
  return unary(self, [](const Tensor& x) { return ops::abs(x); });
}
PyObject* invert(PyObject* self) {
  return unary(self, [](const Tensor& x) {
    const DType kind = x.dtype();
    WEFT_CHECK_TYPE(!is_floating(kind) && !is_complex(kind),
                    "~: expected a dtype of integers or bool, got ", kind);
    return ops::bitwise_not(x);
  });
}
PyObject* positive(PyObject* self) {
  return guarded([&] {
    WEFT_CHECK(unwrap(self).dtype() != DType::Bool, "positive: expected a numeric dtype, got bool");
    return new_ref(self);
  });
}

}  // namespace

std::span<const PyType_Slot> operator_slots() {
  static const PyType_Slot slots[] = {
      slot(Py_tp_richcompare, richcompare),
      traced<"add", binary<Add>>(Py_nb_add),
      traced<"subtract", binary<Sub>>(Py_nb_subtract),
      traced<"multiply", binary<Mul>>(Py_nb_multiply),
      traced<"true_divide", binary<Div>>(Py_nb_true_divide),
      traced<"floor_divide", binary<FloorDiv>>(Py_nb_floor_divide),
      traced<"remainder", binary<Remainder>>(Py_nb_remainder),
      traced<"power", power>(Py_nb_power),
      traced<"matrix_multiply", matrix_multiply>(Py_nb_matrix_multiply),
      traced<"and", binary<And>>(Py_nb_and),
      traced<"or", binary<Or>>(Py_nb_or),
      traced<"xor", binary<Xor>>(Py_nb_xor),
      traced<"lshift", binary<LeftShift>>(Py_nb_lshift),
      traced<"rshift", binary<RightShift>>(Py_nb_rshift),
      traced<"inplace_add", inplace<Add>>(Py_nb_inplace_add),
      traced<"inplace_subtract", inplace<Sub>>(Py_nb_inplace_subtract),
      traced<"inplace_multiply", inplace<Mul>>(Py_nb_inplace_multiply),
      traced<"inplace_true_divide", inplace<Div>>(Py_nb_inplace_true_divide),
      traced<"inplace_floor_divide", inplace<FloorDiv>>(Py_nb_inplace_floor_divide),
      traced<"inplace_remainder", inplace<Remainder>>(Py_nb_inplace_remainder),
      traced<"inplace_power", inplace_power>(Py_nb_inplace_power),
      traced<"inplace_and", inplace<And>>(Py_nb_inplace_and),
      traced<"inplace_or", inplace<Or>>(Py_nb_inplace_or),
      traced<"inplace_xor", inplace<Xor>>(Py_nb_inplace_xor),
      traced<"inplace_lshift", inplace<LeftShift>>(Py_nb_inplace_lshift),
      traced<"inplace_rshift", inplace<RightShift>>(Py_nb_inplace_rshift),
      traced<"negative", negative>(Py_nb_negative),
      traced<"positive", positive>(Py_nb_positive),
      traced<"absolute", absolute>(Py_nb_absolute),
      traced<"invert", invert>(Py_nb_invert),
  };
  return slots;
}

}  // namespace weft::py

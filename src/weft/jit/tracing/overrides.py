"""What is asked of tensors beside the operators of the table: arithmetic of the language,
attributes, methods written by hand.

Each override does what the extension does when nothing is recorded, by operators of the table,
which record themselves; or it asks the extension while the recorder is paused, and writes the node.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from weft import _C
from weft._C import Size
from weft._runtime.rules import Rules
from weft.jit.ir import types as ty
from weft.jit.tracing.arguments import convert
from weft.jit.tracing.source_locations import is_library

if TYPE_CHECKING:
    from weft.jit.tracing.recorder import Recorder

Tensor = _C.Tensor
OVERRIDES = Rules()
"""By the names that the extension uses."""
_aten = _C._aten


def original(rec: Recorder, name: str, *args: Any, **kwargs: Any) -> Any:
    """A method of Tensor, not recorded."""
    with rec.paused():
        return getattr(Tensor, name)(*args, **kwargs)


def attribute(rec: Recorder, name: str, tensor: Tensor) -> Any:
    """An attribute of a tensor, not recorded."""
    with rec.paused():
        return getattr(tensor, name)


# Arithmetic -----------------------------------------------------------------------------------


def _operand(rec: Recorder, given: Any) -> Any:
    """A tensor or a number; NotImplemented for anything else."""
    if isinstance(given, (Tensor, bool, int, float, complex)):
        return given
    module = type(given).__module__
    if module == "numpy" and hasattr(given, "item"):
        is_array = hasattr(given, "__len__")
        return OVERRIDES["weft.from_numpy"](rec, _C, given) if is_array else given.item()
    return NotImplemented


def _number_tensor(rec: Recorder, number: Any) -> Tensor:
    """A number as the 0-d tensor that arithmetic makes of it."""
    dtypes = {bool: _C.bool, int: _C.int64, float: _C.float64, complex: _C.complex128}
    python = next(each for each in dtypes if isinstance(number, each))
    with rec.paused():
        made = _C.tensor(python(number) if python is not bool else number, dtype=dtypes[python])
    kind = "prim::NumToTensor.bool" if python is bool else "prim::NumToTensor.Scalar"
    return rec.builtin(kind, [rec.number(number)], made)


def _binary(
    name: str, forward: Callable[..., Any], reflected: Callable[..., Any] | None = None
) -> None:
    def call(rec: Recorder, a: Any, b: Any) -> Any:
        left, right = _operand(rec, a), _operand(rec, b)
        if left is NotImplemented or right is NotImplemented:
            return NotImplemented
        if isinstance(left, Tensor):
            return forward(left, right)
        if reflected is not None:
            return reflected(left, right)
        return forward(_number_tensor(rec, left), right)

    OVERRIDES[name] = call


_binary("add", _aten.add, lambda a, b: _aten.add(b, a))
_binary("subtract", _aten.sub, lambda a, b: _aten.rsub(b, a))
_binary("multiply", _aten.mul, lambda a, b: _aten.mul(b, a))
_binary("true_divide", _aten.div, lambda a, b: _aten.mul(_aten.reciprocal(b), a))
_binary("floor_divide", lambda a, b: _aten.div(a, b, rounding_mode="floor"))
_binary("remainder", _aten.remainder)
_binary("power", _aten.pow, lambda a, b: _aten.pow(a, b))
_binary("and", _aten.bitwise_and, lambda a, b: _aten.bitwise_and(b, a))
_binary("or", _aten.bitwise_or, lambda a, b: _aten.bitwise_or(b, a))
_binary("xor", _aten.bitwise_xor, lambda a, b: _aten.bitwise_xor(b, a))
_binary("lshift", _aten.bitwise_left_shift, lambda a, b: _aten.bitwise_left_shift(a, b))
_binary("rshift", _aten.bitwise_right_shift, lambda a, b: _aten.bitwise_right_shift(a, b))
for _name in ("lt", "le", "eq", "ne", "gt", "ge"):
    _binary(_name, getattr(_aten, _name))


@OVERRIDES("matrix_multiply")
def _matrix_multiply(rec: Recorder, a: Any, b: Any) -> Any:
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return NotImplemented
    return _aten.matmul(a, b)


def _in_place(name: str, function: Callable[[Any, Any], Any]) -> None:
    def call(rec: Recorder, a: Any, b: Any) -> Any:
        right = _operand(rec, b)
        if right is NotImplemented:
            return NotImplemented
        function(a, right)
        return a

    OVERRIDES[f"inplace_{name}"] = call


_in_place("add", _aten.add_)
_in_place("subtract", _aten.sub_)
_in_place("multiply", _aten.mul_)
_in_place("true_divide", _aten.div_)
_in_place("floor_divide", lambda a, b: _aten.div_(a, b, rounding_mode="floor"))
_in_place("remainder", _aten.remainder_)
_in_place("power", _aten.pow_)
_in_place("and", _aten.bitwise_and_)
_in_place("or", _aten.bitwise_or_)
_in_place("xor", _aten.bitwise_xor_)

_in_place("lshift", _aten.bitwise_left_shift_)
_in_place("rshift", _aten.bitwise_right_shift_)

OVERRIDES["positive"] = lambda rec, x: x
OVERRIDES["negative"] = lambda rec, x: _aten.neg(x)
OVERRIDES["absolute"] = lambda rec, x: _aten.abs(x)
OVERRIDES["invert"] = lambda rec, x: _aten.bitwise_not(x)


# What Python learns -----------------------------------------------------------------------------


def _leak(name: str, method: str, what: str) -> None:
    def call(rec: Recorder, self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if rec.follows(self):
            rec.leak(what)
        return original(rec, method, self, *args, **kwargs)

    OVERRIDES[name] = call


@OVERRIDES("__bool__")
def _bool(rec: Recorder, self: Tensor) -> bool:
    """A line of the user's is warned of; where weft decides, the program checks that it still
    would."""
    truth: bool = original(rec, "__bool__", self)
    if rec.follows(self):
        if is_library(sys._getframe(2)):
            rec.guard("aten::Bool.Tensor", [rec.tensor(self)], truth)
        else:
            rec.leak("bool")
    return truth


for _name in ("int", "float", "index"):
    _leak(f"__{_name}__", f"__{_name}__", _name)
for _what, _names in (
    ("number", ("item", "__complex__")),
    ("list", ("tolist",)),
    ("array", ("numpy", "__array__", "__dlpack__")),
):
    for _name in _names:
        _leak(_name, _name, _what)
_leak("length", "__len__", "len")
_leak("contains", "__contains__", "bool")


@OVERRIDES("iter")
def _iterate(rec: Recorder, self: Tensor) -> Any:
    if self.dim() == 0:
        return original(rec, "__iter__", self)
    if rec.follows(self):
        rec.leak("iteration")
    return iter(_aten.unbind(self, 0))


# Sizes and the like -----------------------------------------------------------------------------


@OVERRIDES("shape", "size")
def _shape(rec: Recorder, self: Tensor, dim: Any = None) -> Any:
    if dim is not None:
        dim = int(dim)
        return rec.size("aten::size.int", self, original(rec, "size", self, dim), dim)
    sizes = attribute(rec, "shape", self)
    return Size([rec.size("aten::size.int", self, n, i) for i, n in enumerate(sizes)])


@OVERRIDES("stride")
def _stride(rec: Recorder, self: Tensor, dim: Any = None) -> Any:
    found = original(rec, "stride", self, dim)
    if dim is not None:
        return rec.size("aten::stride.int", self, found, int(dim))
    return tuple(rec.size("aten::stride.int", self, n, i) for i, n in enumerate(found))


def _count(name: str, kind: str, read: Callable[..., Any]) -> None:
    def call(rec: Recorder, self: Tensor) -> Any:
        return rec.size(kind, self, read(rec, name, self))

    OVERRIDES[name] = call


_count("numel", "aten::numel", original)
_count("storage_offset", "aten::storage_offset", original)
_count("nbytes", "prim::nbytes", attribute)


OVERRIDES("dtype")(lambda rec, self: attribute(rec, "dtype", self))
OVERRIDES("requires_grad")(lambda rec, self: attribute(rec, "requires_grad", self))


@OVERRIDES("device")
def _device(rec: Recorder, self: Tensor) -> Any:
    found = attribute(rec, "device", self)
    if rec.follows(self):
        rec.bind_device(found, self)
    return found


# Views and history ------------------------------------------------------------------------------


def _builtin_attribute(name: str, kind: str) -> None:
    def call(rec: Recorder, self: Tensor) -> Any:
        result = attribute(rec, name, self)
        return rec.builtin(kind, [rec.tensor(self)], result)

    OVERRIDES[name] = call


for _name in ("mT", "mH", "H"):
    _builtin_attribute(_name, f"aten::{_name}")
_builtin_attribute("T", "aten::numpy_T")
_builtin_attribute("grad", "prim::grad")
OVERRIDES["data"] = OVERRIDES["detach"] = lambda rec, self: _aten.detach(self)


OVERRIDES["real"] = lambda rec, self: _aten.real(self) if self.is_complex() else self
OVERRIDES["imag"] = lambda rec, self: _aten.imag(self)


@OVERRIDES("requires_grad_")
def _requires_grad_(rec: Recorder, self: Tensor, requires_grad: bool = True) -> Tensor:
    original(rec, "requires_grad_", self, requires_grad)
    rec.requires_grad(self, requires_grad)
    return self


@OVERRIDES("set_requires_grad")
def _set_requires_grad(rec: Recorder, self: Tensor, flag: bool) -> None:
    with rec.paused():
        self.requires_grad = flag
    rec.requires_grad(self, flag)


@OVERRIDES("set_data")
def _set_data(rec: Recorder, self: Tensor, value: Tensor) -> None:
    with rec.paused():
        self.data = value
    rec.emit("aten::set_data", [rec.tensor(self), rec.tensor(value)], [])


@OVERRIDES("set_grad")
def _set_grad(rec: Recorder, self: Tensor, value: Tensor | None) -> None:
    if value is not None or rec.follows(self):
        unsupported("an assignment to .grad")
    with rec.paused():
        self.grad = value


@OVERRIDES("backward")
def _backward(
    rec: Recorder, self: Tensor, gradient: Any = None, retain_graph: Any = None,
    create_graph: bool = False, inputs: Any = None,
) -> None:  # fmt: skip
    inputs = [inputs] if isinstance(inputs, Tensor) else inputs
    given = (self, gradient, retain_graph, create_graph, inputs)
    types = (ty.TENSOR, ty.TENSOR, ty.BOOL, ty.BOOL, ty.ListType(ty.TENSOR))
    values = [convert(rec, type, item) for type, item in zip(types, given)]
    original(rec, "backward", *given)
    rec.builtin("aten::backward", values, None)


OVERRIDES["retain_grad"] = lambda rec, self: original(rec, "retain_grad", self)
OVERRIDES["as_subclass"] = lambda rec, self, type: rec.builtin(
    "aten::alias", [rec.tensor(self)], original(rec, "as_subclass", self, type)
)


def unsupported(what: str) -> NoReturn:
    """What a trace cannot record."""
    raise RuntimeError(f"trace: expected what can be recorded, got {what}")


# Other dtypes and shapes ------------------------------------------------------------------------


@OVERRIDES("to")
def _to(rec: Recorder, self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    names = ["dtype", "non_blocking", "copy"]
    if args and isinstance(args[0], Tensor):
        names[0] = "other"
    elif args and not isinstance(args[0], (_C.dtype, type)):
        second = len(args) > 1 and not isinstance(args[1], bool)
        names = ["device", "dtype", *names[1:]] if second else ["device", *names[1:]]
    options = {**dict(zip(names, args)), **kwargs}
    given = {name: item for name, item in options.items() if item is not None}
    if "other" in given:
        return _aten.to(self, given.pop("other"), **given)
    if "dtype" in given and "device" not in given:
        return _aten.to(self, given.pop("dtype"), **given)
    return _aten.to(self, **given)


def _conversion(name: str, dtype: _C.dtype) -> None:
    def call(rec: Recorder, self: Tensor, memory_format: Any = None) -> Tensor:
        return _aten.to(self, dtype, memory_format=memory_format)

    OVERRIDES[name] = call


for _name, _to_dtype in (
    ("float", _C.float32), ("double", _C.float64), ("half", _C.float16),
    ("bfloat16", _C.bfloat16), ("long", _C.int64), ("int", _C.int32), ("short", _C.int16),
    ("char", _C.int8), ("byte", _C.uint8), ("bool", _C.bool), ("cfloat", _C.complex64),
    ("cdouble", _C.complex128), ("chalf", _C.complex32),
):  # fmt: skip
    _conversion(_name, _to_dtype)


@OVERRIDES("type")
def _type(rec: Recorder, self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    if dtype is None:
        return original(rec, "type", self)
    if isinstance(dtype, str | type):
        with rec.paused():
            dtype = _C.empty(0).type(dtype).dtype
    return _aten.to(self, dtype)


OVERRIDES["type_as"] = lambda rec, self, other: _aten.type_as(self, other)
OVERRIDES["cpu"] = lambda rec, self, memory_format=None: self
OVERRIDES["view_as"] = lambda rec, self, other: _aten.view(self, other.shape)
OVERRIDES["reshape_as"] = lambda rec, self, other: _aten.reshape(self, other.shape)


@OVERRIDES("view")
def _view(rec: Recorder, self: Tensor, *size: Any, **kwargs: Any) -> Tensor:
    only = [*size, *kwargs.values()]
    if len(only) == 1 and isinstance(only[0], _C.dtype):
        unsupported("view() of another dtype, which programs do not have")
    return _aten.view(self, *size, **kwargs)


@OVERRIDES("detach_")
def _detach_(rec: Recorder, self: Tensor) -> Tensor:
    original(rec, "detach_", self)
    if rec.follows(self):
        value = rec.emit("aten::detach_", [rec.tensor(self)], [ty.TENSOR]).output
        rec.bind(self, value)
    return self

"""Attributes of values: properties and methods of tensors, fields, members of enums, objects."""

from __future__ import annotations

from typing import Any, NoReturn

from weft import _C
from weft._C import Tensor
from weft._runtime.public import weft
from weft._tensor.aliases import ALIASES
from weft.jit import schemas
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import CONVERSIONS, method, verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.types.names import static_attribute
from weft.jit.frontend.types.signatures import bind_type
from weft.jit.frontend.values import Call, Known, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

# Property -> operator of one argument.
_TENSOR = {
    "shape": "aten::size",
    "dtype": "prim::dtype",
    "device": "prim::device",
    "layout": "prim::layout",
    "requires_grad": "prim::requires_grad",
    "grad": "prim::grad",
    "retains_grad": "prim::retains_grad",
    "data": "prim::data",
    "ndim": "aten::dim",
    "is_cuda": "prim::is_cuda",
    "is_leaf": "aten::is_leaf",
    "is_cpu": "prim::is_cpu",
    "is_meta": "prim::is_meta",
    "is_mps": "prim::is_mps",
    "is_quantized": "prim::is_quantized",
    "is_sparse": "prim::is_sparse",
    "is_xpu": "prim::is_xpu",
    "itemsize": "prim::itemsize",
    "nbytes": "prim::nbytes",
    "T": "aten::numpy_T",
    "mT": "aten::mT",
    "mH": "aten::mH",
    "H": "aten::H",
    "real": "aten::real",
    "imag": "aten::imag",
}
# What no tensor of a program is.
_NEVER = ("is_maia", "is_mkldnn", "is_mtia", "is_nested", "is_sparse_csr", "is_vulkan", "is_xla")
_PROPERTIES: dict[Any, dict[str, str]] = {
    ty.TENSOR: _TENSOR,
    ty.DEVICE: {"type": "prim::type", "index": "prim::index"},
    ty.COMPLEX: {"real": "prim::real", "imag": "prim::imag"},
    ty.DTYPE: {
        "is_floating_point": "aten::is_floating_point",
        "is_complex": "aten::is_complex",
        "itemsize": "prim::itemsize",
    },
}
_WRITABLE = {"requires_grad": "aten::requires_grad_"}


# Methods written in the language, in prelude.py.
_OF_PRELUDE = {ty.INT: ("bit_length", "bit_count"), ty.FLOAT: ("is_integer",)}


def _is_of_prelude(type: ty.Type, name: str) -> bool:
    if name == "numel":  # a torch.Size is a list here
        return isinstance(type, ty.ListType) and type.elem is ty.INT
    return isinstance(type, ty.BaseType) and name in _OF_PRELUDE.get(type, ())


@verb("get_attr")
def attribute(c: Compiler, v: Value, name: str, range: SourceRange) -> Sugared:
    """v.name."""
    type = v.type
    kind = _PROPERTIES.get(type, {}).get(name)
    if kind is not None:
        return c.apply(kind, range, Simple(v))
    if type is ty.TENSOR and name in _NEVER:
        return Simple(c.constant(False))
    if isinstance(type, ty.EnumType) and name in ("name", "value"):
        if name == "name":
            return Simple(c.emit("prim::EnumName", (v,), ty.STR, range=range))
        return Simple(c.emit("prim::EnumValue", (v,), type.value_type, range=range))
    if _is_of_prelude(type, name):
        return _with_first(c.sugar(getattr(prelude, name), range, name), v)
    if isinstance(type, ty.FutureType) and name == "wait":
        return Known("the method wait", lambda c, call: _wait(c, v, call))
    if has_method(type, name):
        return BoundMethod(v, name)
    first = _first_name(name) if type is ty.TENSOR else None
    if first is not None:
        return BoundMethod(v, first)
    function = _python_function(name) if type is ty.TENSOR else None
    if function is not None:
        return _with_first(c.sugar(function, range, name), v)
    refuse_attribute(type, name, range)


def _first_name(name: str) -> str | None:
    """The operator of which a method is a second name: clamp for clip."""
    stem = name.removesuffix("_")
    return None if stem not in ALIASES else ALIASES[stem] + name[len(stem) :]


def refuse_attribute(type: ty.Type, name: str, range: SourceRange) -> NoReturn:
    if isinstance(type, ty.OptionalType | ty.UnionType) and ty.NONE in ty.members_of(type):
        inner = ty.non_none(type).annotation
        fail(
            f"expected a value of type {inner} to take {name!r} of, got {type.annotation}",
            range,
            "a test of x is not None around it, or assert x is not None before it; of an "
            "attribute self.x, x = self.x first",
        )
    if type is ty.TENSOR and hasattr(Tensor, name):
        fail(
            f"expected an attribute that tensors have in programs, got {name!r}, which they have "
            "in Python only",
            range,
            f"a function marked @weft.jit.ignore that takes the tensor and uses its {name!r}",
        )
    fail(f"expected an attribute of {type.annotation}, got {name!r}, which it has not", range)


@verb("has_attr")
def has_attribute(type: ty.Type, name: str) -> bool:
    """Whether values of the type have the attribute."""
    if name in _PROPERTIES.get(type, {}) or (type is ty.TENSOR and name in _NEVER):
        return True
    if isinstance(type, ty.EnumType):
        return name in ("name", "value")
    if _is_of_prelude(type, name):
        return True
    return has_method(type, name) or (type is ty.TENSOR and _first_name(name) is not None)


def has_method(type: ty.Type, name: str) -> bool:
    """Whether an operator can be called as a method of values of the type."""
    return bool(_operators(type, name))


def _operators(type: ty.Type, name: str) -> list[Any]:
    if type is ty.TENSOR and name == "new_tensor":
        return list(schemas.candidates("aten::tensor"))
    if type is ty.TENSOR and name in CONVERSIONS:
        return list(schemas.candidates("aten::to"))
    if not isinstance(type, ty.ListType | ty.DictType) and type not in (
        ty.TENSOR,
        ty.STR,
        ty.GENERATOR,
        ty.INT,
        ty.FLOAT,
        ty.COMPLEX,
    ):
        return []
    found = []
    for operator in schemas.method_candidates(name):
        args = operator.schema.args
        if args and bind_type(args[0].type, type, {}) and not isinstance(args[0].type, ty.TypeVar):
            found.append(operator)
    return found


class BoundMethod(Sugared):
    """A method of a tensor, list, dict or str."""

    def __init__(self, v: Value, name: str) -> None:
        self.v = v
        self.name = name

    def describe(self) -> str:
        return f"the method {self.name} of {self.v.type.annotation}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        type_ = self.v.type
        kind = type_ if isinstance(type_, ty.BaseType) else type(type_)
        rule = method.get((kind, self.name))
        found = None if rule is None else rule(c, self.v, call)
        if found is not None:
            return found
        operators = _operators(type_, self.name)
        return c.call_operator(f"aten::{self.name}", call.behind(Simple(self.v)), operators)


def _python_function(name: str) -> Any:
    """A method of tensors that is written in Python, as the function of its name is."""
    method = static_attribute(Tensor, name, None)
    function: Any = getattr(weft, name, None)
    kind = _C._Overridable
    is_python = isinstance(method, kind) and isinstance(function, kind)
    return function.__wrapped__ if is_python else None


def _with_first(function: Sugared, v: Value) -> Sugared:
    """A function whose first argument is given."""
    return Known(function.describe(), lambda c, call: function.call(c, call.behind(Simple(v))))


def _wait(c: Compiler, v: Value, call: Call) -> Sugared:
    """fut.wait()."""
    call.expect_nothing("wait")
    assert isinstance(v.type, ty.FutureType)
    return Simple(c.emit("aten::wait", (v,), v.type.elem, range=call.range))


@verb("set_attr")
def set_attribute(c: Compiler, v: Value, name: str, held: Sugared, range: SourceRange) -> None:
    """v.name = held."""
    type = v.type
    if type is ty.TENSOR and name in _WRITABLE:
        c.apply(_WRITABLE[name], range, Simple(v), held)
        return
    hint = None
    if isinstance(type, ty.TupleType):
        hint = "x._replace(...) in Python, or a new tuple: tuples do not change"
    elif type is ty.TENSOR and name == "data":
        hint = "x.copy_(y) within torch.no_grad()"
    fail(
        f"expected an object whose attribute {name!r} can be set, got {type.annotation}",
        range,
        hint,
    )

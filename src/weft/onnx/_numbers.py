"""Arithmetic of Python's numbers that are known only when the model runs, and questions of programs
about tensors."""

from __future__ import annotations

from typing import Any

from weft._runtime.public import weft
from weft.onnx._symbols import Symbol
from weft.onnx._table import mapping


def _number(g: Any, symbol: Any) -> Any:
    symbol.is_number, symbol.sizes = True, ()
    return symbol


def _pair(g: Any, a: Any, b: Any) -> tuple[Symbol, Symbol]:
    """Both in the wider of their types."""
    dtype = g.promote(a, b)
    return g.cast(a, dtype), g.cast(b, dtype)


def _arithmetic(name: str, kind: str) -> None:
    @mapping(f"number::{name}")
    def run(g: Any, a: Any, b: Any) -> Any:
        x, y = _pair(g, a, b)
        return _number(g, g.op(kind, x, y))


for _name, _kind in {"add": "Add", "sub": "Sub", "mul": "Mul"}.items():
    _arithmetic(_name, _kind)


mapping("number::div")(
    lambda g, a, b: _number(g, g.op("Div", g.cast(a, weft.float32), g.cast(b, weft.float32)))
)


@mapping("number::floordiv")
def _floordiv(g: Any, a: Any, b: Any) -> Any:
    x, y = _pair(g, a, b)
    if x.dtype != weft.int64:
        return _number(g, g.op("Floor", g.op("Div", x, y)))
    rest = g.op("Mod", x, y)  # of the divisor's sign, as Python's; Div rounds towards 0
    return _number(g, g.op("Div", g.op("Sub", x, rest), y))


@mapping("number::remainder")
def _remainder(g: Any, a: Any, b: Any) -> Any:
    x, y = _pair(g, a, b)
    if x.dtype == weft.int64:
        return _number(g, g.op("Mod", x, y))
    return _number(g, g.op("Sub", x, g.op("Mul", g.op("Floor", g.op("Div", x, y)), y)))


@mapping("number::pow")
def _pow(g: Any, a: Any, b: Any) -> Any:
    x, y = g.cast(a, weft.float32), g.cast(b, weft.float32)
    made = g.op("Pow", x, y)
    whole = g.promote(a, b) == weft.int64 and isinstance(b, int) and b >= 0
    return _number(g, g.cast(made, weft.int64) if whole else made)


mapping("number::max")(lambda g, a, b: _number(g, g.op("Max", *_pair(g, a, b))))
mapping("number::min")(lambda g, a, b: _number(g, g.op("Min", *_pair(g, a, b))))


def _comparison(name: str, kind: str, negated: bool = False) -> None:
    @mapping(f"number::{name}")
    def run(g: Any, a: Any, b: Any) -> Any:
        same = isinstance(a, Symbol) and isinstance(b, Symbol) and a.size_name is not None
        if same and a.size_name == b.size_name:
            return name in ("eq", "ge", "le")
        x, y = _pair(g, a, b)
        if x.dtype == weft.bool:
            x, y = g.cast(x, weft.int64), g.cast(y, weft.int64)
        made = g.op(kind, x, y)
        return _number(g, g.op("Not", made) if negated else made)


for _name, _kind, _negated in (
    ("eq", "Equal", False), ("ne", "Equal", True), ("lt", "Less", False),
    ("le", "LessOrEqual", False), ("gt", "Greater", False), ("ge", "GreaterOrEqual", False),
):  # fmt: skip
    _comparison(_name, _kind, _negated)


@mapping("eq.int_list")
def _eq_lists(g: Any, a: Any, b: Any) -> Any:
    if len(a) != len(b):
        return False
    found: Any = True
    for x, y in zip(a, b):
        known = not isinstance(x, Symbol) and not isinstance(y, Symbol)
        same = x == y if known else g.number("eq", x, y)
        if same is False or found is False:
            return False
        found = same if found is True else found if same is True else _and(g, found, same)
    return found


@mapping("ne.int_list")
def _ne_lists(g: Any, a: Any, b: Any) -> Any:
    same = _eq_lists(g, a, b)
    return _not(g, same) if isinstance(same, Symbol) else not same


def _unary(name: str, kind: str, dtype: Any, result: Any = None) -> None:
    @mapping(f"number::{name}")
    def run(g: Any, a: Any) -> Any:
        made = g.op(kind, g.cast(a, dtype) if dtype is not None else a)
        return _number(g, made if result is None else g.cast(made, result))


for _name, _kind, _dtype, _result in (
    ("neg", "Neg", None, None), ("abs", "Abs", None, None), ("sqrt", "Sqrt", weft.float32, None),
    ("exp", "Exp", weft.float32, None), ("log", "Log", weft.float32, None),
    ("ceil", "Ceil", weft.float32, weft.int64), ("floor", "Floor", weft.float32, weft.int64),
    ("round", "Round", weft.float32, weft.int64), ("sin", "Sin", weft.float32, None),
    ("cos", "Cos", weft.float32, None), ("tanh", "Tanh", weft.float32, None),
):  # fmt: skip
    _unary(_name, _kind, _dtype, _result)


@mapping("__not__")
def _not(g: Any, a: Any) -> Any:
    return _number(g, g.op("Not", g.cast(a, weft.bool)))


@mapping("__and__")
def _and(g: Any, a: Any, b: Any) -> Any:
    return _number(g, g.op("And", *_pair(g, a, b)))


mapping("__or__")(lambda g, a, b: _number(g, g.op("Or", *_pair(g, a, b))))


@mapping("__is__")
def _is(g: Any, a: Any, b: Any) -> bool:
    """Whether one is None: a tensor or a number is not."""
    return a is b


mapping("__isnot__")(lambda g, a, b: a is not b)


# Tensors as numbers, and back ---------------------------------------------------------------------


def _to_number(g: Any, a: Any, dtype: Any) -> Any:
    made = g.cast(a, dtype)
    if made is a and a.is_number:
        return a
    return _number(g, g.op("Reshape", made, []) if made.sizes != () else g.op("Identity", made))


mapping("Bool", "is_nonzero")(lambda g, a: _to_number(g, a, weft.bool))
mapping("Int", "IntImplicit")(lambda g, a: _to_number(g, a, weft.int64))
mapping("Float", "FloatImplicit")(lambda g, a: _to_number(g, a, weft.float32))


@mapping("item", "ScalarImplicit")
def _item(g: Any, a: Any) -> Any:
    kind = weft.float32 if a.is_floating_point() else weft.int64
    return _to_number(g, a, weft.bool if a.dtype == weft.bool else kind)


@mapping("prim::NumToTensor", "tensor", "as_tensor", "scalar_tensor")
def _tensor(g: Any, a: Any, dtype: Any = None, *rest: Any) -> Any:
    if isinstance(a, (list, tuple)):
        parts = [g.op("Reshape", g.cast(e, dtype or g.promote(*a)), [1]) for e in a]
        return g.op("Concat", *parts, axis=0)
    kept = dtype if isinstance(dtype, weft.dtype) else g.promote(a)
    made = g.op("Identity", g.cast(a, kept))
    made.dtype, made.sizes = kept, ()
    return made


# Questions about tensors --------------------------------------------------------------------------


mapping("size", "prim::shape")(lambda g, x, dim=None: x.shape if dim is None else g.size(x, dim))
mapping("len.Tensor")(lambda g, x: g.size(x, 0))
mapping("dim", "ndimension", "prim::ndim")(lambda g, x: x.rank)
mapping("numel")(lambda g, x: x.numel())


@mapping("prim::dtype", "prim::type")
def _dtype_of(g: Any, x: Symbol) -> Any:
    if x.dtype is None:
        raise ValueError(f"export: expected a tensor whose dtype is known, got {x}")
    return x.dtype


mapping("prim::device")(lambda g, x: x.device)
mapping("prim::layout")(lambda g, x: weft.strided)
mapping("is_floating_point")(lambda g, x: x.is_floating_point())
mapping("is_complex")(lambda g, x: x.is_complex())
mapping("is_contiguous", "prim::is_cpu", "is_leaf")(lambda g, *args: True)


@mapping(
    "prim::requires_grad", "prim::is_cuda", "prim::is_quantized", "prim::is_sparse",
    "prim::is_nested", "prim::is_meta", "prim::is_mps", "prim::is_xpu", "is_conj", "is_neg",
)  # fmt: skip
def _false(g: Any, *args: Any) -> bool:
    return False

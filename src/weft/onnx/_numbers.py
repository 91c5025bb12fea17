"""Arithmetic of Python's numbers that are known only when the model runs, and questions of programs
about tensors."""

from __future__ import annotations

from typing import Any

from weft._runtime.public import weft
from weft.jit.passes.guards import numbered
from weft.onnx._symbols import Symbol
from weft.onnx._table import mapping


def _number(g: Any, symbol: Any) -> Any:
    symbol.is_number, symbol.sizes = True, ()
    return symbol


def _as_of_tensors(name: str, key: str, result: Any = None) -> None:
    """Numbers are tensors without dimensions; `result`: the dtype of what Python gives."""

    @mapping(f"number::{name}")
    def run(g: Any, *args: Any) -> Any:
        made = g.call(key, *args)
        return _number(g, made if result is None else g.cast(made, result))


for _name in ("add", "sub", "mul", "div", "remainder", "neg", "abs", "sqrt", "exp", "log", "sin",
              "cos", "tanh"):  # fmt: skip
    _as_of_tensors(_name, _name)
for _name, _key in (("floordiv", "floor_divide"), ("max", "maximum"), ("min", "minimum")):
    _as_of_tensors(_name, _key)
for _name in ("ceil", "floor", "round"):
    _as_of_tensors(_name, _name, weft.int64)


@mapping("number::pow")
def _pow(g: Any, a: Any, b: Any) -> Any:
    x, y = g.cast(a, weft.float32), g.cast(b, weft.float32)
    made = g.op("Pow", x, y)
    whole = g.promote(a, b) == weft.int64 and isinstance(b, int) and b >= 0
    return _number(g, g.cast(made, weft.int64) if whole else made)


def _comparison(name: str) -> None:
    @mapping(f"number::{name}")
    def run(g: Any, a: Any, b: Any) -> Any:
        same = isinstance(a, Symbol) and isinstance(b, Symbol) and a.size_name is not None
        if same and a.size_name == b.size_name:
            return name in ("eq", "ge", "le")
        return _number(g, g.call(name, a, b))


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _comparison(_name)


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


@mapping("__not__")
def _not(g: Any, a: Any) -> Any:
    return _number(g, g.op("Not", g.cast(a, weft.bool)))


@mapping("__and__")
def _and(g: Any, a: Any, b: Any) -> Any:
    return _number(g, g.call("logical_and", a, b))


mapping("__or__")(lambda g, a, b: _number(g, g.call("logical_or", a, b)))


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


mapping("prim::numbered_dtype")(lambda g, number: numbered(number))
mapping("promote_types")(lambda g, *types: weft.promote_types(*types))
mapping("can_cast")(lambda g, *types: weft.can_cast(*types))
mapping("broadcast_shapes")(lambda g, *sizes: list(weft.broadcast_shapes(*sizes)))
mapping("prim::device")(lambda g, x: x.device)
mapping("prim::layout")(lambda g, x: weft.strided)
mapping("is_floating_point")(lambda g, x: x.is_floating_point())
mapping("is_complex")(lambda g, x: x.is_complex())
mapping("is_contiguous", "prim::is_cpu", "is_leaf")(lambda g, *args: True)


@mapping(
    "prim::requires_grad", "prim::is_cuda", "prim::is_quantized", "prim::is_sparse",
    "prim::is_nested", "prim::is_meta", "prim::is_mps", "prim::is_xpu", "is_conj", "is_neg",
    "is_grad_enabled", "is_autocast_enabled", "is_autocast_cpu_enabled", "prim::autocast_now",
)  # fmt: skip
def _false(g: Any, *args: Any) -> bool:
    return False

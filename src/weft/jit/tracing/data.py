"""Tensors from data of Python: numbers, arrays, other libraries' memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from weft import _C
from weft.jit.ir import types as ty
from weft.jit.tracing import structures
from weft.jit.tracing.arguments import convert
from weft.jit.tracing.numbers import TracedFloat, TracedInt, plain
from weft.jit.tracing.overrides import OVERRIDES, unsupported

if TYPE_CHECKING:
    from weft.jit.tracing.recorder import Recorder

Tensor = _C.Tensor
_aten = _C._aten


def _holds(data: Any, kinds: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_holds(item, kinds) for item in data)
    return isinstance(data, kinds)


def _from_data(name: str) -> None:
    def call(rec: Recorder, module: Any, data: Any, **kwargs: Any) -> Any:
        function = getattr(_C, name)
        if isinstance(data, Tensor):
            return _from_tensor(rec, name, data, kwargs)
        if _holds(data, Tensor) and any(map(rec.follows, structures.tensors(data))):
            rec.leak("number")
        with rec.paused():
            made = function(_plain(data), **kwargs)
        if _holds(data, (TracedInt, TracedFloat)):
            return _of_numbers(rec, data, made)
        return _fresh(rec, made)

    OVERRIDES[f"weft.{name}"] = lambda rec, module, data=None, dtype=None, device=None, **kw: call(
        rec, module, kw.pop("obj", data), dtype=dtype, device=device, **kw
    )


def _plain(data: Any) -> Any:
    return [_plain(item) for item in data] if isinstance(data, (list, tuple)) else plain(data)


for _name in ("tensor", "as_tensor", "asarray"):
    _from_data(_name)


def _fresh(rec: Recorder, made: Tensor) -> Tensor:
    """A tensor of constant numbers: each call of the trace makes it anew."""
    with rec.paused():
        kept = made.detach().clone()
    value = rec.constant(kept, ty.TENSOR)
    inputs = [value, rec.constant(None)]
    rec.bind(made, rec.emit("aten::clone", inputs, [ty.TENSOR]).output)
    if made.requires_grad:
        rec.requires_grad(made, True)
    return made


def _of_numbers(rec: Recorder, data: Any, made: Tensor) -> Tensor:
    """A tensor of numbers some of which are traced."""
    value = _nested(rec, data, made.dtype)
    kind = "aten::tensor" if isinstance(data, (list, tuple)) else f"aten::tensor.{value.type}"
    options = [rec.constant(made.dtype), rec.constant(None), rec.constant(made.requires_grad)]
    return rec.builtin(kind, [value, *options], made)


def _nested(rec: Recorder, data: Any, dtype: _C.dtype) -> Any:
    if isinstance(data, (list, tuple)):
        values = [_nested(rec, item, dtype) for item in data]
        elem = values[0].type
        return rec.emit("prim::ListConstruct", values, [ty.ListType(elem)]).output
    wanted = ty.FLOAT if dtype.is_floating_point else ty.INT
    return convert(rec, wanted, data)


def _from_tensor(rec: Recorder, name: str, data: Tensor, kwargs: dict[str, Any]) -> Tensor:
    """tensor(x) copies; as_tensor(x) and asarray(x) share memory where they can."""
    dtype, copy = kwargs.get("dtype"), bool(kwargs.get("copy"))
    if name == "tensor":
        made: Tensor = _aten.clone(data.detach())
        made = made if dtype is None else _aten.to(made, dtype)
    else:
        made = data if dtype is None else _aten.to(data, dtype)
        made = _aten.clone(made) if copy and made is data else made
    flag = kwargs.get("requires_grad")
    return made.requires_grad_() if flag and not made.requires_grad else made


def _outside(name: str) -> None:
    def call(rec: Recorder, module: Any, data: Any, *args: Any, **kwargs: Any) -> Tensor:
        """A tensor over memory that is not weft's: a constant."""
        if isinstance(data, Tensor):
            unsupported(f"{name}() of a tensor")
        with rec.paused():
            made: Tensor = getattr(_C, name)(data, *args, **kwargs)
        rec.bind(made, rec.constant(made, ty.TENSOR))
        return made

    OVERRIDES[f"weft.{name}"] = call


for _name in ("from_numpy", "frombuffer", "from_dlpack"):
    _outside(_name)


@OVERRIDES("weft._write_out")
def write_out(
    rec: Recorder, module: Any, function: str, result: Tensor, out: Tensor, casts: bool
) -> Tensor:
    """A result written to `out`."""
    if casts and result.dtype != out.dtype:
        result = _aten._to_copy(result, dtype=out.dtype)
    return _aten.alias_copy(result, out=out)


def _storage(name: str, public: str) -> None:
    def call(rec: Recorder, *args: Any, **kwargs: Any) -> NoReturn:
        unsupported(f"{public}, which works on the storage of a tensor")

    OVERRIDES[f"weft.{name}"] = call


for _name, _public in (
    ("_storage_view", "untyped_storage()"),
    ("_from_storage", "a tensor made of a storage"),
    ("_storage_resize", "resize_() of a storage"),
    ("_set", "set_()"),
    ("_resize", "resize_()"),
):
    _storage(_name, _public)

"""The dtypes of operators' results.

Where a rule of promotion is involved the operator itself is asked: it runs once on tensors of one
element, of the dtypes and ranks in question. So promotion is written in one place, the table.
"""

from __future__ import annotations

from typing import Any

from weft import _C
from weft.autograd.grad_mode import no_grad
from weft.jit.ir import BOOL, FLOAT, INT, TENSOR, Value
from weft.jit.passes.identity import is_only_read
from weft.jit.passes.shape_call import ShapeCall

_PROBED_KINDS = frozenset(("pointwise", "reduce", "rowwise"))
_NUMBERS: dict[Any, Any] = {INT: 1, FLOAT: 1.5, BOOL: True}
_known: dict[Any, list[Any] | None] = {}
_MOST_KNOWN = 4096


def dtypes_of(call: ShapeCall) -> list[Any]:
    """The dtype of each result, None where it is not known."""
    outputs = len(call.node.outputs)
    row = call.operator.row
    if row is None:
        return [None] * outputs
    if call.operator.writes_self:
        return [_dtype(call.tensors[0])] * outputs
    if "dtype" in call.given and not call.is_none("dtype"):
        return [call.const("dtype")] * outputs
    if row.dtypes:
        return [_told(call, dtype) for dtype in row.dtypes]
    if row.kind in _PROBED_KINDS and all(map(_dtype, call.tensors)):
        return _probe(call) or [None] * outputs
    return [None] * outputs


def _dtype(value: Value) -> Any:
    return value.shape.dtype if value.shape is not None else None


def _told(call: ShapeCall, dtype: str) -> Any:
    """The dtype of an argument, of all tensors of a list, or the one of that name."""
    value = call.given.get(dtype)
    if value is None:
        found = getattr(_C, dtype, None)
        return found if isinstance(found, _C.dtype) else None
    if value.type == TENSOR:
        return _dtype(value)
    made = value.node
    if made is None or made.kind != "prim::ListConstruct" or not is_only_read(value):
        return None
    all_dtypes = set(map(_dtype, made.inputs))
    return all_dtypes.pop() if len(all_dtypes) == 1 else None


def _probe(call: ShapeCall) -> list[Any] | None:
    """The dtypes of the results on tensors of one element; None if the operator refuses them."""
    arguments = [_stand_in(call, name, value) for name, value in call.given.items()]
    key = (call.node.kind, tuple(repr(a) if k != "t" else a for k, a in arguments))
    if len(_known) > _MOST_KNOWN:
        _known.clear()
    if key not in _known:
        _known[key] = _run(call, arguments)
    return _known[key]


def _stand_in(call: ShapeCall, name: str, value: Value) -> tuple[str, Any]:
    """What stands for an argument: ("t", dtype and rank), or another kind and the value itself."""
    if value.type == TENSOR:
        shape = value.shape
        assert shape is not None
        rank = shape.rank if shape.rank is not None else -1
        return "t", (str(shape.dtype), rank)
    known = call.const(name)
    if known is not None or call.is_none(name):
        return "v", known
    return ("v", _NUMBERS[value.type]) if value.type in _NUMBERS else ("?", None)


def _run(call: ShapeCall, arguments: list[tuple[str, Any]]) -> list[Any] | None:
    if any(kind == "?" or (kind == "t" and value[1] < 0) for kind, value in arguments):
        return None  # the rank of a tensor takes part in promotion
    values = []
    for kind, value in arguments:
        if kind == "t":
            dtype = getattr(_C, value[0].removeprefix("torch."))
            value = _C.ones([1] * value[1], dtype=dtype)
        values.append(value)
    try:
        with no_grad():
            result = call.operator.python(*values)
    except Exception:  # the operator will say so when the program runs
        return None
    results = result if isinstance(result, tuple) else (result,)
    return [tensor.dtype for tensor in results]

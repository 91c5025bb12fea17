"""The shapes of views and reshapes."""

from __future__ import annotations

import math

from weft.jit.ir.shape import Dim
from weft.jit.passes.shape_call import ShapeCall
from weft.jit.passes.shape_registry import Result, rule


@rule("t")
def _t(call: ShapeCall) -> Result:
    sizes = call.first.sizes
    return None if sizes is None else sizes[::-1]


@rule("transpose.int", "swapaxes")
def _transpose(call: ShapeCall) -> Result:
    sizes = call.first.sizes
    if sizes is None:
        return None
    names = ("axis0", "axis1") if call.has("axis0") else ("dim0", "dim1")
    a, b = (call.dim(name, len(sizes)) for name in names)
    if a is None or b is None:
        return [None] * len(sizes)
    swapped = list(sizes)
    if sizes:
        swapped[a], swapped[b] = sizes[b], sizes[a]
    return swapped


@rule("permute")
def _permute(call: ShapeCall) -> Result:
    sizes, order = call.first.sizes, call.const("dims")
    if order is None:
        given = call.ints("dims")
        return None if given is None else [None] * len(given)
    if sizes is None or len(order) != len(sizes):
        return [None] * len(order)
    return [sizes[dim] for dim in order]


@rule("unsqueeze")
def _unsqueeze(call: ShapeCall) -> Result:
    sizes = call.first.sizes
    if sizes is None:
        return None
    dim = call.dim("dim", len(sizes) + 1)
    return [None] * (len(sizes) + 1) if dim is None else [*sizes[:dim], 1, *sizes[dim:]]


@rule("squeeze.dim")
def _squeeze(call: ShapeCall) -> Result:
    sizes = call.first.sizes
    dim = None if sizes is None else call.dim("dim", len(sizes))
    if sizes is None or dim is None or (sizes and not isinstance(sizes[dim], int)):
        return None
    return [size for index, size in enumerate(sizes) if index != dim or size != 1]


@rule("squeeze.dims")
def _squeeze_some(call: ShapeCall) -> Result:
    sizes = call.first.sizes
    dims = None if sizes is None else call.dims("dim", len(sizes))
    if (
        sizes is None
        or dims is None
        or not all(isinstance(sizes[dim], int) for dim in dims if sizes)
    ):
        return None
    return [size for index, size in enumerate(sizes) if index not in dims or size != 1]


@rule("squeeze")
def _squeeze_all(call: ShapeCall) -> Result:
    if not call.first.is_static:
        return None
    return [size for size in call.first.sizes or () if size != 1]


@rule("select.int")
def _select(call: ShapeCall) -> Result:
    return _without(call)


def _without(call: ShapeCall) -> Result:
    sizes = call.first.sizes
    if sizes is None:
        return None
    dim = call.dim("dim", len(sizes))
    if dim is None:
        return [None] * (len(sizes) - 1)
    return [size for index, size in enumerate(sizes) if index != dim]


@rule("slice.Tensor")
def _slice(call: ShapeCall) -> Result:
    sizes = call.first.sizes
    dim = None if sizes is None else call.dim("dim", len(sizes))
    if not sizes or dim is None:
        return sizes and [None] * len(sizes)
    start, end, step = (call.const(name) for name in ("start", "end", "step"))
    known = all(call.values[name].is_constant for name in ("start", "end", "step"))
    size = sizes[dim]
    if known and start in (None, 0) and end in (None, 2**63 - 1) and step == 1:
        return sizes
    new = None
    if known and isinstance(size, int) and step > 0:
        new = len(range(*slice(start, end, step).indices(size)))
    return [*sizes[:dim], new, *sizes[dim + 1 :]]


@rule("narrow")
def _narrow(call: ShapeCall) -> Result:
    sizes = call.first.sizes
    dim = None if sizes is None else call.dim("dim", len(sizes))
    if not sizes or dim is None:
        return sizes and [None] * len(sizes)
    return [*sizes[:dim], call.sizes.of(call.values["length"]), *sizes[dim + 1 :]]


@rule("view", "reshape")
def _view(call: ShapeCall) -> Result:
    if call.node.kind == "aten::view.dtype":
        return None
    wanted = call.ints("shape" if call.has("shape") else "size")
    if wanted is None or wanted.count(-1) != 1:
        return wanted
    sizes, place = call.first.sizes, wanted.index(-1)
    rest = [size for size in wanted if size != -1]
    inferred: Dim = None
    if sizes is not None:
        inferred = _quotient(list(sizes), rest)
    return [*wanted[:place], inferred, *wanted[place + 1 :]]


def _quotient(sizes: list[Dim], rest: list[Dim]) -> Dim:
    """The product of some sizes divided by that of others; None if it is not known."""
    for size in list(rest):  # a symbol cancels out
        if isinstance(size, str) and size in sizes:
            sizes.remove(size)
            rest.remove(size)
    numbers = [size for size in rest if isinstance(size, int)]
    if len(numbers) != len(rest) or 0 in numbers:
        return None
    above = [size for size in sizes if isinstance(size, int)]
    others = [size for size in sizes if not isinstance(size, int)]
    if not others:
        return math.prod(above) // math.prod(numbers)
    return others[0] if len(others) == 1 and math.prod(above) == math.prod(numbers) else None


@rule("expand", "broadcast_to")
def _expand(call: ShapeCall) -> Result:
    wanted, sizes = call.ints("size"), call.first.sizes
    if wanted is None:
        return None
    if sizes is None:
        return [None if size == -1 else size for size in wanted]
    old: list[Dim] = [None] * (len(wanted) - len(sizes)) + list(sizes)
    return [before if size == -1 else size for size, before in zip(wanted, old)]


@rule("expand_as", "view_as", "reshape_as")
def _as(call: ShapeCall) -> Result:
    return call.shape("other").sizes


@rule("flatten.using_ints")
def _flatten(call: ShapeCall) -> Result:
    sizes = call.first.sizes
    if sizes is None:
        return None
    start, end = call.dim("start_dim", len(sizes)), call.dim("end_dim", len(sizes))
    if start is None or end is None:
        return None
    if not sizes:
        return [1]
    return [*sizes[:start], _quotient(list(sizes[start : end + 1]), []), *sizes[end + 1 :]]

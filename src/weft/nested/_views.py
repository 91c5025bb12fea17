"""Attributes, copies and views of nested tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd._run import backward
from weft.nested._forms import Jagged, NestedSize, Pieces, Ragged
from weft.nested._tensor import (
    RULES,
    NestedTensor,
    is_nested,
    join,
    make,
    packed,
    parts_of,
    rule,
    values_of,
)

# ---- what a nested tensor shares with its values ----

#: attributes and methods of the values that are those of the nested tensor
_OF_VALUES = (
    "device dtype is_cpu is_cuda is_meta is_quantized is_sparse itemsize is_floating_point "
    "is_complex element_size get_device storage_offset untyped_storage is_pinned __bool__ item"
)
for _name in _OF_VALUES.split():
    RULES[_name] = lambda func, self, *args, **options: func(values_of(self), *args, **options)


@rule("type")
def _type(func: Any, self: NestedTensor, *args: Any, **options: Any) -> Any:
    made = func(values_of(self), *args, **options)
    return make(self._form, made) if isinstance(made, Tensor) else made


#: what the object itself knows, beneath its class
_OF_ITSELF = (
    "grad_fn is_leaf requires_grad retains_grad output_nr _version set_requires_grad "
    "requires_grad_ retain_grad is_inference __hash__"
)


def _of_itself(func: Any, *args: Any, **options: Any) -> Any:
    with _C.DisableTorchFunctionSubclass():
        return func(*args, **options)


for _name in _OF_ITSELF.split():
    RULES[_name] = _of_itself


@rule("grad")
def _grad(func: Any, self: NestedTensor) -> Tensor | None:
    found = _of_itself(func, self)
    return None if found is None else self._gradient(found)


@rule("set_grad")
def _set_grad(func: Any, self: Tensor, value: Tensor | None) -> None:
    _of_itself(func, self, values_of(value).detach() if is_nested(value) else value)


@rule("backward")
def _backward(func: Any, self: Tensor, gradient: Any = None, *args: Any, **options: Any) -> None:
    backward(self, gradient, *args, **options)


# ---- sizes ----


@rule("shape")
def shape_of(func: Any, self: NestedTensor) -> NestedSize:
    """The sizes, of which the ragged one is Ragged. RuntimeError for layout strided."""
    form, sizes = self._form, values_of(self).shape
    if isinstance(form, Pieces):
        raise RuntimeError("shape: expected layout torch.jagged, got torch.strided; use size(dim)")
    at = form.place - 1
    return NestedSize((form.batch, *sizes[:at], form.ragged, *sizes[at + 1 :]))


@rule("size")
def _size(func: Any, self: NestedTensor, dim: int | None = None) -> Any:
    if dim is None or isinstance(self._form, Jagged):
        return shape_of(None, self) if dim is None else shape_of(None, self)[wrap(self, dim)]
    dim = wrap(self, dim)
    found = {shape[dim - 1] for shape in self._form.shapes} if dim else {self._form.batch}
    if len(found) != 1:
        raise RuntimeError(f"size: expected a dim of one size, got dim {dim} of {sorted(found)}")
    return found.pop()


@rule("dim", "ndim", "ndimension")
def _dim(func: Any, self: NestedTensor) -> int:
    form = self._form
    if isinstance(form, Jagged):
        return values_of(self).dim() + 1
    return 1 + (len(form.shapes[0]) if form.shapes else 0)


@rule("numel", "nelement")
def _numel(func: Any, self: NestedTensor) -> int:
    return values_of(packed(self)).numel()


rule("__len__")(lambda func, self: self._form.batch)
rule("layout")(lambda func, self: self._form.layout)


@rule("is_contiguous")
def _is_contiguous(func: Any, self: NestedTensor, *args: Any, **options: Any) -> bool:
    return packed(self) is self and values_of(self).is_contiguous(*args, **options)


@rule("contiguous")
def _contiguous(func: Any, self: NestedTensor, **options: Any) -> NestedTensor:
    whole = packed(self)
    return whole if _is_contiguous(None, whole) else make(whole._form, func(values_of(whole)))


def wrap(self: NestedTensor, dim: int) -> int:
    """A dimension counted from the first. IndexError for one that is not there."""
    count = self.dim()
    if not -count <= dim < count:
        raise IndexError(f"nested: expected a dim in [{-count}, {count}), got {dim}")
    return dim % count


# ---- the tensors of the batch ----


rule("values")(lambda func, self: values_of(self))


@rule("unbind")
def _unbind(func: Any, self: NestedTensor, dim: int = 0) -> tuple[Tensor, ...]:
    if wrap(self, dim):
        raise RuntimeError(f"unbind: expected dim 0 of a nested tensor, got {dim}")
    return tuple(parts_of(self))


@rule("is_same_size")
def _is_same_size(func: Any, self: NestedTensor, other: NestedTensor) -> bool:
    return [one.shape for one in parts_of(self)] == [one.shape for one in parts_of(other)]


@rule("numpy", "tolist", "to_dense")
def _refused(func: Any, self: NestedTensor) -> None:
    raise RuntimeError(f"{func.__name__}: expected a dense tensor, got a nested one; use unbind()")


# ---- views ----


def spread(
    function: Callable[[Tensor], Any], self: NestedTensor, place: int, by_parts: bool = False
) -> Any:
    """What a function makes of the values, its ragged dimension at `place`; by_parts, and of layout
    strided, what it makes of each tensor of the batch. Results in a tuple are nested each."""
    if isinstance(self._form, Jagged) and not by_parts:
        made = function(values_of(self))
        if isinstance(made, Tensor):
            return make(self._form.at(place), made)
        return type(made)([make(self._form.at(place), one) for one in made])
    rows = [function(part) for part in parts_of(self)]
    if rows and not isinstance(rows[0], Tensor):
        return type(rows[0])([join(self._form.at(place), column) for column in zip(*rows)])
    return join(self._form.at(place), rows)


def inner(name: str, self: NestedTensor, dim: int, ragged: bool = False) -> int:
    """A dimension of the values. RuntimeError for that of the batch, and for the ragged one unless
    `ragged` says that it may be."""
    found = wrap(self, dim)
    if found == 0 or (found == self._form.place and not ragged):
        kind = "ragged" if found else "batch"
        raise RuntimeError(f"{name}: expected another dim than the {kind} one, got {dim}")
    return found - 1


@rule("transpose", "swapaxes", "swapdims")
def _transpose(func: Any, self: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    order = list(range(self.dim()))
    a, b = wrap(self, dim0), wrap(self, dim1)
    order[a], order[b] = order[b], order[a]
    return _permute(None, self, order)


@rule("permute")
def _permute(func: Any, self: NestedTensor, *given: Any, dims: Any = None) -> NestedTensor:
    order = [wrap(self, dim) for dim in listed(given if dims is None else dims)]
    if order[:1] != [0] or sorted(order) != list(range(self.dim())):
        raise ValueError(f"permute: expected dim 0 first and each other dim once, got {order}")
    place = order.index(self._form.place)
    return spread(lambda x: x.permute([dim - 1 for dim in order[1:]]), self, place)


rule("mT")(lambda func, self: _transpose(func, self, -2, -1))
rule("T")(lambda func, self: _permute(func, self, *reversed(range(self.dim()))))


def listed(given: Sequence[Any]) -> Sequence[Any]:
    """Arguments that may stand in a sequence: view(2, 3), view((2, 3))."""
    return given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given


@rule("view", "reshape")
def _view(func: Any, self: NestedTensor, *given: Any, **options: Any) -> NestedTensor:
    """Sizes with the batch first. The ragged dimension stays: as such, or as -1."""
    sizes = listed(given or tuple(options.values()))
    if isinstance(sizes[0], _C.dtype):
        return spread(lambda x: func(x, *given, **options), self, self._form.place)
    form, name = self._form, func.__name__
    if sizes[0] not in (form.batch, -1):
        raise RuntimeError(f"{name}: expected {form.batch} first, got {tuple(sizes)}")
    if isinstance(form, Pieces):
        return spread(lambda x: func(x, sizes[1:]), self, 0)
    values, before = values_of(self), 1
    wanted = math.prod(values.shape[: form.place - 1])
    place = 1
    while place < len(sizes) and before != wanted:
        before, place = before * sizes[place], place + 1
    if place == len(sizes) or sizes[place] not in (form.ragged, -1):
        raise RuntimeError(f"{name}: expected the ragged dim of {self.shape}, got {tuple(sizes)}")
    total = values.shape[form.place - 1]
    inside = (*sizes[1:place], total, *sizes[place + 1 :])
    return make(form.at(place), func(values, inside))


@rule("flatten")
def _flatten(func: Any, self: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    start, end = wrap(self, start_dim), wrap(self, end_dim)
    place = self._form.place
    if start == 0 or start <= place <= end:
        raise RuntimeError(f"flatten: expected dims beside {place}, got {start} to {end}")
    moved = place - (end - start) * (end < place)
    return spread(lambda x: func(x, start - 1, end - 1), self, moved)


@rule("unflatten")
def _unflatten(func: Any, self: NestedTensor, dim: int, sizes: Any) -> NestedTensor:
    at, place = inner("unflatten", self, dim), self._form.place
    moved = place + (len(sizes) - 1) * (at < place - 1)
    return spread(lambda x: x.unflatten(at, sizes), self, moved)


@rule("unsqueeze")
def _unsqueeze(func: Any, self: NestedTensor, dim: int) -> NestedTensor:
    at, place = dim if dim >= 0 else dim + self.dim() + 1, self._form.place
    if not 0 < at <= self.dim():
        raise RuntimeError(f"unsqueeze: expected a dim behind the batch, got {dim}")
    return spread(lambda x: func(x, at - 1), self, place + (at <= place))


@rule("squeeze")
def _squeeze(func: Any, self: NestedTensor, dim: int) -> NestedTensor:
    at = inner("squeeze", self, dim)
    gone = self.size(at + 1) == 1 and at + 1 < self._form.place
    return spread(lambda x: func(x, at), self, self._form.place - gone)


@rule("expand")
def _expand(func: Any, self: NestedTensor, *given: Any) -> NestedTensor:
    sizes = listed(given)
    if len(sizes) != self.dim() or sizes[0] not in (self._form.batch, -1):
        raise RuntimeError(f"expand: expected {self.dim()} sizes, batch first, got {sizes}")
    inside = [-1 if isinstance(size, Ragged) else size for size in sizes[1:]]
    return spread(lambda x: func(x, inside), self, self._form.place)


@rule("select")
def _select(func: Any, self: NestedTensor, dim: int, index: int) -> Tensor:
    at = wrap(self, dim)
    return _getitem(func, self, (*(slice(None),) * at, index))


@rule("__getitem__")
def _getitem(func: Any, self: NestedTensor, index: Any) -> Tensor:
    """By ints and slices. Each tensor of the batch is taken for itself; an int in place of the
    ragged dimension gives a dense tensor."""
    chosen = list(index) if isinstance(index, tuple) else [index]
    count = sum(one is not Ellipsis for one in chosen)
    if not all(one is Ellipsis or isinstance(one, (int, slice)) for one in chosen):
        raise NotImplementedError(f"__getitem__: expected ints and slices, got {index!r}")
    if Ellipsis in chosen:
        at = chosen.index(Ellipsis)
        chosen[at : at + 1] = [slice(None)] * (self.dim() - count)
    form, rest, everything = self._form, tuple(chosen[1:]), slice(None)
    if isinstance(chosen[0], int):
        batch = form.batch
        if not -batch <= chosen[0] < batch:
            raise IndexError(f"__getitem__: expected an index within {batch}, got {chosen[0]}")
        return form.part(values_of(self), chosen[0] % batch)[rest]
    if chosen[0] != everything:
        self = join(form, list(parts_of(self))[chosen[0]])
    place = form.place
    at_ragged = rest[place - 1] if 0 < place <= len(rest) else everything
    if isinstance(at_ragged, int):
        return _C.stack([part[rest] for part in parts_of(self)])
    moved = place - sum(isinstance(one, int) for one in rest[: place - 1])
    return spread(lambda x: x[rest], self, moved, by_parts=at_ragged != everything)


@rule("narrow")
def _narrow(func: Any, self: NestedTensor, dim: int, start: int, length: int) -> Tensor:
    at = wrap(self, dim)
    return _getitem(func, self, (*(slice(None),) * at, slice(start, start + length)))


@rule("chunk", "split", "split_with_sizes", "tensor_split")
def _split(func: Any, self: NestedTensor, count: Any, dim: int = 0) -> Any:
    if wrap(self, dim):
        at = inner(func.__name__, self, dim)
        return spread(lambda x: func(x, count, at), self, self._form.place)
    rows = func(_C.arange(self._form.batch), count)
    parts = parts_of(self)
    return tuple(join(self._form, [parts[i] for i in row.tolist()]) for row in rows)


@rule("cat", "concat", "concatenate")
def _cat(func: Any, tensors: Sequence[NestedTensor], dim: int = 0) -> NestedTensor:
    first = next(filter(is_nested, tensors))
    at = wrap(first, dim)
    if not all(map(is_nested, tensors)):
        raise RuntimeError("cat: expected nested tensors, got dense ones among them")
    forms = [one._form for one in tensors]
    if first._form.place not in (0, at) and at and all(form.packs_as(forms[0]) for form in forms):
        return make(forms[0], func([values_of(one) for one in tensors], at - 1))
    batches = [parts_of(one) for one in tensors]
    if at == 0:
        return join(first._form, [part for batch in batches for part in batch])
    return join(first._form, [_C.cat(list(row), at - 1) for row in _rows("cat", batches)])


@rule("stack")
def _stack(func: Any, tensors: Sequence[NestedTensor], dim: int = 0) -> NestedTensor:
    first = next(filter(is_nested, tensors))
    at, place = dim if dim >= 0 else dim + first.dim() + 1, first._form.place
    if not 0 < at <= first.dim() or not all(map(is_nested, tensors)):
        raise RuntimeError(f"stack: expected nested tensors and a dim behind the batch, got {dim}")
    rows = _rows("stack", [parts_of(one) for one in tensors])
    form = first._form.at(place + (at <= place))
    return join(form, [_C.stack(list(row), at - 1) for row in rows])


def _rows(name: str, batches: list[Sequence[Tensor]]) -> Any:
    counts = [len(batch) for batch in batches]
    if len(set(counts)) != 1:
        raise RuntimeError(f"{name}: expected batches of one size, got {counts}")
    return zip(*batches)

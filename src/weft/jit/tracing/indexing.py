"""x[...] and x[...] = value as operators of the table, in the order of the extension's own walk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft import _C
from weft.jit.tracing.numbers import plain
from weft.jit.tracing.overrides import OVERRIDES

if TYPE_CHECKING:
    from weft.jit.tracing.recorder import Recorder

Tensor = _C.Tensor
_aten = _C._aten


def _is_mask(tensor: Tensor) -> bool:
    return tensor.dtype in (_C.bool, _C.uint8)


def _classify(item: Any) -> Any:
    """The item itself; lists and arrays as tensors; numbers of NumPy as Python's."""
    numpy = type(item).__module__ == "numpy"
    if numpy and not item.shape:
        item = item.item()
    if item is None or item is Ellipsis or isinstance(item, (slice, bool, int)):
        return item
    if not isinstance(item, Tensor):
        if isinstance(item, (str, bytes)) or not (hasattr(item, "__getitem__")):
            if hasattr(item, "__index__"):
                return item.__index__()
            raise IndexError(
                "index: expected int, slice, None, Ellipsis, bool, tensor or list, got "
                f"{type(item).__name__}"
            )
        item = _C.from_numpy(item) if numpy else _listed(item)
    if item.is_floating_point() or item.is_complex():
        raise IndexError(
            f"index: expected an integer or bool tensor as index, got {str(item.dtype)[6:]}"
        )
    return item


def _is_like_tuple(index: Any) -> bool:
    """Whether a list stands for a tuple, as csrc/bindings/indexing.cpp says."""
    if not isinstance(index, (list, range)) or len(index) >= 32:
        return False
    kinds = (Tensor, slice, type(None), type(Ellipsis))
    return any(isinstance(item, kinds) or hasattr(type(item), "__len__") for item in index)


def _listed(items: Any) -> Tensor:
    made = _C.tensor(list(items))
    return made.to(_C.int64) if made.numel() == 0 else made


def _dims(item: Any) -> int:
    """How many dimensions an item takes."""
    if isinstance(item, Tensor):
        return item.dim() if _is_mask(item) else 1
    return int(isinstance(item, slice) or (isinstance(item, int) and not isinstance(item, bool)))


class _Walk:
    """`view` is the tensor behind ints, slices, None and bools; `indices` go to aten::index."""

    def __init__(self, rec: Recorder, tensor: Tensor, index: Any) -> None:
        self.rec, self.view = rec, tensor
        self.indices: list[Tensor | None] = []
        self._dim = 0
        given = index if isinstance(index, tuple) or _is_like_tuple(index) else (index,)
        items = [_classify(each) for each in given]
        taken = sum(map(_dims, items))
        if taken > tensor.dim():
            raise IndexError(f"index: expected at most {tensor.dim()} indices, got {taken}")
        expanded = False
        for item in items:
            if item is not Ellipsis:
                self._step(item)
            elif not expanded:
                expanded = True
                self._dim += tensor.dim() - taken

    def _step(self, item: Any) -> None:
        if isinstance(item, slice):
            self._slice(item)
            self._dim += 1
        elif item is None:
            self.view = _aten.unsqueeze(self.view, self._dim)
            self._dim += 1
        elif isinstance(item, bool):
            self.view = _aten.unsqueeze(self.view, self._dim)
            self._record(_C.tensor([item]), 1)
        elif isinstance(item, Tensor) and item.dim() == 0 and _is_mask(item):
            self.view = _aten.unsqueeze(self.view, self._dim)
            self._record(_aten.unsqueeze(item.to(_C.bool), 0), 1)
        elif isinstance(item, Tensor) and item.dim():
            self._record(item, _dims(item))
        else:
            self.view = _aten.select(self.view, self._dim, item)

    def _slice(self, item: slice) -> None:
        start, stop, step = item.start, item.stop, item.step
        if start is None and stop is None and step is None:
            self.view = _aten.alias(self.view)
            return
        step = 1 if step is None else step
        self.view = _aten.slice(self.view, self._dim, _clip(start), _clip(stop), _clip(step))

    def _record(self, index: Tensor, dims: int) -> None:
        """A mask of k dimensions is one entry that stands for k."""
        self.indices += [None] * (self._dim - self._covered)
        self.indices.append(index)
        self._taken = getattr(self, "_taken", 0) + dims - 1
        self._dim += dims

    @property
    def dims_of_result(self) -> int:
        """How many dimensions `view[indices]` has."""
        given = [each for each in self.indices if each is not None]
        at_indices = max(1 if _is_mask(each) else each.dim() for each in given)
        return self.view.dim() - sum(map(_dims, given)) + at_indices

    @property
    def _covered(self) -> int:
        return len(self.indices) + getattr(self, "_taken", 0)


def _clip(bound: Any) -> Any:
    """Bounds beyond 64 bits end where 64 bits do."""
    if bound is None or isinstance(bound, Tensor):
        return bound
    if not isinstance(bound, int):
        bound = bound.__index__()
    number = plain(bound)
    return bound if abs(number) < 2**63 else max(min(number, 2**63 - 1), -(2**63))


@OVERRIDES("subscript")
def _subscript(rec: Recorder, self: Tensor, index: Any) -> Tensor:
    walk = _Walk(rec, self, index)
    if walk.indices:
        return _aten.index(walk.view, walk.indices)
    return _aten.alias(self) if walk.view is self else walk.view


@OVERRIDES("assign_subscript")
def _assign(rec: Recorder, self: Tensor, index: Any, value: Any) -> None:
    walk = _Walk(rec, self, index)
    target = walk.view
    if not isinstance(value, Tensor) and type(value).__module__ == "numpy":
        value = _C.from_numpy(value) if hasattr(value, "__len__") else value.item()
    if not isinstance(value, (Tensor, bool, int, float, complex)):
        raise TypeError(f"index: expected a Tensor or Number to assign, got {type(value).__name__}")
    if not walk.indices:
        if isinstance(value, Tensor):
            _aten.copy_(target, _drop_ones(value, target.dim()))
        else:
            _aten.fill_(target, value)
        return
    if not isinstance(value, Tensor):
        value = _C.full([], value, dtype=target.dtype)
    elif value.dtype != target.dtype:
        value = _aten._to_copy(value, dtype=target.dtype)
    _aten.index_put_(target, walk.indices, _drop_ones(value, walk.dims_of_result))


def _drop_ones(value: Tensor, dims: int) -> Tensor:
    """Leading dimensions of size 1 that the target does not have do not count."""
    while value.dim() > dims and plain(value.size(0)) == 1:
        value = _aten.select(value, 0, 0)
    return value

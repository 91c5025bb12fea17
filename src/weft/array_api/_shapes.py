"""Functions that rearrange arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft._C import Tensor
from weft._runtime.public import weft
from weft.array_api._dtypes import same_dtype

Axes = int | tuple[int, ...] | None


def axes_of(name: str, rank: int, axis: Axes) -> tuple[int, ...]:
    """Axes of an array of `rank` axes, counted from 0 and in order; None: all. IndexError for one
    that it has not, ValueError for one twice."""
    given = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if any(not -rank <= at < rank for at in given):
        raise IndexError(f"{name}: expected axes of {rank} dimensions, got {axis}")
    axes = sorted(at % rank for at in given)
    if len(set(axes)) < len(axes):
        raise ValueError(f"{name}: expected different axes, got {axis}")
    return tuple(axes)


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """The arrays repeated to one shape."""
    return tuple(weft.broadcast_tensors(*arrays)) if arrays else ()


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """The array repeated to a shape."""
    return weft.broadcast_to(x, tuple(shape))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to. ValueError where they do not."""
    try:
        return tuple(weft.broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """The arrays behind each other along an axis; None: all of them flattened."""
    same = same_dtype(*arrays)
    if axis is None:
        return weft.cat([each.reshape(-1) for each in same], 0)
    return weft.cat(same, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """The arrays beside each other along a new axis."""
    return weft.stack(same_dtype(*arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of an array along an axis."""
    return tuple(weft.unbind(x, axis))


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """With new axes of size 1 at these places of the result. IndexError beyond it, ValueError for a
    place twice."""
    count = len(axis) if isinstance(axis, tuple) else 1
    for at in axes_of("expand_dims", x.dim() + count, axis):
        x = x.unsqueeze(at)
    return x


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Without these axes. ValueError for one that has another size than 1."""
    given = axis if isinstance(axis, tuple) else (axis,)
    wrong = [at for at in given if x.shape[at] != 1]
    if wrong:
        raise ValueError(f"squeeze: expected axes of size 1, got {wrong} of {tuple(x.shape)}")
    return x.squeeze(given) if given else x


def flip(x: Tensor, /, *, axis: Axes = None) -> Tensor:
    """In the opposite order along axes; None: along all."""
    return weft.flip(x, axes_of("flip", x.dim(), axis))


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """With axes at other places."""
    return weft.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """With the axes in another order."""
    return weft.permute(x, tuple(axes))


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element several times; axis None: of the flattened array."""
    if isinstance(repeats, Tensor):
        repeats = repeats.to(weft.int64)
    return weft.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape. copy: True always, False never (ValueError where it needs
    one), None where it must."""
    if copy is False:
        try:
            return x.view(tuple(shape))
        except RuntimeError as error:
            raise ValueError(str(error)) from None
    result = weft.reshape(x, tuple(shape))
    return result.clone() if copy and result.data_ptr() == x.data_ptr() else result


def roll(x: Tensor, /, shift: Any, *, axis: Axes = None) -> Tensor:
    """The elements moved round along axes; None: of the flattened array."""
    if axis == ():
        return x.clone()
    if isinstance(shift, int) and isinstance(axis, tuple):
        shift = (shift,) * len(axis)
    return weft.roll(x, shift, () if axis is None else axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The array several times beside itself."""
    return weft.tile(x, tuple(repetitions))


# ---- elements at places ----


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The parts at indices along an axis, which an array of one axis need not say. IndexError for
    one out of range."""
    axis = _only_axis("take", x, axis)
    return weft.index_select(x, axis, _counted(indices.to(weft.int64), x.shape[axis]))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at indices along an axis; the other axes broadcast."""
    return weft.take_along_dim(x, _counted(indices.to(weft.int64), x.shape[axis]), axis)


def _counted(indices: Tensor, size: int) -> Tensor:
    """Indices from 0 on."""
    return weft.where(indices < 0, indices + size, indices)


def _only_axis(name: str, x: Tensor, axis: int | None) -> int:
    if axis is not None:
        return axis
    if x.dim() != 1:
        raise ValueError(f"{name}: expected an axis for {x.dim()} dimensions, got None")
    return 0


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The places of elements that are not zero, by axis. ValueError for an array without axes."""
    if x.dim() == 0:
        raise ValueError("nonzero: expected at least one dimension, got 0")
    find: Any = weft.nonzero
    return tuple(find(x, as_tuple=True))


__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip",
    "moveaxis", "nonzero", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack",
    "take", "take_along_axis", "tile", "unstack",
]  # fmt: skip

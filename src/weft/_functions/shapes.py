"""Functions of shapes: broadcasting, splits, copies of views, indices."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from weft import _C
from weft._C import Size, Tensor
from weft._functions.out import takes_out
from weft._runtime.argument_types import Ints as _Ints
from weft._runtime.samples import whole
from weft._runtime.torch_function import declare as _declare


def listed(tensors: Sequence[Any]) -> list[Any]:
    """f(a, b) and f([a, b]) are the same call.

    >>> len(listed([(weft.ones(1), weft.ones(1))]))
    2
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return list(tensors[0])
    return list(tensors)


def checked_dims(function: str, dims: Sequence[int], rank: int) -> list[int]:
    """Dimensions of a tensor of `rank`, counted from the front.

    IndexError for one that is not there, RuntimeError for one that is named twice.

    >>> checked_dims("sum", [-1, 0], 3)
    [2, 0]
    """
    most = max(rank, 1)
    for dim in dims:
        if not -most <= dim < most:
            raise IndexError(f"{function}: expected dim in [{-most}, {most - 1}], got {dim}")
    found = [dim % most for dim in dims]
    if any(found.count(dim) > 1 for dim in found):
        raise RuntimeError(f"{function}: expected each dim at most once, got {tuple(dims)}")
    return found


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of the given shapes (sequences or ints) broadcast to.

    Raises RuntimeError where there is none.

    >>> weft.broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
    result: list[int] = []
    for shape in shapes:
        result = _broadcast(result, [shape] if isinstance(shape, int) else list(shape))
    return Size(result)


def _broadcast(first: list[int], second: list[int]) -> list[int]:
    dims = max(len(first), len(second))
    a = [1] * (dims - len(first)) + first
    b = [1] * (dims - len(second)) + second
    for x, y in zip(a, b):
        if x != y and x != 1 and y != 1:
            raise RuntimeError(
                f"broadcast_shapes: expected broadcastable shapes, got {tuple(first)} "
                f"and {tuple(second)}"
            )
    return [y if x == 1 else x for x, y in zip(a, b)]


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Views of the tensors, all of one shape; a tensor that has this shape comes back itself.

    Raises RuntimeError for shapes that do not broadcast. Any dtypes.

    >>> weft.broadcast_tensors(weft.tensor([[1], [2]]), weft.tensor([3, 4]))[1]
    tensor([[3, 4],
            [3, 4]])
    """
    parts = listed(tensors)
    shape: list[int] = []
    for part in parts:
        shape = _broadcast(shape, list(part.shape))
    return tuple([p if list(p.shape) == shape else p.expand(shape) for p in parts])


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Grids of the vectors' coordinates; "ij" (the default) or "xy" order of the first two.

    n vectors (or numbers) of sizes s1, ..., sn give n views [s1, ..., sn]. Raises RuntimeError for
    more dimensions, and for dtypes that differ.

    >>> rows, columns = weft.meshgrid(weft.tensor([1, 2]), weft.tensor([3, 4, 5]), indexing="ij")
    >>> columns
    tensor([[3, 4, 5],
            [3, 4, 5]])
    """
    parts = listed(tensors)
    for part in parts:
        if part.dim() > 1 or part.dtype != parts[0].dtype:
            raise RuntimeError(
                "meshgrid: expected vectors and numbers of one dtype, got shape "
                f"{tuple(part.shape)} and {part.dtype}"
            )
    if not parts:
        raise RuntimeError("meshgrid: expected at least 1 tensor, got none")
    parts = [part.reshape(-1) for part in parts]
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'meshgrid: expected indexing "ij" or "xy", got {indexing!r}')
    if indexing is None:
        warnings.warn('meshgrid: expected indexing="ij" or "xy", got none: "ij"', stacklevel=2)
    swap = indexing == "xy" and len(parts) > 1
    if swap:
        parts[0], parts[1] = parts[1], parts[0]
    shape = [t.numel() for t in parts]
    grids = [
        t.reshape([-1 if at == d else 1 for at in range(len(parts))]).expand(shape)
        for d, t in enumerate(parts)
    ]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def _split_along(name: str, x: Tensor, where: Any, dim: int, least: int) -> tuple[Tensor, ...]:
    if x.dim() < least:
        raise RuntimeError(f"{name}: expected at least {least} dims, got shape {tuple(x.shape)}")
    if isinstance(where, int) and (where <= 0 or x.size(dim) % where):
        raise RuntimeError(
            f"{name}: expected sections that divide the size {x.size(dim)}, got {where}"
        )
    return _C.tensor_split(x, where, dim)


def hsplit(input: Tensor, indices: Any = None, *, sections: Any = None) -> tuple[Tensor, ...]:
    """Views of parts side by side: along dimension 1, of a vector along 0.

    indices: a number of parts, as `sections` says it too, or where to cut.

    RuntimeError for a 0-d tensor.

    >>> weft.hsplit(weft.tensor([1, 2, 3, 4]), 2)
    (tensor([1, 2]), tensor([3, 4]))
    """
    dim = 0 if input.dim() == 1 else 1
    return _split_along("hsplit", input, sections if indices is None else indices, dim, 1)


def vsplit(input: Tensor, indices: Any = None, *, sections: Any = None) -> tuple[Tensor, ...]:
    """Views of parts one below the other.

    RuntimeError for fewer than two dimensions.

    >>> weft.vsplit(weft.tensor([[1], [2]]), 2)
    (tensor([[1]]), tensor([[2]]))
    """
    return _split_along("vsplit", input, sections if indices is None else indices, 0, 2)


def dsplit(input: Tensor, indices: Any = None, *, sections: Any = None) -> tuple[Tensor, ...]:
    """Views of parts along the third dimension.

    RuntimeError for fewer than three dimensions.

    >>> [part.shape for part in weft.dsplit(weft.ones(1, 2, 4), [1])]
    [torch.Size([1, 2, 1]), torch.Size([1, 2, 3])]
    """
    return _split_along("dsplit", input, sections if indices is None else indices, 2, 3)


@takes_out
def unbind_copy(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """What unbind shows, as copies.

    >>> weft.unbind_copy(weft.tensor([[1], [2]]))
    (tensor([1]), tensor([2]))
    """
    return tuple(part.clone(memory_format=_C.contiguous_format) for part in input.unbind(dim))


@takes_out
def split_copy(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """What split shows, as copies.

    >>> weft.split_copy(weft.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    return tuple(
        part.clone(memory_format=_C.contiguous_format) for part in input.split(split_size, dim)
    )


@takes_out
def split_with_sizes_copy(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """What split shows, as copies.

    >>> weft.split_with_sizes_copy(weft.tensor([1, 2, 3]), [1, 2])
    (tensor([1]), tensor([2, 3]))
    """
    return tuple(
        part.clone(memory_format=_C.contiguous_format) for part in input.split(split_sizes, dim)
    )


def resize(input: Tensor, *sizes: Any) -> Tensor:
    """The tensor in another shape of as many elements. Deprecated: use reshape.

    RuntimeError for another number of elements.

    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     weft.arange(4).resize(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    wanted = list(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else list(sizes)
    if math.prod(wanted) != input.numel():
        raise RuntimeError(
            f"resize: expected {input.numel()} elements, got the size {tuple(wanted)}; resize_ "
            "changes their number"
        )
    return input.reshape(wanted)


def resize_as(input: Tensor, tensor: Tensor) -> Tensor:
    """resize to the shape of another tensor.

    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     weft.arange(4).resize_as(weft.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return resize(input, tensor.size())


def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """The sums over the dimensions along which `size` would have been expanded to input's.

    RuntimeError where `size` does not expand to input's.

    >>> weft.ones(2, 3).sum_to_size(2, 1)
    tensor([[3.],
            [3.]])
    """
    wanted = list(size[0]) if len(size) == 1 and not isinstance(size[0], int) else list(size)
    if not wanted:
        return input.sum()
    extra = input.dim() - len(wanted)
    inner = input.shape[extra:] if extra >= 0 else ()
    if extra < 0 or any(n not in (1, m) for n, m in zip(wanted, inner)):
        raise RuntimeError(
            f"sum_to_size: expected sizes that expand to {tuple(input.shape)}, got {tuple(wanted)}"
        )
    result = input.sum(list(range(extra))) if extra else input
    dims = [d for d, (n, m) in enumerate(zip(wanted, inner)) if n == 1 != m]
    return result.sum(dims, keepdim=True) if dims else result


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates, in a tensor of `shape`, of indices into it flattened.

    TypeError unless `indices` and `shape` are integers, ValueError where one is outside.

    >>> weft.unravel_index(weft.tensor([4]), (2, 3))
    (tensor([1]), tensor([1]))
    """
    sizes = [shape] if isinstance(shape, int) else shape
    if not isinstance(sizes, (tuple, list)) or not all(isinstance(n, int) for n in sizes):
        raise TypeError(f"unravel_index: expected shape as an int or ints, got {shape!r}")
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == _C.bool:
        raise TypeError(f"unravel_index: expected an integer tensor, got {indices.dtype}")
    if min(sizes, default=0) < 0:
        raise ValueError(f"unravel_index: expected sizes >= 0, got {tuple(sizes)}")
    count = math.prod(sizes)
    given = whole(indices)
    if given.numel() and not (int(given.min()) >= 0 and int(given.max()) < count):
        raise ValueError(f"unravel_index: expected indices in [0, {count - 1}], got others")
    result = []
    indices = indices.to(_C.int64)
    for size in reversed(sizes):
        result.append(indices % max(size, 1))
        indices = _C.div(indices, max(size, 1), rounding_mode="floor")
    return tuple(reversed(result))


def as_strided_scatter(
    input: Tensor, src: Tensor, size: _Ints, stride: _Ints, storage_offset: int | None = None
) -> Tensor:
    """A copy of input in which src stands where as_strided(size, stride, storage_offset) looks.

    >>> as_strided_scatter(weft.zeros(4), weft.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    result = input.clone()
    result.as_strided(size, stride, storage_offset).copy_(src)
    return result


_declare(globals(), ("broadcast_shapes", "broadcast_tensors", "meshgrid", "unravel_index"))

"""Scans as operators: scan, associative_scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.func._vmap import vmap
from weft.utils._pytree import tree_flatten, tree_map, tree_unflatten


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """The last carry and the stacked results of combine_fn(carry, slice), which gives the next
    carry and a result, along a dimension of `xs`.

    init, xs and results are tensors or nested containers of them; a carry has the structure,
    shapes and dtypes of `init`. reverse: from the last slice to the first. Results stand along
    `dim`. RuntimeError for others, and for a dimension without elements.

    >>> from weft.func._scans import scan
    >>> scan(lambda total, x: (total + x, total * x), weft.tensor(0), weft.tensor([1, 2, 3]))
    (tensor(6), tensor([0, 2, 9]))
    """
    carried, structure = tree_flatten(init)
    leaves, spec = tree_flatten(xs)
    if not leaves:
        return init, []
    if not carried or not all(isinstance(each, Tensor) for each in carried):
        raise RuntimeError(f"scan: expected init of tensors, got {init!r}")
    slices, dim = _slices("scan", combine_fn, leaves, dim, reverse, RuntimeError)
    carry, results = init, []
    for row in zip(*(each.unbind(0) for each in slices)):
        made = combine_fn(carry, tree_unflatten(list(row), spec))
        if not isinstance(made, (tuple, list)) or len(made) != 2:
            raise RuntimeError(f"scan: expected a carry and a result of combine_fn, got {made!r}")
        carry, result = made
        _check_carry(carried, structure, carry)
        results.append(result)
    order = results[::-1] if reverse else results
    return carry, tree_map(lambda *rows: _stacked(rows, dim), *order)


def _slices(
    name: str, combine_fn: Any, leaves: list[Any], dim: int, reverse: bool, error: type[Exception]
) -> tuple[list[Tensor], int]:
    """Tensors with the dimension first, in the order of the scan, and the dimension."""
    if not callable(combine_fn):
        raise error(f"{name}: expected combine_fn to be a function, got {combine_fn!r}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"{name}: expected reverse to be a bool, got {reverse!r}")
    if not all(isinstance(each, Tensor) for each in leaves):
        raise error(f"{name}: expected xs of tensors, got {leaves!r}")
    rank = leaves[0].dim()
    if not -rank <= dim < rank:
        raise IndexError(f"{name}: expected dim in [{-rank}, {rank}), got {dim}")
    dim %= rank
    sizes = [each.shape[dim] if dim < each.dim() else 0 for each in leaves]
    if min(sizes) == 0 or len(set(sizes)) > 1:
        raise error(f"{name}: expected one size above 0 along dim {dim}, got {sizes}")
    moved = [each.movedim(dim, 0) for each in leaves]
    return [each.flip(0) if reverse else each for each in moved], dim


def _check_carry(carried: list[Tensor], structure: Any, carry: Any) -> None:
    leaves, spec = tree_flatten(carry)
    kinds = [
        [(tuple(x.shape), x.dtype) if isinstance(x, Tensor) else x for x in each]
        for each in (carried, leaves)
    ]
    if spec != structure or kinds[0] != kinds[1]:
        raise RuntimeError(f"scan: expected a carry like init, {kinds[0]}, got {kinds[1]}")


def _stacked(rows: tuple[Any, ...], dim: int) -> Any:
    made = _C.stack(list(rows))
    return made.movedim(0, dim) if dim < made.dim() else made


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """What combine_fn makes of all slices up to each one, along a dimension of `xs`.

    combine_fn: an associative function of two slices, of which many are combined in one call
    (`vmap`), so that n slices take some 2 log2(n) calls. xs: a tensor or nested containers of them;
    combine_fn gives the same structure. reverse: from the last slice to the first. combine_mode:
    "pointwise" or "generic", which are the same. ValueError for others, for no tensors, and for a
    dimension without elements.

    >>> from weft.func._scans import associative_scan
    >>> associative_scan(lambda a, b: a * b, weft.tensor([1, 2, 3, 4]), 0)
    tensor([ 1,  2,  6, 24])
    """
    leaves, spec = tree_flatten(xs)
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"associative_scan: expected combine_mode pointwise or generic, got {combine_mode!r}"
        )
    if not leaves:
        raise ValueError("associative_scan: expected xs with tensors, got none")
    slices, dim = _slices("associative_scan", combine_fn, leaves, dim, reverse, ValueError)

    def combined(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        pair = (tree_unflatten(each, spec) for each in (left, right))
        made, structure = tree_flatten(vmap(combine_fn)(*pair))
        if structure != spec:
            raise RuntimeError(
                f"associative_scan: expected results like xs, {spec}, got {structure}"
            )
        return made

    done = _prefixes(combined, slices)
    ordered = [each.flip(0) if reverse else each for each in done]
    return tree_unflatten([each.movedim(0, dim) for each in ordered], spec)


def _prefixes(combined: Callable[..., list[Tensor]], slices: list[Tensor]) -> list[Tensor]:
    """Pairs are combined, their prefixes found, and those in between made of them."""
    count = slices[0].shape[0]
    if count < 2:
        return slices
    pairs = combined([x[: count - 1 : 2] for x in slices], [x[1::2] for x in slices])
    odd = _prefixes(combined, pairs)
    first = [x[:1] for x in slices]
    if count == 2:
        return [_C.cat(row) for row in zip(first, odd)]
    inner = combined([x[: (count - 1) // 2] for x in odd], [x[2::2] for x in slices])
    even = [_C.cat(row) for row in zip(first, inner)]
    return [_interleaved(a, b) for a, b in zip(even, odd)]


def _interleaved(even: Tensor, odd: Tensor) -> Tensor:
    """The elements of two tensors in turn; the first may have one more."""
    count = odd.shape[0]
    paired = _C.stack([even[:count], odd], 1).flatten(0, 1)
    return _C.cat([paired, even[count:]]) if even.shape[0] > count else paired

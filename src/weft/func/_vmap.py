"""vmap: a function of one sample as a function of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from weft import _C
from weft._C import Tensor, get_rng_state, set_rng_state
from weft._runtime.public import weft
from weft.func._level import Level
from weft.func._random import MODES
from weft.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten

Dims = Any  # an int, None, or a nest of them


def _is_collection(value: Any) -> bool:
    """Whether a value hands the tensors in it to a level by itself, under the names that PyTorch's
    vmap has for that: libraries define such dicts of tensors."""
    return hasattr(type(value), "_add_batch_dim") and not isinstance(value, Tensor)


_flatten = functools.partial(tree_flatten, is_leaf=_is_collection)


def vmap(
    func: Callable[..., Any],
    in_dims: Dims = 0,
    out_dims: Dims = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that calls func for all samples of a batch at once: as if it were called for each,
    with tensors that lack the batch's dimension, and the results stacked.

    - in_dims: the dimension of the batch in each argument; None for one that all samples share. An
      int for all arguments, or a tuple with an entry for each, an int or a nest as the argument.
    - out_dims: where the results get that dimension: an int, or a nest as the output. None for an
      output that all samples share.
    - randomness: "error" refuses operators that draw random numbers; with "different" each sample
      draws its own; with "same" all draw the same.
    - chunk_size: how many samples are worked on at once; None: all.

    func may contain `grad`, `vmap` and the like, and may stand inside of them. All samples share
    keyword arguments. Python may not decide by elements (`if x > 0`), nor call
    operators whose sizes depend on them. Operators without a rule for batches run sample by sample.

    ValueError for dimensions that do not fit the arguments, RuntimeError for a function that cannot
    be mapped.

    >>> weft.vmap(weft.dot)(weft.ones(3, 2), weft.ones(3, 2))
    tensor([2., 2., 2.])
    """
    if randomness not in MODES:
        raise RuntimeError(f"vmap: expected randomness as one of {MODES}, got {randomness!r}")
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"vmap: expected chunk_size above 0 or None, got {chunk_size}")

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, dims, spec = _inputs(in_dims, args)
        size = _size(leaves, dims)

        def run(begin: int, end: int) -> Any:
            """The output for a part of the samples."""
            level = Level(end - begin, randomness)
            given = _enter(level, leaves, dims, (begin, end) if end - begin < size else None)
            with level.active():
                output = func(*tree_unflatten(given, spec), **kwargs)
            return _leave(level, output, out_dims)

        if chunk_size is None or chunk_size >= size:
            return run(0, size)
        parts = []
        state = get_rng_state() if randomness == "same" else None
        for begin in range(0, size, chunk_size):
            if state is not None:
                set_rng_state(state)
            parts.append(run(begin, min(begin + chunk_size, size)))
        return _joined(parts, out_dims)

    return call


# In -----------------------------------------------------------------------------------------------


def _inputs(in_dims: Dims, args: tuple[Any, ...]) -> tuple[list[Any], list[Any], TreeSpec]:
    """The leaves of the arguments, the dimension of the batch in each, their structure."""
    if not isinstance(in_dims, (int, tuple)) or isinstance(in_dims, bool):
        raise ValueError(
            f"vmap: expected in_dims as an int or a tuple, got {type(in_dims).__name__}"
        )
    leaves, spec = _flatten(args)
    dims = broadcast_dims(in_dims, args)
    if dims is None:
        raise ValueError(
            f"vmap: expected in_dims in the structure of the arguments, {spec}, got {in_dims}"
        )
    for i, (leaf, dim) in enumerate(zip(leaves, dims)):
        if dim is None:
            continue
        if not isinstance(dim, int) or isinstance(dim, bool):
            raise ValueError(f"vmap: expected in_dims of ints and None, got {dim!r}")
        if not (isinstance(leaf, Tensor) or _is_collection(leaf)):
            raise ValueError(
                f"vmap: expected a Tensor where in_dims is {dim}, got {type(leaf).__name__}; None "
                "stands for what all samples share"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"vmap: expected in_dims within the {leaf.dim()} dimensions of a Tensor, got {dim}"
            )
        dims[i] = dim % leaf.dim()
    return leaves, dims, spec


def broadcast_dims(dims: Dims, tree: Any) -> list[Any] | None:
    """An entry of `dims` for each leaf of a tree: one entry stands for all below it. None where the
    structures differ."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(tree_leaves(tree, is_leaf=_is_collection))
    if not isinstance(dims, (list, tuple, dict)):
        return None
    if isinstance(dims, dict):
        if not isinstance(tree, dict) or set(dims) != set(tree):
            return None
        pairs = [(dims[key], tree[key]) for key in tree]
    else:
        kind = list if isinstance(dims, list) else tuple  # a list stands for a list
        if not isinstance(tree, kind) or len(dims) != len(tree):
            return None
        pairs = list(zip(dims, tree))
    found: list[Any] = []
    for each, part in pairs:
        below = broadcast_dims(each, part)
        if below is None:
            return None
        found += below
    return found


def batch_size(in_dims: Dims, args: tuple[Any, ...]) -> int:
    """The size of the dimension that is mapped."""
    return _size(*_inputs(in_dims, args)[:2])


def _size(leaves: list[Any], dims: list[Any]) -> int:
    sizes = [leaf.size(dim) for leaf, dim in zip(leaves, dims) if dim is not None]
    if not sizes:
        raise ValueError(
            f"vmap: expected at least one Tensor with a dimension to map over, got {len(leaves)} "
            "arguments without any"
        )
    if len(set(sizes)) > 1:
        raise ValueError(f"vmap: expected equal sizes of the mapped dimension, got {sizes}")
    return sizes[0]


def _enter(
    level: Level, leaves: list[Any], dims: list[Any], part: tuple[int, int] | None
) -> list[Any]:
    """The leaves as the function sees them: of a part of the samples, or of all."""
    given = []
    for leaf, dim in zip(leaves, dims):
        if dim is None:
            given.append(leaf)
            continue
        if _is_collection(leaf):
            if part is not None:
                leaf = leaf[tuple([slice(None)] * dim + [slice(*part)])]
            given.append(leaf._add_batch_dim(in_dim=dim, vmap_level=level))
            continue
        samples = leaf if dim == 0 else _C._aten.movedim(leaf, dim, 0)
        if part is not None:
            samples = _C._aten.slice(samples, 0, *part)
        given.append(level.wrap(samples))
    return given


# Out ----------------------------------------------------------------------------------------------


def _leave(level: Level, output: Any, out_dims: Dims) -> Any:
    """The output with the samples along out_dims."""
    leaves, spec = _flatten(output)
    dims = broadcast_dims(out_dims, output)
    if dims is None and isinstance(out_dims, tuple) and len(out_dims) == 1 == len(leaves):
        dims = list(out_dims)
    if dims is None:
        raise ValueError(
            f"vmap: expected out_dims in the structure of the output, {spec}, got {out_dims}"
        )
    return tree_unflatten([unwrapped(level, *each) for each in zip(leaves, dims)], spec)


def unwrapped(level: Level, leaf: Any, dim: int | None) -> Any:
    if not isinstance(leaf, Tensor):
        if dim is None:
            return leaf
        if _is_collection(leaf):
            return leaf._maybe_remove_batch_dim(
                "vmap", vmap_level=level, batch_size=level.size, out_dim=dim
            )
        raise ValueError(
            f"vmap: expected a function that returns Tensors, got {type(leaf).__name__}"
        )
    samples = level.samples(leaf)
    if dim is None:
        if samples is not None:
            raise ValueError(
                "vmap: expected an int in out_dims for a Tensor of the batch, got None"
            )
        return leaf
    if not isinstance(dim, int):
        raise ValueError(f"vmap: expected out_dims of ints and None, got {dim!r}")
    samples = level.expanded(leaf)
    if not -samples.dim() <= dim < samples.dim():
        raise IndexError(
            f"vmap: expected out_dims within the {samples.dim()} dimensions of a result, got {dim}"
        )
    return samples if dim == 0 else _C._aten.movedim(samples, 0, dim)


def _joined(parts: Sequence[Any], out_dims: Dims) -> Any:
    """The outputs of chunks as one."""
    columns = [_flatten(each)[0] for each in parts]
    dims = broadcast_dims(out_dims, parts[0]) or [0]
    joined = [
        pieces[0] if dim is None else weft.cat(pieces, dim) for dim, *pieces in zip(dims, *columns)
    ]
    return tree_unflatten(joined, _flatten(parts[0])[1])

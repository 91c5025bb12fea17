"""Tensors of a batch, as the function that weft.vmap calls sees them.

The function sees a tensor over the first sample: it has the sizes, the dtype and the strides of
one. Behind it stands the tensor of all samples, whose first dimension counts them; every operator
works on that one. Where calls of vmap nest, it is seen by the outer call in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.samples import whole


class Refused(RuntimeError):
    """What all samples cannot do at once, but each alone."""


@contextmanager
def seen_by(level: Any) -> Iterator[None]:
    """Within, operators of this thread go to `level`; None: they run."""
    before = _C._set_recorder(level)
    try:
        yield
    finally:
        _C._set_recorder(before)


@contextmanager
def recorded_by(level: Any) -> Iterator[None]:
    """Within, operators of this thread go to `level` as they go to a trace."""
    _C._trace_begin()
    try:
        with seen_by(level):
            yield
    finally:
        _C._trace_end()


def has_history(tensor: Tensor) -> bool:
    """Whether it requires grad: also one that was written to since the function first saw it."""
    with seen_by(None):
        return whole(tensor).requires_grad


def like(tensor: Tensor, physical: Tensor) -> Tensor:
    """Another tensor of all samples, as the function sees `tensor`."""
    batch = getattr(tensor, "_batch", None)
    if batch is None:
        return physical
    level, behind = batch
    return level.wrap(like(behind, physical))


def spread(tensor: Tensor) -> Tensor:
    """The tensor with samples of its own at every level under way, equal ones if need be."""
    level: Any = _C._recorder()
    return level.spread(tensor) if hasattr(level, "spread") else tensor

"""Batches cut for several devices and joined again: with one kind of device these are parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import _C
from weft._C import Tensor

__all__ = ["gather", "scatter", "scatter_kwargs"]


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """A part of nested tuples, lists and dicts for each device: tensors are cut along `dim`, so
    that there may be fewer parts than devices; anything else is in every part.

    >>> scatter({"x": weft.arange(3), "name": "a"}, ["cpu", "cpu"])
    [{'x': tensor([0, 1]), 'name': 'a'}, {'x': tensor([2]), 'name': 'a'}]
    """
    if isinstance(inputs, Tensor):
        return list(inputs.chunk(len(target_gpus), dim))
    made: list[Any] = []
    if isinstance(inputs, dict):
        parts = [scatter(item, target_gpus, dim) for item in inputs.items()]
        made = [type(inputs)(items) for items in zip(*parts)]
    elif isinstance(inputs, (tuple, list)):
        each = zip(*[scatter(value, target_gpus, dim) for value in inputs])
        named = hasattr(inputs, "_fields")
        made = [type(inputs)(*part) if named else type(inputs)(part) for part in each]
    return made or [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Any, dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Parts of the arguments of a call; the shorter of both is filled up with none."""
    args = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(args), len(named))
    args += [()] * (count - len(args))
    named += [{}] * (count - len(named))
    return tuple(args), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Parts joined again: tensors along `dim`, numbers of losses (0-d tensors) to a vector.

    >>> gather([(weft.ones(2),), (weft.zeros(1),)], "cpu")
    (tensor([1., 1., 0.]),)
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        return _C.cat([part.unsqueeze(0) if part.dim() == 0 else part for part in outputs], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        return type(first)(
            (k, gather([part[k] for part in outputs], target_device, dim)) for k in first
        )
    made = [gather(parts, target_device, dim) for parts in zip(*outputs)]
    return type(first)(*made) if hasattr(first, "_fields") else type(first)(made)

"""Parameters of distributions: broadcasting, and probabilities from logits and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft
from weft import Tensor
from weft.nn import functional as F

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits"]


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of one shape. Numbers take the dtype of the first tensor, or the default one.

    ValueError for a value that is neither.
    """
    for value in values:
        if not isinstance(value, Tensor | int | float):
            name = type(value).__name__
            raise ValueError(f"broadcast_all: expected tensors and numbers, got {name}")
    first = next((value for value in values if isinstance(value, Tensor)), None)
    dtype = weft.get_default_dtype() if first is None else first.dtype
    tensors = [v if isinstance(v, Tensor) else weft.tensor(v, dtype=dtype) for v in values]
    return tuple(weft.broadcast_tensors(*tensors))


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities away from 0 and 1 by the precision of their dtype."""
    eps = weft.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of logits: of each (is_binary), or of the last dimension together."""
    return weft.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logits of probabilities, the other way."""
    clamped = clamp_probs(probs)
    return weft.log(clamped) - weft.log1p(-clamped) if is_binary else weft.log(clamped)


class lazy_property:
    """A property that is computed when it is first asked for, and kept."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with weft.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value

"""A branch as an operator: cond."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft._C import Tensor
from weft._runtime.torch_function import declare as _declare


def cond(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """true_fn(*operands) where `pred` holds, else false_fn(*operands).

    pred: a bool, a number, or a tensor of one element. In compiled functions it is an `if`; a trace
    has the branch that its example took. RuntimeError for a tensor of several elements, branches
    that cannot be called, and operands that are no tuple or list.

    >>> weft.cond(weft.tensor(3.0) > 2, lambda x: x + 1, lambda x: x - 1, (weft.zeros(2),))
    tensor([1., 1.])
    """
    if not isinstance(pred, bool | int | float | Tensor):
        raise RuntimeError(f"cond: expected pred to be a bool or a tensor, got {pred!r}")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"cond: expected pred of one element, got shape {tuple(pred.shape)}")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError(f"cond: expected two functions, got {true_fn!r} and {false_fn!r}")
    if not isinstance(operands, tuple | list):
        raise RuntimeError(f"cond: expected operands in a tuple, got {type(operands).__name__}")
    return true_fn(*operands) if pred else false_fn(*operands)


_declare(globals(), ("cond",))

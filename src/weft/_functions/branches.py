"""Branches and loops as operators: cond, while_loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import _C
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


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]
) -> Any:
    """What body_fn makes of `carried_inputs`, again and again while cond_fn holds of it.

    cond_fn gives a bool or a 0-d tensor of bools, body_fn as many values in a tuple as it gets.
    RuntimeError for others, and for inputs that are no tuple or list.

    >>> weft.while_loop(lambda n, x: n < 3, lambda n, x: (n + 1, x * 2), (0, weft.ones(2)))
    (3, tensor([8., 8.]))
    """
    if not isinstance(carried_inputs, tuple | list):
        got = type(carried_inputs).__name__
        raise RuntimeError(f"while_loop: expected carried inputs in a tuple, got {got}")
    carried: Any = carried_inputs
    while _holds(cond_fn(*carried)):
        made = body_fn(*carried)
        if not isinstance(made, tuple) or len(made) != len(carried):
            raise RuntimeError(
                f"while_loop: expected {len(carried)} values of body_fn in a tuple, got {made!r}"
            )
        carried = made
    return carried


def _holds(pred: Any) -> bool:
    is_scalar = isinstance(pred, Tensor) and pred.dim() == 0 and pred.dtype == _C.bool
    if not is_scalar and not isinstance(pred, bool):
        raise RuntimeError(f"while_loop: expected a bool of cond_fn, got {pred!r}")
    return bool(pred)


_declare(globals(), ("cond", "while_loop"))

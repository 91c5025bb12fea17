"""Operators that call graphs: branches, and parts of a program in another mode.

Each gives a tuple, as the graphs do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import _C, amp
from weft.autograd.grad_mode import set_grad_enabled
from weft.library._overloads import namespace

Part = Callable[..., Any]


def cond(pred: Any, true_fn: Part, false_fn: Part, operands: list[Any]) -> Any:
    """The results of one of two graphs. `pred`: a bool, or a tensor of one element."""
    return true_fn(*operands) if bool(pred) else false_fn(*operands)


def wrap_with_set_grad_enabled(enable_grad: bool, wrapped_func: Part, *args: Any) -> Any:
    """The results of a graph, with gradients recorded or not."""
    with set_grad_enabled(enable_grad):
        return wrapped_func(*args)


def wrap_with_autocast(
    device_type: str, dtype: _C.dtype | None, enabled: bool, cache_enabled: bool | None,
    wrapped_func: Part, *args: Any,
) -> Any:  # fmt: skip
    """The results of a graph under autocast."""
    with amp.autocast(device_type, dtype, enabled, cache_enabled):
        return wrapped_func(*args)


def while_loop(
    cond_fn: Part, body_fn: Part, carried_inputs: list[Any], additional_inputs: list[Any]
) -> Any:
    """What a graph carries on while another one gives True."""
    carried = tuple(carried_inputs)
    while bool(_first(cond_fn(*carried, *additional_inputs))):
        carried = tuple(body_fn(*carried, *additional_inputs))
    return carried


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


def _branch(name: str, args: Any, text_of: Callable[[Any], str]) -> str:
    given = ", ".join(map(text_of, (*args[:3], tuple(args[3]))))
    return f"{name} = torch.cond({given})"


def _in_mode(mode: str, count: int) -> Callable[..., str]:
    """A call behind `with`, whose mode takes the first arguments."""

    def write(name: str, args: Any, text_of: Callable[[Any], str]) -> str:
        told, called, *given = ", ".join(map(text_of, args[:count])), *map(text_of, args[count:])
        return f"with {mode}({told}): {name} = {called}({', '.join(given)})"

    return write


#: how they stand in the code of a module
STATEMENTS: dict[Any, Callable[..., str]] = {
    cond: _branch,
    wrap_with_set_grad_enabled: _in_mode("torch.set_grad_enabled", 1),
    wrap_with_autocast: _in_mode("torch.autocast", 4),
}
OPERATORS = {
    each.__name__: each
    for each in (cond, wrap_with_set_grad_enabled, wrap_with_autocast, while_loop)
}
for _each in OPERATORS.values():
    _each.__module__ = "torch.ops.higher_order"
vars(namespace("higher_order")).update(OPERATORS)

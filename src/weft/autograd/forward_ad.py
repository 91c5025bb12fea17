"""Forward mode by dual numbers: a tensor and its tangent, through any operators.

Within a level operators record as for backward. `unpack_dual` has the product with the Jacobian of
all that was recorded since `make_dual`, as `weft.func.jvp` has it, so a tangent costs one backward
of a backward, when it is asked for.
"""

from __future__ import annotations

from typing import NamedTuple

from weft._C import Tensor
from weft._runtime.exports import list_own as _list_own
from weft.autograd._run import levels
from weft.autograd.grad_mode import _DecoratorContextManager, is_grad_enabled, set_grad_enabled
from weft.func._forward import Forward
from weft.func._histories import History


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, None where it has none."""

    primal: Tensor
    tangent: Tensor | None


class _Level:
    """The dual numbers made since it was entered."""

    def __init__(self) -> None:
        self.grad_mode = is_grad_enabled()
        self.history = History(())
        self.tangents: list[Tensor] = []


def __getattr__(name: str) -> int:
    if name == "_current_level":  # that under way; libraries ask whether there is one
        return -1 if levels.current is None else 0
    raise AttributeError(f"module 'weft.autograd.forward_ad' has no attribute {name!r}")


def enter_dual_level() -> int:
    """Begins a level and returns its number, 0. RuntimeError inside another: levels do not nest."""
    if levels.current is not None:
        raise RuntimeError("enter_dual_level: expected no level under way, got one")
    levels.current = level = _Level()
    level.history.__enter__()
    set_grad_enabled(True)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends the level: dual numbers become ordinary tensors. RuntimeError outside of any."""
    current = _level("exit_dual_level", level)
    set_grad_enabled(current.grad_mode)
    current.history.__exit__()
    levels.current = None


class dual_level(_DecoratorContextManager):
    """A level as a context, or around each call of a function. Levels do not nest.

    >>> with dual_level():
    ...     x = make_dual(weft.zeros(2), weft.ones(2))
    ...     unpack_dual(weft.sin(x)).tangent
    tensor([1., 1.])
    """

    def __enter__(self) -> int:  # type: ignore[override]
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()


def _level(op: str, number: int | None) -> _Level:
    current: _Level | None = levels.current
    if current is None:
        raise RuntimeError(f"{op}: expected a level under way (dual_level), got none")
    if number not in (None, 0):
        raise RuntimeError(f"{op}: expected level 0, got {number}")
    return current


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor with a tangent of its sizes, over the same elements.

    ValueError for other dtypes than floating and complex ones, RuntimeError outside of a level and
    for a tangent of other sizes.
    """
    current = _level("make_dual", level)
    for what, each in (("tensor", tensor), ("tangent", tangent)):
        if not isinstance(each, Tensor):
            raise TypeError(f"make_dual: expected {what} as a Tensor, got {type(each).__name__}")
        if not (each.is_floating_point() or each.is_complex()):
            raise ValueError(
                f"make_dual: expected {what} of a floating or complex dtype, got "
                f"{str(each.dtype)[6:]}"
            )
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"make_dual: expected a tangent of shape {tuple(tensor.shape)}, got "
            f"{tuple(tangent.shape)}"
        )
    current.tangents.append(tangent)
    return current.history.add(tensor)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """(primal, tangent) of a tensor; the tangent is None where it depends on no dual number."""
    current: _Level | None = levels.current
    if current is None or not current.history.reaches(tensor):
        return UnpackedDualTensor(tensor, None)
    levels.current = None  # the tangent's own gradients are not what a program asks for
    try:
        (tangent,) = Forward(current.history, [tensor]).along(current.tangents)
    finally:
        levels.current = current
    return UnpackedDualTensor(current.history.leave(tensor), tangent)


_list_own(vars())

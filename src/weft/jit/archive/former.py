"""Operators as they were: functions with the meaning that an operator had up to a version of
archives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.calculus import logspace
from weft.jit.archive.numbers import dtype_of, optional_dtype_of


def _div(
    self: Any, other: Any, rounding_mode: str | None = None, *, out: Tensor | None = None
) -> Any:
    """Division of tensors of integers was integral up to version 3, unless into one of floats."""
    if not isinstance(self, Tensor):
        return _C.div(self, other)
    if out is not None:
        into_floats = out.is_floating_point()
        made = _C.div(self, other) if into_floats else _div(self, other, rounding_mode)
        return _into(out, made)
    result = _C.div(self, other, rounding_mode=rounding_mode)
    is_whole = isinstance(other, int) or (
        isinstance(other, Tensor) and not other.is_floating_point() and not other.is_complex()
    )
    if rounding_mode is None and is_whole and not self.is_floating_point():
        result = _C.div(self, other, rounding_mode="trunc")
    return result


def _div_(self: Any, other: Any, rounding_mode: str | None = None) -> Any:
    made = _div(self, other, rounding_mode)
    if made.is_floating_point() and not self.is_floating_point() and not self.is_complex():
        raise RuntimeError(f"div_: expected a result of {self.dtype}, got {made.dtype}")
    return self.copy_(made)


def _into(out: Tensor, made: Tensor) -> Tensor:
    if out.size() != made.size():
        out.resize_(made.size())
    return out.copy_(made)


def _full(
    size: list[int], fill_value: Any, *, dtype: int | None = None, layout: int | None = None,
    device: _C.device | None = None, pin_memory: bool | None = None, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Without a dtype the result was of floats up to version 4."""
    if out is not None:
        return _C.full(size, fill_value, out=out)
    made = _C.get_default_dtype() if dtype is None else dtype_of(dtype)
    return _C.full(size, fill_value, dtype=made, device=device)


def _linspace(
    start: Any, end: Any, steps: int | None = None, *, dtype: int | None = None,
    layout: int | None = None, device: _C.device | None = None, pin_memory: bool | None = None,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """`steps` might be left out up to version 7."""
    count = 100 if steps is None else steps
    if out is not None:
        return _C.linspace(start, end, count, out=out)
    return _C.linspace(start, end, count, dtype=optional_dtype_of(dtype), device=device)


def _logspace(
    start: Any, end: Any, steps: int | None = None, base: float = 10.0, *, dtype: int | None = None,
    layout: int | None = None, device: _C.device | None = None, pin_memory: bool | None = None,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """`steps` might be left out up to version 8."""
    count = 100 if steps is None else steps
    if out is not None:
        return _into(out, logspace(start, end, count, base, dtype=out.dtype))
    return logspace(start, end, count, base, dtype=optional_dtype_of(dtype), device=device)


# By operator: the last version of archives that means it so.
FORMER: dict[str, tuple[int, Callable[..., Any]]] = {
    "aten::div": (3, _div),
    "aten::div_": (3, _div_),
    "aten::full": (4, _full),
    "aten::linspace": (7, _linspace),
    "aten::logspace": (8, _logspace),
}

"""What is asked of tensors beside the operators of the table, for those of several processes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Size, Tensor
from weft._runtime.rules import Rules
from weft.distributed.tensor._layout import of_gradient
from weft.func import _overrides as batched

if TYPE_CHECKING:
    from weft.distributed.tensor._level import Level

OVERRIDES = Rules(batched.OVERRIDES)


# Sizes are those of the whole tensor; a plain one beside it has its own.


def _read(level: Level, tensor: Tensor, name: str, *args: Any) -> Any:
    with level.outside():
        value = getattr(tensor, name)
        return value(*args) if callable(value) else value


def _sized(name: str, of_layout: Callable[..., Any]) -> None:
    def call(level: Level, self: Tensor, *args: Any) -> Any:
        if isinstance(self, level.kind):
            return of_layout(level.layout(self), *args)
        return _read(level, self, name, *args)

    OVERRIDES[name] = call


def _one(values: Any, dim: int | None) -> Any:
    return values if dim is None else values[dim]


_sized("shape", lambda layout: Size(layout.shape))
_sized("size", lambda layout, dim=None: _one(Size(layout.shape), dim))
_sized("stride", lambda layout, dim=None: _one(layout.strides(), dim))
_sized("numel", lambda layout: math.prod(layout.shape))
_sized("nelement", lambda layout: math.prod(layout.shape))
_sized("length", lambda layout: layout.shape[0])
_sized("storage_offset", lambda layout: 0)


# Elements are those of the whole tensor, which all processes put together.


def _element(name: str) -> None:
    def call(level: Level, self: Tensor, *args: Any) -> Any:
        whole = level.whole(self)
        with level.outside():
            return getattr(Tensor, name)(whole, *args)

    OVERRIDES[name] = call


for _name in ("item", "__bool__", "__int__", "__float__", "__index__", "__complex__"):
    _element(_name)


def _refused(name: str) -> None:
    def call(level: Level, *args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(each, level.kind) for each in args):
            return batched.OVERRIDES[name](level, *args, **kwargs)
        raise RuntimeError(
            f"{name}: expected a plain tensor, got a DTensor; full_tensor() and to_local() give one"
        )

    OVERRIDES[name] = call


for _name in ("tolist", "numpy", "__array__", "__dlpack__", "contains", "assign_subscript"):
    _refused(_name)
for _name in ("apply", "program", "custom_operator", "memory"):
    _refused(_name)


# Gradients ----------------------------------------------------------------------------------------


@OVERRIDES("grad")
def _grad(level: Level, self: Tensor) -> Any:
    found = _read(level, self, "grad")
    if found is None or isinstance(found, level.kind) or not isinstance(self, level.kind):
        return found
    layout = level.layout(self)
    with level.outside():
        made = level.wrap(found, layout.placed(of_gradient(layout.placements)))
        self.grad = made  # so that it is one object
        return made


@OVERRIDES("set_grad")
def _set_grad(level: Level, self: Tensor, value: Any) -> None:
    if isinstance(value, level.kind) and isinstance(self, level.kind):
        value = level.redistributed(value, of_gradient(level.layout(self).placements))
    with level.outside():
        self.grad = value


@OVERRIDES("set_data")
def _set_data(level: Level, self: Any, value: Any) -> None:
    if isinstance(value, level.kind) is not isinstance(self, level.kind):
        raise TypeError(f"data: expected another {type(self).__name__}, got {type(value).__name__}")
    with level.outside():
        self.data = value
    if isinstance(value, level.kind):
        self.__dict__["_layout"] = level.layout(value)


@OVERRIDES("retain_grad")
def _retain_grad(level: Level, self: Tensor) -> None:
    _read(level, self, "retain_grad")


@OVERRIDES("run_backward")
def _run_backward(level: Level, roots: Any, gradients: Any, targets: Any, *flags: bool) -> Any:
    """autograd.grad and autograd.backward. What is left to reduce is reduced first."""
    settled = [level.settled(each) if isinstance(each, level.kind) else each for each in roots]
    seeds = []
    for root, gradient in zip(settled, gradients):
        if isinstance(gradient, level.kind) and isinstance(root, level.kind):
            gradient = level.redistributed(gradient, level.layout(root).placements)
        seeds.append(gradient)
    with level.outside():
        found = _C._autograd.run_backward(tuple(settled), tuple(seeds), tuple(targets), *flags)
        return found and tuple(map(lambda g, t: _of(level, g, t), found, targets))


def _of(level: Level, gradient: Any, target: Any) -> Any:
    if gradient is None or not isinstance(target, level.kind):
        return gradient
    layout = level.layout(target)
    return level.wrap(gradient, layout.placed(of_gradient(layout.placements)))

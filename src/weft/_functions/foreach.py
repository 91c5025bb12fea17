"""One operator over lists of tensors: weft._foreach_add_(parameters, gradients, alpha=-0.1).

The lists have one length; an argument that is no list goes with every tensor. In-place forms return
the list they are given, the others a tuple. The first argument is named self.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import _C, linalg
from weft._C import Tensor

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 "
    "neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)
_BINARY = "add sub mul div pow maximum minimum clamp_min clamp_max"
NAMES = frozenset(
    name + suffix
    for name in f"{_UNARY} {_BINARY} addcmul addcdiv lerp".split()
    for suffix in ("", "_")
) | {"zero_", "copy_", "norm", "max"}

# The names of the arguments behind self; those of one argument depend on its type in PyTorch.
_OTHER = (("other", "scalar", "scalars"),)
_ARGUMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys(_BINARY.split(), _OTHER),
    **dict.fromkeys(("addcmul", "addcdiv"), (("tensor1",), ("tensor2",), ("value", "scalars"))),
    "pow": (("exponent",),),
    "lerp": (("tensors1",), ("weight", "weights")),
    "norm": (("ord",), ("dtype",)),
    "copy": (("src",), ("non_blocking",)),
}


def _in_order(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """The positional arguments and those of `named` that come next, which are taken from it."""
    known = (("self",), *_ARGUMENTS.get(name, ()))
    found = list(args)
    for names in known[len(args) :]:
        given = [each for each in names if each in named]
        if not given:
            break
        found.append(named.pop(given[0]))
    return found


def _rows(name: str, tensors: Any, args: Sequence[Any]) -> list[list[Any]]:
    """The arguments of each call."""
    if not isinstance(tensors, (list, tuple)) or not tensors:
        raise RuntimeError(f"{name}: expected a list of at least one tensor, got {tensors!r}")
    columns: list[Sequence[Any]] = [tensors]
    # Of single tensors the deprecated add(x, 2, y) takes alpha by place; no form of lists does.
    lists = [isinstance(arg, (list, tuple)) for arg in args]
    if sorted(lists, reverse=True) != lists:
        raise TypeError(f"{name}: expected lists of tensors before numbers, got {args!r}")
    for arg in args:
        columns.append(arg if isinstance(arg, (list, tuple)) else [arg] * len(tensors))
        if len(columns[-1]) != len(tensors):
            raise RuntimeError(f"{name}: expected lists of {len(tensors)}, got one of {len(arg)}")
    return [list(row) for row in zip(*columns)]


def _addc(name: str) -> Callable[..., Tensor]:
    """addcmul and addcdiv with `value` as their last argument, a number or a tensor of one."""

    def call(self: Tensor, a: Tensor, b: Tensor, value: Any = 1) -> Tensor:
        number = value.item() if isinstance(value, Tensor) else value
        return getattr(self, name)(a, b, value=number)

    return call


def _limit(name: str) -> Callable[..., Tensor]:
    """maximum, minimum and their kind, of a number as well as of a tensor."""
    plain = {"maximum": "clamp_min", "minimum": "clamp_max"}.get(name.rstrip("_"), name.rstrip("_"))
    return getattr(Tensor, plain + ("_" if name.endswith("_") else ""))


def _function(operator: str) -> Callable[..., Tensor]:
    base = operator.rstrip("_")
    if base in ("addcmul", "addcdiv"):
        return _addc(operator)
    if base in ("maximum", "minimum", "clamp_min", "clamp_max"):
        return _limit(operator)
    if operator == "norm":
        return lambda x, ord=2, dtype=None: linalg.vector_norm(x, ord, dtype=dtype)
    if operator == "pow":  # the base may be a number
        return lambda x, exponent: _C.pow(x, exponent)
    return getattr(Tensor, operator)


def __getattr__(name: str) -> Any:
    operator = name.removeprefix("_foreach_")
    if operator == name or operator not in NAMES:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    function = _function(operator)

    def foreach(*args: Any, **kwargs: Any) -> Any:
        tensors, *rest = _in_order(operator.rstrip("_"), args, kwargs) or [None]
        if operator == "pow" and not isinstance(tensors, (list, tuple)):
            return tuple(function(tensors, power, **kwargs) for power in rest[0])
        if operator == "copy_" and not (rest and all(isinstance(x, Tensor) for x in rest[0])):
            raise TypeError(f"{name}: expected a list of tensors as src, got {rest}")
        if operator.startswith("addc"):  # their numbers may be a vector
            rest = [a.tolist() if isinstance(a, Tensor) and a.dim() == 1 else a for a in rest]
        results = [function(*row, **kwargs) for row in _rows(name, tensors, rest)]
        return tensors if operator.endswith("_") else tuple(results)

    foreach.__name__ = foreach.__qualname__ = name
    foreach.__doc__ = f"{operator} of each tensor of a list."
    globals()[name] = foreach
    return foreach

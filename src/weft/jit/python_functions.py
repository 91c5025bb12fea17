"""Which operators Python's own functions stand for, and weft's."""

from __future__ import annotations

import cmath
import math
import operator
import time
from functools import cache
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.public import weft
from weft.jit import operator_facts


@cache
def _functions() -> dict[int, tuple[Any, str]]:
    """Kinds by the identity of Python's own functions; the function is kept so that it stays."""
    table: list[tuple[Any, str]] = []
    for module in (math, cmath):
        for name, function in vars(module).items():
            if name in _OF_TENSORS or not callable(function):
                continue
            if operator_facts.exists(f"aten::{name}"):
                table.append((function, f"aten::{name}"))
    for name, function in vars(operator).items():
        if not callable(function) or name.startswith("_"):
            continue
        kind = _OPERATORS.get(name, f"aten::{name}")
        if name in _OPERATORS or (name in _SAME_OPERATORS and operator_facts.exists(kind)):
            table.append((function, kind))
    table += [
        (math.remainder, "aten::mathremainder"), (math.fmod, "aten::fmod"),
        (math.nextafter, "aten::mathnextafter"), (math.dist, "aten::mathdist"),
        (math.pow, "aten::pow"), (cmath.phase, "aten::angle"), (cmath.rect, "aten::polar"),
        (len, "aten::len"), (abs, "prim::abs"), (min, "prim::min"), (max, "prim::max"),
        (sum, "aten::sum"), (all, "aten::all"), (any, "aten::any"), (sorted, "aten::sorted"),
        (round, "aten::round"), (divmod, "aten::divmod"), (pow, "aten::pow"), (str, "aten::str"),
        (int, "aten::Int"), (float, "aten::Float"), (bool, "aten::Bool"),
        (complex, "aten::Complex"), (repr, "aten::repr"), (format, "aten::format_spec"),
        (chr, "aten::chr"), (ord, "aten::ord"), (hex, "aten::hex"), (oct, "aten::oct"),
        (bin, "aten::bin"), (hash, "aten::hash"), (list, "aten::list"), (dict, "aten::dict"),
        (print, "prim::Print"), (time.time, "aten::time"),
        (time.perf_counter, "aten::perf_counter"),
    ]  # fmt: skip
    if hasattr(math, "exp2"):  # since Python 3.11
        table.append((math.exp2, "aten::mathexp2"))
    return {id(function): (function, kind) for function, kind in table}


_OF_TENSORS = frozenset(("dist", "exp2", "nextafter", "prod"))  # not of numbers, as those of math
_SAME_OPERATORS = frozenset(
    ("add", "sub", "mul", "neg", "floordiv", "pow", "eq", "ne", "lt", "le", "gt", "ge", "matmul")
)
_OPERATORS = {
    "truediv": "aten::div", "mod": "aten::remainder", "and_": "aten::__and__",
    "or_": "aten::__or__", "xor": "aten::__xor__", "lshift": "aten::__lshift__",
    "rshift": "aten::__rshift__", "not_": "aten::__not__", "is_": "aten::__is__",
    "is_not": "aten::__isnot__", "invert": "aten::bitwise_not", "inv": "aten::bitwise_not",
    "abs": "prim::abs", "getitem": "aten::__getitem__", "concat": "aten::add",
    "iadd": "aten::add_", "imul": "aten::mul_",
}  # fmt: skip


def function_kind(function: Any) -> str | None:
    """The name of the operators that a Python callable stands for, or None.

    >>> import math, weft
    >>> function_kind(weft.relu), function_kind(math.sqrt), function_kind(weft.Tensor.add_)
    ('aten::relu', 'aten::sqrt', 'aten::add_')
    """
    if type(function) in (_C._OpFunction, _C._OpMethod):
        return f"aten::{function.__name__}"
    known = _functions().get(id(function))
    if known is not None:
        return known[1]
    return _by_name().get(id(function), (None, None))[1]


@cache
def _by_name() -> dict[int, tuple[Any, str]]:
    """Functions of `weft` written in Python for which there is a builtin."""
    names = (
        "tensor", "as_tensor", "manual_seed", "is_grad_enabled", "get_default_dtype",
        "promote_types", "can_cast", "is_floating_point", "is_complex", "numel", "device",
        "broadcast_shapes",
    )  # fmt: skip
    table = [(getattr(weft, name, None), f"aten::{name}") for name in names]
    found = {id(function): (function, kind) for function, kind in table if function is not None}
    for name in ("dim", "numel", "size", "stride", "is_contiguous", "is_floating_point",
                 "is_complex", "element_size", "storage_offset", "get_device", "requires_grad_",
                 "cpu", "type_as"):  # fmt: skip
        method = getattr(Tensor, name, None)
        if method is not None:
            found[id(method)] = (method, f"aten::{name}")
    return found

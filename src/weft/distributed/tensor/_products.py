"""Rules of products: factors as terms of letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft import _C
from weft.distributed.tensor._plans import Unruled, by_terms, tensors_in
from weft.distributed.tensor._rules import rule
from weft.func._operators import Operator

if TYPE_CHECKING:
    from weft.distributed.tensor._level import Level

_aten = _C._aten

_TERMS = {
    "mm": ("ij,jk", "ik"),
    "mv": ("ij,j", "i"),
    "dot": ("i,i", ""),
    "bmm": ("bij,bjk", "bik"),
    "addmm": ("ik,ij,jk", "ik"),
    "baddbmm": ("bik,bij,bjk", "bik"),
    "addmv": ("i,ij,j", "i"),
}


def _factors(level: Level, op: Operator, given: Sequence[Any], terms: Any, result: Any) -> Any:
    tensors, added = tensors_in(given), []
    if op.name.startswith(("add", "badd")):
        added = [0]
    elif op.name == "linear":
        added = list(range(2, len(tensors)))
    plan = by_terms(terms, result, tensors)
    partial = [[i] for i in range(len(terms)) if i not in added]
    return level.run(op, given, plan._replace(partial=partial, added=added))


@rule(" ".join(_TERMS))
def _product(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    left, result = _TERMS[op.name]
    terms = [t[len(t) - x.dim() :] for t, x in zip(left.split(","), tensors_in(given))]
    return _factors(level, op, given, terms, result)


@rule("linear")
def _linear(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    rows = list(range(given[0].dim() - 1))
    terms = [[*rows, "i"], "oi"[2 - given[1].dim() :], "o"]
    result = [*rows, "o"] if given[1].dim() == 2 else rows
    return _factors(level, op, given, terms[: len(tensors_in(given))], result)


@rule("matmul")
def _matmul(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    a, b = given
    outer = [list(range(min(2 - x.dim(), 0), 0)) for x in given]
    left, right = ["i"] * (a.dim() > 1), ["k"] * (b.dim() > 1)
    terms = [[*outer[0], *left, "j"], [*outer[1], "j", *right]]
    return _factors(level, op, given, terms, [*max(outer, key=len), *left, *right])


@rule("einsum")
def _einsum(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    left, arrow, result = given[0].replace(" ", "").partition("->")
    if "." in left:
        raise Unruled
    if not arrow:
        result = "".join(sorted(each for each in set(left) - {","} if left.count(each) == 1))
    return _factors(level, op, given, left.split(","), result)


@rule("_attention")
def _attention(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Sequences and features are whole; batches and heads may be cut."""
    tensors = tensors_in(given)
    outer = [[*range(2 - t.dim(), 0)] for t in tensors]
    plan = by_terms([[*o, None, None] for o in outer], [*outer[0], None, None], tensors)
    return level.run(op, given, plan)

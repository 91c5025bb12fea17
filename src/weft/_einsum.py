"""Einstein's summation as a chain of batched matrix products, from the left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import weft
from weft import Tensor


def evaluate(equation: str, tensors: list[Tensor]) -> Tensor:
    """The value of an equation such as "ij,jk->ik" for its operands."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        raise RuntimeError(f"einsum: expected {len(terms)} operands, got {len(tensors)}")
    named = [_labels(term, t.dim()) for term, t in zip(terms, tensors)]
    result = _result_labels(named, right if arrow else None)
    parts = [_diagonals(t, labels) for t, labels in zip(tensors, named)]
    value, labels = parts[0]
    for i, (other, others) in enumerate(parts[1:], 2):
        later = {label for _, names in parts[i:] for label in names}
        value, labels = _contract(value, labels, other, others, later.union(result))
    extra = [d for d, label in enumerate(labels) if label not in result]
    if extra:
        value = value.sum(extra)
    labels = [label for label in labels if label in result]
    return value.permute([labels.index(label) for label in result])


def from_lists(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation of einsum(a, [0, 1], b, [1, 2], [0, 2])."""

    def text(labels: Sequence[Any]) -> str:
        names = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        return "".join("..." if label is Ellipsis else names[label] for label in labels)

    pairs = len(arguments) // 2
    left = ",".join(text(arguments[2 * i + 1]) for i in range(pairs))
    right = f"->{text(arguments[-1])}" if len(arguments) % 2 else ""
    return left + right, tuple(arguments[2 * i] for i in range(pairs))


def _labels(term: str, dim: int) -> list[str]:
    """One label for each dimension; those of "..." count from the right: ".1" is the last."""
    before, dots, after = term.partition("...")
    named = len(before) + len(after)
    wrong = not all(c.isalpha() for c in before + after)
    if wrong or named > dim or (not dots and named != dim):
        raise RuntimeError(f"einsum: expected {term!r} to name {dim} dimensions by letters")
    return [*before, *(f".{i}" for i in range(dim - named, 0, -1)), *after]


def _result_labels(named: list[list[str]], right: str | None) -> list[str]:
    everywhere = [label for labels in named for label in labels]
    dots = sorted({x for x in everywhere if x[0] == "."}, key=lambda x: -int(x[1:]))
    if right is None:
        return dots + sorted(x for x in set(everywhere) if x[0] != "." and everywhere.count(x) == 1)
    before, ellipsis, after = right.partition("...")
    result = [*before, *(dots if ellipsis else []), *after]
    for label in result:
        if result.count(label) > 1 or label not in everywhere:
            raise RuntimeError(
                f"einsum: expected each label of the result once and among the operands, got "
                f"{label!r} in {right!r}"
            )
    return result


def _diagonals(tensor: Tensor, labels: list[str]) -> tuple[Tensor, list[str]]:
    """A label that occurs twice in one operand walks along the diagonal."""
    labels = list(labels)
    for label in [x for i, x in enumerate(labels) if x in labels[:i]]:
        first = labels.index(label)
        second = labels.index(label, first + 1)
        if tensor.size(first) != tensor.size(second):
            raise RuntimeError(
                f"einsum: expected one size for the label {label!r}, got {tensor.size(first)} "
                f"and {tensor.size(second)}"
            )
        tensor = tensor.diagonal(0, first, second)
        labels = [x for i, x in enumerate(labels) if i not in (first, second)] + [label]
    return tensor, labels


def _without(tensor: Tensor, labels: list[str], gone: set[str], how: str) -> Any:
    """The dimensions of the labels summed, or (of size 1) dropped."""
    dims = [d for d, label in enumerate(labels) if label in gone]
    if dims:
        tensor = tensor.sum(dims) if how == "sum" else tensor.squeeze(dims)
    return tensor, [label for label in labels if label not in gone]


def _contract(
    a: Tensor, in_a: list[str], b: Tensor, in_b: list[str], wanted: set[str]
) -> tuple[Tensor, list[str]]:
    """Two operands as one batched matrix product, and the labels of its dimensions."""
    both = {x for x in in_a if x in in_b}
    sizes_a, sizes_b = dict(zip(in_a, a.shape)), dict(zip(in_b, b.shape))
    for label in both:
        if sizes_a[label] != sizes_b[label] and 1 not in (sizes_a[label], sizes_b[label]):
            raise RuntimeError(
                f"einsum: expected one size for the label {label!r}, got {sizes_a[label]} "
                f"and {sizes_b[label]}"
            )
    a, in_a = _without(a, in_a, {x for x in in_a if x not in both and x not in wanted}, "sum")
    b, in_b = _without(b, in_b, {x for x in in_b if x not in both and x not in wanted}, "sum")
    # A dimension of size 1 against a longer one is broadcast: it is as good as absent.
    one_a = {x for x in both if sizes_a[x] == 1 != sizes_b[x]}
    one_b = {x for x in both if sizes_b[x] == 1 != sizes_a[x]}
    a, in_a = _without(a, in_a, one_a, "squeeze")
    b, in_b = _without(b, in_b, one_b, "squeeze")
    a, in_a = _without(a, in_a, {x for x in one_b if x not in wanted}, "sum")
    b, in_b = _without(b, in_b, {x for x in one_a if x not in wanted}, "sum")
    batch = [x for x in in_a if x in in_b and x in wanted]
    inner = [x for x in in_a if x in in_b and x not in wanted]
    rows = [x for x in in_a if x not in in_b]
    columns = [x for x in in_b if x not in in_a]
    left = a.permute([in_a.index(x) for x in batch + rows + inner])
    right = b.permute([in_b.index(x) for x in batch + inner + columns])
    labels = batch + rows + columns
    if not rows and not columns and not inner:
        return left * right, labels
    sizes = {**sizes_b, **{x: n for x, n in sizes_a.items() if x in in_a}}
    count = _count(sizes, batch)
    left = left.reshape(count, _count(sizes, rows), _count(sizes, inner))
    right = right.reshape(count, _count(sizes, inner), _count(sizes, columns))
    return weft.bmm(left, right).reshape([sizes[x] for x in labels]), labels


def _count(sizes: dict[str, int], labels: list[str]) -> int:
    return math.prod(sizes[label] for label in labels)

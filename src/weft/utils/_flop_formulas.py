"""How many floating point operations a product takes: a multiplication and an addition for each
pair of elements that meet."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

from weft._C import Tensor
from weft._functions.matrices import _with_equation
from weft._runtime.rules import Rules


class Product(NamedTuple):
    """What a product takes: the names of the operators that compute it and its gradients, its
    operations, and the operands, whose gradients take as many each."""

    name: str
    backward: str
    flops: int
    operands: tuple[Any, ...]


#: functions (result, *arguments) by the name of an operator; None says that it is no product
FORMULAS = Rules()


@FORMULAS("mm", "matmul", "__matmul__", "bmm")
def _matmul(result: Tensor, a: Tensor, b: Tensor) -> Product | None:
    """Products with a vector are none here, as in PyTorch."""
    name = "bmm" if a.dim() > 2 and b.dim() > 2 else "mm"
    flops = 2 * result.numel() * a.shape[-1]
    return Product(name, name, flops, (a, b)) if b.dim() > 1 else None


FORMULAS("__rmatmul__")(lambda result, a, b: _matmul(result, b, a))


@FORMULAS("addmm")
def _addmm(result: Tensor, self: Tensor, mat1: Tensor, mat2: Tensor, **scales: Any) -> Product:
    return Product("addmm", "mm", 2 * result.numel() * mat1.shape[-1], (mat1, mat2))


@FORMULAS("baddbmm")
def _baddbmm(
    result: Tensor, self: Tensor, batch1: Tensor, batch2: Tensor, **scales: Any
) -> Product:
    return Product("baddbmm", "bmm", 2 * result.numel() * batch1.shape[-1], (batch1, batch2))


@FORMULAS("linear")
def _linear(result: Tensor, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Product:
    flops = 2 * result.numel() * input.shape[-1]
    return Product("mm" if bias is None else "addmm", "mm", flops, (input, weight))


@FORMULAS("conv1d", "conv2d", "conv3d")
def _conv(result: Tensor, input: Tensor, weight: Tensor, *rest: Any, **options: Any) -> Product:
    flops = 2 * result.numel() * weight[0].numel()
    return Product("convolution", "convolution_backward", flops, (input, weight))


@FORMULAS("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(
    result: Tensor, input: Tensor, weight: Tensor, *rest: Any, **options: Any
) -> Product:
    flops = 2 * input.numel() * weight[0].numel()
    return Product("convolution", "convolution_backward", flops, (input, weight))


@FORMULAS("scaled_dot_product_attention")
def _attention(
    result: Tensor, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any
) -> Product:
    """Two products, the gradients of each for two operands."""
    pairs = query.numel() // max(1, query.shape[-1]) * key.shape[-2]
    flops = 2 * pairs * (query.shape[-1] + value.shape[-1])
    return Product("bmm", "bmm", flops, (query, value))


@FORMULAS("tensordot")
def _tensordot(result: Tensor, a: Tensor, b: Tensor, *dims: Any, **options: Any) -> Product:
    # [m, k] and [k, n] give [m, n]: the product of the three counts is the square of m k n.
    flops = 2 * math.isqrt(a.numel() * b.numel() * result.numel())
    return Product("mm", "mm", flops, (a, b))


@FORMULAS("einsum")
def _einsum(result: Tensor, equation: Any, *operands: Any, **options: Any) -> Product | None:
    """Of several operands two at a time, from the left."""
    text, *tensors = _with_equation(equation, *operands)
    terms = [list(each) for each in text.split("->")[0].replace(" ", "").split(",")]
    sizes: dict[str, int] = {}
    for labels, tensor in zip(terms, tensors):
        _write_out(labels, tensor.dim())
        for label, size in zip(labels, tensor.shape):
            sizes[label] = max(size, sizes.get(label, 1))
    kept = set(_written(text, result.dim()) or _once(terms))
    flops, held = 0, set(terms[0])
    for i, labels in enumerate(terms[1:], 2):
        held |= set(labels)
        flops += 2 * math.prod(sizes[label] for label in held)
        held &= kept.union(*terms[i:])
    return Product("bmm", "bmm", flops, tuple(tensors)) if len(tensors) > 1 else None


def _write_out(labels: list[str], dims: int) -> None:
    """A label for each dimension that "..." stands for, counted from the last."""
    if "." in labels:
        at = labels.index(".")
        hidden = dims - len(labels) + 3
        labels[at : at + 3] = [f".{hidden - i}" for i in range(hidden)]


def _written(text: str, dims: int) -> list[str]:
    """The labels on the right of an equation, if it has that side."""
    labels = list(text.replace(" ", "").partition("->")[2])
    _write_out(labels, dims)
    return labels


def _once(terms: list[list[str]]) -> list[str]:
    counts = Counter(label for labels in terms for label in labels)
    return [label for label, count in counts.items() if count == 1 or label[0] == "."]


@FORMULAS("_recurrent_layer")
def _recurrent(
    result: Any,
    input: Tensor,
    batch_sizes: Any,
    hidden: Tensor,
    memory: Any,
    weight_ih: Tensor,
    weight_hh: Tensor,
    *rest: Any,
) -> Product:
    rows = input.numel() // input.shape[-1]
    projection = rest[2].numel() if isinstance(rest[2], Tensor) else 0
    flops = 2 * rows * (weight_ih.numel() + weight_hh.numel() + projection)
    return Product("addmm", "mm", flops, (input, weight_ih))

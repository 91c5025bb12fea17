"""How values of several processes become one."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar

from weft._C import Tensor
from weft.autograd.grad_mode import no_grad


class ReduceOp(Enum):
    """How values of several processes become one. Those of one process stay as they are.

    AVG is the sum divided by the number of processes; BAND, BOR and BXOR take integers and bools,
    MIN and MAX no complex numbers, and give NaN where any process has one.
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7

    RedOpType: ClassVar[type[ReduceOp]]


ReduceOp.RedOpType = ReduceOp  # PyTorch has another class for SUM and its like

_INTO: dict[ReduceOp, Callable[[Tensor, Tensor], Any]] = {
    ReduceOp.SUM: Tensor.add_,
    ReduceOp.AVG: Tensor.add_,
    ReduceOp.PRODUCT: Tensor.mul_,
    ReduceOp.MIN: lambda target, source: target.copy_(target.minimum(source)),
    ReduceOp.MAX: lambda target, source: target.copy_(target.maximum(source)),
}


def reduce_into(target: Tensor, source: Tensor, op: ReduceOp) -> None:
    """target = op(target, source), by weft's kernels: where MPI does not know the dtype or NaN."""
    with no_grad():
        _INTO[op](target, source)


def check_reduction(what: str, tensor: Tensor, op: Any) -> None:
    """TypeError for what is no ReduceOp; RuntimeError for one that the dtype does not have."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{what}: expected a ReduceOp, got {op!r}")
    dtype = tensor.dtype
    is_bitwise = op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
    is_unordered = dtype.is_complex and op in (ReduceOp.MIN, ReduceOp.MAX)
    is_fraction = dtype.is_floating_point or dtype.is_complex
    if (is_bitwise and is_fraction) or is_unordered or (op is ReduceOp.AVG and not is_fraction):
        raise RuntimeError(f"{what}: expected a dtype that {op.name} takes, got {dtype}")

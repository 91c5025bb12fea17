"""Forward mode by dual numbers: a tensor and its tangent, through any operators.

Within a level operators record as for backward. `unpack_dual` has the product with the Jacobian of
all that was recorded since `make_dual`, as `weft.func.jvp` has it, so a tangent costs one backward
of a backward, when it is asked for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from weft._C import Tensor
from weft.autograd.grad_mode import is_grad_enabled, set_grad_enabled
from weft.func._forward import Forward
from weft.func._histories import History, require_tensor


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, None where it has none."""

    primal: Tensor
    tangent: Tensor | None


class _Level:
    """The dual numbers made since it was entered."""

    def __init__(self) -> None:
        self._grad_mode = is_grad_enabled()
        self.history = History(())
        self.tangents: list[Tensor] = []

    def add(self, primal: Tensor, tangent: Tensor) -> Tensor:
        self.tangents.append(tangent)
        return self.history.add(primal)

    def unpack(self, tensor: Tensor) -> UnpackedDualTensor:
        if not self.history.reaches(tensor):
            return UnpackedDualTensor(tensor, None)
        (tangent,) = Forward(self.history, [tensor]).along(self.tangents)
        return UnpackedDualTensor(self.history.leave(tensor), tangent)

"""The gradients of convolutions by their input and by their weight, as functions of their own.

>>> grad_output = weft.ones(1, 1, 2)
>>> weft.nn.grad.conv1d_input((1, 1, 3), weft.tensor([[[1.0, 2.0]]]), grad_output)
tensor([[[1., 3., 2.]]])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd._run import grad
from weft.autograd.grad_mode import is_grad_enabled, set_grad_enabled
from weft.nn import functional as F


def _gradient(name: str, by: str) -> Callable[..., Tensor]:
    """The gradient of a convolution by one operand, given its sizes and the other operand."""
    convolution = getattr(F, name)

    def run(sizes: Any, other: Tensor, grad_output: Tensor, options: tuple[Any, ...]) -> Tensor:
        differentiable = is_grad_enabled()
        with set_grad_enabled(True):
            wanted = _C.zeros(list(sizes), dtype=other.dtype, requires_grad=True)
            operands = (wanted, other) if by == "input" else (other, wanted)
            output = convolution(*operands, None, *options)
        if output.shape != grad_output.shape:
            raise RuntimeError(
                f"{name}_{by}: expected grad_output of shape {tuple(output.shape)}, got "
                f"{tuple(grad_output.shape)}"
            )
        return grad(output, wanted, grad_output, create_graph=differentiable)[0]

    def of_input(
        input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        return run(input_size, weight, grad_output, (stride, padding, dilation, groups))

    def of_weight(
        input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        return run(weight_size, input, grad_output, (stride, padding, dilation, groups))

    made = of_input if by == "input" else of_weight
    made.__name__ = made.__qualname__ = f"{name}_{by}"
    made.__doc__ = f"The gradient of {name} by its {by}. RuntimeError for shapes that do not fit."
    return made


conv1d_input, conv1d_weight = _gradient("conv1d", "input"), _gradient("conv1d", "weight")
conv2d_input, conv2d_weight = _gradient("conv2d", "input"), _gradient("conv2d", "weight")
conv3d_input, conv3d_weight = _gradient("conv3d", "input"), _gradient("conv3d", "weight")

"""Operators of a program's own: a quantiser with a straight-through gradient, a scan."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

_count = itertools.count()


def operators(torch: Any) -> tuple[Any, Any, Any]:
    """A quantiser, an exponential average along the last dimension, and the library that has them."""
    namespace = f"programs{next(_count)}"

    def quantise(x: torch.Tensor, levels: int) -> torch.Tensor:
        return torch.round(x * levels) / levels

    quantise.__annotations__ = {"x": torch.Tensor, "levels": int, "return": torch.Tensor}
    op = torch.library.custom_op(f"{namespace}::quantise", quantise, mutates_args=())
    op.register_fake(lambda x, levels: torch.empty_like(x))

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1).to(grad.dtype), None

    op.register_autograd(backward, setup_context=setup_context)

    library = torch.library.Library(namespace, "FRAGMENT")
    library.define("smooth(Tensor x, float decay) -> Tensor")

    def smooth(x: Any, decay: float) -> Any:
        rows, running = [], torch.zeros_like(x[..., 0])
        for part in x.unbind(-1):
            running = decay * running + (1 - decay) * part
            rows.append(running)
        return torch.stack(rows, -1)

    library.impl("smooth", smooth, "CompositeImplicitAutograd")
    return op, getattr(torch.ops, namespace).smooth, library


def train(torch: Any, steps: int = 50) -> list[float]:
    nn, F = torch.nn, torch.nn.functional
    quantise, smooth, _library = operators(torch)

    class Square(torch.autograd.Function):
        """x * |x|, by hand."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x.abs()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2 * ctx.saved_tensors[0].abs() * grad

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.outer = nn.Linear(12, 16), nn.Linear(16, 1)

        def forward(self, x: Any) -> Any:
            x = smooth(x, 0.5)
            x = Square.apply(torch.tanh(self.inner(x)))
            return F.linear(x, quantise(self.outer.weight, 8), self.outer.bias).squeeze(-1)

    torch.manual_seed(0)
    rng = np.random.default_rng(7)
    x = torch.from_numpy(rng.standard_normal((128, 12))).float()
    y = (x.cumsum(-1)[:, -1] / 3).tanh()
    model = Net()
    optimizer = torch.optim.Adamax(model.parameters(), lr=2e-2)
    losses = []
    for chosen in torch.arange(steps)[:, None] * 32 + torch.arange(32):
        chosen = chosen.remainder(128)
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[chosen]), y[chosen])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    values = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Square.apply, (values,))
    assert torch.autograd.gradcheck(lambda v: smooth(v, 0.3), (values,))
    return losses

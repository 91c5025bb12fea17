"""AdamW: Adam with weight decay apart from the gradient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.optim.adam import Adam
from weft.optim.optimizer import options_of


class AdamW(Adam):
    """Adam that shrinks each parameter by lr * weight_decay before its step.

    Arguments and errors are those of Adam.

    >>> p = weft.ones(1, requires_grad=True)
    >>> p.grad = weft.full((1,), 2.0)
    >>> weft.optim.AdamW([p], lr=0.1, weight_decay=1.0).step()
    >>> p
    tensor([0.8000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, **options_of(locals()), decoupled_weight_decay=True)

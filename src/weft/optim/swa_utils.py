"""Averaging of weights over training: AveragedModel, SWALR, update_bn (Izmailov et al., 2018)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.nn import Module
from weft.nn.modules.batchnorm import _BatchNorm
from weft.optim._schedule import LRScheduler, for_each, within_step
from weft.optim.optimizer import Optimizer

Averages = Callable[[list[Tensor], list[Tensor], Any], None]


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """An averaging function for AveragedModel: `decay` of the average, the rest of the new.

    Raises ValueError for a decay outside [0, 1].

    >>> average = weft.optim.swa_utils.get_ema_multi_avg_fn(0.75)
    >>> model = weft.optim.swa_utils.AveragedModel(weft.nn.Linear(1, 1), multi_avg_fn=average)
    """
    _check_decay(decay)

    @no_grad()
    def average(averaged: list[Tensor], current: list[Tensor], _: Any) -> None:
        for mean, value in zip(averaged, current):
            mean.lerp_(value.to(mean.dtype), 1 - decay)

    return average


def get_swa_multi_avg_fn() -> Averages:
    """An averaging function for AveragedModel: the mean of all models so far.

    >>> average = weft.optim.swa_utils.get_swa_multi_avg_fn()
    >>> model = weft.optim.swa_utils.AveragedModel(weft.nn.Linear(1, 1), multi_avg_fn=average)
    """

    @no_grad()
    def average(averaged: list[Tensor], current: list[Tensor], count: Any) -> None:
        for mean, value in zip(averaged, current):
            mean.add_((value.to(mean.dtype) - mean) / (float(count) + 1))

    return average


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """As get_ema_multi_avg_fn, for one tensor at a time.

    >>> average = weft.optim.swa_utils.get_ema_avg_fn(0.75)
    >>> average(weft.tensor(4.0), weft.tensor(8.0), 1)
    tensor(5.)
    """
    _check_decay(decay)
    return lambda mean, value, _: decay * mean + (1 - decay) * value


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """As get_swa_multi_avg_fn, for one tensor at a time.

    >>> average = weft.optim.swa_utils.get_swa_avg_fn()
    >>> average(weft.tensor(4.0), weft.tensor(8.0), 1)
    tensor(6.)
    """
    return lambda mean, value, count: mean + (value - mean) / (count + 1)


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"swa_utils: expected decay between 0 and 1, got {decay}")


class AveragedModel(Module):
    """A copy of `model` whose parameters are averages of what update_parameters was given.

    avg_fn(average, new, count) gives the next average of one tensor; multi_avg_fn takes lists and
    writes in place; by default the mean of all. use_buffers: averages floating buffers too, else
    takes their last values.

    >>> model = weft.nn.Linear(1, 1, bias=False)
    >>> averaged = weft.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 3.0):
    ...     _ = weft.nn.init.constant_(model.weight, value)
    ...     averaged.update_parameters(model)
    >>> averaged(weft.ones(1)).item()
    2.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("AveragedModel: expected avg_fn or multi_avg_fn, got both")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _C.tensor(0, dtype=_C.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's output."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Takes the parameters of `model` into the averages."""
        means, values = (self._averaged(m) for m in (self.module, model))
        if self.n_averaged.item() == 0:
            for mean, value in zip(means, values):
                mean.copy_(value)
        elif self.avg_fn is not None:
            for mean, value in zip(means, values):
                mean.copy_(self.avg_fn(mean, value.to(mean.dtype), self.n_averaged))
        else:
            # Whole numbers among the buffers (batch counts) cannot be averaged in their dtype.
            pairs = [(m, v) for m, v in zip(means, values) if m.is_floating_point()]
            average = self.multi_avg_fn or get_swa_multi_avg_fn()
            average([m for m, _ in pairs], [v for _, v in pairs], self.n_averaged)
            for mean, value in zip(means, values):
                if not mean.is_floating_point():
                    mean.copy_(value)
        if not self.use_buffers:
            for kept, value in zip(self.module.buffers(), model.buffers()):
                kept.copy_(value)
        self.n_averaged.add_(1)

    def _averaged(self, model: Module) -> list[Tensor]:
        buffers = list(model.buffers()) if self.use_buffers else []
        return [t.detach() for t in (*model.parameters(), *buffers)]


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of all batch norms anew, from the batches of loader.

    A batch that is a list or tuple gives its first member to the model.

    >>> norm = weft.nn.BatchNorm1d(1)
    >>> weft.optim.swa_utils.update_bn([weft.tensor([[1.0], [3.0]])], norm)
    >>> norm.running_mean
    tensor([2.])
    """
    norms = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not norms:
        return
    was_training = model.training
    model.train()
    for module in norms:
        module.reset_running_stats()
        module.momentum = None  # a plain mean over the batches
    for batch in loader:
        input = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(input if device is None else input.to(device))
    for module, momentum in norms.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Goes from each group's rate to swa_lr in anneal_epochs epochs and stays there.

    anneal_strategy: "cos" or "linear".

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> schedule = weft.optim.swa_utils.SWALR(optimizer, 0.5, 2, "linear")
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"SWALR: expected anneal_strategy 'cos' or 'linear', got {anneal_strategy!r}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"SWALR: expected anneal_epochs at least 0, got {anneal_epochs}")
        groups = optimizer.param_groups
        for group, rate in zip(groups, for_each("SWALR", groups, swa_lr)):
            group["swa_lr"] = rate
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    @within_step
    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._current()
        step = self._step_count - 1  # a schedule that is resumed begins anew
        before, now = (self._share(epoch) for epoch in (step - 1, step))
        rates = []
        for group in self.optimizer.param_groups:
            end = group["swa_lr"]
            if before == 1:
                rates.append(end)
                continue
            start = (group["lr"] - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates

    def _share(self, epoch: int) -> float:
        """How much of the way is done."""
        if self.anneal_epochs == 0:
            return 1.0
        share = max(0.0, min(1.0, epoch / self.anneal_epochs))
        return share if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * share)) / 2

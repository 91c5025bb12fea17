"""Schedules by a factor: constant, polynomial, multiplicative, and several at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.optim._schedule import LRScheduler
from weft.optim.optimizer import Optimizer


class ConstantLR(LRScheduler):
    """`factor` times the base rate for the first total_iters epochs, then the base rate.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> schedule = weft.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=1)
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1.0:
            raise ValueError(f"ConstantLR: expected factor between 0 and 1, got {factor}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._current()]
        if self.last_epoch == self.total_iters:
            return [lr * (1.0 / self.factor) for lr in self._current()]
        return self._current()

    def _at_epoch(self, base: float, epoch: int) -> float:
        return base * (1.0 if epoch >= self.total_iters else self.factor)


class PolynomialLR(LRScheduler):
    """The base rate times (1 - epoch / total_iters)**power, then 0.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> schedule = weft.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self._current()
        now, before = (1.0 - epoch / self.total_iters for epoch in self._last_two())
        return [lr * (now / before) ** self.power for lr in self._current()]

    def _last_two(self) -> tuple[int, int]:
        return self.last_epoch, self.last_epoch - 1

    def _at_epoch(self, base: float, epoch: int) -> float:
        return base * (1.0 - min(self.total_iters, epoch) / self.total_iters) ** self.power


class MultiplicativeLR(LRScheduler):
    """The last rate times lr_lambda(epoch); one function, or one per group.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> schedule = weft.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != groups:
            raise ValueError(
                f"MultiplicativeLR: expected {groups} functions, got {len(self.lr_lambdas)}"
            )
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._current()
        pairs = zip(self._current(), self.lr_lambdas)
        return [lr * factor(self.last_epoch) for lr, factor in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and the functions."""
        return {**super().state_dict(), "lr_lambdas": [None] * len(self.lr_lambdas)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what state_dict returned; the functions stay."""
        super().load_state_dict({**state_dict, "lr_lambdas": self.lr_lambdas})


class ChainedScheduler(LRScheduler):
    """Several schedules that step together: their changes multiply.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> rates = weft.optim.lr_scheduler
    >>> both = rates.ChainedScheduler([rates.ExponentialLR(optimizer, 0.5) for _ in range(2)])
    >>> optimizer.step(); both.step(); both.get_last_lr()
    [0.25]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError("ChainedScheduler: expected at least one schedule, got none")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        for scheduler in schedulers:
            if scheduler.optimizer is not self.optimizer:
                raise ValueError("ChainedScheduler: expected schedules of one optimizer, got two")
        self._schedulers = list(schedulers)
        self._last_lr = self._current()

    def step(self, epoch: int | None = None) -> None:
        """One epoch on in every schedule."""
        if epoch is not None:
            raise TypeError(f"ChainedScheduler.step: expected no epoch, got {epoch}")
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._current()

    def state_dict(self) -> dict[str, Any]:
        """The states of the schedules."""
        state = super().state_dict()
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what state_dict returned, schedule by schedule."""
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(state)
        super().load_state_dict({**state_dict, "_schedulers": self._schedulers})

"""Schedules by a factor: constant, polynomial, multiplicative."""

from __future__ import annotations

from weft.optim._schedule import ClosedFormSchedule, FunctionSchedule, within_step
from weft.optim.optimizer import Optimizer


class ConstantLR(ClosedFormSchedule):
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

    @within_step
    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._current()]
        if self.last_epoch == self.total_iters:
            return [lr * (1.0 / self.factor) for lr in self._current()]
        return self._current()

    def _at_epoch(self, base: float, epoch: int) -> float:
        return base * (1.0 if epoch >= self.total_iters else self.factor)


class PolynomialLR(ClosedFormSchedule):
    """The base rate times (1 - epoch / total_iters)**power, then 0.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> schedule = weft.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.75]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    @within_step
    def get_lr(self) -> list[float]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        epochs = (self.last_epoch, self.last_epoch - 1)
        now, before = (1.0 - epoch / self.total_iters for epoch in epochs)
        return [lr * (now / before) ** self.power for lr in self._current()]

    def _at_epoch(self, base: float, epoch: int) -> float:
        return base * (1.0 - min(self.total_iters, epoch) / self.total_iters) ** self.power


class MultiplicativeLR(FunctionSchedule):
    """The last rate times lr_lambda(epoch); one function, or one per group.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> schedule = weft.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    @within_step
    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._current()
        pairs = zip(self._current(), self.lr_lambdas)
        return [lr * factor(self.last_epoch) for lr, factor in pairs]

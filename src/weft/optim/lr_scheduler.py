"""Learning-rate schedules: call `step()` once after each epoch (or batch) of optimizer steps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from weft.optim._cyclic_schedules import (
    CosineAnnealingWarmRestarts,
    CyclicLR,
    has_betas,
    set_momentum,
)
from weft.optim._schedule import (
    ClosedFormSchedule,
    FunctionSchedule,
    LRScheduler,
    for_each,
    own,
    set_rate,
    values_of,
    within_step,
)
from weft.optim._schedule_lists import ChainedScheduler, SequentialLR
from weft.optim._simple_schedules import ConstantLR, MultiplicativeLR, PolynomialLR
from weft.optim.optimizer import Optimizer

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


_LRScheduler = LRScheduler


class LambdaLR(FunctionSchedule):
    """The base rate times lr_lambda(epoch); one function, or one per group.

    Raises ValueError for a list of functions of another length than the groups.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> schedule = weft.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    @within_step
    def get_lr(self) -> list[float]:
        pairs = zip(self.base_lrs, self.lr_lambdas)
        return [base * factor(self.last_epoch) for base, factor in pairs]


class StepLR(ClosedFormSchedule):
    """Multiplies the rate by gamma every step_size epochs.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> schedule = weft.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    @within_step
    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._current()
        return [lr * self.gamma for lr in self._current()]

    def _at_epoch(self, base: float, epoch: int) -> float:
        return base * self.gamma ** (epoch // self.step_size)


class MultiStepLR(ClosedFormSchedule):
    """Multiplies the rate by gamma at each of the given epochs.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> schedule = weft.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 30])
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    @within_step
    def get_lr(self) -> list[float]:
        times = self.milestones.get(self.last_epoch, 0)
        return [lr * self.gamma**times for lr in self._current()] if times else self._current()

    def _at_epoch(self, base: float, epoch: int) -> float:
        return base * self.gamma ** sum(n for at, n in self.milestones.items() if at <= epoch)


class ExponentialLR(ClosedFormSchedule):
    """Multiplies the rate by gamma every epoch.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> schedule = weft.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    @within_step
    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._current()
        return [lr * self.gamma for lr in self._current()]

    def _at_epoch(self, base: float, epoch: int) -> float:
        return base * self.gamma**epoch


class LinearLR(ClosedFormSchedule):
    """Goes in a straight line from start_factor to end_factor times the base rate.

    It is there after total_iters epochs. Raises ValueError for factors outside [0, 1], and for a
    start_factor of 0.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> schedule = weft.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0.0 < start_factor <= 1.0 or not 0.0 <= end_factor <= 1.0:
            raise ValueError(
                "LinearLR: expected start_factor in (0, 1] and end_factor in [0, 1], "
                f"got {start_factor} and {end_factor}"
            )
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    @within_step
    def get_lr(self) -> list[float]:
        if self._is_initial and self.last_epoch > 0:
            return self._current()
        return [lr * self._change() for lr in self._current()]

    def _change(self) -> float:
        """The factor of this epoch over that of the last one, in the form whose rounding is
        PyTorch's."""
        epoch, rise = self.last_epoch, self.end_factor - self.start_factor
        if epoch == 0:
            return self.start_factor
        if epoch > self.total_iters:
            return 1.0
        return 1.0 + rise / (self.total_iters * self.start_factor + (epoch - 1) * rise)

    def _factor(self, epoch: int) -> float:
        share = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * share

    def _at_epoch(self, base: float, epoch: int) -> float:
        return base * self._factor(epoch)


class CosineAnnealingLR(ClosedFormSchedule):
    """Follows half a cosine from the base rate to eta_min in T_max epochs, and back.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> schedule = weft.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> optimizer.step(); schedule.step(); round(schedule.get_last_lr()[0], 6)
    0.5
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    @within_step
    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._current()
        return [self._next(base, lr) for base, lr in zip(self.base_lrs, self._current())]

    def _next(self, base: float, lr: float) -> float:
        """The rate after `lr`: a step that keeps what others changed in it."""
        now = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # just at the bottom
            rise = 1 - math.cos(math.pi / self.T_max)
            return lr + (base - self.eta_min) * rise / 2
        return now / before * (lr - self.eta_min) + self.eta_min

    def _at_epoch(self, base: float, epoch: int) -> float:
        half = (1 + math.cos(math.pi * epoch / self.T_max)) / 2
        return self.eta_min + (base - self.eta_min) * half


class OneCycleLR(LRScheduler):
    """Rises to max_lr and falls far below the start within total_steps calls of step.

    cycle_momentum moves the momentum (or the first beta) the other way.

    Raises ValueError without total_steps, or epochs and steps_per_epoch, for another
    anneal_strategy, and for a step beyond the last.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0, momentum=0.9)
    >>> schedule = weft.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
    >>> round(schedule.get_last_lr()[0], 6)
    0.04
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(
                    "OneCycleLR: expected total_steps, or epochs and steps_per_epoch, got neither"
                )
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0:
            raise ValueError(f"OneCycleLR: expected total_steps above 0, got {total_steps}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR: expected anneal_strategy 'cos' or 'linear', got {anneal_strategy!r}"
            )
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(
                f"OneCycleLR: expected pct_start as a float of 0 to 1, got {pct_start}"
            )
        self.total_steps = total_steps
        self._schedule_phases = _one_cycle_phases(total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = has_betas("OneCycleLR", optimizer)
        groups = optimizer.param_groups
        for group, peak in zip(groups, for_each("OneCycleLR", groups, max_lr)):
            if last_epoch != -1:
                continue
            start = peak / div_factor
            set_rate(group, start)
            group.update(initial_lr=start, max_lr=peak, min_lr=start / final_div_factor)
            if cycle_momentum:
                group.update(max_momentum=own(max_momentum), base_momentum=own(base_momentum))
                set_momentum(group, max_momentum)
        super().__init__(optimizer, last_epoch)

    @within_step
    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"OneCycleLR: expected at most {self.total_steps} steps, got {self.last_epoch}"
            )
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._at(group, "lr"))
            if self.cycle_momentum:
                set_momentum(group, self._at(group, "momentum"))
        return rates

    def _at(self, group: dict[str, Any], option: str) -> float:
        """The option of a group at the current step, between the ends of the step's phase."""
        begin = 0.0
        for position, phase in enumerate(self._schedule_phases):
            end = phase["end_step"]
            if self.last_epoch <= end or position == len(self._schedule_phases) - 1:
                share = (self.last_epoch - begin) / (end - begin)
                start, stop = group[phase[f"start_{option}"]], group[phase[f"end_{option}"]]
                return self._between(start, stop, share)
            begin = end
        raise AssertionError("a schedule has at least one phase")

    def _between(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


def _one_cycle_phases(total: int, pct_start: float, three_phase: bool) -> list[dict[str, Any]]:
    """The phases: the last step of each, and the options of a group at its ends."""
    top = float(pct_start * total) - 1
    if three_phase:
        back = float(2 * pct_start * total) - 2
        return [
            _phase(top, "initial", "max"),
            _phase(back, "max", "initial"),
            _phase(total - 1, "initial", "min"),
        ]
    return [_phase(top, "initial", "max"), _phase(total - 1, "max", "min")]


def _phase(end_step: float, start: str, end: str) -> dict[str, Any]:
    """A phase between two rates; the momentum is low where the rate is high."""
    momentum = {"initial": "max_momentum", "max": "base_momentum", "min": "max_momentum"}
    return {
        "end_step": end_step,
        "start_lr": f"{start}_lr",
        "end_lr": f"{end}_lr",
        "start_momentum": momentum[start],
        "end_momentum": momentum[end],
    }


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by `factor` when the metric given to step has stopped improving.

    `mode` "min" waits for smaller values, "max" for larger ones; `threshold` says what counts as
    better, `patience` how many steps without are let pass. `min_lr` is the least rate, or a list of
    one for each group. Raises ValueError for a factor of 1 or more, for another mode, and for a
    list of another length than the groups; TypeError for what is no optimizer.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> schedule = weft.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    >>> for loss in (1.0, 1.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] | tuple[float, ...] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: expected factor below 1, got {factor}")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                "ReduceLROnPlateau: expected mode 'min' or 'max' and threshold_mode 'rel' or "
                f"'abs', got {mode!r} and {threshold_mode!r}"
            )
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"ReduceLROnPlateau: expected an Optimizer, got {type(optimizer).__name__}"
            )
        self.factor, self.optimizer = factor, optimizer
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = for_each("ReduceLROnPlateau", optimizer.param_groups, min_lr)
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.last_epoch = 0
        self._last_lr = values_of(optimizer, "lr")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self._reset()

    def _reset(self) -> None:
        """Forgets the metrics seen."""
        self.best = self.mode_worse
        self.cooldown_counter = self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether bad epochs do not count now."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Looks at the metric of one more epoch, or of `epoch`, with a warning."""
        value = float(metrics)
        self._warn_of(epoch)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = values_of(self.optimizer, "lr")

    def is_better(self, a: float, best: float) -> bool:
        """Whether the metric `a` is better than `best` by more than the threshold."""
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "abs":
            return sign * a < sign * best - self.threshold
        return sign * a < sign * best * (1 - sign * self.threshold)

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        for added in range(len(self.min_lrs), len(groups)):
            if self.default_min_lr is None:
                raise RuntimeError(
                    "ReduceLROnPlateau: expected a min_lr for each parameter group, "
                    f"got none for group {added}"
                )
            self.min_lrs.append(self.default_min_lr)
        for group, least in zip(groups, self.min_lrs):
            lr = max(group["lr"] * self.factor, least)
            if group["lr"] - lr > self.eps:
                set_rate(group, lr)

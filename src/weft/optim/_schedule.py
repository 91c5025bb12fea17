"""LRScheduler, the base of schedules."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from weft._C import Tensor
from weft.optim.optimizer import Optimizer


def own(value: Any) -> Any:
    """An option's value; a copy of a tensor, so that writing one place changes no other."""
    return value.clone() if isinstance(value, Tensor) else value


def values_of(optimizer: Optimizer, key: str) -> list[Any]:
    """An option of each group, tensors as copies."""
    return [own(group[key]) for group in optimizer.param_groups]


def for_each(schedule: str, groups: list[dict[str, Any]], value: Any) -> list[Any]:
    """A value for each group, from a list of them or one for all; tensors as copies."""
    values = value if isinstance(value, (list, tuple)) else [value] * len(groups)
    if len(values) != len(groups):
        raise ValueError(f"{schedule}: expected {len(groups)} values, got {len(values)}")
    return [own(one) for one in values]


def set_rate(group: dict[str, Any], lr: Any) -> None:
    """Sets the rate of a group; a tensor stays that tensor, which programs may hold."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(float(lr))
    else:
        group["lr"] = lr


def within_step(get_lr: Any) -> Any:
    """get_lr with a warning for calls from outside of `step`: many continue from the last rates,
    and give those of one more epoch."""

    @functools.wraps(get_lr)
    def run(self: LRScheduler) -> Any:
        if not self._get_lr_called_within_step:
            name = type(self).__name__
            warnings.warn(
                f"{name}.get_lr: expected a call by step; get_last_lr gives the rates set last",
                stacklevel=2,
            )
        return get_lr(self)

    return run


class LRScheduler:
    """Base of schedules that set each group's "lr".

    A subclass defines get_lr, which returns the next rate of each group; it may read
    `self.last_epoch` (0 at the start), `self.base_lrs` and the groups' current rates.

    `step` sets the rates of the next epoch; `state_dict` and `load_state_dict` save and restore
    where it is. Raises TypeError for what is no optimizer.

    >>> class Halves(weft.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [rate / 2**self.last_epoch for rate in self.base_lrs]
    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> schedule = Halves(optimizer)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"{type(self).__name__}: expected an Optimizer, got {type(optimizer).__name__}"
            )
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", own(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: expected 'initial_lr' in parameter group {number} "
                    f"to resume at epoch {last_epoch}, got none"
                )
        self.base_lrs = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._step_count = 0
        self._is_initial = False
        self._get_lr_called_within_step = False  # what get_lr of programs asks, to warn
        self._last_lr: list[float] = []
        self._initial_step()

    def _initial_step(self) -> None:
        """The step that a new schedule takes: rates that follow from the last ones stay."""
        self._step_count = 0
        self._is_initial = True
        self.step()
        self._is_initial = False

    def get_lr(self) -> list[float]:
        """The rates for `self.last_epoch`; each subclass defines its own."""
        raise NotImplementedError(f"{type(self).__name__}: expected get_lr, got none")

    def get_last_lr(self) -> list[float]:
        """The rates set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes one epoch on and sets the rates; `epoch` jumps there, from the base rates.

        Warns of an `epoch`, and where the optimizer has made no step yet: the first rate would be
        of no use.
        """
        if self._step_count == 1 and not self.optimizer._opt_called:
            warnings.warn(
                f"{type(self).__name__}.step: expected optimizer.step() before it, got none, so "
                "that the first learning rate is skipped",
                stacklevel=2,
            )
        self._warn_of(epoch)
        self._step_count += 1
        self._update_lr(epoch)

    def _warn_of(self, epoch: int | None) -> None:
        if epoch is not None:
            warnings.warn(
                f"{type(self).__name__}.step: expected no epoch, got {epoch}: jumps are deprecated",
                stacklevel=3,
            )

    def _update_lr(self, epoch: int | None = None) -> None:
        """Sets the rates of the next epoch, or those of `epoch`."""
        if epoch is None:
            self.last_epoch += 1
            self._set_rates(self.get_lr)
        else:
            self.last_epoch = epoch
            self._set_rates(self._get_closed_form_lr)

    def _set_rates(self, rates: Callable[[], list[Any]]) -> None:
        self._get_lr_called_within_step = True
        for group, lr in zip(self.optimizer.param_groups, rates()):
            set_rate(group, lr)
        self._get_lr_called_within_step = False
        self._last_lr = self._current()

    def _get_closed_form_lr(self) -> list[float]:
        """The rates for `self.last_epoch`, by a formula where the schedule has one."""
        return self.get_lr()

    def _current(self) -> list[float]:
        return values_of(self.optimizer, "lr")

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what state_dict returned."""
        vars(self).update(state_dict)


class ClosedFormSchedule(LRScheduler):
    """Base of schedules whose rates follow from the base rates and the epoch alone."""

    def _get_closed_form_lr(self) -> list[float]:
        return [self._at_epoch(base, self.last_epoch) for base in self.base_lrs]

    def _at_epoch(self, base: float, epoch: int) -> float:
        """The rate of a group at an epoch."""
        raise NotImplementedError(f"{type(self).__name__}: expected _at_epoch, got none")


def state_of(function: Any) -> dict[str, Any] | None:
    """The attributes of a callable object, which a checkpoint keeps; None for a function."""
    return None if isinstance(function, FunctionType) else dict(vars(function))


class FunctionSchedule(LRScheduler):
    """Base of schedules by one function for each group (`lr_lambdas`).

    A checkpoint has the attributes of callable objects, and None for functions.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        many = isinstance(lr_lambda, (list, tuple))
        self.lr_lambdas: list[Any] = [*lr_lambda] if many else [lr_lambda] * groups  # type: ignore[misc]
        if len(self.lr_lambdas) != groups:
            raise ValueError(
                f"{type(self).__name__}: expected {groups} functions, got {len(self.lr_lambdas)}"
            )
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and the functions."""
        state = super().state_dict()
        del state["lr_lambdas"]
        return {**state, "lr_lambdas": [state_of(function) for function in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what state_dict returned; functions stay, callable objects get their state."""
        for function, state in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if state is not None:
                vars(function).update(state)
        super().load_state_dict({**state_dict, "lr_lambdas": self.lr_lambdas})

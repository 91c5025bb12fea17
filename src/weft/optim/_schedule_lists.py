"""Schedules made of others: one after another, and several at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from weft.optim._schedule import LRScheduler, set_rate
from weft.optim.optimizer import Optimizer


class ScheduleList(LRScheduler):
    """Base of schedules that step others (`_schedulers`): a checkpoint has the states of those."""

    _schedulers: list[LRScheduler]

    def _take(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler]) -> None:
        if any(scheduler.optimizer is not optimizer for scheduler in schedulers):
            raise ValueError(f"{type(self).__name__}: expected schedules of one optimizer, got two")
        self.optimizer, self._schedulers = optimizer, list(schedulers)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the states of the schedules."""
        state = super().state_dict()
        del state["_schedulers"]
        return {**state, "_schedulers": [part.state_dict() for part in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what state_dict returned, schedule by schedule.

        Raises ValueError for another number of schedules.
        """
        states = state_dict["_schedulers"]
        if len(states) != len(self._schedulers):
            raise ValueError(
                f"{type(self).__name__}: expected states of {len(self._schedulers)} schedules, "
                f"got {len(states)}"
            )
        for part, state in zip(self._schedulers, states):
            part.load_state_dict(state)
        super().load_state_dict({**state_dict, "_schedulers": self._schedulers})


class SequentialLR(ScheduleList):
    """Runs one schedule after another; milestones are the epochs at which the next begins.

    Raises ValueError unless there is one milestone fewer than schedules.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> rates = weft.optim.lr_scheduler
    >>> parts = [rates.ConstantLR(optimizer, 0.5), rates.ExponentialLR(optimizer, 0.5)]
    >>> schedule = rates.SequentialLR(optimizer, parts, milestones=[2])
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: expected {len(schedulers) - 1} milestones for {len(schedulers)} "
                f"schedulers, got {len(milestones)}"
            )
        self._take(optimizer, schedulers)
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        for scheduler in schedulers:
            _take_back_first_step(scheduler)
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Goes one epoch on in the schedule whose turn it is."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _take_back_first_step(schedule: LRScheduler) -> None:
    """Undoes the step that each schedule takes when it is made."""
    if isinstance(schedule, ScheduleList):
        for part in schedule._schedulers:
            _take_back_first_step(part)
    else:
        schedule.last_epoch -= 1


class ChainedScheduler(ScheduleList):
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
        self._take(schedulers[0].optimizer if optimizer is None else optimizer, schedulers)
        self._last_lr = self._current()

    def step(self) -> None:  # type: ignore[override]
        """One epoch on in every schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._current()

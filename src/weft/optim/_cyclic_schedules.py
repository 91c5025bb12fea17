"""Schedules that come again: CyclicLR and CosineAnnealingWarmRestarts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft.optim._schedule import LRScheduler, for_each, set_rate, state_of, within_step
from weft.optim.optimizer import Optimizer


class CosineAnnealingWarmRestarts(LRScheduler):
    """Falls along half a cosine to eta_min in T_0 epochs, starts again, and so on.

    Each period is T_mult times as long as the one before (Loshchilov and Hutter, 2017). `step`
    takes a fraction of an epoch too.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0)
    >>> schedule = weft.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> [round(rate, 6) for rate in rates]
    [0.5, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if value < 1 or not isinstance(value, int):
                raise ValueError(
                    f"CosineAnnealingWarmRestarts: expected {name} a whole number above 0, "
                    f"got {value}"
                )
        self.T_0 = self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    @within_step
    def get_lr(self) -> list[float]:
        half = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * half for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes one epoch on, or to `epoch`, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: expected epoch at least 0, got {epoch}")
        else:
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        self._set_rates(self.get_lr)

    def _go_to(self, epoch: float) -> None:
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_i, self.T_cur = self.T_0, epoch % self.T_0
        else:
            periods = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            past = self.T_0 * (self.T_mult**periods - 1) / (self.T_mult - 1)
            self.T_i, self.T_cur = self.T_0 * self.T_mult**periods, epoch - past


class CyclicLR(LRScheduler):
    """Between base_lr and max_lr and back in step_size_up and step_size_down steps (Smith, 2017).

    mode "triangular2" halves the height with each cycle, "exp_range" multiplies it by gamma with
    each step; scale_fn replaces both, called with the number of the cycle or (scale_mode
    "iterations") of the step. cycle_momentum moves the momentum the other way.

    >>> optimizer = weft.optim.SGD([weft.ones(1)], lr=1.0, momentum=0.9)
    >>> schedule = weft.optim.lr_scheduler.CyclicLR(optimizer, 0.0, 1.0, step_size_up=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> rates
    [0.5, 1.0, 0.5, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(
                "CyclicLR: expected mode 'triangular', 'triangular2' or 'exp_range', or scale_fn, "
                f"got {mode!r}"
            )
        groups = optimizer.param_groups
        if last_epoch == -1:
            for group, lr in zip(groups, for_each("CyclicLR", groups, base_lr)):
                set_rate(group, lr)
        self.max_lrs = for_each("CyclicLR", groups, max_lr)
        down = float(step_size_up if step_size_down is None else step_size_down)
        self.total_size = float(step_size_up) + down
        self.step_ratio = float(step_size_up) / self.total_size
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else _SCALE_MODES[mode]
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = has_betas("CyclicLR", optimizer)
            self.base_momentums = for_each("CyclicLR", groups, base_momentum)
            self.max_momentums = for_each("CyclicLR", groups, max_momentum)
            for group, low, high in zip(groups, self.base_momentums, self.max_momentums):
                group.update(max_momentum=high, base_momentum=low)
                if last_epoch == -1:
                    set_momentum(group, high)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = for_each("CyclicLR", groups, base_lr)

    def scale_fn(self, x: float) -> float:
        """The height of cycle (or step) x, as a share of max_lr - base_lr."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x if self.mode == "exp_range" else 1.0

    @within_step
    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        if place <= self.step_ratio:
            height = place / self.step_ratio
        else:
            height = (place - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            limits = zip(self.base_momentums, self.max_momentums)
            for group, (low, high) in zip(self.optimizer.param_groups, limits):
                set_momentum(group, high - (high - low) * height * scale)
        limits = zip(self.base_lrs, self.max_lrs)
        return [low + (high - low) * height * scale for low, high in limits]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and scale_fn; the attributes of one that is an object."""
        state = super().state_dict()
        scale_fn = state.pop("_scale_fn_custom")
        return {**state, "_scale_fn_custom": None if scale_fn is None else state_of(scale_fn)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what state_dict returned; scale_fn stays, an object gets its state."""
        state = state_dict.get("_scale_fn_custom")
        if state is not None:
            vars(self._scale_fn_custom).update(state)
        super().load_state_dict({**state_dict, "_scale_fn_custom": self._scale_fn_custom})


_SCALE_MODES = {"triangular": "cycle", "triangular2": "cycle", "exp_range": "iterations"}


def set_momentum(group: dict[str, Any], value: float) -> None:
    """Sets the momentum of a group, or its first beta."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def has_betas(schedule: str, optimizer: Optimizer) -> bool:
    """Whether the momentum that a schedule moves is the first of the optimizer's betas.

    Raises ValueError for an optimizer with neither.
    """
    if not {"momentum", "betas"} & set(optimizer.defaults):
        raise ValueError(
            f"{schedule}: expected an optimizer with momentum or betas, or "
            f"cycle_momentum=False, got {type(optimizer).__name__}"
        )
    return "betas" in optimizer.defaults

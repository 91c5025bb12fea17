"""Join: processes with different numbers of batches.

Before each batch a process counts those that still have one. A process without batches counts too,
and stands in for the communication of the others, until nobody has any.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from weft import _C
from weft.distributed.collectives import all_reduce

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What is done for a Joinable while others go on (main_hook) and when all are done."""

    def main_hook(self) -> None:
        """Stands in for the communication of one batch."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Is called when all processes are done."""


@dataclass
class _JoinConfig:
    """What a Join tells a Joinable. The first one of several counts for all."""

    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False
    divides_by_initial: bool = True


class Joinable(ABC):
    """What takes part in a Join."""

    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook for a Join, which hands on its keyword arguments."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the communication."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group."""


class Join:
    """A block in which the processes of a group use up their batches.

    At its end, when no process has any, post_hook of each Joinable's hook is called, with whether
    this process was among the last. With throw_on_early_termination all raise RuntimeError as soon
    as one has none. ValueError for no joinables, and for different groups.
    """

    def __init__(
        self,
        joinables: list[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("Join: expected at least one joinable, got none")
        groups = {id(each.join_process_group) for each in joinables}
        if len(groups) > 1:
            raise ValueError(f"Join: expected joinables of one group, got {len(groups)} groups")
        self._joinables, self._enable, self._throws = joinables, enable, throw_on_early_termination
        self._hooks = [each.join_hook(**kwargs) for each in joinables]
        for at, each in enumerate(joinables):
            config = getattr(each, "_join_config", None) or _JoinConfig()
            config.enable, config.is_first_joinable = enable, at == 0
            config.throw_on_early_termination = throw_on_early_termination
            each._join_config = config

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if not self._enable:
            return
        for each in self._joinables:
            each._join_config.enable = False
        if kind is not None:
            return
        group, is_last = self._joinables[0].join_process_group, True
        while _count(group, 0):
            if self._throws:
                raise RuntimeError("Join: expected batches in all processes, got none in this one")
            is_last = False
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(is_last)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Is called before each batch: the number of processes that have one; None outside of a
        Join, and for all but its first joinable. RuntimeError where another has none and the Join
        says so."""
        config = getattr(joinable, "_join_config", None)
        if config is None or not (config.enable and config.is_first_joinable):
            return None
        group = joinable.join_process_group
        count = _count(group, 1)
        if config.throw_on_early_termination and count < group.size():
            raise RuntimeError(
                f"Join: expected batches in all processes, got none in {group.size() - count}"
            )
        return count


def _count(group: Any, own: int) -> int:
    """The sum over the group."""
    number = _C.frombuffer(bytearray(8), dtype=_C.int64).fill_(own)
    all_reduce(number, group=group)
    return int(number)

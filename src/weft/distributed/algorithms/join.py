"""Join: processes with different numbers of batches. One process has none to wait for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What is done for a Joinable while others go on (main_hook) and when all are done."""

    def main_hook(self) -> None:
        """Stands in for the communication of one batch."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Is called when all processes are done."""


class Joinable(ABC):
    """What takes part in a Join."""

    def __init__(self) -> None:
        super().__init__()
        self._join_config: Any = None

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

    At its end post_hook(True) of each Joinable's hook is called: the only process is the last.
    ValueError for no joinables.
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
        self._enable = enable
        self._hooks = [each.join_hook(**kwargs) for each in joinables]

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if self._enable and kind is None:
            for hook in self._hooks:
                hook.post_hook(True)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Nothing to do: no process waits for this one."""
        return None

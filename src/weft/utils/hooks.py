"""RemovableHandle: what every register_*_hook returns."""

from __future__ import annotations

import itertools
from typing import Any

_next_id = itertools.count()


class RemovableHandle:
    """Takes its hook out of the dictionary it was put in; also works as a `with` block."""

    def __init__(self, hooks: dict[int, Any]) -> None:
        self.id = next(_next_id)
        self._hooks = hooks

    @classmethod
    def insert(cls, hooks: dict[int, Any], entry: Any, *, prepend: bool = False) -> RemovableHandle:
        """Adds `entry` to `hooks`, at the end or (prepend) at the front, and returns its handle."""
        handle = cls(hooks)
        if prepend:
            others = dict(hooks)
            hooks.clear()
            hooks[handle.id] = entry
            hooks.update(others)
        else:
            hooks[handle.id] = entry
        return handle

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

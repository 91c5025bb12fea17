"""RemovableHandle: what every register_*_hook returns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

_next_id = itertools.count()


class RemovableHandle:
    """Takes its hook out of the dictionary it was put in; also works as a `with` block."""

    __module__ = "weft.utils.hooks"  # where programs find it

    def __init__(self, hooks_dict: dict[int, Any], *, extra_dict: Any = None) -> None:
        self.id = next(_next_id)
        extra = [extra_dict] if isinstance(extra_dict, dict) else extra_dict or ()
        self._dicts = (hooks_dict, *extra)

    @classmethod
    def insert(
        cls,
        hooks: dict[int, Any],
        entry: Any,
        *,
        prepend: bool = False,
        flags: Sequence[dict[int, Any]] = (),
    ) -> RemovableHandle:
        """Adds `entry` to `hooks`, at the end or (prepend) at the front, and returns its handle.

        Its id is set in each of `flags`.
        """
        handle = cls(hooks, extra_dict=flags)
        for flag in flags:
            flag[handle.id] = True
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
        for hooks in self._dicts:
            hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

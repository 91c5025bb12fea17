"""Modules of settings of a compiler that weft has not: they are kept and change nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def patcher(module: str) -> Callable[..., Any]:
    """`patch` of a module of settings: sets some for a block or for the calls of a function."""

    @contextmanager
    def patch(
        changes: str | dict[str, Any] | None = None, value: Any = None, **more: Any
    ) -> Iterator[None]:
        """Sets `patch(name, value)`, `patch({name: value})` or `patch(name=value)` for a block."""
        given = {changes: value} if isinstance(changes, str) else dict(changes or {})
        settings = vars(sys.modules[module])
        missing = object()
        before = {name: settings.get(name, missing) for name in (given | more)}
        settings.update(given | more)
        try:
            yield
        finally:
            for name, old in before.items():
                if old is missing:
                    settings.pop(name, None)
                else:
                    settings[name] = old

    return patch

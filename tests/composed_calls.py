"""Calls of the operators that hosts find in composed.weft, from Python."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import weft
from weft import _C

sys.path.append(str(Path(__file__).parent.parent / "tools"))
FILE = Path(weft.__file__).parent / "lib" / "composed.weft"


def listed() -> list[Any]:
    """The operators of the list, without what only the compiler needs."""
    from gen import composed

    found: list[Any] = composed.load()
    return found


class Operators:
    """The file, whose functions take what their schemas say."""

    def __init__(self) -> None:
        self.module = _C.CompiledModule(str(FILE))
        self.schemas = {each.schema.key: each.schema for each in listed()}

    def call(self, key: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An operator with arguments by position and by name. TypeError for names it has not."""
        names = [arg.name for arg in self.schemas[key].args]
        unknown = kwargs.keys() - names[len(args) :]
        if unknown:
            raise TypeError(f"{key}: expected other arguments than {sorted(unknown)}")
        given = {**dict(zip(names, args)), **kwargs}
        last = max((i for i, name in enumerate(names) if name in given), default=-1)
        placed = [
            _listed(arg, given.get(arg.name, arg.default))
            for arg in self.schemas[key].args[: last + 1]
        ]
        return self.module.call(key, *placed)


def _listed(arg: Any, value: Any) -> Any:
    """A number for a list of so many is that list, as weft.h takes it."""
    length = arg.type.partition("[")[2].partition("]")[0]
    if length and isinstance(value, int) and not isinstance(value, bool):
        return [value] * int(length)
    return list(value) if isinstance(value, tuple) else value

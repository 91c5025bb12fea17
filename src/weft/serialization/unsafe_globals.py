"""Names in a checkpoint that `load` would refuse."""

from __future__ import annotations

import os
import pickletools
from collections.abc import Iterator
from typing import Any

from weft._runtime.exports import list_own as _list_own
from weft.serialization.errors import LoadError
from weft.serialization.globals import find_global
from weft.serialization.source import open_source
from weft.serialization.zip_reader import ZipReader


def get_unsafe_globals_in_checkpoint(f: str | os.PathLike[str] | Any) -> list[str]:
    """The classes and functions that the file of `save` names and `load` refuses, in order.

    Nothing is loaded or executed. Those that the list has may be allowed by add_safe_globals.
    ValueError for what is no zip archive of `save`.

    >>> import io
    >>> file = io.BytesIO()
    >>> weft.save(weft.nn.Linear(1, 1), file)
    >>> _ = file.seek(0)
    >>> weft.serialization.get_unsafe_globals_in_checkpoint(file)
    ['torch.nn.modules.linear.Linear']
    """
    try:
        with open_source(f, "get_unsafe_globals_in_checkpoint") as source:
            archive = ZipReader(source)
            if "constants.pkl" in archive:
                raise LoadError("a TorchScript archive")
            names = sorted(set(_globals_of(archive.read("data.pkl", 1 << 30))))
    except LoadError as error:
        raise ValueError(
            f"get_unsafe_globals_in_checkpoint: expected a zip archive of save, got {error}"
        ) from None
    return [".".join(name) for name in names if _is_refused(*name)]


def _globals_of(pickle: bytes) -> Iterator[tuple[str, ...]]:
    """Each global, by a word for both parts of its name or by the last two strings."""
    strings: list[Any] = ["", ""]
    memo: dict[Any, Any] = {}
    operand: Any
    for opcode, operand, _ in pickletools.genops(pickle):
        if opcode.name == "GLOBAL":
            yield tuple(operand.split(" ", 1))
        elif opcode.name == "STACK_GLOBAL":
            yield tuple(strings[-2:])
        elif opcode.name == "MEMOIZE" or "PUT" in opcode.name:
            memo[len(memo) if operand is None else operand] = strings[-1]
        elif "GET" in opcode.name:
            strings.append(memo.get(operand, ""))
        elif isinstance(operand, str):
            strings.append(operand)


def _is_refused(module: str, name: str) -> bool:
    try:
        find_global(module, name)
    except LoadError:
        return True
    return False


_list_own(globals())

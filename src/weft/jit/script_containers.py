"""Lists and dicts that Python and programs share: what script() makes of a list or dict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence
from typing import Any

from weft import _C


class _Shared:
    """A container of a program, of which Python reads and writes copies."""

    def __init__(self, items: Any) -> None:
        self._jit_container = _C.JitContainer(items)

    def __len__(self) -> int:
        return len(self._jit_container.read())

    def __getitem__(self, key: Any) -> Any:
        return self._jit_container.read()[key]

    def __eq__(self, other: object) -> bool:
        held = other._jit_container.read() if isinstance(other, _Shared) else other
        return bool(self._jit_container.read() == held)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._jit_container.read())


class ScriptList(_Shared, MutableSequence[Any]):
    """A list that is passed to programs by reference: both sides see every change.

    Its items are of one type; TypeError for others. An empty one holds tensors.

    >>> import weft
    >>> @weft.jit.script
    ... def add(xs: list[int]) -> None:
    ...     xs.append(3)
    >>> numbers = weft.jit.script([1, 2])
    >>> add(numbers)
    >>> numbers
    [1, 2, 3]
    """

    def __init__(self, items: Iterable[Any]) -> None:
        super().__init__(list(items))

    def __setitem__(self, index: Any, value: Any) -> None:
        items = self._jit_container.read()
        items[index] = value
        self._jit_container.write(items)

    def __delitem__(self, index: Any) -> None:
        items = self._jit_container.read()
        del items[index]
        self._jit_container.write(items)

    def insert(self, index: int, value: Any) -> None:
        """Puts a value before the item at `index`."""
        self[index:index] = [value]

    def sort(self, reverse: bool = False) -> None:
        """Sorts the items in place."""
        self._jit_container.write(sorted(self._jit_container.read(), reverse=reverse))


class ScriptDict(_Shared, MutableMapping[Any, Any]):
    """A dict that is passed to programs by reference: both sides see every change. TypeError for
    keys and values of other types than it holds."""

    def __init__(self, items: Mapping[Any, Any]) -> None:
        super().__init__(dict(items))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._jit_container.read())

    def __setitem__(self, key: Any, value: Any) -> None:
        held = self._jit_container.read()
        for what, given, others in (("key", key, held), ("value", value, held.values())):
            if (known := {type(each) for each in others}) and type(given) not in known:
                names = " or ".join(sorted(each.__name__ for each in known))
                raise TypeError(f"ScriptDict: expected a {what} of {names}, got {given!r}")
        self._jit_container.write({**held, key: value})

    def __delitem__(self, key: Any) -> None:
        items = self._jit_container.read()
        del items[key]
        self._jit_container.write(items)

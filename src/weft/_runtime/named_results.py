"""Named tuples that print as the results of PyTorch's operators do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=type)
#: the named tuples by the names that they have in PyTorch
SHOWN: dict[str, type] = {}


def shown_as(name: str) -> Callable[[T], T]:
    """Lets a named tuple print as a `torch.return_types.name`, a line for each member."""

    def mark(kind: T) -> T:
        def __repr__(self: Any) -> str:
            members = ",\n".join(f"{key}={value!r}" for key, value in zip(self._fields, self))
            return f"torch.return_types.{name}(\n{members})"

        setattr(kind, "__repr__", __repr__)  # noqa: B010
        SHOWN[name] = kind
        return kind

    return mark

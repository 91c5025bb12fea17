"""torch._C.DispatchKey: the names of PyTorch's dispatch keys, for what libraries do with them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from enum import Enum
from typing import Any

from weft.amp import autocast

__all__ = ["DispatchKey", "DispatchKeySet", "_ExcludeDispatchKeyGuard"]

_KEYS = (
    "CPU CUDA XPU MPS Meta PrivateUse1 ADInplaceOrView Autograd AutogradCPU AutogradCUDA "
    "AutocastCPU AutocastCUDA AutocastXPU AutocastMPS Python CompositeExplicitAutograd "
    "CompositeImplicitAutograd"
)
DispatchKey = Enum("DispatchKey", _KEYS)  # type: ignore[misc]


class DispatchKeySet:
    """A set of keys: of one, of several, `a | b`, `a & b`, `a - b`."""

    def __init__(self, keys: Any) -> None:
        self._keys = frozenset([keys] if isinstance(keys, DispatchKey) else keys)

    def has(self, key: Any) -> bool:
        """Whether the key is in the set."""
        return key in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        """The set with one key more."""
        return DispatchKeySet(self._keys | {key})

    def remove(self, key: Any) -> DispatchKeySet:
        """The set without a key."""
        return DispatchKeySet(self._keys - {key})

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in _ordered(self._keys))})"


class _ExcludeDispatchKeyGuard(ExitStack):
    """A block without autocast, for the keys of autocast.

    NotImplementedError for other keys: weft dispatches without keys."""

    def __init__(self, keys: DispatchKeySet) -> None:
        super().__init__()
        others = [key.name for key in _ordered(keys._keys) if key.name[:8] != "Autocast"]
        if others:
            raise NotImplementedError(
                f"_ExcludeDispatchKeyGuard: expected keys of autocast, got {', '.join(others)}"
            )
        self._is_cpu = keys.has(DispatchKey["AutocastCPU"])

    def __enter__(self) -> _ExcludeDispatchKeyGuard:
        if self._is_cpu:
            self.enter_context(autocast("cpu", enabled=False))
        return self


def _ordered(keys: Iterable[Any]) -> list[Any]:
    return sorted(keys, key=lambda key: int(key.value))

"""weft.utils.deterministic.fill_uninitialized_memory: whether use_deterministic_algorithms(True)
also fills tensors whose contents are undefined, as those of weft.empty. True at first."""

from __future__ import annotations

import sys
import types

from weft._runtime import settings


class _Deterministic(types.ModuleType):
    """This module, with a setting among its attributes."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether memory is filled: floating numbers with NaN, others with the largest there is."""
        return settings.get_fill_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        settings.set_fill_memory(mode)


sys.modules[__name__].__class__ = _Deterministic

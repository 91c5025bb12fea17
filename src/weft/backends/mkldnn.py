"""oneDNN, which this build does not use."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft._runtime.absent import is_available as is_available

enabled = True


@contextmanager
def flags(enabled: bool = False, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Takes the switches of oneDNN for a `with` block. They have no effect.

    >>> with weft.backends.mkldnn.flags(enabled=False):
    ...     pass
    """
    yield

"""The one error class of reading, and how untrusted text is shown in its messages."""

from __future__ import annotations

import pickle


class LoadError(pickle.UnpicklingError, RuntimeError):
    """A file that is damaged, is not of the format, or holds what loading refuses."""


def shown(text: str | bytes) -> str:
    """A short printable form of text from a file, fit for one line of an error message.

    >>> shown("os.system"), shown("a\\nb"), len(shown("x" * 10_000))
    ('os.system', 'a\\\\nb', 100)
    """
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    escaped = repr(raw[:100])[2:-1]
    return escaped if len(escaped) <= 100 else escaped[:97] + "..."

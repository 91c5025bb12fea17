"""Loading weft into a process that has other libraries already."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import weft


def test_no_thread_local_memory_of_the_c_plus_plus_library_is_needed() -> None:
    """Who has loaded that library before could not load weft: its memory would have to move."""
    library = Path(weft.__file__).parent / "lib" / "libweft.so"
    assert b"__once_callable" not in library.read_bytes()  # std::call_once, std::future


@pytest.mark.parity
def test_after_pytorch() -> None:
    pytest.importorskip("torch")
    subprocess.run([sys.executable, "-c", "import torch, weft; weft.ones(2) + 1"], check=True)

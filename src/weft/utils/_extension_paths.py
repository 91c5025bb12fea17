"""Where extensions in C++ find headers and libraries."""

from __future__ import annotations

import importlib.util
import sysconfig
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """The folders of headers. NotImplementedError for a device that weft has not.

    >>> [path.rpartition("/")[2] for path in include_paths()]
    ['libtorch', 'include']
    """
    _check_device(device_type)
    return [str(PACKAGE / "include" / "libtorch"), str(PACKAGE / "include")]


def library_paths(
    device_type: str = "cpu", torch_include_dirs: bool = True, cross_target_platform: Any = None
) -> list[str]:
    """The folders of libraries."""
    _check_device(device_type)
    return [str(PACKAGE / "lib")]


def _check_device(device_type: str) -> None:
    if device_type != "cpu":
        raise NotImplementedError(f"cpp_extension: expected 'cpu', got {device_type!r}")


def python_include_paths() -> list[str]:
    """Folders of Python's and pybind11's headers."""
    found = importlib.util.find_spec("pybind11")
    if found is None or found.origin is None:
        raise NotImplementedError(
            "cpp_extension: expected pybind11 for a module in C++ (pip install pybind11), got none"
        )
    return [sysconfig.get_paths()["include"], str(Path(found.origin).parent / "include")]

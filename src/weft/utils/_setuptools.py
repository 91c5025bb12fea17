"""What setup.py of an extension in C++ needs of `weft.utils.cpp_extension`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from setuptools import Extension
from setuptools.command.build_ext import build_ext

from weft.utils._extension_paths import include_paths, library_paths, python_include_paths


def CppExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """A `setuptools.Extension` with the folders and libraries that such sources need."""

    def more(key: str, *values: Any) -> None:
        kwargs[key] = [*kwargs.get(key, ()), *values]

    more("include_dirs", *include_paths(), *python_include_paths())
    more("library_dirs", *library_paths())
    more("runtime_library_dirs", *library_paths())
    more("libraries", "weft")
    more("define_macros", ("TORCH_EXTENSION_NAME", name.rpartition(".")[2]))
    given = kwargs.get("extra_compile_args", [])
    flags = given.get("cxx", []) if isinstance(given, dict) else given
    kwargs["extra_compile_args"] = ["-std=c++17", *flags]
    return Extension(name, list(sources), *args, language="c++", **kwargs)


class BuildExtension(build_ext):
    """The command of setup.py that builds a CppExtension."""

    @classmethod
    def with_options(cls, **options: Any) -> Any:
        """The command: PyTorch's options (use_ninja, ...) change nothing."""
        return cls

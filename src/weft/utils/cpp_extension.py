"""Extensions in C++ that were written for libtorch, built against weft's headers of it
(docs/deploy.md). They need a C++ compiler; modules for Python need pybind11, too.

    module = load("my", ["my.cpp"])                    # PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
    load("my", ["my.cpp"], is_python_module=False)     # TORCH_LIBRARY(my, m): weft.ops.my
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft import ops
from weft._runtime import lazy
from weft.utils._extension_paths import PACKAGE, python_include_paths
from weft.utils._extension_paths import include_paths as include_paths
from weft.utils._extension_paths import library_paths as library_paths

__all__ = [
    "BuildExtension",  # noqa: F822
    "CppExtension",  # noqa: F822
    "get_default_build_root",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
]


IS_WINDOWS, IS_MACOS, IS_LINUX = False, False, True
SHARED_FLAG, EXEC_EXT, LIB_EXT = "-shared", "", ".so"
CLIB_PREFIX, CLIB_EXT = "lib", ".so"
TORCH_LIB_PATH = library_paths()[0]
#: folders of toolkits that weft has no use for
CUDA_HOME = ROCM_HOME = CUDNN_HOME = SYCL_HOME = None


def get_default_build_root() -> str:
    """The folder below which extensions are built, by default: TORCH_EXTENSIONS_DIR, or the user's
    cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("TORCH_EXTENSIONS_DIR") or os.path.join(cache, "weft_extensions")


def load(
    name: str,
    sources: str | Sequence[str],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
) -> Any:
    """Builds sources in C++ to a library and loads it: gives the module that they define, or with
    `is_python_module=False` registers their operators. What is built already, of the same sources
    and options, is taken as it is; headers that sources include are not looked at.

    RuntimeError with what the compiler said where it fails; NotImplementedError for sources in
    CUDA, for programs (`is_standalone`), and for modules where pybind11 is missing.
    """
    sources = [sources] if isinstance(sources, str) else list(sources)
    if with_cuda or with_sycl or any(source.endswith((".cu", ".sycl")) for source in sources):
        raise NotImplementedError(f"load: expected sources in C++ for the CPU, got {sources}")
    if is_standalone:
        raise NotImplementedError("load: expected a library, got is_standalone=True")
    folder = Path(build_directory or os.path.join(get_default_build_root(), name))
    folder.mkdir(parents=True, exist_ok=True)
    includes = [*include_paths(), *(python_include_paths() if is_python_module else ())]
    flags = ["-std=c++17", "-O2", "-fPIC", f"-DTORCH_EXTENSION_NAME={name}"]
    flags += [f"-I{path}" for path in (*(extra_include_paths or ()), *includes)]
    flags += extra_cflags or ()
    library = _built(folder, name, sources, flags, list(extra_ldflags or ()), verbose)
    return _imported(name, library) if is_python_module else ops.load_library(str(library))


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: Any = None,
    sycl_sources: Any = None,
    functions: str | Sequence[str] | dict[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
) -> Any:
    """`load` of sources that are given as texts. `functions`: names of those that the module has,
    or a dict of their docstrings."""
    if cuda_sources or sycl_sources:
        raise NotImplementedError("load_inline: expected sources in C++ for the CPU, got others")
    texts = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    header = "" if no_implicit_headers else "#include <torch/extension.h>\n"
    if not is_python_module:
        header = header.replace("extension.h", "library.h")
    if functions is not None:
        names = [functions] if isinstance(functions, str) else functions
        docs = names if isinstance(names, dict) else {each: each for each in names}
        lines = [f'm.def("{each}", &{each}, R"({doc})");' for each, doc in docs.items()]
        texts.append(f"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{\n{chr(10).join(lines)}\n}}\n")
        texts = ["\n".join(texts)]
    folder = Path(build_directory or os.path.join(get_default_build_root(), name))
    folder.mkdir(parents=True, exist_ok=True)
    sources = []
    for i, text in enumerate(texts):
        source = folder / f"inline_{i}.cpp"
        source.write_text(header + text)
        sources.append(str(source))
    return load(
        name, sources, extra_cflags, extra_ldflags=extra_ldflags,
        extra_include_paths=extra_include_paths, build_directory=str(folder), verbose=verbose,
        with_cuda=with_cuda, with_sycl=with_sycl, is_python_module=is_python_module,
    )  # fmt: skip


def is_ninja_available() -> bool:
    """Whether Ninja can be run; nothing here needs it."""
    return shutil.which("ninja") is not None


_OF_SETUPTOOLS = dict.fromkeys(("BuildExtension", "CppExtension"), "weft.utils._setuptools")
__getattr__ = lazy.names(__name__, _OF_SETUPTOOLS)


def _built(
    folder: Path, name: str, sources: list[str], flags: list[str], links: list[str], verbose: bool
) -> Path:
    """The library of the sources. Its name tells what it was built of."""
    digest = hashlib.sha256(repr((flags, links, _version())).encode())
    for source in sources:
        digest.update(Path(source).read_bytes())
    library = folder / f"{name}_{digest.hexdigest()[:16]}.so"
    if library.exists():
        return library
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    made = library.with_suffix(f".{os.getpid()}")
    ends = [f"-L{path}" for path in library_paths()] + ["-lweft", "-pthread"]
    ends += [f"-Wl,-rpath,{path}" for path in library_paths()]
    command = [*compiler, "-shared", *flags, *sources, *links, *ends, "-o", str(made)]
    if verbose:
        print(shlex.join(command))
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"load: expected sources that compile, got\n{done.stderr.strip()}")
    made.replace(library)
    return library


def _version() -> str:
    """Of the headers: what they say changes with the library beside them."""
    library = PACKAGE / "lib" / "libweft.so"
    return str(library.stat().st_mtime_ns)


def _imported(name: str, library: Path) -> Any:
    """The module of an extension, as its own function makes it."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError(f"load: expected the name of a module, got {name!r}")
    loader = importlib.machinery.ExtensionFileLoader(name, str(library))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module

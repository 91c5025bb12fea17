"""Objects of LLVM modules, by the library of llvmlite.

The library is called directly where its functions are known (`_C._llvm_object`): importing the
package's Python takes a third of the time of a first compilation, and each of its calls would wait
for the interpreter lock. Elsewhere the package is used as it is.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

from weft import _C
from weft._kernels.target import is_x86
from weft.jit.native.compose import NotCompiled

# Versions 0.x of llvmlite whose functions have the signatures of csrc/bindings/jit_llvm.cpp.
CHECKED = range(45, 51)
_machines: dict[Any, Any] = {}  # code generators


def is_installed() -> bool:
    """Whether llvmlite can be imported, which this does not do."""
    return _folder() is not None


def object_of(text: str, triple: str, target: Any) -> bytes:
    """Machine code of a module. Raises NotCompiled without llvmlite."""
    library = _library()
    # Where the program uses llvmlite itself, it may be setting it up at this moment.
    is_own = triple.startswith("x86_64") == is_x86()  # the library knows the own machine only
    is_free = "llvmlite.binding" not in sys.modules
    if library is not None and is_own and is_free and is_checked():
        return _C._llvm_object(library, text, triple, target.cpu, target.features)
    try:
        return by_package(text, target, triple)
    except ImportError:
        raise NotCompiled("expected llvmlite (pip install weft[compile])") from None


def by_package(text: str, target: Any, triple: str) -> bytes:
    """The same through llvmlite's own functions."""
    # Ahead of the import, which would hold the interpreter lock for 10 ms while it loads.
    library = _library()
    if library is not None:
        _C._load_library(library)
    import llvmlite.binding as llvm

    key = (triple, target.cpu, target.features)
    if key not in _machines:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        _machines[key] = llvm.Target.from_triple(triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="default"
        )
    return bytes(_machines[key].emit_object(llvm.parse_assembly(text)))


def is_checked() -> bool:
    """Whether the version of llvmlite is one of those that may be called directly."""
    from llvmlite import __version__

    numbers = __version__.split(".")
    return numbers[0] == "0" and numbers[1].isdigit() and int(numbers[1]) in CHECKED


def _library() -> str | None:
    """Where llvmlite's library is."""
    folder = _folder()
    path = os.path.join(folder, "binding", "libllvmlite.so") if folder is not None else ""
    return path if os.path.exists(path) else None


def _folder() -> str | None:
    try:
        found = importlib.util.find_spec("llvmlite")
    except (ImportError, ValueError):  # its import is blocked
        return None
    folders = found.submodule_search_locations if found is not None else None
    return next(iter(folders or ()), None)

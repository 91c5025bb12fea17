"""Objects of LLVM modules, by llvmlite."""

from __future__ import annotations

import importlib.util
from typing import Any

from weft.jit.native.compose import NotCompiled

_machines: dict[Any, Any] = {}  # code generators


def is_installed() -> bool:
    """Whether llvmlite can be imported, which this does not do."""
    try:
        return importlib.util.find_spec("llvmlite") is not None
    except (ImportError, ValueError):  # its import is blocked
        return False


def object_of(text: str, triple: str, target: Any) -> bytes:
    """Machine code of a module. Raises NotCompiled without llvmlite."""
    try:
        import llvmlite.binding as llvm
    except ImportError:
        raise NotCompiled("expected llvmlite (pip install weft[compile])") from None
    key = (triple, target.cpu, target.features)
    if key not in _machines:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        _machines[key] = llvm.Target.from_triple(triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="default"
        )
    return bytes(_machines[key].emit_object(llvm.parse_assembly(text)))

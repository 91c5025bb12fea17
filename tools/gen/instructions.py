"""jit_instructions.h: the instructions of programs, from src/weft/jit/codegen/instructions.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_TABLE = Path(__file__).resolve().parents[2] / "src/weft/jit/codegen/instructions.py"


def header() -> str:
    """The table as an X-macro. The file is loaded by itself: its package needs the extension."""
    spec = importlib.util.spec_from_file_location("weft_jit_instructions", _TABLE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.header()

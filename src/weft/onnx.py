"""Exports to ONNX, which weft has none of yet: only what models ask about them.

>>> weft.onnx.is_in_onnx_export()
False
"""

from __future__ import annotations

__all__ = ["is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """False: no export is under way."""
    return False

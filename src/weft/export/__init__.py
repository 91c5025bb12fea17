"""Programs of operators, without Python's control flow: made by running a module once, saved as
files that PyTorch reads, and read from those that it wrote.

>>> program = weft.export.export(weft.nn.Linear(2, 3), (weft.ones(4, 2),))
>>> program.module()(weft.ones(4, 2)).shape
torch.Size([4, 3])
"""

from __future__ import annotations

from typing import Any

from weft._runtime.exports import list_exports as _list_exports
from weft.export._files import load as load
from weft.export._files import save as save
from weft.export._trace import export as export
from weft.export.dynamic_shapes import Dim as Dim
from weft.export.dynamic_shapes import dims as dims
from weft.export.exported_program import ExportedProgram as ExportedProgram
from weft.export.exported_program import ModuleCallEntry as ModuleCallEntry
from weft.export.exported_program import ModuleCallSignature as ModuleCallSignature
from weft.export.graph_signature import ExportGraphSignature as ExportGraphSignature
from weft.utils import _pytree


def register_dataclass(cls: Any, *, serialized_type_name: str | None = None) -> None:
    """Lets arguments and results of exported modules be objects of a dataclass.
    serialized_type_name: its name in files, by default that of the class with its module.

    >>> from dataclasses import make_dataclass
    >>> register_dataclass(make_dataclass("Batch", ["x", "y"]))
    """
    name = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"
    _pytree.register_dataclass(cls, serialized_type_name=name)


_list_exports(vars())

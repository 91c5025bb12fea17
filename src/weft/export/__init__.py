"""Programs of operators, without Python's control flow: made by running a module once, saved as
files that PyTorch reads, and read from those that it wrote.

>>> program = weft.export.export(weft.nn.Linear(2, 3), (weft.ones(4, 2),))
>>> program.module()(weft.ones(4, 2)).shape
torch.Size([4, 3])
"""

from __future__ import annotations

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

_list_exports(vars())

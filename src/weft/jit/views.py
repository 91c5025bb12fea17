"""What can be seen of programs and written from them. A program runs without."""

from weft.jit import graph_view, pipeline
from weft.jit.archive import code_text, writer

__all__ = ["code_text", "graph_view", "pipeline", "writer"]

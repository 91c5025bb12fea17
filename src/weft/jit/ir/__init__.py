"""Typed, structured SSA: the program between the frontend, the passes and the code generator."""

from weft.jit.ir.clone import clone_block_into, clone_node
from weft.jit.ir.graph import Block, Function, Graph, Node, Use, Value
from weft.jit.ir.literals import type_of_constant
from weft.jit.ir.parser import parse_ir
from weft.jit.ir.printer import print_graph
from weft.jit.ir.reader import IRSyntaxError
from weft.jit.ir.source import Source, SourceRange
from weft.jit.ir.types import *  # noqa: F403
from weft.jit.ir.types import __all__ as _types
from weft.jit.ir.value import ShapeInfo
from weft.jit.ir.verify import VerifyError, verify

__all__ = [
    "Block",
    "Function",
    "Graph",
    "IRSyntaxError",
    "Node",
    "ShapeInfo",
    "Source",
    "SourceRange",
    "Use",
    "Value",
    "VerifyError",
    "clone_block_into",
    "clone_node",
    "parse_ir",
    "print_graph",
    "type_of_constant",
    "verify",
]
__all__ += _types

"""Typed, structured SSA: the program between the frontend, the passes and the code generator."""

from weft.jit.ir.clone import clone_block_into as clone_block_into
from weft.jit.ir.clone import clone_node as clone_node
from weft.jit.ir.graph import Block as Block
from weft.jit.ir.graph import Function as Function
from weft.jit.ir.graph import Graph as Graph
from weft.jit.ir.graph import Node as Node
from weft.jit.ir.graph import Use as Use
from weft.jit.ir.graph import Value as Value
from weft.jit.ir.literals import type_of_constant as type_of_constant
from weft.jit.ir.parser import parse_ir as parse_ir
from weft.jit.ir.printer import print_graph as print_graph
from weft.jit.ir.reader import IRSyntaxError as IRSyntaxError
from weft.jit.ir.source import Source as Source
from weft.jit.ir.source import SourceRange as SourceRange
from weft.jit.ir.types import *  # noqa: F403
from weft.jit.ir.value import ShapeInfo as ShapeInfo
from weft.jit.ir.verify import VerifyError as VerifyError
from weft.jit.ir.verify import verify as verify

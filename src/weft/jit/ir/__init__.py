"""Typed, structured SSA: the program between the frontend, the passes and the code generator."""

import importlib
from typing import TYPE_CHECKING, Any

from weft.jit.ir.clone import clone_block_into, clone_node
from weft.jit.ir.function import Function
from weft.jit.ir.graph import Block, Graph, Node, Use, Value
from weft.jit.ir.literals import type_of_constant
from weft.jit.ir.reader import IRSyntaxError
from weft.jit.ir.relations import bind, has_variables, is_subtype, substitute, unify
from weft.jit.ir.shape import ShapeInfo
from weft.jit.ir.source import Source, SourceRange
from weft.jit.ir.type_text import parse_type
from weft.jit.ir.types import (
    ANY,
    BASE_TYPES,
    BOOL,
    COMPLEX,
    DEVICE,
    DTYPE,
    FLOAT,
    GENERATOR,
    INT,
    LAYOUT,
    MEMORY_FORMAT,
    NONE,
    NUMBER,
    STR,
    TENSOR,
    Argument,
    Attribute,
    BaseType,
    ClassType,
    DictType,
    EnumType,
    EnumValue,
    FunctionSchema,
    FutureType,
    InterfaceType,
    ListType,
    NamedType,
    OptionalType,
    TupleType,
    Type,
    TypeVar,
    UnionType,
    members_of,
    non_none,
    optional_of,
    union_of,
)
from weft.jit.ir.verify import VerifyError, verify

if TYPE_CHECKING:
    from weft.jit.ir.parser import parse_ir
    from weft.jit.ir.printer import print_graph

# What compiling a program does not need.
_LATER = {"parse_ir": "parser", "print_graph": "printer"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'weft.jit.ir' has no attribute {name!r}")
    module = importlib.import_module(f"weft.jit.ir.{_LATER[name]}")
    globals()[name] = found = getattr(module, name)
    return found


__all__ = [
    "ANY",
    "BASE_TYPES",
    "BOOL",
    "COMPLEX",
    "DEVICE",
    "DTYPE",
    "FLOAT",
    "GENERATOR",
    "INT",
    "LAYOUT",
    "MEMORY_FORMAT",
    "NONE",
    "NUMBER",
    "STR",
    "TENSOR",
    "Argument",
    "Attribute",
    "BaseType",
    "Block",
    "ClassType",
    "DictType",
    "EnumType",
    "EnumValue",
    "Function",
    "FunctionSchema",
    "FutureType",
    "Graph",
    "IRSyntaxError",
    "InterfaceType",
    "ListType",
    "NamedType",
    "Node",
    "OptionalType",
    "ShapeInfo",
    "Source",
    "SourceRange",
    "TupleType",
    "Type",
    "TypeVar",
    "UnionType",
    "Use",
    "Value",
    "VerifyError",
    "bind",
    "clone_block_into",
    "clone_node",
    "has_variables",
    "is_subtype",
    "members_of",
    "non_none",
    "optional_of",
    "parse_ir",
    "parse_type",
    "print_graph",
    "substitute",
    "type_of_constant",
    "unify",
    "union_of",
    "verify",
]

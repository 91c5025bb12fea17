"""The frontend: Python source to the IR.

compiler.py    what compiles one function; its methods look up their rules in registry.py
values.py      what an expression means while it is compiled
source/        source texts, what their names mean, what is refused
types/         types, and what values of classes, modules and tuples can do
language/      statements and expressions
library/       Python's builtins and standard library; prelude.py is in the language itself

Importing the package registers every rule. Nothing inside imports from the package itself.
"""

# ruff: noqa: F401
from weft.jit.frontend.language import (
    assignment,
    attributes,
    calls,
    comparison,
    conditions,
    context_managers,
    conversions,
    displays,
    expressions,
    generic,
    iteration,
    loops,
    objects,
    operators,
    python_objects,
    statements,
    strings,
    subscripts,
)
from weft.jit.frontend.language.functions import compile_function
from weft.jit.frontend.library import (
    containers,
    dataclass_methods,
    math,
    methods,
    numbers,
    special_calls,
)
from weft.jit.frontend.library import objects as library_objects
from weft.jit.frontend.source.errors import FrontendError, NotSupportedError
from weft.jit.frontend.types import class_attributes, class_methods, class_values, classes, modules
from weft.jit.frontend.types.classes import enum_type

__all__ = ["FrontendError", "NotSupportedError", "compile_function", "enum_type"]

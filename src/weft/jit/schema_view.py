"""A signature with PyTorch's names: what `.schema` of programs gives.

>>> import weft
>>> schema = weft.jit.CompilationUnit("def f(x, n: int = 2) -> int: return n").f.schema
>>> [(each.name, str(each.type), each.default_value) for each in schema.arguments]
[('x', 'Tensor', None), ('n', 'int', 2)]
"""

from __future__ import annotations

from typing import Any

from weft.jit.ir.types import Argument, FunctionSchema


class ArgumentView:
    """A parameter or result: torch._C.Argument. No argument of a program is by keyword only."""

    kwarg_only = False

    def __init__(self, argument: Argument) -> None:
        self.name = argument.name
        self.type = self.real_type = argument.type
        self.default_value: Any = argument.default
        self._has_default = argument.has_default

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self._has_default


class SchemaView:
    """Names, types and defaults of arguments, and the type of the result:
    torch._C.FunctionSchema."""

    overload_name = ""

    def __init__(self, schema: FunctionSchema) -> None:
        self._schema = schema
        self.name = schema.name

    @property
    def arguments(self) -> list[ArgumentView]:
        """The parameters in order; `self` of a method among them."""
        return list(map(ArgumentView, self._schema.args))

    @property
    def returns(self) -> list[ArgumentView]:
        """The result."""
        return [ArgumentView(Argument("", self._schema.returns))]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaView) and self._schema == other._schema

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return str(self._schema)

    __repr__ = __str__

"""Compiled methods as Python objects."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from weft._C import Tensor
from weft.jit.compiled_function import CompiledFunction, Program
from weft.jit.ir import Function
from weft.jit.module_methods import compiled_method, executable_method


class ScriptMethod(Program):
    """A compiled method of a module: callable, with its graph, code and schema."""

    def __init__(self, owner: Any, name: str) -> None:
        self.owner = owner
        self.name = self.__name__ = name

    @functools.cached_property
    def function(self) -> Function:
        """The function of the IR."""
        return compiled_method(self.owner._jit_info, self.name).function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return executable_method(self.owner._jit_info, self.name)(
            self.owner._jit_object, *args, **kwargs
        )

    @property
    def _program(self) -> Function:
        return self.function

    def _parameters_of(self) -> Iterable[Tensor]:
        return self.owner.parameters()

    schema = CompiledFunction.schema

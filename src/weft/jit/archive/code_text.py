"""What `.code` and `.code_with_constants` of programs show: the text that an archive would have."""

from __future__ import annotations

import types as python_types
from typing import Any

from weft.jit.archive.collect import Collector
from weft.jit.archive.printer import FunctionPrinter, Program, joined
from weft.jit.ir import Function
from weft.jit.ir import types as ty


def code_of(function: Function) -> str:
    """The function as text of TorchScript's dialect.

    >>> from weft import jit
    >>> print(jit.CompilationUnit("def f(x, n: int): return x + n").f.code)
    def f(x: Tensor,
        n: int) -> Tensor:
      _0 = torch.add(x, n)
      return _0
    <BLANKLINE>
    """
    return code_with_constants(function)[0]


def code_with_constants(function: Function) -> tuple[str, Any]:
    """The text, in which tensors are CONSTANTS.c0, CONSTANTS.c1, ...; and an object that has these
    as attributes (`const_mapping` is the dict of them)."""
    collector = Collector(portable=False)
    collector.function(function)
    program = Program(collector)
    owner, _, name = function.name.rpartition(".")
    first = function.graph.inputs[0].type if function.graph.inputs else None
    is_method = isinstance(first, ty.ClassType) and first.name == owner
    text = joined(FunctionPrinter(program, function).whole(name, "" if is_method else None))
    named = {f"c{number}": each for number, each in enumerate(program.constants.tensors)}
    constants = python_types.SimpleNamespace(**named)
    constants.const_mapping = named
    return text, constants

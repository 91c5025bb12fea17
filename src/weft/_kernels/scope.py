"""The nodes of one stretch of a kernel under their names in LLVM IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import nodes
from .expr import Expr
from .kernel import POSITION_SLOT, ROW_LENGTH_SLOT
from .llvm_text import literal, llvm_type
from .types import I64

if TYPE_CHECKING:
    from .lower import Function


class Scope:
    """Names of the nodes in one stretch of code, at one number of lanes and one element index."""

    def __init__(self, function: Function, lanes: int, index: str | None):
        self.function, self.lanes, self.index = function, lanes, index
        self.target = function.target
        self._names: dict[int, str] = {}
        self._bound: dict[tuple[str, int, int], str] = {}
        self._equal: dict[tuple[object, ...], str] = {}
        self._loads: dict[int, list[str]] = {}

    def bind(self, e: Expr, name: str) -> None:
        self._bound[e.value] = name

    def get(self, e: Expr) -> str:
        """The name of a node's value; writes what it needs first."""
        name = self._names.get(id(e))
        if name is None:
            name = self._names[id(e)] = self._write(e)
            self.function.alive.append(e)
        return name

    def _write(self, e: Expr) -> str:
        f = self.function
        if e.op == "const":
            return literal(e.value, e.dtype, self.lanes)
        if e.op == "cases":
            return self.get(f.chosen(e))
        if e.op == "source" and e.value in self._bound:
            return self._bound[e.value]
        if self is not f._once and not self._bound and f.is_uniform(e):
            return f.uniform(e, self.lanes)
        if e.op == "source":
            return self._source(e)
        expanded = nodes.expand(e, self.target)
        if expanded is not None:
            f.alive.append(expanded)
            return self.get(expanded)
        args = [self.get(a) for a in e.args]
        key = (e.op, e.dtype, e.value, *args, *(a.dtype for a in e.args))
        if key not in self._equal:
            self._equal[key] = nodes.write(self, e, args)
        return self._equal[key]

    def _source(self, e: Expr) -> str:
        kind, index, part = e.value
        f = self.function
        if kind == "length":
            return f.load_scalar(ROW_LENGTH_SLOT, I64, 0)
        if kind == "position":
            return self._position()
        if (kind, index) in f.kernel.scalars:
            slot, d = f.kernel.scalars[kind, index]
            return f.load_scalar(slot, d.real, part)
        operand = f.kernel.inputs[kind, index]
        assert self.index is not None
        if operand not in self._loads:
            self._loads[operand] = f.load_parts(operand, self.index, self.lanes)
        return self._loads[operand][part]

    def _position(self) -> str:
        f = self.function
        base = f.load_scalar(POSITION_SLOT, I64, 0)
        if not f.kernel.tile_position:
            return base
        first = f.emit(f"add i64 {base}, {self.index}")
        if self.lanes == 1:
            return first
        steps = ", ".join(f"i64 {i}" for i in range(self.lanes))
        wide = f.splat(first, I64, self.lanes)
        return f.emit(f"add {llvm_type(I64, self.lanes)} {wide}, <{steps}>")

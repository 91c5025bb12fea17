"""A tile driver of a page, in Python: runs traced programs on rows, horizontally and vertically."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernel_support import FIRST_ATTRIBUTE, NUMPY, Compiled, DType, Program, slots

from weft._kernels.program import Step


class Machine:
    """A row of the table, compiled for one compute dtype and instruction set."""

    def __init__(self, program: Program, compute: DType, isa: str):
        self.traced = program.traced[compute]
        kernels = {
            f"step{i}_{role}": kernel
            for i, step in enumerate(self.traced.steps)
            for role, kernel in step.kernels.items()
        }
        self.compiled = Compiled(kernels, isa)

    def run(
        self,
        inputs: list[np.ndarray],
        attributes: tuple[Any, ...] = (),
        vertical: bool = False,
        tile: int = 37,
    ) -> list[np.ndarray]:
        """inputs: [rows, row length], or [rows] of one value a row. Results of one value a row have shape [rows]."""
        self.rows, self.length = inputs[0].shape
        self.attributes, self.tile = attributes, tile
        self.arrays: list[np.ndarray] = []
        for slot in self.traced.slots:
            if slot.kind == "Input" or (slot.kind == "Row" and slot.per_row):
                array = np.ascontiguousarray(inputs[slot.index])
            else:
                per_row = slot.kind == "Row" or slot.per_row
                shape = (self.rows,) if per_row else (self.rows, self.length)
                array = np.zeros(shape, NUMPY[slot.dtype.name])
            # Vertically, rows are the contiguous axis.
            self.arrays.append(np.ascontiguousarray(array.T) if vertical else array)
        for first, count in self.traced.passes:
            (self._vertical if vertical else self._horizontal)(range(first, first + count))
        outputs = [i for i, s in enumerate(self.traced.slots) if s.kind == "Output"]
        return [self.arrays[i].T if vertical else self.arrays[i] for i in outputs]

    def _call(
        self, step: int, role: str, operands: list[np.ndarray], n: int, scalars: bytes
    ) -> None:
        self.compiled.run(f"step{step}_{role}", operands, n, scalars)

    def _identities(self, steps: range) -> None:
        for i in steps:
            step = self.traced.steps[i]
            if step.states:
                states = [self.arrays[s] for s in step.operands[: step.states]]
                self._call(i, "identity", states, self.rows, slots(*self.attributes))

    def _per_row(self, step: Step) -> bool:
        return "horizontal" not in step.kernels

    def _scalars(self, position: int, reads: tuple[Any, ...] = ()) -> bytes:
        assert FIRST_ATTRIBUTE == 2
        return slots(*self.attributes, *reads, length=self.length, position=position)

    def _after(self, steps: range) -> None:
        """The steps that run once a row."""
        for i in steps:
            step = self.traced.steps[i]
            if self._per_row(step):
                operands = [self.arrays[s] for s in step.operands + step.row_reads]
                self._call(i, "vertical", operands, self.rows, self._scalars(0))

    def _horizontal(self, steps: range) -> None:
        """Tiles of each row; a state is made in two parts that are merged, when it is a fold."""
        self._identities(steps)
        for row in range(self.rows):
            for start in range(0, self.length, self.tile):
                n = min(self.tile, self.length - start)
                for i in steps:
                    self._tile_step(i, row, start, n)
        self._after(steps)

    def _tile_step(self, i: int, row: int, start: int, n: int) -> None:
        step = self.traced.steps[i]
        if self._per_row(step):
            return
        reads = tuple(self.arrays[s][row] for s in step.row_reads)
        states = [self.arrays[s][row : row + 1] for s in step.operands[: step.states]]
        rest = [self.arrays[s][row, start : start + n] for s in step.operands[step.states :]]
        scalars = self._scalars(start, reads)
        if not step.states:
            self._call(i, "horizontal", rest, n, scalars)
            return
        part = [s.copy() for s in states]
        self._call(i, "identity", part, 1, scalars)
        self._call(i, "horizontal", part + rest, n, scalars)
        self._call(i, "merge", states + part, 1, scalars)

    def _vertical(self, steps: range) -> None:
        """All rows at once, one position after the other."""
        self._identities(steps)
        for position in range(self.length):
            for i in steps:
                step = self.traced.steps[i]
                if self._per_row(step):
                    continue
                states = [self.arrays[s] for s in step.operands[: step.states]]
                rest = [self.arrays[s][position] for s in step.operands[step.states :]]
                reads = [self.arrays[s] for s in step.row_reads]
                self._call(i, "vertical", states + rest + reads, self.rows, self._scalars(position))
        self._after(steps)

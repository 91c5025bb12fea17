"""How the tensors of a batch lie in the values of a nested tensor."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from weft import _C
from weft._C import Tensor

_numbers = itertools.count(1)


class Ragged:
    """The sizes of a ragged dimension, one for each tensor of the batch; `shape` shows it as "j1".

    offsets: where each begins, and the end of the last, int64 or int32 [batch + 1]. lengths: None
    where each ends at the next one's offset, else [batch]. Equal to another of the same sizes.
    """

    def __init__(self, offsets: Tensor, lengths: Tensor | None = None) -> None:
        self.offsets, self.lengths = offsets, lengths
        self.starts: list[int] = offsets.tolist()
        ends = zip(self.starts, self.starts[1:])
        self.sizes = [b - a for a, b in ends] if lengths is None else lengths.tolist()
        self.number = next(_numbers)

    @classmethod
    def of(cls, sizes: Sequence[int], device: Any = None) -> Ragged:
        """Of sizes one behind the other."""
        return cls(_C.tensor([0, *itertools.accumulate(sizes)], dtype=_C.int64, device=device))

    def __repr__(self) -> str:
        return f"j{self.number}"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Ragged) and self.sizes == other.sizes)

    def __hash__(self) -> int:
        return hash(tuple(self.sizes))

    def places(self) -> tuple[Tensor, Tensor]:
        """Of which tensor each element of the packed dimension is, and which of its elements."""
        sizes = _C.tensor(self.sizes, dtype=_C.int64)
        rows = _C.arange(len(self.sizes)).repeat_interleave(sizes).to(self.offsets.device)
        return rows, _C.arange(len(rows), device=rows.device) - self.offsets[rows]


class NestedSize(tuple[Any, ...]):
    """The sizes of a nested tensor, of which one is Ragged."""

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"


class Jagged:
    """Tensors that differ in one dimension, along which they stand in the values.

    place: that dimension, counted with the batch, so it is `place` - 1 of the values.
    """

    layout = _C.jagged

    def __init__(self, ragged: Ragged, place: int = 1) -> None:
        self.ragged, self.place = ragged, place

    def state(self) -> tuple[Tensor, Tensor | None, int]:
        """Offsets, lengths and place."""
        return self.ragged.offsets, self.ragged.lengths, self.place

    def at(self, place: int) -> Jagged:
        """The same with its ragged dimension elsewhere."""
        return self if place == self.place else Jagged(self.ragged, place)

    @property
    def batch(self) -> int:
        """How many tensors there are."""
        return len(self.ragged.sizes)

    def packs_as(self, other: Form) -> bool:
        """Whether the values of both lie alike."""
        if not isinstance(other, Jagged) or self.place != other.place:
            return False
        a, b = self.ragged, other.ragged
        return a is b or (a == b and a.lengths is None and b.lengths is None)

    def part(self, values: Tensor, index: int) -> Tensor:
        """One of the tensors, a view."""
        start, size = self.ragged.starts[index], self.ragged.sizes[index]
        return values.narrow(self.place - 1, start, size)

    def parts(self, values: Tensor) -> Sequence[Tensor]:
        """The tensors, views of the values."""
        if self.ragged.lengths is None:
            return values.split(self.ragged.sizes, self.place - 1)
        return [self.part(values, index) for index in range(self.batch)]

    def joined(self, parts: Sequence[Tensor]) -> tuple[Jagged, Tensor]:
        """The form and the values of other tensors, which differ at this place."""
        at = self.place - 1
        sizes = [part.shape[at] for part in parts]
        same = self.ragged.lengths is None and sizes == self.ragged.sizes
        ragged = self.ragged if same else Ragged.of(sizes, parts[0].device)
        return Jagged(ragged, self.place), _C.cat(list(parts), at)


class Pieces:
    """Tensors that differ in any dimensions, flat in the values, which have one dimension."""

    layout = _C.strided
    place = 0  # no dimension is the ragged one

    def __init__(self, shapes: Sequence[tuple[int, ...]]) -> None:
        self.shapes = [tuple(shape) for shape in shapes]

    def at(self, place: int) -> Pieces:
        """Itself."""
        return self

    @property
    def batch(self) -> int:
        """How many tensors there are."""
        return len(self.shapes)

    def packs_as(self, other: Form) -> bool:
        """Whether the values of both lie alike."""
        return isinstance(other, Pieces) and self.shapes == other.shapes

    def part(self, values: Tensor, index: int) -> Tensor:
        """One of the tensors, a view."""
        return self.parts(values)[index]

    def parts(self, values: Tensor) -> Sequence[Tensor]:
        """The tensors, views of the values."""
        counts = [_C.Size(shape).numel() for shape in self.shapes]
        return [part.view(shape) for part, shape in zip(values.split(counts), self.shapes)]

    def joined(self, parts: Sequence[Tensor]) -> tuple[Pieces, Tensor]:
        """The form and the values of other tensors."""
        values = _C.cat([part.reshape(-1) for part in parts]) if parts else _C.zeros(0)
        return Pieces([part.shape for part in parts]), values


Form = Jagged | Pieces

"""Sequences of different lengths: padded into one tensor, or packed step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from weft import _C
from weft._C import Tensor
from weft._runtime.data_dependent import data_dependent
from weft._runtime.exports import list_own as _list_own


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences one after another in steps, for recurrent layers; pack_sequence makes it.

    data [sum of lengths, *]: the first elements of all sequences, then the second ones of those
    that have two, and so on, the longest sequence first. batch_sizes (int64): how many sequences
    reach each step. sorted_indices, unsorted_indices: the order by length, and back; None where the
    sequences came in that order.

    >>> packed = weft.nn.utils.rnn.pack_sequence([weft.tensor([1, 2, 3]), weft.tensor([4])])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            raise ValueError("PackedSequence: expected batch_sizes, got None")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, data: Tensor, indices: Tensor | None) -> PackedSequence:
        order = invert_permutation(indices) if indices is not None else None
        return type(self)(data, self.batch_sizes, indices, order)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The data converted as Tensor.to does, the indices moved alone."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._with(data, self.sorted_indices)

    def cpu(self) -> PackedSequence:
        """On the CPU."""
        return self.to("cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On a GPU; raises where there is none."""
        return self.to("cuda")

    def double(self) -> PackedSequence:
        """With data of float64."""
        return self.to(_C.float64)

    def float(self) -> PackedSequence:
        """With data of float32."""
        return self.to(_C.float32)

    def half(self) -> PackedSequence:
        """With data of float16."""
        return self.to(_C.float16)

    def long(self) -> PackedSequence:
        """With data of int64."""
        return self.to(_C.int64)

    def short(self) -> PackedSequence:
        """With data of int16."""
        return self.to(_C.int16)

    def char(self) -> PackedSequence:
        """With data of int8."""
        return self.to(_C.int8)

    def byte(self) -> PackedSequence:
        """With data of uint8."""
        return self.to(_C.uint8)

    def int(self) -> PackedSequence:
        """With data of int32."""
        return self.to(_C.int32)

    def pin_memory(self) -> PackedSequence:
        """Raises: there is no device to pin memory for."""
        return self._with(self.data.pin_memory(), self.sorted_indices)

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return self.data.is_cuda


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes one.

    >>> invert_permutation(weft.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    positions = _C.arange(permutation.numel(), device=permutation.device)
    return _C.empty_like(permutation).scatter_(0, permutation, positions)


@data_dependent
def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences [length, *] as one tensor [longest, n, *], or [n, longest, *] with batch_first.

    >>> pad_sequence([weft.tensor([1, 2, 3]), weft.tensor([4])], batch_first=True)
    tensor([[1, 2, 3],
            [4, 0, 0]])
    """
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"pad_sequence: expected padding_side 'left' or 'right', got {padding_side!r}"
        )
    if not isinstance(sequences, Iterable):
        raise RuntimeError(f"pad_sequence: expected sequences, got {type(sequences).__name__}")
    parts = list(sequences.unbind(0) if isinstance(sequences, Tensor) else sequences)
    if not parts:
        raise RuntimeError("pad_sequence: expected at least one sequence, got none")
    longest = max(part.size(0) for part in parts)
    rows = []
    for part in parts:
        if part.shape[1:] != parts[0].shape[1:]:
            raise RuntimeError(
                f"pad_sequence: expected sequences of elements of one shape, got "
                f"{tuple(parts[0].shape[1:])} and {tuple(part.shape[1:])}"
            )
        missing = longest - part.size(0)
        if missing:
            rest = part.new_full((missing, *part.shape[1:]), padding_value)
            part = _C.cat([part, rest] if padding_side == "right" else [rest, part])
        rows.append(part)
    return _C.stack(rows, 0 if batch_first else 1)


@data_dependent
def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded tensor, by their lengths: the inverse of pad_sequence.

    >>> unpad_sequence(weft.tensor([[1, 2], [3, 0]]), weft.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    rows = padded_sequences.unbind(0 if batch_first else 1)
    counts: list[int] = lengths.tolist()
    return [row[:count] for row, count in zip(rows, counts)]


def _above(counts: list[int]) -> list[int]:
    """How many of the counts, largest first, are above 0, above 1, and so on.

    From lengths it gives the sequences that reach each step, and from these the lengths.

    >>> _above([3, 1]), _above([2, 1, 1])
    ([2, 1, 1], [3, 1])
    """
    found: list[int] = []
    left = len(counts)
    for bound in range(counts[0]):
        while counts[left - 1] <= bound:
            left -= 1
        found.append(left)
    return found


@data_dependent
def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """The PackedSequence of a padded tensor [t, n, *] (batch_first: [n, t, *]).

    lengths: of the n sequences, at least 1; longest first, unless enforce_sorted=False.

    >>> packed = pack_padded_sequence(weft.tensor([[1, 3], [2, 0]]), [2, 1])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 3, 2]), tensor([2, 1]))
    """
    sizes = _C.as_tensor(lengths, dtype=_C.int64)
    order: Tensor | None = None
    if not enforce_sorted:
        sizes, order = sizes.sort(descending=True)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    counts: list[int] = sizes.tolist()
    if len(counts) != input.size(1):
        raise RuntimeError(
            f"pack_padded_sequence: expected {input.size(1)} lengths, got {len(counts)}"
        )
    if not counts or min(counts) < 1:
        raise RuntimeError(f"pack_padded_sequence: expected lengths of at least 1, got {counts}")
    if max(counts) > input.size(0):
        raise RuntimeError(
            f"pack_padded_sequence: expected lengths up to {input.size(0)}, got {max(counts)}"
        )
    if counts != sorted(counts, reverse=True):
        raise RuntimeError(
            f"pack_padded_sequence: expected lengths longest first, got {counts}; "
            "enforce_sorted=False sorts them"
        )
    reach = _above(counts)
    data = _C.cat([input[step, :count] for step, count in enumerate(reach)])
    return PackedSequence(data, _C.tensor(reach), order)


@data_dependent
def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded tensor of a PackedSequence and the lengths: the inverse of pack_padded_sequence.

    total_length: of the result, at least that of the longest sequence.

    >>> pad_packed_sequence(pack_sequence([weft.tensor([1, 2]), weft.tensor([3])]))
    (tensor([[1, 3],
            [2, 0]]), tensor([2, 1]))
    """
    reach: list[int] = sequence.batch_sizes.tolist()
    if total_length is not None and total_length < len(reach):
        raise ValueError(
            f"pad_packed_sequence: expected total_length of at least {len(reach)}, "
            f"got {total_length}"
        )
    data, most = sequence.data, reach[0]
    element = list(data.shape[1:])
    rows: list[Tensor] = []
    for part in data.split(reach, 0):
        rest = data.new_full([most - part.size(0), *element], padding_value)
        rows.append(_C.cat([part, rest]))
    if total_length is not None and total_length > len(rows):
        rest = data.new_full([most, *element], padding_value)
        rows += [rest] * (total_length - len(rows))
    padded = _C.stack(rows, 0)
    padded = padded.transpose(0, 1) if batch_first else padded
    lengths = _C.tensor(_above(reach))
    order = sequence.unsorted_indices
    if order is not None:
        padded = padded.index_select(0 if batch_first else 1, order)
        lengths = lengths.index_select(0, order)
    return padded, lengths


@data_dependent
def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """The PackedSequence of a list of sequences [length, *]; see pack_padded_sequence.

    >>> pack_sequence([weft.tensor([1]), weft.tensor([2, 3])], enforce_sorted=False).data
    tensor([2, 1, 3])
    """
    lengths = _C.tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a PackedSequence: the inverse of pack_sequence.

    >>> unpack_sequence(pack_sequence([weft.tensor([1, 2]), weft.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences)
    return unpad_sequence(padded, lengths)


_list_own(vars())

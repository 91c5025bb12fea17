"""Sequences of different lengths: padding, packing, and recurrent layers over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from libraries import both

import weft
from weft.nn.utils import rnn

LENGTHS = [2, 5, 1, 3]


def sequences(lib: Any, features: int = 3) -> list[Any]:
    rng = np.random.default_rng(0)
    return [lib.tensor(rng.standard_normal((n, features))) for n in LENGTHS]


@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_and_padding_undo_each_other(batch_first: bool) -> None:
    parts = sequences(weft)
    padded = rnn.pad_sequence(parts, batch_first, padding_value=-1.0)
    assert tuple(padded.shape) == ((4, 5, 3) if batch_first else (5, 4, 3))
    lengths = weft.tensor(LENGTHS)
    packed = rnn.pack_padded_sequence(padded, lengths, batch_first, enforce_sorted=False)
    back, sizes = rnn.pad_packed_sequence(packed, batch_first, padding_value=-1.0)
    assert (back == padded).all() and sizes.tolist() == LENGTHS
    longer, _ = rnn.pad_packed_sequence(packed, batch_first, total_length=7)
    assert longer.size(1 if batch_first else 0) == 7
    for one, other in zip(rnn.unpack_sequence(packed), parts):
        assert (one == other).all()
    left = rnn.pad_sequence(parts, batch_first=True, padding_side="left")
    assert left[2, :4].abs().sum() == 0 and (left[2, 4:] == parts[2]).all()


def test_packed_sequences_convert() -> None:
    packed = rnn.pack_sequence(sequences(weft), enforce_sorted=False)
    single = packed.float()
    assert single.data.dtype == weft.float32 and packed.double() is packed
    assert single.unsorted_indices.tolist() == packed.unsorted_indices.tolist()
    assert not packed.is_cuda and not packed.is_pinned()
    data, batch_sizes, _, _ = packed
    assert data is packed.data and batch_sizes.tolist() == [4, 3, 2, 1, 1]


def test_refusals() -> None:
    padded = weft.zeros(3, 2)
    for lengths, text in (
        ([1, 2], "expected lengths longest first, got"),
        ([3], "expected 2 lengths, got 1"),
        ([3, 0], "expected lengths of at least 1, got"),
        ([4, 1], "expected lengths up to 3, got 4"),
    ):
        with pytest.raises(RuntimeError, match=f"pack_padded_sequence: {text}"):
            rnn.pack_padded_sequence(padded, lengths)
    packed = rnn.pack_padded_sequence(padded, [3, 1])
    with pytest.raises(ValueError, match="expected total_length of at least 3, got 2"):
        rnn.pad_packed_sequence(packed, total_length=2)
    with pytest.raises(RuntimeError, match="LSTM: expected packed data of 2 dimensions"):
        weft.nn.LSTM(4, 2)(packed)


@pytest.mark.parity
@pytest.mark.parametrize("enforce_sorted", [False, True])
def test_packing_equals_torch(enforce_sorted: bool) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for lib in (weft, torch):
        parts = sequences(lib)
        if enforce_sorted:
            parts.sort(key=lambda part: -part.size(0))
        packed = lib.nn.utils.rnn.pack_sequence(parts, enforce_sorted=enforce_sorted)
        results.append([None if t is None else t.tolist() for t in packed])
    assert results[0] == results[1]


@pytest.mark.parity
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("LSTM", {"num_layers": 2, "bidirectional": True}),
        ("LSTM", {"proj_size": 2, "batch_first": True}),
        ("GRU", {"num_layers": 2}),
        ("GRU", {"bidirectional": True, "bias": False}),
        ("RNN", {"nonlinearity": "relu", "num_layers": 2, "dropout": 0.5}),
    ],
)
def test_recurrent_layers_over_packed_sequences_equal_torch(name: str, options: Any) -> None:
    torch = pytest.importorskip("torch")
    results: list[list[Any]] = []
    for lib in (weft, torch):
        lib.manual_seed(1)
        layer = getattr(lib.nn, name)(3, 4, **options).double()
        rows = layer.num_layers * (2 if layer.bidirectional else 1)
        out = options.get("proj_size", 4)
        hidden = lib.linspace(-1, 1, rows * 4 * out, dtype=lib.float64).reshape(rows, 4, out)
        start: Any = hidden
        if name == "LSTM":
            start = (hidden, lib.ones(rows, 4, 4, dtype=lib.float64))
        parts = [part.requires_grad_() for part in sequences(lib)]
        for given in (None, start):
            packed = lib.nn.utils.rnn.pack_sequence(parts, enforce_sorted=False)
            output, states = layer(packed, given)
            padded, _ = lib.nn.utils.rnn.pad_packed_sequence(output)
            flat = states if isinstance(states, tuple) else (states,)
            (padded.square().sum() + sum(s.sum() for s in flat)).backward()
            results.append([t.detach().numpy() for t in (padded, *flat)])
        results.append([p.grad.numpy() for p in (*layer.parameters(), *parts)])
    for ours, theirs in zip(results[:3], results[3:]):
        for mine, other in zip(ours, theirs):
            np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-9)


def test_packed_and_padded_agree_and_scripts_still_work() -> None:
    weft.manual_seed(0)
    layer = weft.nn.GRU(3, 4)
    parts = [part.float() for part in sequences(weft)]
    packed, hidden = layer(rnn.pack_sequence(parts, enforce_sorted=False))
    scripted = weft.jit.script(layer)
    for place, part in enumerate(parts):
        output, last = scripted(part.unsqueeze(1))
        assert weft.allclose(last[:, 0], hidden[:, place], atol=1e-6)
        assert weft.allclose(rnn.unpack_sequence(packed)[place], output[:, 0], atol=1e-6)


@both
@pytest.mark.parametrize("lengths", [[4, 2], [2, 4]])
def test_padded_again_as_the_batch_lies_in_memory(lib: Any, lengths: list[int]) -> None:
    """Dropout draws in the order of memory: rows that were sorted are sorted back as given."""
    rnn = lib.nn.utils.rnn
    x = lib.ones(2, 4, 3)
    for enforce_sorted in (True, False):
        if enforce_sorted and lengths[0] < lengths[1]:
            continue
        packed = rnn.pack_padded_sequence(
            x, lib.tensor(lengths), batch_first=True, enforce_sorted=enforce_sorted
        )
        for batch_first in (True, False):
            padded, _ = rnn.pad_packed_sequence(packed, batch_first=batch_first)
            if not batch_first:
                strides = (6, 3, 1)
            else:
                strides = (3, 6, 1) if enforce_sorted else (12, 3, 1)
            assert padded.stride() == strides

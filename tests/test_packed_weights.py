"""Weights that layers keep packed: never old ones, counted, bounded, gone with their storage."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import memory
from weft.serialization.zip_writer import ZipWriter

RNG = np.random.default_rng(7)


def _floats(*shape: int) -> weft.Tensor:
    return weft.from_numpy(RNG.normal(size=shape).astype(np.float32)).clone()


@pytest.fixture(autouse=True)
def _limit() -> Iterator[None]:
    before = memory.packed_weight_limit()
    yield
    memory.set_packed_weight_limit(before)


def _by_numpy(w: weft.Tensor) -> None:
    w.numpy()[...] *= 2


def _by_address(w: weft.Tensor) -> None:
    import ctypes

    ctypes.memset(w.data_ptr(), 0, 4 * w.numel())


def _by_dlpack(w: weft.Tensor) -> None:
    np.from_dlpack(w)  # holds the address
    weft.from_dlpack(w).mul_(2)


WRITES: list[Callable[[Any], Any]] = [
    lambda w: w.mul_(2),
    lambda w: w[0].zero_(),
    lambda w: w.data.mul_(2),
    lambda w: w.detach().add_(1),
    lambda w: w.copy_(w + 1),
    lambda w: w.set_(w + 1),
    _by_numpy,
    _by_address,
    _by_dlpack,
]


def _conv(kernel: int) -> tuple[weft.Tensor, Callable[[Any], Any]]:
    x = _floats(1, 16, 8, 8).contiguous(memory_format=weft.channels_last)
    return _floats(16, 16, kernel, kernel), lambda w: weft.conv2d(x, w)


def _linear() -> tuple[weft.Tensor, Callable[[Any], Any]]:
    x, b = _floats(20, 128), _floats(160)
    return _floats(160, 128), lambda w: weft.nn.functional.linear(x, w, b)


def _lstm() -> tuple[weft.Tensor, Callable[[Any], Any]]:
    """Of the weight that meets the hidden states."""
    x, state = _floats(40, 1, 4), _floats(1, 1, 32)
    inputs = _floats(128, 4)
    return _floats(128, 32), lambda w: weft.lstm(
        x, (state, state), [inputs, w], False, 1, 0.0, False, False, False
    )[0]


LAYERS = {"conv 1": lambda: _conv(1), "conv 3": lambda: _conv(3), "linear": _linear, "lstm": _lstm}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("write", WRITES)
def test_writes_are_seen(write: Callable[[Any], Any], layer: str) -> None:
    w, run = LAYERS[layer]()
    before = memory.packed_weights()
    for _ in range(3):
        run(w)
    assert memory.packed_weights() > before
    write(w)
    for _ in range(3):
        assert weft.equal(run(w), run(w.clone()))


# Rows, columns and depth about the edges of tiles, strips and blocks; rows that lie 2 kB apart.
@pytest.mark.parametrize("m", [17, 24, 193])
@pytest.mark.parametrize("n", [97, 144, 256, 600])
@pytest.mark.parametrize("k", [173, 256, 257, 512])
def test_linear_has_one_result(m: int, n: int, k: int) -> None:
    x, w, b = _floats(m, k), _floats(n, k), _floats(n)
    wide = _floats(m, k + 3)
    exact = x.numpy().astype(float) @ w.clone().numpy().astype(float).T + b.numpy().astype(float)
    sizes = np.abs(x.numpy()) @ np.abs(w.clone().numpy()).T + np.abs(b.numpy())
    for bias in (b, None):
        first = weft.nn.functional.linear(x, w.clone(), bias)
        for _ in range(3):
            assert weft.equal(weft.nn.functional.linear(x, w, bias), first)
        expected = exact if bias is b else exact - b.numpy()
        # Each of k + 1 additions rounds once.
        assert (np.abs(first.numpy() - expected) <= (k + 1) * 2.0**-24 * sizes).all()
    wide[:, 3:] = x
    assert weft.equal(weft.nn.functional.linear(wide[:, 3:], w), weft.nn.functional.linear(x, w))
    turned = w.t().contiguous()
    for _ in range(3):
        assert weft.equal(weft.nn.functional.linear(x, turned.t()), first)


@pytest.mark.threads
def test_linear_is_the_same_on_two_threads() -> None:
    x, w, b = _floats(300, 300), _floats(200, 300), _floats(200)
    both = [weft.nn.functional.linear(x, w, b) for _ in range(3)]
    weft.set_num_threads(1)
    assert all(weft.equal(y, weft.nn.functional.linear(x, w.clone(), b)) for y in both)


def test_views_and_groups_of_one_storage_have_their_own() -> None:
    x, both = _floats(1, 16, 8, 8), _floats(2, 16, 16, 3, 3)
    for w in (*both, *both):
        for _ in range(2):
            assert weft.equal(weft.conv2d(x, w), weft.conv2d(x, w.clone()))
    w = both[0]
    turned = w.transpose(2, 3)
    for _ in range(3):
        assert weft.equal(weft.conv2d(x, turned), weft.conv2d(x, turned.clone()))
    wide = _floats(1, 32, 8, 8)
    expected = weft.conv2d(wide, w.clone(), None, 1, 0, 1, 2)
    for _ in range(3):
        assert weft.equal(weft.conv2d(wide, w, None, 1, 0, 1, 2), expected)
        weft.conv2d(x, w)


def test_parts_of_one_weight_are_kept_side_by_side() -> None:
    """As attention has them: projections of queries, keys and values in one storage."""
    before = memory.packed_weights()
    x, w = _floats(20, 256), _floats(3 * 256, 256)
    for _ in range(3):
        for part in w.chunk(3):
            expected = weft.nn.functional.linear(x, part.clone())
            assert weft.equal(weft.nn.functional.linear(x, part), expected)
    assert memory.packed_weights() - before == 4 * w.numel()
    w.mul_(2)  # what was packed of the old bytes goes
    weft.nn.functional.linear(x, w[:256])
    assert memory.packed_weights() == before


def test_a_storage_keeps_a_few() -> None:
    before = memory.packed_weights()
    x, w = _floats(20, 128), _floats(20 * 128, 128)
    for part in w.chunk(20):
        for _ in range(2):
            weft.nn.functional.linear(x, part)
    assert 0 < memory.packed_weights() - before <= 2 * w.numel()  # bytes of 8 parts
    del w, part
    assert memory.packed_weights() == before


def test_they_are_counted_and_go_with_the_weight() -> None:
    before = memory.packed_weights()
    x, w = _floats(1, 16, 8, 8), _floats(32, 16, 3, 3)
    weft.conv2d(x, w)
    assert memory.packed_weights() == before  # seen once
    weft.conv2d(x, w)
    kept = memory.packed_weights() - before
    assert kept >= 4 * w.numel()
    weft.conv2d(x, w)
    assert memory.packed_weights() - before == kept
    w.mul_(2)
    weft.conv2d(x, w)
    assert memory.packed_weights() == before
    weft.conv2d(x, w)
    del w
    assert memory.packed_weights() == before


def test_training_keeps_none() -> None:
    before = memory.packed_weights()
    x, w = _floats(2, 16, 8, 8), _floats(16, 16, 3, 3).requires_grad_()
    for _ in range(3):
        weft.conv2d(x, w, None, 1, 1).sum().backward()
        with weft.no_grad():
            w.sub_(0.1 * w.grad)
    assert memory.packed_weights() == before


def test_the_limit() -> None:
    x, w = _floats(1, 16, 8, 8), _floats(32, 16, 3, 3)
    before, expected = memory.packed_weights(), weft.conv2d(x, w.clone())
    memory.set_packed_weight_limit(before)
    for _ in range(3):
        assert weft.equal(weft.conv2d(x, w), expected)
    assert memory.packed_weights() == before
    with pytest.raises(ValueError, match="expected at least 0 bytes, got -1"):
        memory.set_packed_weight_limit(-1)


def _compiled(layer: Any, path: Path) -> Any:
    weft.jit.aot_compile(weft.jit.script(layer), path)
    return weft._C.CompiledModule(str(path))


@pytest.mark.parametrize("write", WRITES)
def test_compiled_files_keep_them(write: Callable[[Any], Any], tmp_path: Path) -> None:
    """Their weights lie in a mapping of the file that nobody else writes to."""
    layer, x, before = weft.nn.Linear(128, 160), _floats(20, 128), memory.packed_weights()
    file = _compiled(layer, tmp_path / "layer.weft")

    def run_thrice() -> None:
        for _ in range(3):
            expected = weft.nn.functional.linear(x, layer.weight.clone(), layer.bias)
            assert weft.equal(file.call("forward", x), expected)

    with weft.no_grad():
        run_thrice()
        assert memory.packed_weights() > before
        for weight in (layer.weight, file.parameters()["weight"]):
            write(weight.detach())
        run_thrice()


def _several() -> Any:
    """Layers whose weights are packed in each form that files have, and an LSTM."""
    nn = weft.nn
    convolutions = [
        nn.Conv2d(8, 16, 3), nn.Conv2d(16, 16, 3), nn.Conv2d(16, 32, 1), nn.Conv2d(32, 32, 3, groups=32)
    ]  # fmt: skip
    return nn.Sequential(*convolutions, nn.Flatten(2), nn.Linear(144, 128), _Last()).eval()


class _Last(weft.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = weft.nn.LSTM(128, 32)

    def forward(self, x: weft.Tensor) -> weft.Tensor:
        return self.lstm(x)[0]


def _packed_file(layers: Any, path: Path) -> dict[str, bytes]:
    example = (weft.ones(1, 8, 18, 18),)
    weft.jit.aot_compile(layers, path, examples=[example], targets=(), packed=True)
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if "weft/packed" in name]
        return {name: archive.read(name) for name in names}


def test_files_may_hold_them(tmp_path: Path) -> None:
    layers, x = weft.jit.script(_several()), _floats(1, 8, 18, 18)
    records = _packed_file(layers, tmp_path / "packed.weft")
    assert len(records) == 1 + 4  # two convolutions, the linear layer, the inputs of the LSTM
    assert _packed_file(layers, tmp_path / "again.weft") == records
    file, before = weft._C.CompiledModule(str(tmp_path / "packed.weft")), memory.packed_weights()
    with weft.no_grad():
        expected = layers(x)
        for _ in range(3):
            assert weft.equal(file.call("forward", x), expected)
        gates = memory.packed_weights() - before
        assert 0 <= gates <= 4 * 4 * 32 * 64  # of the LSTM alone
        for weight in (layers[1].weight, file.parameters()["1.weight"]):
            weight.detach().mul_(2)
        for _ in range(3):
            assert weft.equal(file.call("forward", x), layers(x))
    assert memory.packed_weights() > before + gates


def test_those_of_files_are_the_same_on_all_processors(tmp_path: Path) -> None:
    program = tmp_path / "layers.pt"
    weft.jit.script(_several()).save(program)
    found = []
    for level in ("", "v2"):
        path = tmp_path / f"packed{level}.weft"
        given = f"weft.jit.load({str(program)!r}), {str(path)!r}"
        call = f"from tests.test_packed_weights import _packed_file, weft\n_packed_file({given})"
        environment = {**os.environ, **({"WEFT_ISA": level} if level else {})}
        subprocess.run([sys.executable, "-c", call], check=True, env=environment)
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if "weft/packed" in name]
            found.append({name: archive.read(name) for name in names})
    assert found[0] == found[1]


@pytest.mark.parametrize("change", ["format", "size", "form", "storage", "cut", "record"])
def test_damaged_ones_of_files(change: str, tmp_path: Path) -> None:
    """Those of another format, or of a wrong size, are passed over."""
    layers, x = weft.jit.script(_several()), _floats(1, 8, 18, 18)
    _packed_file(layers, tmp_path / "packed.weft")
    with zipfile.ZipFile(tmp_path / "packed.weft") as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    index = bytearray(records["archive/weft/packed"])
    if change == "format":
        index[0] ^= 255
    elif change == "form":
        index[12] = 99
    elif change == "storage":
        index[8] = 250
    elif change == "cut":
        del index[-1]
    elif change == "size":
        records["archive/weft/packed/0"] = b"\0" * 64
    else:
        del records["archive/weft/packed/1"]
    records["archive/weft/packed"] = bytes(index)
    path = tmp_path / "damaged.weft"
    with path.open("wb") as out:
        written = ZipWriter(out, "archive")
        for name, data in records.items():
            written.add(name.removeprefix("archive/"), data)
        written.close()
    if change in ("form", "storage", "cut", "record"):
        with pytest.raises((ValueError, RuntimeError), match="expected"):
            weft._C.CompiledModule(str(path))
    else:
        file = weft._C.CompiledModule(str(path))
        for _ in range(3):
            assert weft.equal(file.call("forward", x), layers(x))


def test_they_need_examples(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected examples with packed=True, got none"):
        weft.jit.aot_compile(weft.jit.script(_several()), tmp_path / "x.weft", packed=True)

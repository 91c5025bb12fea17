"""Netron shows the graphs of archives that weft writes: its own code, in node, finds operators and weights."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import weft
from weft import nn


@pytest.mark.nightly
def test_netron_finds_operators_and_weights(tmp_path):
    netron, node = pytest.importorskip("netron"), shutil.which("node")
    if node is None:
        pytest.skip("no node")
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(32, 4)
    ).eval()
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 1
    ).eval()
    made = {
        "scripted": weft.jit.script(net),
        "traced": weft.jit.trace(net, weft.ones(1, 3, 4, 4)),
        "encoder": weft.jit.script(encoder),
        "lstm": weft.jit.script(nn.LSTM(4, 8)),
    }
    for name, program in made.items():
        weft.jit.save(program, tmp_path / f"{name}.pt")
    script = Path(__file__).with_name("netron.mjs")
    files = [tmp_path / f"{name}.pt" for name in made]
    folder = Path(netron.__file__).parent
    done = subprocess.run([node, script, folder, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = dict(zip(made, map(json.loads, done.stdout.splitlines())))
    for each in shown.values():
        assert each["format"].startswith("TorchScript") and not each["errors"]
    assert shown["traced"]["operators"] == ["conv2d", "batch_norm", "relu", "flatten", "linear"]
    assert set(shown["traced"]["operators"]) <= set(shown["scripted"]["operators"])
    for name in ("scripted", "traced"):
        assert {"float32[8,3,3,3]", "float32[8]", "float32[4,32]"} <= set(shown[name]["tensors"])
    assert {"scaled_dot_product_attention", "layer_norm", "linear"} <= set(
        shown["encoder"]["operators"]
    )
    assert "float32[32,16]" in shown["encoder"]["tensors"]
    assert "lstm" in shown["lstm"]["operators"] and "float32[32,4]" in shown["lstm"]["tensors"]

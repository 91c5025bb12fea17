"""The programs of tests/programs: they learn, and along PyTorch's curve."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import weft

pytestmark = pytest.mark.threads

NAMES = (
    *("mlp", "conv_classifier", "vae", "char_lstm", "gpt", "meta_learning", "fx_fold", "gan"),
    *("diffusion", "speech", "graph_network", "actor_critic", "normalising_flow"),
    *("gaussian_process", "detection", "segmentation", "custom_op", "pruning"),
    *("quantile_regression", "translation", "resumed"),
)
STEPS = 50
# Relative, for each of the 50 losses. Products are summed in another order on each kind of processor. Half a unit
# in the last place in each parameter and gradient, at each step, moves PyTorch's own curves by at most 2.2e-6.
# Programs whose rounding errors grow (adversarial, reinforcement, recurrent with packed lengths, a U-Net whose
# normalised layers have biases) compute in float64.
TOLERANCE = 1e-5


def train(name: str, lib: Any, steps: int = STEPS) -> list[float]:
    return importlib.import_module(f"programs.{name}").train(lib, steps)


@pytest.mark.parametrize("name", NAMES)
def test_learns(name: str) -> None:
    losses = train(name, weft)
    assert len(losses) == STEPS
    assert np.isfinite(losses).all()
    assert np.mean(losses[-5:]) < 0.86 * np.mean(losses[:5])


def test_the_seed_decides_everything() -> None:
    assert train("gpt", weft, 5) == train("gpt", weft, 5)


@pytest.mark.parity
@pytest.mark.parametrize("name", NAMES)
def test_follows_the_curve_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the reference of this test")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # its threads wait by spinning, which takes minutes on a busy machine
    try:
        ours, theirs = train(name, weft), train(name, torch)
    finally:
        torch.set_num_threads(threads)
    difference = np.max(np.abs(np.subtract(ours, theirs)) / np.abs(theirs))
    print(f"{name}: greatest relative difference of {STEPS} losses {difference:.1e}")
    assert difference < TOLERANCE

"""Several processes write the same weights without a lock, and reach what one reaches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
import weft.multiprocessing as mp
from weft import nn

STEPS = 400


def problem() -> tuple[weft.Tensor, weft.Tensor]:
    """Points and the values of a smooth function there, with a little noise."""
    generator = weft.Generator().manual_seed(3)
    x = weft.rand(512, 4, generator=generator) * 2 - 1
    y = (x[:, :1] * x[:, 1:2] + x[:, 2:3].sin()) + 0.01 * weft.randn(512, 1, generator=generator)
    return x, y


def build() -> nn.Module:
    weft.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))


def train(
    rank: int,
    model: nn.Module,
    x: weft.Tensor,
    y: weft.Tensor,
    steps: int,
    counts: weft.Tensor,
    start: Any,
) -> None:
    weft.set_num_threads(1)
    weft.manual_seed(rank)
    optimizer = weft.optim.SGD(model.parameters(), lr=0.1)
    start.wait(120)  # so that all are at work at once
    for _ in range(steps):
        part = weft.randint(0, len(x), (32,))
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[part]), y[part]).backward()
        optimizer.step()
        counts[rank] += 1


def loss_of(model: nn.Module) -> float:
    x, y = problem()
    with weft.no_grad():
        return nn.functional.mse_loss(model(x), y).item()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_four_processes_reach_the_loss_of_one(method: str) -> None:
    x, y = problem()
    untrained = loss_of(build())
    alone = build()
    train(0, alone, x, y, 4 * STEPS, weft.zeros(1), mp.Barrier(1))
    expected = loss_of(alone)
    assert expected < 0.3 * untrained  # so that reaching it means something

    model = build().share_memory()
    places = [parameter.data_ptr() for parameter in model.parameters()]
    counts = weft.zeros(4).share_memory_()
    work = (model, x, y, STEPS, counts, mp.get_context(method).Barrier(4))
    mp.start_processes(train, work, nprocs=4, start_method=method)
    assert counts.tolist() == [STEPS] * 4
    assert all(p.is_shared() for p in model.parameters())
    assert [parameter.data_ptr() for parameter in model.parameters()] == places
    assert loss_of(model) < max(1.5 * expected, 0.3 * untrained)


def test_the_example_with_real_data() -> None:
    example = Path(__file__).parent.parent / "examples" / "hogwild.py"
    command = [sys.executable, str(example), "--processes", "4", "--epochs", "24"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["one_accuracy"] > 0.9  # so that reaching it means something
    assert told["hogwild_training_loss"] < 1.15 * told["one_training_loss"], told
    assert told["hogwild_test_loss"] < 1.15 * told["one_test_loss"], told
    assert told["hogwild_accuracy"] > told["one_accuracy"] - 0.02, told

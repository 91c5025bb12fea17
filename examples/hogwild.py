"""Hogwild: several processes train one model at once, on the same weights, without any lock.

    python examples/hogwild.py [--processes N] [--epochs N] [--seed N]

The weights lie in memory that all processes share. Each process reads them, computes a gradient,
and writes its step over whatever the others wrote meanwhile. Updates are small and touch the same
numbers rarely at the same moment, so little is lost (Niu, Recht, Re and Wright, 2011).

Trains a small network on scikit-learn's 1,797 scans of handwritten digits twice: in one process,
and in several that share the same number of epochs. Prints one JSON object as its last line.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from sklearn.datasets import load_digits

import weft
import weft.multiprocessing as mp
from weft import nn

BATCH = 32


def load() -> tuple[weft.Tensor, weft.Tensor, weft.Tensor, weft.Tensor]:
    """Scans as float32 [n, 64] in [0, 1] and labels: for training, then for the test."""
    digits = load_digits()
    order = weft.randperm(len(digits.target), generator=weft.Generator().manual_seed(0))
    images = weft.from_numpy(digits.data).float().div(16)[order]
    labels = weft.from_numpy(digits.target).long()[order]
    split = len(order) * 3 // 4
    return images[:split], labels[:split], images[split:], labels[split:]


def build_model(seed: int) -> nn.Module:
    """64 pixels to 10 scores through 64 hidden units."""
    weft.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def train(
    rank: int,
    model: nn.Module,
    images: weft.Tensor,
    labels: weft.Tensor,
    epochs: int,
    seed: int,
    start: Any,
) -> None:
    """Epochs of stochastic gradient descent on the weights as they are, in an order of its own."""
    weft.set_num_threads(1)  # the processes are the parallelism
    weft.manual_seed(seed + rank)
    start.wait()  # for the others: a process takes longer to start than to train
    optimizer = weft.optim.SGD(model.parameters(), lr=0.1)
    schedule = weft.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, epochs)
    for _ in range(epochs):
        for part in weft.randperm(len(labels))[: len(labels) // BATCH * BATCH].split(BATCH):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[part]), labels[part])
            loss.backward()
            optimizer.step()
        schedule.step()


@weft.no_grad()
def measure(model: nn.Module, images: weft.Tensor, labels: weft.Tensor) -> tuple[float, float]:
    """Mean loss, and the share of right answers."""
    scores = model(images)
    loss = nn.functional.cross_entropy(scores, labels).item()
    return loss, (scores.argmax(1) == labels).float().mean().item()


def main() -> None:
    """Trains in one process, then in several, and compares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=200, help="in all, shared by the processes")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    images, labels, test_images, test_labels = load()
    report: dict[str, float] = {}
    for name, processes in (("one", 1), ("hogwild", options.processes)):
        model = build_model(options.seed).share_memory()
        start = time.perf_counter()
        together = mp.get_context("spawn").Barrier(processes)
        arguments = (model, images, labels, options.epochs // processes, options.seed, together)
        mp.spawn(train, args=arguments, nprocs=processes)
        report[f"{name}_seconds"] = round(time.perf_counter() - start, 2)
        loss, accuracy = measure(model, test_images, test_labels)
        report[f"{name}_training_loss"] = round(measure(model, images, labels)[0], 4)
        report[f"{name}_test_loss"] = round(loss, 4)
        report[f"{name}_accuracy"] = round(accuracy, 4)
    print(json.dumps(report))


if __name__ == "__main__":
    main()

"""Learns to read handwritten digits in several processes, each with its share of each batch.

    weft launch -n 2 examples/digits_parallel.py [--epochs N] [--seed N]
    python examples/digits_parallel.py                # the same in one process

Batches are 64 scans over all processes together. Trains on three quarters of scikit-learn's 1,797
scans and tests on the rest; the first process prints one JSON object.
"""

from __future__ import annotations

import argparse
import json

from sklearn.datasets import load_digits

import weft
import weft.distributed as dist
from weft import nn
from weft.nn.parallel import DistributedDataParallel
from weft.utils.data import DataLoader, TensorDataset, random_split
from weft.utils.data.distributed import DistributedSampler

BATCH = 64


def load(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """The scans as float32 [n, 64] in [0, 1] with their labels: train part, test part."""
    digits = load_digits()
    images = weft.from_numpy(digits.data).float().div(16)
    everything = TensorDataset(images, weft.from_numpy(digits.target).long())
    shares = random_split(everything, [0.75, 0.25], weft.Generator().manual_seed(seed))
    train, test = (TensorDataset(*everything[weft.tensor(part.indices)]) for part in shares)
    return train, test


def train(model: nn.Module, data: TensorDataset, epochs: int, seed: int) -> float:
    """Trains in place; the mean loss of the last epoch over all processes."""
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, BATCH // dist.get_world_size(), sampler=sampler)
    optimizer = weft.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        losses = weft.zeros(2)  # their sum and count
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses += weft.tensor([loss.item(), 1.0])
    dist.all_reduce(losses)
    return float(losses[0] / losses[1])


def main() -> None:
    """Trains, tests, prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    dist.init_process_group("mpi")
    weft.manual_seed(given.seed)
    training, test = load(given.seed)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    )
    loss = train(model, training, given.epochs, given.seed)
    images, labels = test.tensors
    with weft.no_grad():
        accuracy = (model(images).argmax(1) == labels).float().mean().item()
    if dist.get_rank() == 0:
        processes = dist.get_world_size()
        print(json.dumps({"processes": processes, "loss": loss, "accuracy": accuracy}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

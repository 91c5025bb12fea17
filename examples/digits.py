"""Learns to read handwritten digits: a small convolutional network on 8 x 8 scans.

    python examples/digits.py [--epochs N] [--seed N] [--threads N] [--output digits.png]

Trains on three quarters of scikit-learn's 1,797 scans, tests on the rest, writes a picture
(learning curve, and every test digit it got wrong), and prints one JSON object as its last line.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

import matplotlib
from sklearn.datasets import load_digits
from tqdm import tqdm

import weft
from weft import nn
from weft.utils.data import DataLoader, TensorDataset, random_split

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def load(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """The scans as float32 [n, 1, 8, 8] in [0, 1] with their labels: train part, test part."""
    digits = load_digits()
    images = weft.from_numpy(digits.images).float().div(16).unsqueeze(1)
    labels = weft.from_numpy(digits.target).long()
    everything = TensorDataset(images, labels)
    shares = random_split(everything, [0.75, 0.25], weft.Generator().manual_seed(seed))
    train, test = (TensorDataset(*everything[weft.tensor(part.indices)]) for part in shares)
    return train, test


def build_model() -> nn.Sequential:
    """Two pairs of convolutions, each followed by pooling, and two linear layers."""
    return nn.Sequential(
        *block(1, 32),
        *block(32, 32),
        nn.MaxPool2d(2),
        *block(32, 64),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(64 * 2 * 2, 64),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(64, 10),
    )


def block(inputs: int, outputs: int) -> list[nn.Module]:
    """A 3 x 3 convolution that keeps the size, batch norm and ReLU."""
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    return [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]


def shifted(images: weft.Tensor) -> weft.Tensor:
    """The batch moved by up to one pixel, at random, in each direction; what leaves is lost."""
    n, channels, height, width = images.shape
    padded = weft.zeros(n, channels, height + 2, width + 2)
    padded[:, :, 1:-1, 1:-1] = images
    down, right = weft.randint(0, 3, (2,)).tolist()
    return padded[:, :, down : down + height, right : right + width]


def train_epoch(
    model: nn.Module,
    batches: DataLoader,
    loss_of: nn.Module,
    optimizer: weft.optim.Optimizer,
    schedule: weft.optim.lr_scheduler.LRScheduler,
) -> float:
    """One pass over the training part; returns the mean loss."""
    model.train()
    losses = []
    for images, labels in batches:
        optimizer.zero_grad()
        loss = loss_of(model(shifted(images)), labels)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


@weft.no_grad()
def predict(model: nn.Module, images: weft.Tensor) -> weft.Tensor:
    """The most likely label of each image."""
    model.eval()
    return model(images).argmax(1)


def accuracy_of(model: nn.Module, data: TensorDataset) -> float:
    """The share of images whose predicted label is right."""
    images, labels = data.tensors
    return (predict(model, images) == labels).float().mean().item()


def draw(
    path: str, losses: list[float], accuracies: list[float], model: nn.Module, test: TensorDataset
) -> None:
    """Writes the learning curve, and below it the wrong digits as 'predicted (true)'."""
    images, labels = test.tensors
    predicted = predict(model, images)
    wrong = (predicted != labels).nonzero().flatten().tolist()
    columns = max(8, min(len(wrong), 16))
    rows = max(1, -(-len(wrong) // columns))
    figure = plt.figure(figsize=(10, 4.8 + 1.2 * rows), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=[4, 0.8 + 1.2 * rows])
    draw_curve(upper.subplots(), losses, accuracies)
    lower.suptitle(f"{len(wrong)} of {len(labels)} test digits wrong: predicted (true)")
    cells = lower.subplots(rows, columns, squeeze=False).flatten()
    for cell in cells:
        cell.axis("off")
    for cell, i in zip(cells, wrong):
        cell.imshow(images[i, 0].numpy(), cmap="gray_r")
        cell.set_title(f"{predicted[i].item()} ({labels[i].item()})")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def draw_curve(axes: plt.Axes, losses: list[float], accuracies: list[float]) -> None:
    """Training loss and test error over the epochs, on one logarithmic axis."""
    epochs = range(1, len(losses) + 1)
    axes.semilogy(epochs, losses, label="training loss")
    errors = [max(1 - accuracy, 1e-3) for accuracy in accuracies]
    axes.semilogy(epochs, errors, label="test error (at least 0.001)")
    axes.set_xlabel("epoch")
    axes.grid(alpha=0.3)
    axes.legend()


def peak_memory_mb() -> float:
    """The largest resident size this process has had."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux; getrusage would count the parent process in
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def main() -> None:
    """Trains, draws and reports."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--output", default="digits.png")
    options = parser.parse_args()
    if options.threads is not None:
        weft.set_num_threads(options.threads)
    weft.manual_seed(options.seed)

    train, test = load(options.seed)
    batches = DataLoader(train, batch_size=64, shuffle=True, drop_last=True)
    model = build_model()
    loss_of = nn.CrossEntropyLoss()
    optimizer = weft.optim.Adam(model.parameters())
    schedule = weft.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=5e-3, epochs=options.epochs, steps_per_epoch=len(batches)
    )

    losses, accuracies, seconds = [], [], 0.0
    bar = tqdm(range(options.epochs), unit="epoch")
    for _ in bar:
        start = time.perf_counter()
        losses.append(train_epoch(model, batches, loss_of, optimizer, schedule))
        seconds += time.perf_counter() - start
        accuracies.append(accuracy_of(model, test))
        bar.set_postfix(loss=f"{losses[-1]:.3f}", test=f"{accuracies[-1]:.2%}")

    draw(options.output, losses, accuracies, model, test)
    seen = options.epochs * len(batches) * 64
    report = {
        "accuracy": round(accuracies[-1], 4),
        "images_per_second": round(seen / seconds),
        "peak_memory_mb": round(peak_memory_mb(), 1),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()

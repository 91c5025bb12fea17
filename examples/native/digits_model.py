"""The model and the data of train_digits.cpp: python digits_model.py model.weft digits.bin"""

import struct
import sys

import numpy as np
from sklearn.datasets import load_digits

import weft as torch
from weft import nn


class Reader(nn.Module):
    """Scores of ten digits for images of 64 pixels."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)

    @torch.jit.export
    def loss(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(self(x), labels)


def main(model: str, data: str) -> None:
    torch.manual_seed(0)
    torch.jit.aot_compile(torch.jit.script(Reader()), model)
    images, labels = load_digits(return_X_y=True)
    with open(data, "wb") as file:
        file.write(struct.pack("<q", len(labels)))
        file.write((images / 16).astype(np.float32).tobytes())
        file.write(labels.astype(np.int64).tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:])

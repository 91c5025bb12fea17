"""Data loading by two workers: many small samples, and images. Each in a process of its own."""

from bench.case import Group, Probe

group = Group("loader")

_SMALL = """
import time
import {library} as torch
from {library}.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self):
        self.rows = torch.randn(100_000, 16)
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, index):
        return self.rows[index]
"""

_LARGE = """
import time
import {library} as torch
from {library}.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __init__(self):
        self.images = torch.randn(64, 3, 224, 224)
    def __len__(self):
        return 3072
    def __getitem__(self, index):
        return self.images[index % 64]
"""

# Persistent workers: starting processes is not what is measured. The first epoch warms up.
_RUN = """
if __name__ == "__main__":
    torch.set_num_threads(1)
    loader = DataLoader({data}(), batch_size={batch}, num_workers=2, persistent_workers=True)
    for _ in loader:
        pass
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        for batch in loader:
            pass
        best = min(best, time.perf_counter() - start)
    print(best / len(loader))
"""


def _case(name: str, data: str, source: str, batch: int) -> Probe:
    run = _RUN.replace("{data}", data).replace("{batch}", str(batch))
    return Probe(name, source + run, "s", runs=2)


group.cases += [
    _case("100,000 rows of 16, batches of 64", "Rows", _SMALL, 64),
    _case("3072 images 3x224x224, batches of 32", "Images", _LARGE, 32),
]

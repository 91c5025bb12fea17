"""Memory of a process that trains 50 million parameters with Adam, alone or spread by fully_shard.

    python bench/shard_memory.py; python -m weft launch -n 4 bench/shard_memory.py

Prints the peaks of rank 0 in bytes: of tensors, by weft's allocator, and of the resident set above
that of a process that has imported weft, so MPI's memory counts. Linux only.
"""

from __future__ import annotations

import json
from pathlib import Path

import weft as torch
import weft.distributed as dist
from weft import memory, nn
from weft.distributed.fsdp import fully_shard

WIDTH, DEPTH, STEPS = 2048, 12, 3


def resident(name: str) -> int:
    """A size that Linux tells of this process, in bytes: VmRSS, or VmHWM, its peak."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith(name))) << 10


def main() -> None:
    """Trains, and prints the peaks as JSON."""
    imported = resident("VmRSS")
    torch.set_num_threads(1)
    dist.init_process_group("mpi")
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH)))
    if dist.get_world_size() > 1:
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    x = torch.randn(8, WIDTH)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    tensors = memory.stats()["peak_bytes_in_use"]
    if dist.get_rank() == 0:
        print(json.dumps({"tensors": tensors, "resident": resident("VmHWM") - imported}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

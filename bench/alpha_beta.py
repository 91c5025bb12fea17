"""The latency and bandwidth between two processes, and what they foretell of all_reduce.

    weft launch -n 2 bench/alpha_beta.py        # on two nodes: by the host file of the launcher

Two processes send a message there and back. Half its time is alpha + bytes * beta, of which alpha
is the time of 8 bytes and beta follows from the largest message. A processor adds what arrives in
gamma seconds a byte. The formulas are those of docs/scaling.md; the time of each size is the
shortest of the algorithms', beside the median of all_reduce over all processes of the launch.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import weft as torch
import weft.distributed as dist

RUNS = 25
LARGEST = 1 << 24
SIZES = (8, 1 << 12, 1 << 16, 1 << 20, 1 << 22, LARGEST)
GRADIENTS = 200_000_000  # bytes of 50 million float32 parameters


class Link(NamedTuple):
    """Seconds of a message, seconds a byte of it, and seconds to add a byte."""

    alpha: float
    beta: float
    gamma: float


def doubling(link: Link, count: int, size: int) -> float:
    """Recursive doubling: log2(p) times the whole message."""
    return math.log2(count) * (link.alpha + size * (link.beta + link.gamma))


def rabenseifner(link: Link, count: int, size: int) -> float:
    """Halves, quarters and so on are summed, then gathered."""
    share = size * (count - 1) / count
    return 2 * math.log2(count) * link.alpha + share * (2 * link.beta + link.gamma)


def ring(link: Link, count: int, size: int) -> float:
    """Parts of 1/p go around twice."""
    share = size * (count - 1) / count
    return 2 * (count - 1) * link.alpha + share * (2 * link.beta + link.gamma)


def expected(link: Link, count: int, size: int) -> float:
    """The shortest time of an all_reduce, in seconds."""
    return min(formula(link, count, size) for formula in (doubling, rabenseifner, ring))


def _median(call: Callable[[], object]) -> float:
    """Seconds of a call that all processes make at once."""
    times = []
    for _ in range(RUNS):
        dist.barrier()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _there_and_back(size: int) -> float:
    x = torch.zeros(size, dtype=torch.uint8)
    rank = dist.get_rank()

    def exchange() -> None:
        if rank == 0:
            dist.send(x, 1)
            dist.recv(x, 1)
        elif rank == 1:
            dist.recv(x, 0)
            dist.send(x, 0)

    return _median(exchange) / 2


def link() -> Link:
    """The constants, measured between ranks 0 and 1."""
    alpha = _there_and_back(8)
    beta = (_there_and_back(LARGEST) - alpha) / LARGEST
    x, y = torch.zeros(LARGEST // 4), torch.ones(LARGEST // 4)
    return Link(alpha, beta, _median(lambda: x.add_(y)) / LARGEST)


def main() -> None:
    """Prints the constants and both tables."""
    torch.set_num_threads(1)
    dist.init_process_group()
    count, found = dist.get_world_size(), link()
    lines = [
        f"alpha {found.alpha * 1e6:.2f} us; 1/beta {1e-9 / found.beta:.2f} GB/s; "
        f"1/gamma {1e-9 / found.gamma:.2f} GB/s",
        f"{'all_reduce, bytes':>18}{'measured, ms':>14}{'expected, ms':>14}",
    ]
    for size in SIZES:
        x = torch.zeros(max(size // 4, 1))
        seconds = _median(lambda x=x: dist.all_reduce(x))
        lines.append(f"{size:18,}{seconds * 1e3:14.3f}{expected(found, count, size) * 1e3:14.3f}")
    for nodes in (8, 64, 1024):
        lines.append(
            f"{nodes:,} nodes over such links: 8 bytes {expected(found, nodes, 8) * 1e6:.0f} us, "
            f"{GRADIENTS / 1e6:.0f} MB {expected(found, nodes, GRADIENTS) * 1e3:.0f} ms"
        )
    if dist.get_rank() == 0:
        print("\n".join(lines))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

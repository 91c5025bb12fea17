"""One process that is lost while the others wait for it: each prints its error."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta

import weft
import weft.distributed as dist

SIGNALS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP, "crashed": signal.SIGABRT}
fault = sys.argv[1]
dist.init_process_group(timeout=timedelta(seconds=float(sys.argv[2])))
me, last = dist.get_rank(), dist.get_world_size() - 1
x = weft.ones(3)
dist.all_reduce(x)
print(f"pid {os.getpid()}", flush=True)


def fail() -> None:
    if me == last:
        if fault == "raises":
            raise KeyError("lost")
        if fault == "sleeps":
            time.sleep(1000)
        if fault == "elsewhere":
            dist.recv(x, 0)
        if fault in SIGNALS:
            os.kill(os.getpid(), SIGNALS[fault])
    if fault == "order" and me == last:
        dist.broadcast(x, 0)
    elif fault == "parts":
        sizes = [2 if me == rank == last else 3 for rank in range(last + 1)]
        dist.all_to_all([weft.empty(n) for n in sizes], [weft.ones(sizes[me])] * (last + 1))
    elif fault == "shapes":
        dist.all_reduce(weft.ones(3 + me))
    else:
        dist.all_reduce(x)


try:
    fail()
except Exception as error:
    print(f"rank {me}: {type(error).__name__}: {error}", flush=True)
    raise

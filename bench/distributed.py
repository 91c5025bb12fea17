"""Two processes of this machine: sums of tensors, and steps of a model that both train.

weft runs over MPI by `weft launch`, PyTorch over gloo. Plain mpi4py takes turns with weft in the
same processes; those cases give the ratio of the two times.
"""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.case import Group, Probe

group = Group("distributed")

_START = """
import statistics, time
import torch
import torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")

def median(call, runs):
    times = []
    for _ in range(runs):
        dist.barrier()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
"""

_SUM = """
x = torch.ones({bytes} // 4)
seconds = median(lambda: dist.all_reduce(x.fill_(1.0)), {runs})
"""

_STEP = """
from torch import nn
model = nn.Sequential(*(m for _ in range(6) for m in (nn.Linear(512, 512), nn.ReLU())))
model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(64, 512)

def step():
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()

step()
seconds = median(step, {runs})
"""

_END = """
if dist.get_rank() == 0:
    print(seconds, flush=True)
dist.barrier()
dist.destroy_process_group()
"""

# One process starts two: weft's by its command, PyTorch's by its environment.
_TWICE = """
from bench.distributed import started_twice
print(started_twice("{library}", '''{source}'''))
"""

_PLAIN = """
from mpi4py import MPI
x = torch.ones({bytes} // 4)
memory = MPI.buffer.fromaddress(x.data_ptr(), x.nbytes)
plain = lambda: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, [memory, x.numel(), MPI.FLOAT])
calls = {{True: lambda: dist.all_reduce(x), False: plain}}
times = {{True: [], False: []}}
for _ in range({runs}):
    for ours, call in calls.items():
        x.fill_(0.0)
        times[ours].append(median(call, 1))
seconds = statistics.median(times[True]) / statistics.median(times[False])
"""


def started_twice(library: str, source: str) -> float:
    """What rank 0 of two processes prints."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text(source)
        if library == "weft":
            command = [sys.executable, "-m", "weft", "launch", "-n", "2", str(program)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            return float(done.stdout)
        return float(_by_gloo(program))


def _by_gloo(program: Path) -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    world = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(program)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | world | {"RANK": str(rank)},
        )
        for rank in range(2)
    ]
    texts = [rank.communicate()[0] for rank in ranks]
    return texts[0]


def _case(name: str, body: str, unit: str = "s", **values: int) -> Probe:
    source = _START + body.format(**values) + _END
    libraries = ("weft",) if body is _PLAIN else ("weft", "torch")
    return Probe(name, _TWICE.replace("{source}", source), unit, 3, libraries)


group.cases += [
    *(
        _case(f"all_reduce of {size:,} bytes", _SUM, bytes=size, runs=30)
        for size in (4096, 2**20, 2**24, 2**26)
    ),
    *(
        _case(f"its time over mpi4py's, {size:,} bytes", _PLAIN, "times", bytes=size, runs=30)
        for size in (4096, 2**20, 2**24, 2**26)
    ),
    _case("DistributedDataParallel step, 1.6M parameters", _STEP, runs=30),
]

"""Calls between three workers, under weft or torch: what each of them saw.

python rpc_program.py weft|torch PORT
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import threading
import time
from typing import Any

lib: Any = importlib.import_module(sys.argv[1])
rpc: Any = importlib.import_module(f"{sys.argv[1]}.distributed.rpc")
mp: Any = importlib.import_module(f"{sys.argv[1]}.multiprocessing")
SIZE = 3


class Odd(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(first + second)


class Counter:
    """What a worker keeps, and others ask."""

    def __init__(self, start: int = 0) -> None:
        self.value = start

    def add(self, amount: int, times: int = 1) -> int:
        self.value += amount * times
        return self.value

    def fail(self) -> None:
        raise KeyError("counter")

    @rpc.functions.async_execution
    def later(self, to: str) -> Any:
        return rpc.rpc_async(to, whoami).then(lambda done: (self.value, done.value()))

    @staticmethod
    @rpc.functions.async_execution
    def relay(to: str, x: Any) -> Any:
        return rpc.rpc_async(to, lib.mul, args=(x, 2)).then(lambda done: done.wait() + 1)


def whoami() -> str:
    return rpc.get_worker_info().name


def scaled(x: Any, by: float = 1.0) -> Any:
    return x * by


def through(names: list[str]) -> list[str]:
    """Calls from worker to worker, and back."""
    rest = rpc.rpc_sync(names[0], through, args=(names[1:],)) if names else []
    return [whoami(), *rest]


def raising(kind: str) -> None:
    if kind == "odd":
        raise Odd(1, 2)
    raise {"value": ValueError, "key": KeyError, "stop": StopIteration}[kind]("by request")


def asleep(seconds: float) -> str:
    time.sleep(seconds)
    return "awake"


def value_of(rref: Any) -> Any:
    return rref.is_owner(), rref.owner_name(), rref.to_here()


def passed_on(rref: Any, to: str) -> Any:
    return rpc.rpc_sync(to, value_of, args=(rref,))


def made_there(start: int) -> Any:
    return rpc.RRef(Counter(start))


kept: list[Any] = []


def keep(rref: Any) -> None:
    kept.append(rref)


def use_kept() -> Any:
    return kept.pop().rpc_sync().add(1)


@rpc.functions.async_execution
def no_future() -> int:
    return 1


later_calls: list[str] = []


def note_later(seconds: float) -> None:
    time.sleep(seconds)
    later_calls.append(whoami())


def start_later(to: str) -> None:
    rpc.rpc_async(to, note_later, args=(0.3,))  # nobody waits for it


def saw(call: Any, *args: Any, **kwargs: Any) -> Any:
    """What it returns, or the class of its error."""
    try:
        found = call(*args, **kwargs)
    except pickle.PicklingError:  # of a local function, from Python 3.14 on
        return "AttributeError"
    except Exception as error:
        return type(error).__name__
    return found.tolist() if isinstance(found, lib.Tensor) else found


def first() -> list[Any]:
    ones = lib.ones(2)
    counter = rpc.remote("worker1", Counter, args=(10,))
    at_own = rpc.RRef([1, 2])
    broken = rpc.remote("worker2", raising, args=("value",))
    weight = lib.ones(2, requires_grad=True)
    seen: list[Any] = [
        str(rpc.get_worker_info()), rpc.get_worker_info("worker2").id, saw(rpc.get_worker_info, "x"),
        saw(rpc.rpc_sync, "worker1", lib.add, args=(ones, 3)),
        saw(rpc.rpc_sync, 2, scaled, args=(ones,), kwargs={"by": 4.0}),
        saw(rpc.rpc_sync, rpc.get_worker_info("worker1"), whoami),
        saw(rpc.rpc_sync, "worker0", whoami), saw(rpc.rpc_sync, "nobody", whoami),
        saw(rpc.rpc_sync, "worker1", 3), saw(rpc.rpc_sync, "worker1", lambda: 1),
        [f.wait() for f in [rpc.rpc_async("worker1", divmod, args=(n, 3)) for n in range(20)]],
        rpc.rpc_async("worker2", whoami).then(lambda done: done.wait() + "!").wait(),
        rpc.rpc_sync("worker1", through, args=(["worker2", "worker0", "worker1", "worker0"],)),
        *(saw(rpc.rpc_sync, "worker1", raising, args=(k,)) for k in ("value", "key", "odd", "stop")),
        saw(rpc.rpc_sync, "worker1", asleep, args=(2,), timeout=0.1),
        saw(rpc.rpc_sync, "worker1", asleep, args=(0.2,), timeout=0),
        counter.is_owner(), counter.owner_name(), str(counter.owner()), saw(counter.local_value),
        counter.rpc_sync().add(5), counter.rpc_async().add(1, times=2).wait(),
        counter.remote().add(3).to_here(), saw(counter.rpc_sync().fail), saw(counter.rpc_sync().none),
        counter.rpc_sync().later("worker2"), counter.to_here().value,
        saw(rpc.rpc_sync, "worker1", Counter.relay, args=("worker2", ones)),
        saw(rpc.rpc_sync, "worker1", no_future),
        at_own.is_owner(), at_own.local_value(), at_own.to_here(), at_own.confirmed_by_owner(),
        rpc.RRef(kept).local_value() is kept,
        rpc.rpc_sync("worker1", value_of, args=(at_own,)),
        rpc.rpc_sync("worker1", passed_on, args=(at_own, "worker2")),
        rpc.rpc_sync("worker1", passed_on, args=(at_own, "worker0")),
        saw(broken.to_here), saw(pickle.dumps, at_own),
        saw(rpc.rpc_sync, "worker1", scaled, args=(weight * 2,), kwargs={"by": 1.0}),
        rpc.rpc_sync("worker1", lib.Tensor.size, args=(lib.zeros(3, 0, 2), 0)),
        rpc.rpc_sync("worker1", scaled, args=(lib.zeros(3, 4, dtype=lib.int16).t(), 2)).shape,
    ]  # fmt: skip
    there = rpc.rpc_sync("worker2", made_there, args=(100,))
    seen += [there.owner_name(), there.rpc_sync().add(1), value_of(there)[2].value]
    rpc.rpc_sync("worker1", keep, args=(there,))
    del there
    seen.append(rpc.rpc_sync("worker1", use_kept))
    threads = [threading.Thread(target=lambda: rpc.rpc_sync("worker1", asleep, (0.05,))) for _ in range(30)]  # fmt: skip
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for _ in range(2):
        rpc.rpc_sync("worker1", start_later, args=("worker2",))
    return seen


def run(rank: int, port: str) -> None:
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": port}
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=8, rpc_timeout=20)
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=SIZE, rpc_backend_options=options)
    seen = first() if rank == 0 else []
    rpc.shutdown()
    if rank == 0:
        seen.append(saw(rpc.rpc_sync, "worker1", whoami))
    text = "".join(f"{each!r}\n" for each in seen) + f"{rank} {later_calls}\n"
    os.write(1, text.encode())  # at once: the others write too


if __name__ == "__main__":
    mp.spawn(run, args=(sys.argv[2],), nprocs=SIZE)

"""Archives: loading against torch.jit.load, memory and start of programs in Python and in C++."""

from __future__ import annotations

from typing import Any

import weft
from bench.case import Group, Probe
from bench.memory import PEAK
from bench.networks import archive, input_of, networks

group = Group("archives")
MODELS = ("ResNet-18", "ResNet-50", "transformer encoder", "LSTM")


def _loading(name: str) -> Any:
    return lambda torch: {"path": str(archive(name)), "x": input_of(torch, name)}


for _name in MODELS:
    group.add(f"load {_name}", "torch.jit.load(path)", _loading(_name))
    group.add(f"load {_name}, first result", "torch.jit.load(path)(x)", _loading(_name))

# Processes that load a model and run it once: their peak memory and how long they take.
_ONCE = """
import time
start = time.perf_counter()
import {library} as torch
model = torch.jit.load({path})
with torch.no_grad():
    model(torch.ones({sizes}))
print(result())
"""
_SECONDS = "from bench.native_start import seconds\n"
_START = _SECONDS + "print(seconds('{library}', {path}, {sizes}))"
_START_FROZEN = _SECONDS + "print(seconds('{library}', {path}, {sizes}, frozen=True))"


def _values(name: str) -> Any:
    return lambda: {"path": repr(str(archive(name))), "sizes": str(networks(weft)[name].sizes)}


_TIME = "def result():\n    return time.perf_counter() - start\n"
for _name in MODELS:
    _seen = _values(_name)
    group.cases += [
        Probe(f"memory of a process, {_name}", PEAK + "result = peak" + _ONCE, "MB", values=_seen),
        Probe(f"import to first result, {_name}", _TIME + _ONCE, "s", runs=3, values=_seen),
        Probe(f"C++ program, {_name}", _START, "s", values=_seen),
        Probe(f"C++ program, frozen {_name}", _START_FROZEN, "s", values=_seen),
    ]

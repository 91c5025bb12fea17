"""Archives: loading and running against torch.jit.load and onnxruntime, C++ programs' start."""

from __future__ import annotations

import importlib
import importlib.util
import io
import math
from typing import Any

import weft
from bench.case import Group, Probe
from bench.jit import warm
from bench.memory import PEAK
from bench.models import MODELS, archive

group = Group("archives")

# One archive, written by weft, is what all of them read.
_BASELINES = ("torch.jit", "torch.jit, both frozen", "onnxruntime")


def _input(torch: Any, name: str) -> Any:
    sizes = MODELS[name][1]
    return torch.linspace(-1, 1, math.prod(sizes)).reshape(sizes)


def _session(torch: Any, path: str, inputs: Any) -> Any:
    """The archive, exported by weft, in onnxruntime, as a function of its input."""
    if not all(map(importlib.util.find_spec, ("onnx", "onnxruntime"))):
        raise RuntimeError("onnxruntime: expected the packages onnx and onnxruntime, got none")
    onnxruntime = importlib.import_module("onnxruntime")
    file = io.BytesIO()
    example = weft.from_numpy(inputs.numpy())
    weft.onnx.export(weft.jit.load(path), (example,), file, input_names=["x"])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(
        file.getvalue(), options, providers=["CPUExecutionProvider"]
    )
    given = {"x": inputs.numpy()}
    return lambda x: torch.from_numpy(session.run(None, given)[0])


def _running(name: str, baseline: str) -> Any:
    def setup(torch: Any) -> dict[str, Any]:
        x, run = _input(torch, name), torch.jit.load(str(archive(name)))
        with torch.no_grad():
            expected = run(x)
            if baseline == "torch.jit, both frozen":
                run = torch.jit.freeze(run)
            elif baseline == "onnxruntime" and torch.__name__ != "weft":
                run = _session(torch, str(archive(name)), x)

        def infer() -> Any:
            with torch.no_grad():
                return run(x)

        warm(torch, infer, ())
        if not torch.allclose(infer(), expected, rtol=1e-3, atol=1e-4):
            raise AssertionError("expected the result of the first call, got another")
        return {"infer": infer}

    return setup


def _loading(name: str) -> Any:
    return lambda torch: {"path": str(archive(name)), "x": _input(torch, name)}


for _name in MODELS:
    group.add(f"load {_name}", "torch.jit.load(path)", _loading(_name))
    group.add(f"load {_name}, first result", "torch.jit.load(path)(x)", _loading(_name))
    for _baseline in _BASELINES:
        group.add(f"run {_name} | {_baseline}", "infer()", _running(_name, _baseline), seconds=1.0)

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
_START = "from bench.native_start import seconds\nprint(seconds('{library}', {path}, {sizes}))"


def _values(name: str) -> Any:
    return lambda: {"path": repr(str(archive(name))), "sizes": str(MODELS[name][1])}


_TIME = "def result():\n    return time.perf_counter() - start\n"
for _name in MODELS:
    _seen = _values(_name)
    group.cases += [
        Probe(f"memory of a process, {_name}", PEAK + "result = peak" + _ONCE, "MB", values=_seen),
        Probe(f"import to first result, {_name}", _TIME + _ONCE, "s", runs=3, values=_seen),
        Probe(f"C++ program, {_name}", _START, "s", values=_seen),
    ]

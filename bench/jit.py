"""Compiled programs: against PyTorch eager, torch.jit.script and, with --compile, torch.compile."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Any

from bench.case import Group, Probe

group = Group("jit")

_CHAIN = """
def chain(x, y):
    return torch.sigmoid(x * y + 1.0) * torch.tanh(x - y) + x * 0.5
"""
_LOOP = """
def loop(n: int) -> int:
    total = 0
    for i in range(n):
        if i % 3 == 0:
            total += i * 2
        else:
            total -= 1
    return total
"""
_LSTM = """
def lstm(x: Tensor, h: Tensor, c: Tensor, w_x: Tensor, w_h: Tensor, b: Tensor) -> Tensor:
    for t in range(x.size(0)):
        gates = torch.mm(x[t], w_x) + torch.mm(h, w_h) + b
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h
"""
_FILTER = """
def smoothed(x: Tensor, w: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = x * w + 0.5
    return x
"""
_WARM_CALLS = 5  # torch.jit compiles in its second and third call, weft behind the second
_SILENCE = 0.3  # seconds in which weft's compiler finishes nothing, when it has nothing to do


def _is_weft(torch: Any) -> bool:
    return bool(torch.__name__ == "weft")


def _eager(torch: Any, source: str, name: str) -> Callable[..., Any]:
    names = {"torch": torch, "Tensor": torch.Tensor}
    exec(source, names)
    return names[name]  # type: ignore[no-any-return]


def _scripted(torch: Any, source: str, name: str) -> Callable[..., Any]:
    return getattr(torch.jit.CompilationUnit(source), name)  # type: ignore[no-any-return]


def needs_compiler() -> None:
    """RuntimeError where torch.compile finds none."""
    if not any(map(shutil.which, ("g++", "clang++"))):
        raise RuntimeError("torch.compile: expected a C++ compiler, got none (g++, clang++)")


def _compiled(torch: Any, source: str, name: str) -> Callable[..., Any]:
    needs_compiler()
    return torch.compile(_eager(torch, source, name))  # type: ignore[no-any-return]


_BASELINES = {"eager": _eager, "torch.jit": _scripted, "torch.compile": _compiled}


def warm(torch: Any, run: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
    """Calls until nothing more is to be compiled."""
    for _ in range(_WARM_CALLS):
        run(*inputs)
    if not _is_weft(torch):
        return
    from weft.jit.native import compiler

    done = None
    while done != (done := len(compiler.compiled) + len(compiler.failures)):
        time.sleep(_SILENCE)
    if compiler.failures:
        raise RuntimeError(f"native code: {compiler.failures[0]}")


def _check(torch: Any, got: Any, expected: Any) -> None:
    """The bits of eager for weft; PyTorch's compilers are allowed rounding."""
    if not isinstance(got, torch.Tensor):
        same = got == expected
    elif _is_weft(torch):
        same = torch.equal(got, expected)
    else:
        same = torch.allclose(got, expected, rtol=1e-4, atol=1e-5)
    if not same:
        raise AssertionError("expected the result of eager mode, got another")


def _against(
    baseline: str, source: str, name: str, inputs_of: Callable[[Any], tuple[Any, ...]]
) -> Callable[[Any], dict[str, Any]]:
    def setup(torch: Any) -> dict[str, Any]:
        make = _scripted if _is_weft(torch) else _BASELINES[baseline]
        run, inputs = make(torch, source, name), inputs_of(torch)
        warm(torch, run, inputs)
        _check(torch, run(*inputs), _eager(torch, source, name)(*inputs))
        return {"run": run, "inputs": inputs}

    return setup


def _vectors(n: int) -> Callable[[Any], tuple[Any, ...]]:
    return lambda torch: (torch.randn(n), torch.randn(n))


def _lstm_inputs(torch: Any) -> tuple[Any, ...]:
    batch, inputs, hidden, steps = 4, 16, 16, 50
    return (
        torch.randn(steps, batch, inputs),
        torch.zeros(batch, hidden),
        torch.zeros(batch, hidden),
        torch.randn(inputs, 4 * hidden) * 0.1,
        torch.randn(hidden, 4 * hidden) * 0.1,
        torch.zeros(4 * hidden),
    )


def _needs(baseline: str) -> str:
    return "compile" if baseline == "torch.compile" else ""


for _label, _n in {"64K": 1 << 16, "1M": 1 << 20, "16M": 1 << 24}.items():
    for _baseline in _BASELINES:
        group.add(
            f"chain of 7, {_label} | {_baseline}",
            "run(*inputs)",
            _against(_baseline, _CHAIN, "chain", _vectors(_n)),
            needs=_needs(_baseline),
        )
    # Reads and writes the same bytes and hardly computes: no fused chain can be faster.
    group.add(
        f"bound of bandwidth: x + y, {_label}",
        "x + y",
        lambda torch, n=_n: dict(zip("xy", _vectors(n)(torch))),
    )
# Row operators and products with what stands before and behind them.
_WIDE = {
    "softmax(x * s + m) 512x1024": (
        "def attention(x, m):\n    return torch.softmax(x * 0.125 + m, -1)\n",
        [(512, 1024), (512, 1024)],
    ),
    "layer_norm(x + r) 512x1024": (
        "def norm(x, r, w, b):\n    return torch.layer_norm(x + r, [1024], w, b, 1e-5)\n",
        [(512, 1024), (512, 1024), (1024,), (1024,)],
    ),
    "gelu(layer_norm(x + r)) * w 512x1024": (
        "def activated(x, r, w, b):\n"
        "    y = torch.layer_norm(x + r, [1024], w, b, 1e-5)\n"
        "    return torch.nn.functional.gelu(y) * w\n",
        [(512, 1024), (512, 1024), (1024,), (1024,)],
    ),
    "x * rsqrt(mean(x * x)) * w 512x1024": (
        "def scaled(x, w):\n"
        "    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w\n",
        [(512, 1024), (1024,)],
    ),
    "(x - y).pow(2).mean() 512x1024": (
        "def loss(x, y):\n    return (x - y).pow(2).mean()\n",
        [(512, 1024), (512, 1024)],
    ),
    "gelu(linear(x)) 256x1024x1024": (
        "def layer(x, w, b):\n"
        "    return torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b))\n",
        [(256, 1024), (1024, 1024), (1024,)],
    ),
    "relu(linear(x) + r) 4096x64x1024": (
        "def wide(x, w, b, r):\n    return torch.relu(torch.nn.functional.linear(x, w, b) + r)\n",
        [(4096, 64), (1024, 64), (1024,), (4096, 1024)],
    ),
    "relu(conv2d(x)) 8x64x56x56, 3x3": (
        "def image(x, w, b):\n    return torch.relu(torch.conv2d(x, w, b, padding=1))\n",
        [(8, 64, 56, 56), (64, 64, 3, 3), (64,)],
    ),
    "relu(conv2d(x) + r) 8x64x56x56, 1x1": (
        "def residual(x, w, b, r):\n    return torch.relu(torch.conv2d(x, w, b) + r)\n",
        [(8, 64, 56, 56), (64, 64, 1, 1), (64,), (8, 64, 56, 56)],
    ),
}


def _tensors(shapes: list[tuple[int, ...]]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda torch: tuple(torch.randn(shape) for shape in shapes)


for _label, (_source, _shapes) in _WIDE.items():
    _name = _source[4 : _source.index("(")]
    for _baseline in _BASELINES:
        group.add(
            f"{_label} | {_baseline}",
            "run(*inputs)",
            _against(_baseline, _source, _name, _tensors(_shapes)),
            needs=_needs(_baseline),
        )
for _baseline in ("eager", "torch.jit"):
    group.add(
        f"scalar loop of 1,000 steps | {_baseline}",
        "run(*inputs)",
        _against(_baseline, _LOOP, "loop", lambda torch: (1000,)),
    )
    group.add(
        f"x * w + 0.5 in a loop of 32, 1M | {_baseline}",
        "run(*inputs)",
        _against(_baseline, _FILTER, "smoothed", lambda torch: (*_vectors(1 << 20)(torch), 32)),
    )
    group.add(
        f"LSTM cell, 50 steps of 4x16 | {_baseline}",
        "run(*inputs)",
        _against(_baseline, _LSTM, "lstm", _lstm_inputs),
    )

# Source -> first result. A first program fills the tables that all programs share.
_FIRST = f"""
import time
import {{library}} as torch
source = {_CHAIN!r}
def first(text):
    x, y = torch.ones(64), torch.ones(64)
    start = time.perf_counter()
    torch.jit.CompilationUnit(text).chain(x, y)
    return (time.perf_counter() - start) * 1e3
"""
_LATER = "print(min(first(source.replace('0.5', str(i))) for i in range(1, 20)))"
group.cases += [
    Probe("first result of a process", _FIRST + "print(first(source))", "ms", runs=3),
    Probe("first result of a later function", _FIRST + "first(source)\n" + _LATER, "ms", runs=3),
]

_NATIVE = f"""
import os, tempfile, time
with tempfile.TemporaryDirectory() as folder:
    os.environ["WEFT_CACHE"] = folder
    import weft as torch
    from weft.jit.native import available, compiler
    if not available():
        raise SystemExit("expected llvmlite and a known machine, got none: no native code")
    x, y = torch.ones(64), torch.ones(64)
    def native(source):
        chain = torch.jit.CompilationUnit(source).chain
        known = len(compiler.compiled)
        start = time.perf_counter()
        while len(compiler.compiled) == known:
            if compiler.failures:
                raise SystemExit(compiler.failures[0])
            chain(x, y)
            time.sleep(0.0005)
        return (time.perf_counter() - start) * 1e3
    source = {_CHAIN!r}
    times = [native(source.replace("tanh", name)) for name in ("exp", "sin", "tanh", "erf")]
    print(min(times))
    compiler.stop()
"""
_NO_PAUSE = _NATIVE.replace("time.sleep(0.0005)", "pass")
# What the compiler itself needs is loaded for the first of a process.
_NATIVE_NAME = "native code of a fused chain, from first call"
for _label, _program in {"": _NATIVE, ", without a pause between calls": _NO_PAUSE}.items():
    _first = _program.replace("min(times)", "times[0]")
    group.cases += [
        Probe(f"{_NATIVE_NAME}{_label}", _program, "ms", 1, ("weft",)),
        Probe(f"the same, the first of a process{_label}", _first, "ms", 3, ("weft",)),
    ]

# Time of two threads that make as many calls each as one thread does: 50 is perfect scaling.
_THREADS = f"""
import threading, time
import {{library}} as torch
torch.set_num_threads(1)
loop = torch.jit.CompilationUnit({_LOOP!r}).loop
def work(calls):
    for _ in range(calls):
        loop(20000)
def timed(threads, calls):
    all = [threading.Thread(target=work, args=(calls,)) for _ in range(threads)]
    start = time.perf_counter()
    for t in all: t.start()
    for t in all: t.join()
    return time.perf_counter() - start
work(5)
calls = max(2, int(0.2 / (timed(1, 5) / 5)))
best = min(timed(2, calls) / timed(1, 2 * calls) for _ in range(5))
print(best * 100)
"""
group.cases.append(Probe("two threads on one program, of one's time", _THREADS, "%", runs=1))

"""Handlers of signals run while a program runs: Ctrl-C ends it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAD = """
import signal, sys, weft
from weft import Tensor

def handler(number, frame):
    raise KeyboardInterrupt("handled")

signal.signal(signal.SIGALRM, handler)

@weft.jit.ignore
def start() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
"""
LOOPS = {
    "for": "    for i in range(1 << 62):\n        n += i & 1",
    "while": "    while n >= 0:\n        n = (n + 1) & 255",
    "operators": "    while bool(x.sum() < 1):\n        x = x * 0",
    "recursion": "    for i in range(1 << 62):\n        n = inner(n)",
}
TAIL = """
try:
    weft.jit.script(f)(weft.zeros(2), 0)
except KeyboardInterrupt as error:
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert error.args == ("handled",)
    assert sys.version_info < (3, 11) or "HERE" in "".join(error.__notes__)
else:
    raise SystemExit(1)
assert weft.jit.script(inner)(41) == 42
"""


@pytest.mark.parametrize("loop", LOOPS)
def test_a_signal_ends_a_loop(loop: str) -> None:
    body = (
        "def inner(n: int) -> int:\n    return n + 1\n"
        f"def f(x: Tensor, n: int) -> int:\n    start()\n{LOOPS[loop]}\n    return n\n"
    )
    text = HEAD + f"__source__ = {body!r}\nexec(__source__)" + TAIL
    run = subprocess.run(
        [sys.executable, "-c", text], env=os.environ, stderr=subprocess.PIPE, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr

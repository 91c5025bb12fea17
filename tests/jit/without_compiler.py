"""A program for test_no_compiler: scripts, runs, fuses and trains; prints a digest of every bit.

`python without_compiler.py [blocked]`; blocked: llvmlite cannot be imported, and PATH must be
empty. Prints the digest and how many images of native code were made or loaded.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import time

BLOCKED = "blocked" in sys.argv


class NoLlvm:
    """Finds nothing, loudly, where llvmlite is asked for."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "llvmlite":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


if BLOCKED:
    sys.meta_path.insert(0, NoLlvm())
    assert not any(map(shutil.which, ("cc", "c++", "gcc", "g++", "clang", "clang++", "ld")))

import weft  # noqa: E402
from weft.jit.native import available, compiler  # noqa: E402


@weft.jit.script
def chain(x, y):
    return weft.sigmoid(x * y + 1.0) * weft.tanh(x - y) + x * 0.5


class Net(weft.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = weft.nn.Linear(6, 8), weft.nn.Linear(8, 1)

    def forward(self, x: weft.Tensor, steps: int) -> weft.Tensor:
        x = self.first(x)
        for _ in range(steps):
            x = weft.sigmoid(x) * weft.tanh(x * 0.5) + x
        return self.second(x)


def wait_for_native():
    """Until the forward and the backward of the chain are there, where they can be."""
    end = time.monotonic() + 20
    while len(compiler.compiled) + len(compiler.failures) < 2 and time.monotonic() < end:
        time.sleep(0.01)


def run_chain(note):
    for i in range(6):
        if i == 4 and "native" in sys.argv:
            wait_for_native()
        x = weft.randn(301, requires_grad=True)
        y = weft.randn(301, requires_grad=True)
        out = chain(x, y)
        assert i == 0 or out.grad_fn.name() == "FusedBackward", out.grad_fn
        out.sum().backward()
        for each in (out, x.grad, y.grad):
            note(each)


def train(note):
    net = Net()
    scripted = weft.jit.script(net)
    optimizer = weft.optim.SGD(net.parameters(), lr=0.1)
    data, wanted = weft.randn(16, 6), weft.randn(16, 1)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = ((scripted(data, 2) - wanted) ** 2).mean()
        loss.backward()
        optimizer.step()
        note(loss)
        losses.append(loss.item())
    assert losses[-1] < losses[0] * 0.9, losses
    for parameter in net.parameters():
        note(parameter)


def main():
    digest = hashlib.sha256()

    def note(tensor):
        digest.update(tensor.detach().contiguous().numpy().tobytes())

    weft.manual_seed(3)
    run_chain(note)
    train(note)
    if BLOCKED:
        assert not available() and "llvmlite" not in sys.modules
    print(digest.hexdigest(), len(compiler.compiled))


main()

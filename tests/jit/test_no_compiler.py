"""What holds without llvmlite and without a C++ compiler, and for ever new shapes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import weft
from weft.jit.native import compiler

CHAIN = """
def chain(x, y):
    return torch.sigmoid(x * y + 1.0) * torch.tanh(x - y) + x * 0.5
"""

PROGRAM = Path(__file__).with_name("without_compiler.py")


def outcome(cache: Path, *words: str, **variables: str) -> tuple[str, int]:
    """The digest of every result, and how many images of native code there were."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *words],
        capture_output=True,
        text=True,
        env={**os.environ, "WEFT_CACHE": str(cache), **variables},
    )
    assert done.returncode == 0, done.stderr
    digest, compiled = done.stdout.split()
    return digest, int(compiled)


def test_all_works_without_any_compiler_and_gives_the_same_bits(tmp_path) -> None:
    """Forward, gradients and training on tile steps; equal to native code where there is some."""
    without, images = outcome(tmp_path / "a", "blocked", PATH="")
    assert images == 0
    assert outcome(tmp_path / "b", WEFT_JIT_NATIVE="0") == (without, 0)
    if compiler.available():
        native, images = outcome(tmp_path / "c", "native")
        assert native == without
        assert images >= 2  # forward and backward of the chain


def test_images_on_disk_need_no_compiler(tmp_path) -> None:
    if not compiler.available():
        pytest.skip("no llvmlite")
    native, _ = outcome(tmp_path, "native")
    again, images = outcome(tmp_path, "blocked", "native", PATH="")
    assert again == native
    assert images >= 1


def test_files_without_machine_code_are_warned_of(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(compiler, "available", lambda: False)
    chain = weft.jit.CompilationUnit(CHAIN).chain
    example = (weft.ones(100), weft.ones(100))
    with pytest.warns(UserWarning, match="expected llvmlite for machine code"):
        weft.jit.aot_compile(chain, tmp_path / "chain.weft", examples=[example])
    weft.jit.aot_compile(chain, tmp_path / "chain.weft")  # which asks for none


def test_a_thousand_shapes_compile_nothing_and_keep_nothing() -> None:
    programs = weft.jit.stats()["programs"]
    chain = weft.jit.CompilationUnit(CHAIN).chain

    def call(i: int) -> None:
        shape = (i % 7 + 1, i + 1) if i % 2 else (i + 1,)
        x = weft.full(shape, 0.25, requires_grad=i % 3 == 0)
        y = weft.full(shape[-1:], -0.5)
        out = chain(x, y)
        assert out.shape == x.shape
        if out.requires_grad:
            out.sum().backward()

    for i in range(4):  # both shapes of gradient, and often enough to be worth native code
        call(i)
        call(i)
    _settle()
    counted = weft.jit.stats()
    weft.memory.empty_cache()
    before = weft.memory.stats()["bytes_in_use"]
    seen = set()
    for i in range(1000):
        call(i)
        if i % 100 == 99:
            seen.add(weft.memory.stats()["bytes_in_use"])
    assert seen == {before}
    assert counted["programs"] - programs == 3  # first call; with gradients, and without
    assert weft.jit.stats() == counted


def _settle() -> None:
    """Waits until the compiler has been silent for a while."""
    state = None
    while state != (state := weft.jit.stats()):
        time.sleep(0.5)

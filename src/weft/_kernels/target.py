"""The instruction sets kernels are compiled for."""

from __future__ import annotations

from typing import NamedTuple

from weft._kernels.machine import is_x86


class Target(NamedTuple):
    """One row of the kernel tables: csrc/ops/tile.h, enum Isa."""

    name: str
    cpu: str
    features: str = ""
    f16: bool = True  # converts float16 in hardware
    fma: bool = True  # `fma` nodes round once
    scale2: bool = False  # multiplies by a power of two in one instruction
    lookup: bool = False  # has the instructions of lookup.py
    accumulators: int = 4  # vectors a long fold keeps
    claims: bool = False  # can prefetch a line in order to write it
    streams: bool = False  # can store past the caches


X86 = {
    "v2": Target("v2", "x86-64-v2", f16=False, fma=False, accumulators=2, streams=True),
    "v3": Target("v3", "x86-64-v3", streams=True),
    "v4": Target(
        "v4",
        "x86-64-v4",
        "+prfchw",
        scale2=True,
        lookup=True,
        accumulators=8,
        claims=True,
        streams=True,
    ),
}
AARCH64 = Target("neon", "generic", "+neon")


def targets(names: list[str]) -> list[Target]:
    """The targets called v2, v3, v4, or neon; on other processors than x86 the one baseline,
    whatever is asked for."""
    return [X86.get(n, AARCH64) for n in names] if is_x86() else [AARCH64]


def linux_triple(target: Target) -> str:
    """LLVM's name of the machine that a target is of, with Linux."""
    return f"{'aarch64' if target == AARCH64 else 'x86_64'}-unknown-linux-gnu"

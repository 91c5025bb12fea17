"""The processor this is, and the instruction sets kernels are compiled for."""

from __future__ import annotations

import os
from typing import NamedTuple


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
    most_unrolled: int = 10**6  # nodes of a kernel whose widest loop takes several registers


X86 = {
    "v2": Target(
        "v2",
        "x86-64-v2",
        f16=False,
        fma=False,
        accumulators=2,
        streams=True,
        most_unrolled=100,
    ),
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


def machine() -> str:
    """Its name in small letters, as the system gives it: "x86_64", "aarch64"."""
    # What platform.machine() asks; importing that module takes longer than the first program.
    name = os.uname().machine if hasattr(os, "uname") else ""
    return (name or os.environ.get("PROCESSOR_ARCHITECTURE", "")).lower()


def is_aarch64() -> bool:
    """Whether it is an Arm processor of 64 bits."""
    return machine() in ("aarch64", "arm64")


def is_x86() -> bool:
    """Whether it is an x86 processor of 64 bits."""
    return machine() in ("x86_64", "amd64")

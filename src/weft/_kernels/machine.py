"""The kind of processor this is."""

from __future__ import annotations

import os


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

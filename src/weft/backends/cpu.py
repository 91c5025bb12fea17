"""The instruction set of the CPU's kernels."""

from weft import _C

_NAMES = {"v3": "AVX2", "v4": "AVX512"}


def get_cpu_capability() -> str:
    """What the kernels in use are compiled for: "AVX512", "AVX2", or "DEFAULT" for less."""
    return _NAMES.get(_C._isa(), "DEFAULT")

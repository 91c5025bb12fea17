"""The instruction set of the CPU's kernels."""

from weft import _C

_NAMES = ("DEFAULT", "AVX2", "AVX512")  # of x86-64-v2, v3 and v4


def get_cpu_capability() -> str:
    """What the kernels in use are compiled for: "AVX512", "AVX2", or "DEFAULT" for less."""
    return _NAMES[_C._isa()]

"""torch._inductor: its settings, and packages of compiled programs; programs are compiled by
weft.jit."""

from weft.export._packages import aoti_compile_and_package, aoti_load_package

__all__ = ["aoti_compile_and_package", "aoti_load_package"]

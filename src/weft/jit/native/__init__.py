"""Native code for fusion groups: composed in the kernel language, compiled by LLVM, cached on disk.

compose    a group's operators as one kernel: their table bodies, one after the other
image      an object file as an image that the runtime loads without a linker
llvm       LLVM modules to object files, by llvmlite
images     the images of groups: found, or made by the three above
compiler   the thread that compiles while programs run on their operators' kernels

Compiling needs llvmlite (`pip install weft[compile]`); cached images do not.
"""

from weft.jit.native.compiler import available, start, wait

__all__ = ["available", "start", "wait"]

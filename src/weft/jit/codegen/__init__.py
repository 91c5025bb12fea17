"""From IR to programs: instructions, registers, bytes."""

from weft.jit.codegen.compile import compile_program, lower_program

__all__ = ["compile_program", "lower_program"]

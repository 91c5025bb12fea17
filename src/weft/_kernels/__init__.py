"""The kernel language: arithmetic as Python functions, compiled to machine code.

docs/kernels.md describes it. Only `aot` needs llvmlite; the rest is standard library.
"""

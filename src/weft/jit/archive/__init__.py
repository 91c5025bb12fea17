"""TorchScript archives.

code       the definitions of an archive's code, found by their qualified names
names      what the names in that code mean: torch, ops, CONSTANTS, __torch__
classes    classes and functions of the code, as the frontend takes them
objects    the objects of data.pkl
load       weft.jit.load
"""

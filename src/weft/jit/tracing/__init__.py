"""weft.jit.trace: programs from what ran. The extension tells a recorder of everything that Python
asks of tensors (csrc/bindings/trace.h); the recorder writes a graph.

    trace.py      the public functions
    recorder.py   tensors to values, calls of operators to nodes
    arguments.py  Python objects to values, by the types of schemas
    structures.py tuples, lists and dicts of tensors, in and out
    numbers.py    ints and floats that know where they come from
    overrides.py  what is no operator of the table: arithmetic, attributes, methods written by hand
    data.py       weft.tensor, from_numpy and the like
    calls.py      programs, gradients, custom autograd functions; functions of weft that decide by
                  sizes or values, as calls of their programs
    indexing.py   x[...] as operators
    modules.py    modules: the types of those that are traced
    checks.py     check_trace
    source_locations.py
                  the line of the user's program; warnings
"""

"""Weights in compiled files as the kernels read them, so that a program need not pack them first.

They are those that example calls need. The record `weft/packed` tells of each which storage it is
of, in which form; csrc/runtime/compiled_weights.cpp writes and reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import _C
from weft.autograd.grad_mode import no_grad
from weft.random import fork_rng


def packed_weights(path: str, examples: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """The records of the weights that example calls of forward keep packed."""
    module = _C.CompiledModule(path)
    with fork_rng(), no_grad():
        for arguments in examples:
            for _ in range(2):  # layers keep what they meet for the second time
                module.call("forward", *arguments)
    record, weights = module.packed_weights()
    if not weights:
        return {}
    each = {f"weft/packed/{i}": weight.numpy() for i, weight in enumerate(weights)}
    return {"weft/packed": record, **each}

"""Machine code in compiled files: made for the fusion groups that example calls run.

A record holds the images for one machine: their number, then for each the text of the group, the
dtype it computes in, the masks of its key, the level of the machine, a digest, and the image. It is
read by csrc/runtime/machine_code.cpp.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd._run import backward
from weft.jit.native import compiler
from weft.jit.native.compose import NotCompiled
from weft.random import fork_rng

# The record that a target's images stand in, its level, and the number that the runtime gives it.
_TARGETS = {
    "x86-64-v2": ("weft/x86-64", "v2", 0),
    "x86-64-v3": ("weft/x86-64", "v3", 1),
    "x86-64-v4": ("weft/x86-64", "v4", 2),
    "aarch64": ("weft/aarch64", "neon", 0),
}
Request = tuple[Any, Any, int, int]  # the group, and its key: dtype, masks of bool and of int64


def check_targets(targets: Sequence[str]) -> None:
    """ValueError for a target that is not known."""
    for target in targets:
        if target not in _TARGETS:
            raise ValueError(
                f"aot_compile: expected targets among {', '.join(_TARGETS)}, got {target!r}"
            )


def requests_of(path: str, examples: Sequence[tuple[Any, ...]]) -> list[Request]:
    """The groups of a compiled file that example calls of forward run, and their keys: without
    gradients and, where a result has one, with them."""
    compiler.stop()
    _C._fused_compile_after(1)
    try:
        module = _C.CompiledModule(path)
        with fork_rng():
            for arguments in examples:
                _run(module, arguments)
        found = []
        while (request := _C._fused_requests(0.0)) is not None:
            found.append(request)
        return found
    finally:
        _C._fused_compile_after(None)


def _run(module: Any, arguments: tuple[Any, ...]) -> None:
    """Without gradients, as far as the program does not ask for some itself, and with them."""
    parameters = [each for each in module.parameters().values() if each.requires_grad]
    for each in parameters:
        each.requires_grad_(False)
    module.call("forward", *[a.detach() if isinstance(a, Tensor) else a for a in arguments])
    for each in parameters:
        each.requires_grad_()
    result = module.call("forward", *arguments)
    results = result if isinstance(result, (tuple, list)) else [result]
    kept = [r for r in results if isinstance(r, Tensor) and r.requires_grad]
    loss = [(_C.view_as_real(r) if r.is_complex() else r).sum() for r in kept]
    if loss:
        _go_back(loss)


def _go_back(loss: list[Tensor]) -> None:
    """The backward pass of results. A program that asks for gradients of its own has freed what is
    behind them; another error is told, and costs machine code of that pass alone."""
    try:
        backward(loss)
    except RuntimeError as error:
        if "got freed ones" not in str(error):
            warnings.warn(
                f"aot_compile: expected examples whose results have gradients, got: {error}",
                stacklevel=5,
            )


def machine_code(requests: Sequence[Request], targets: Sequence[str]) -> dict[str, bytes]:
    """The records of the images; none for groups that cannot be compiled. Warns where none can."""
    if requests and targets and not compiler.available():
        warnings.warn(
            "aot_compile: expected llvmlite for machine code (pip install weft[compile]), got "
            "none: the file runs on weft's own kernels",
            stacklevel=3,
        )
    parts: dict[str, dict[bytes, None]] = {}
    for target in targets:
        record, level, number = _TARGETS[target]
        for group, compute, masks, ints in requests:
            name = str(compute).rpartition(".")[2]
            try:
                image = compiler.image_for(group, name, masks, ints, level)
            except NotCompiled:
                continue
            key = _text(group.text) + _text(name) + struct.pack("<QQI", masks, ints, number)
            part = key + struct.pack("<Q", _digest(image)) + _text(image)
            parts.setdefault(record, {})[part] = None
    return {
        record: struct.pack("<I", len(images)) + b"".join(images)
        for record, images in parts.items()
    }


def _text(data: str | bytes) -> bytes:
    data = data.encode() if isinstance(data, str) else data
    return struct.pack("<I", len(data)) + data


def _digest(data: bytes) -> int:
    """FNV-1a of 64 bits."""
    digest = 0xCBF29CE484222325
    for byte in data:
        digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return digest

"""Native code of groups: found on disk, or composed and compiled."""

from __future__ import annotations

from typing import Any

from weft._kernels.target import AARCH64, X86, linux_triple
from weft.jit.cache.files import NATIVE, key
from weft.jit.native import compose, image, llvm
from weft.jit.recursion import DeepRecursion

FORMAT = "1"  # of keys in the cache: raise it when the code for the same text changes


def find_or_make(group: Any, compute: str, masks: int, ints: int, level: str) -> tuple[str, bytes]:
    """The image of a group for a level of x86-64 (v2, v3, v4) or AArch64 (neon), and its name in
    the cache."""
    target = X86.get(level, AARCH64)
    triple = linux_triple(target)
    isa = list(X86).index(level) if level in X86 else 0
    spec = compose.Group(group.constants, group.steps, group.outputs)
    with DeepRecursion():  # operators that feed each other are expressions within expressions
        text = compose.text(compose.kernel(spec, compute, masks, ints), target, triple)
    name = key(FORMAT, target.name, text)
    made = NATIVE.load(name)
    if made is None:
        made = image.make(llvm.object_of(text, triple, target), compose.SYMBOL, isa)
        NATIVE.save(name, made)
    return name, made

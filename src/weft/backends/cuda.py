"""Flags of CUDA's libraries, which this build does not have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from weft._runtime.absent import is_built as is_built


class _Matmul:
    """Flags of matrix products."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False
    fp32_precision = "none"


matmul = _Matmul()
_ways = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def flash_sdp_enabled() -> bool:
    """What enable_flash_sdp set."""
    return _ways["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Keeps the flag."""
    _ways["flash"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """What enable_mem_efficient_sdp set."""
    return _ways["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Keeps the flag."""
    _ways["mem_efficient"] = bool(enabled)


def math_sdp_enabled() -> bool:
    """What enable_math_sdp set."""
    return _ways["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Keeps the flag."""
    _ways["math"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """What enable_cudnn_sdp set."""
    return _ways["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Keeps the flag."""
    _ways["cudnn"] = bool(enabled)


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Keeps the flags for a block."""
    before = dict(_ways)
    _ways.update(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
    try:
        yield
    finally:
        _ways.update(before)


class SDPAParams(NamedTuple):
    """What scaled_dot_product_attention is asked for."""

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """False: the kernels of GPUs are not here; attention has its own on the CPU."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention


def is_flash_attention_available() -> bool:
    """False."""
    return False

"""Flags of CUDA's libraries, which this build does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def _enabled(way: str) -> Callable[[], bool]:
    def enabled() -> bool:
        return _ways[way]

    enabled.__doc__ = f"What enable_{way}_sdp set."
    return enabled


def _enable(way: str) -> Callable[[bool], None]:
    def enable(enabled: bool) -> None:
        """Keeps the flag."""
        _ways[way] = bool(enabled)

    return enable


flash_sdp_enabled, mem_efficient_sdp_enabled, math_sdp_enabled, cudnn_sdp_enabled = map(
    _enabled, _ways
)
enable_flash_sdp, enable_mem_efficient_sdp, enable_math_sdp, enable_cudnn_sdp = map(_enable, _ways)


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

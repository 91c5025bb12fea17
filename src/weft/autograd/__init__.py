"""Gradients: `backward` and `grad`, grad modes, custom functions, gradient checks.

A tensor with `requires_grad=True` is a leaf; operators on it record a graph; `loss.backward()` adds
the gradient of the loss into the `.grad` of every leaf.
"""

from __future__ import annotations

from typing import Any

from weft._runtime import lazy as _lazy
from weft.autograd import anomaly_mode, function, functional, grad_mode, graph
from weft.autograd._run import backward, grad
from weft.autograd.anomaly_mode import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from weft.autograd.function import Function
from weft.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from weft.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from weft.autograd.variable import Variable

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
]


def __getattr__(name: str) -> Any:
    # Above weft.func, which is above this package; above the profiler.
    is_above = name in ("forward_ad", "profiler")
    return _lazy.find("weft.autograd", name, f"weft.autograd.{name}" if is_above else None)

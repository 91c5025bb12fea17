"""Gradients: `backward` and `grad`, grad modes, custom functions, gradient checks.

A tensor with `requires_grad=True` is a leaf; operators on it record a graph; `loss.backward()` adds
the gradient of the loss into the `.grad` of every leaf.
"""

from __future__ import annotations

from weft._runtime import lazy as _lazy
from weft._runtime.exports import list_exports as _list_exports
from weft.autograd import anomaly_mode as anomaly_mode
from weft.autograd import function as function
from weft.autograd import functional as functional
from weft.autograd import grad_mode as grad_mode
from weft.autograd import graph as graph
from weft.autograd._run import backward as backward
from weft.autograd._run import grad as grad
from weft.autograd.anomaly_mode import detect_anomaly as detect_anomaly
from weft.autograd.anomaly_mode import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from weft.autograd.anomaly_mode import is_anomaly_enabled as is_anomaly_enabled
from weft.autograd.anomaly_mode import set_detect_anomaly as set_detect_anomaly
from weft.autograd.function import Function as Function
from weft.autograd.grad_mode import enable_grad as enable_grad
from weft.autograd.grad_mode import inference_mode as inference_mode
from weft.autograd.grad_mode import is_grad_enabled as is_grad_enabled
from weft.autograd.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from weft.autograd.grad_mode import no_grad as no_grad
from weft.autograd.grad_mode import set_grad_enabled as set_grad_enabled
from weft.autograd.grad_mode import set_multithreading_enabled as set_multithreading_enabled
from weft.autograd.gradcheck import GradcheckError as GradcheckError
from weft.autograd.gradcheck import gradcheck as gradcheck
from weft.autograd.gradcheck import gradgradcheck as gradgradcheck
from weft.autograd.variable import Variable as Variable

_list_exports(vars(), "anomaly_mode forward_ad function functional grad_mode graph profiler")
_ABOVE = {name: f"weft.autograd.{name}" for name in ("forward_ad", "profiler")}  # of upper layers
__getattr__ = _lazy.names("weft.autograd", _ABOVE)

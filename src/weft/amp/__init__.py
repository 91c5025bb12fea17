"""Mixed precision: `autocast` for operators, `GradScaler` for gradients of small numbers."""

from weft.amp.autocast_mode import (
    CudaAutocast,
    autocast,
    custom_bwd,
    custom_fwd,
    get_autocast_dtype,
    is_autocast_available,
    is_autocast_enabled,
)
from weft.amp.grad_scaler import CudaGradScaler, GradScaler

__all__ = [
    "CudaAutocast",
    "CudaGradScaler",
    "GradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_enabled",
]

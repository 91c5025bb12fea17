"""weft.amp under its older name."""

from weft._runtime.absent import define
from weft.amp import CudaAutocast as autocast
from weft.amp import CudaGradScaler as GradScaler
from weft.amp import custom_bwd, custom_fwd

define(vars(), "True.", lambda name: True, "amp_definitely_not_available()")
__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

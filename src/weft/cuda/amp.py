"""weft.amp under its older name."""

from weft.amp import CudaAutocast as autocast
from weft.amp import CudaGradScaler as GradScaler
from weft.amp import custom_bwd, custom_fwd

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

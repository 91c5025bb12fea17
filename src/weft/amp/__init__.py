"""Mixed precision: `autocast` for operators, `GradScaler` for gradients of small numbers."""

from weft._runtime.exports import list_exports as _list_exports
from weft.amp.autocast_mode import CudaAutocast as CudaAutocast
from weft.amp.autocast_mode import autocast as autocast
from weft.amp.autocast_mode import custom_bwd as custom_bwd
from weft.amp.autocast_mode import custom_fwd as custom_fwd
from weft.amp.autocast_mode import get_autocast_dtype as get_autocast_dtype
from weft.amp.autocast_mode import is_autocast_available as is_autocast_available
from weft.amp.autocast_mode import is_autocast_enabled as is_autocast_enabled
from weft.amp.grad_scaler import CudaGradScaler as CudaGradScaler
from weft.amp.grad_scaler import GradScaler as GradScaler

_list_exports(vars())

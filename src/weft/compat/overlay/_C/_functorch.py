"""torch._C._functorch: what libraries ask of tensors inside vmap, and how they put dicts of tensors
under a level of it (see weft.func._vmap)."""

from typing import Any

from weft import Tensor
from weft.func._level import Level
from weft.func._vmap import unwrapped


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a tensor is a sample of a batch, as a function under vmap sees it."""
    return getattr(tensor, "_batch", None) is not None


def _add_batch_dim(tensor: Tensor, in_dim: int, level: Level) -> Tensor:
    """A tensor of the batch along `in_dim`, as a function under the level sees it."""
    return level.wrap(tensor.movedim(in_dim, 0))


def _remove_batch_dim(tensor: Tensor, level: Level, batch_size: int, out_dim: int) -> Any:
    """The samples of a tensor along `out_dim`."""
    return unwrapped(level, tensor, out_dim)

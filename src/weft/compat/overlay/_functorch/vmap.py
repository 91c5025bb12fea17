"""torch._functorch.vmap: the function by which libraries take dicts of tensors out of vmap."""

from typing import Any

from weft.func._vmap import unwrapped


def _maybe_remove_batch_dim(
    name: str, tensor: Any, vmap_level: Any, batch_size: int, out_dim: int | None
) -> Any:
    """The samples of a tensor along `out_dim`; the tensor where that is None."""
    return unwrapped(vmap_level, tensor, out_dim)

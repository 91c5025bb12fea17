"""functorch, a package of PyTorch's wheel: the transforms of torch.func at their former places."""

from collections.abc import Callable
from typing import Any

import weft
from weft import func
from weft.compat.overlay._functorch import make_functional as _modules
from weft.compat.overlay.torch_version import __version__ as __version__
from weft.func._vmap import batch_size

FunctionalModule = _modules.FunctionalModule
FunctionalModuleWithBuffers = _modules.FunctionalModuleWithBuffers
make_functional = _modules.make_functional
make_functional_with_buffers = _modules.make_functional_with_buffers
combine_state_for_ensemble = _modules.combine_state_for_ensemble
cond = weft.cond


def chunk_vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    chunks: int = 2,
) -> Callable[..., Any]:
    """vmap of as many parts of a batch as `chunks`, one after the other."""

    def call(*args: Any, **kwargs: Any) -> Any:
        size = batch_size(in_dims, args)
        made = weft.vmap(func, in_dims, out_dims, randomness, chunk_size=-(-size // chunks))
        return made(*args, **kwargs)

    return call


def map(func: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """func(x, *args) for the parts x of nested tensors along their first dimension, stacked."""
    tree = weft.utils._pytree
    leaves, spec = tree.tree_flatten(xs)
    parts = [func(tree.tree_unflatten(list(each), spec), *args) for each in zip(*leaves)]
    return tree.tree_map(lambda *each: weft.stack(each), *parts)


def __getattr__(name: str) -> Any:
    return getattr(func, name)

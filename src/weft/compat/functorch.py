"""functorch, a package of PyTorch's wheel: the transforms of torch.func at their former place."""

from typing import Any

from torch._functorch.make_functional import FunctionalModule as FunctionalModule
from torch._functorch.make_functional import (
    FunctionalModuleWithBuffers as FunctionalModuleWithBuffers,
)
from weft import func
from weft.compat.overlay.torch_version import __version__ as __version__


def __getattr__(name: str) -> Any:
    return getattr(func, name)

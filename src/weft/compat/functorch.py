"""functorch, a package of PyTorch's wheel: the transforms of torch.func at their former place."""

from typing import Any

from weft import func
from weft.compat.absent import placeholder
from weft.compat.overlay.torch_version import __version__ as __version__

_PLACE = "torch._functorch.make_functional"
FunctionalModule = placeholder(f"{_PLACE}.FunctionalModule")
FunctionalModuleWithBuffers = placeholder(f"{_PLACE}.FunctionalModuleWithBuffers")


def __getattr__(name: str) -> Any:
    return getattr(func, name)

"""functorch, a package of PyTorch's wheel: the transforms of torch.func at their former place."""

from typing import Any

from weft import func
from weft.compat.overlay._functorch import make_functional as _modules
from weft.compat.overlay.torch_version import __version__ as __version__

FunctionalModule = _modules.FunctionalModule
FunctionalModuleWithBuffers = _modules.FunctionalModuleWithBuffers
make_functional = _modules.make_functional
make_functional_with_buffers = _modules.make_functional_with_buffers
combine_state_for_ensemble = _modules.combine_state_for_ensemble


def __getattr__(name: str) -> Any:
    return getattr(func, name)

"""Neural networks: modules, their functions, initialisation and helpers."""

from weft.nn import attention, functional, init, modules, parallel, utils
from weft.nn.modules import *  # noqa: F403
from weft.nn.modules import __all__ as _layers
from weft.nn.parallel import DataParallel
from weft.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "functional",
    "init",
    "modules",
    "parallel",
    "utils",
]
__all__ += _layers

"""Neural networks: modules, their functions, initialisation and helpers."""

from weft.nn import attention, functional, init, modules, utils
from weft.nn.modules import *  # noqa: F403
from weft.nn.modules import __all__ as _layers
from weft.nn.parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "attention", "functional", "init", "modules", "utils"]
__all__ += _layers

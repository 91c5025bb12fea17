"""Neural networks: modules, their functions, initialisation and helpers."""

from weft._runtime.exports import list_exports as _list_exports
from weft.nn import attention as attention
from weft.nn import functional as functional
from weft.nn import grad as grad
from weft.nn import init as init
from weft.nn import modules as modules
from weft.nn import parallel as parallel
from weft.nn import utils as utils
from weft.nn.modules import *  # type: ignore[no-redef]  # noqa: F403  (its utils stay its own)
from weft.nn.parallel import DataParallel as DataParallel
from weft.nn.parameter import Buffer as Buffer
from weft.nn.parameter import Parameter as Parameter
from weft.nn.parameter import UninitializedBuffer as UninitializedBuffer
from weft.nn.parameter import UninitializedParameter as UninitializedParameter

_list_exports(vars(), "attention functional grad init modules parallel utils")

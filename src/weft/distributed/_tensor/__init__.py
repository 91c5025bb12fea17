"""Where PyTorch had distributed tensors first; see weft.distributed.tensor."""

from weft._runtime.exports import list_exports as _list_exports
from weft.distributed.tensor import *  # noqa: F403

_list_exports(vars())

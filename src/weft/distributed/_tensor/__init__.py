"""Where PyTorch had distributed tensors first; see weft.distributed.tensor."""

from weft.distributed.tensor import *  # noqa: F403
from weft.distributed.tensor import __all__ as __all__

"""DLPack capsules: to_dlpack and from_dlpack."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule over the tensor's memory, which can be consumed once.

    >>> x = weft.ones(2)
    >>> from_dlpack(to_dlpack(x)).data_ptr() == x.data_ptr()
    True
    """
    return tensor.__dlpack__()


from_dlpack = _C.from_dlpack

"""from_file: a file as the memory of a tensor."""

from __future__ import annotations

import os
from typing import Any

from weft import _C
from weft._C import Tensor


def mapped_bytes(op: str, filename: Any, shared: Any, nbytes: int) -> Tensor:
    """A uint8 tensor over the first bytes of a file."""
    if nbytes < 0:
        raise RuntimeError(f"{op}: expected at least 0 bytes, got {nbytes}")
    if nbytes > 2**63 - 1:
        raise RuntimeError(f"{op}: expected sizes whose bytes fit in 64 bits, got {nbytes}")
    mapped = _C._map_file(op, os.fsencode(filename), bool(shared), nbytes)
    return mapped.tensor(op, 0, nbytes)


def from_file(
    filename: str | os.PathLike[str],
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of `size` elements whose memory is the beginning of a file.

    With `shared=True` writes reach the file and every process that maps it; the file is made, or
    extended by zeros, where it is too small. A file that may not be written is mapped read-only:
    writing to the tensor raises. Otherwise writes stay with the tensor, and the file must have
    `size` elements of `dtype` (the default dtype unless given).

    The file may be removed while it is mapped, but must not be cut short. RuntimeError where it
    cannot be opened, is too small or may not be extended, and for another device than the CPU.

    >>> import weft, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "numbers")
    >>> shared = weft.from_file(path, shared=True, size=3, dtype=weft.int32)
    >>> _ = shared.fill_(7)
    >>> weft.from_file(path, size=2, dtype=weft.int32)
    tensor([7, 7], dtype=torch.int32)
    """
    op = "from_file"
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"{op}: expected argument 'size' of type int, got {type(size).__name__}")
    if size < 0:
        raise RuntimeError(f"{op}: expected at least 0 elements, got {size}")
    if device is not None and str(device) not in ("cpu", "cpu:0"):
        raise RuntimeError(f"{op}: expected device 'cpu', got '{device}'")
    if layout is not None and layout is not _C.strided:
        raise RuntimeError(f"{op}: expected a strided layout, got {layout}")
    if pin_memory:
        raise RuntimeError(f"{op}: expected pin_memory=False, got True: files cannot be pinned")
    dtype = _C.get_default_dtype() if dtype is None else dtype
    if not isinstance(dtype, _C.dtype):
        raise TypeError(f"{op}: expected argument 'dtype' of type dtype, got {dtype!r}")
    data = mapped_bytes(op, filename, shared, size * dtype.itemsize)
    tensor = _C._from_storage(data, dtype, (size,), (1,), 0)
    return tensor.requires_grad_(True) if requires_grad else tensor

"""What multiprocessing's pickler makes of tensors: handles of shared memory instead of bytes.

A tensor is pickled as always, as a layout over a storage (`weft._tensor.tensor`); only the storage
goes as a handle. So subclasses, attributes, and storages that several tensors share arrive as they
were.
"""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

from weft._C import Tensor
from weft._tensor import tensor as _tensor
from weft.multiprocessing import sharing
from weft.storage import UntypedStorage


def _receive(open_handle: Any, args: tuple[Any, ...]) -> _tensor._Shared:
    return _tensor._shared(open_handle(*args))


def reduce_shared(shared: _tensor._Shared) -> tuple[Any, ...]:
    """The storage under a tensor that is being pickled; on the device meta its size alone."""
    if shared.bytes.is_meta:
        return shared.__reduce_ex__(2)
    return _receive, sharing.handle_of(shared.bytes)


def _receive_storage(open_handle: Any, args: tuple[Any, ...]) -> UntypedStorage:
    return UntypedStorage._of(open_handle(*args))


def reduce_storage(storage: UntypedStorage) -> tuple[Any, ...]:
    """A storage itself."""
    return _receive_storage, sharing.handle_of(storage._handle)


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """A tensor without history. RuntimeError for one that has a history."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "send: expected a leaf tensor or one that does not require grad, got one with history, "
            "which cannot go to another process; send its detach()"
        )
    return tensor.__reduce_ex__(2)  # type: ignore[return-value]


def init_reductions() -> None:
    """Tells the pickler of multiprocessing; everything of the standard library's uses it."""
    ForkingPickler.register(_tensor._Shared, reduce_shared)
    ForkingPickler.register(UntypedStorage, reduce_storage)
    ForkingPickler.register(Tensor, reduce_tensor)

"""Private names of PyTorch's groups that programs use."""

from __future__ import annotations

from weft.distributed.groups import ProcessGroup, member
from weft.distributed.stores import Store

__all__ = ["_get_default_group", "_get_default_store"]


def _get_default_group() -> ProcessGroup:
    """The group of all processes. ValueError before init_process_group."""
    return member("_get_default_group", None)


def _get_default_store() -> Store:
    """The store of init_process_group. ValueError before it, RuntimeError where it had none: MPI
    needs none."""
    store = member("_get_default_store", None).store
    if store is None:
        raise RuntimeError(
            "_get_default_store: expected a store given to init_process_group, got none"
        )
    return store

"""Private names of PyTorch's groups that programs use."""

from __future__ import annotations

from weft.distributed.groups import ProcessGroup, member

__all__ = ["_get_default_group"]


def _get_default_group() -> ProcessGroup:
    """The group of all processes. ValueError before init_process_group."""
    return member("_get_default_group", None)

"""Names that programs written for PyTorch import from torch._jit_internal."""

from weft.jit import Final, Future, export, ignore, is_scripting, unused
from weft.jit.annotations import (
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    BroadcastingList4,
    BroadcastingList5,
    BroadcastingList6,
)
from weft.jit.markers import (
    _copy_to_script_wrapper,
    _overload,
    _overload_method,
)

__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "BroadcastingList4",
    "BroadcastingList5",
    "BroadcastingList6",
    "Final",
    "Future",
    "_copy_to_script_wrapper",
    "_overload",
    "_overload_method",
    "export",
    "ignore",
    "is_scripting",
    "unused",
]

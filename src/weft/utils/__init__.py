"""Utilities around tensors: hooks; what else there is comes when used."""

from typing import TYPE_CHECKING

from weft._runtime import lazy
from weft.utils import hooks
from weft.utils.swapping import swap_tensors

if TYPE_CHECKING:
    from weft.utils import benchmark, checkpoint, data, deterministic, dlpack, tensorboard
    from weft.utils.picture import sharing, show

__all__ = [
    "benchmark",
    "checkpoint",
    "data",
    "deterministic",
    "dlpack",
    "hooks",
    "sharing",
    "show",
    "swap_tensors",
    "tensorboard",
]

_MODULE_OF = {
    name: f"weft.utils.{name}"
    for name in (
        "_foreach_utils",
        "_pytree",
        "benchmark",
        "checkpoint",
        "cpp_extension",
        "data",
        "deterministic",
        "dlpack",
        "flop_counter",
        "tensorboard",
    )
} | dict.fromkeys(("sharing", "show"), "weft.utils.picture")
__getattr__ = lazy.names("weft.utils", _MODULE_OF)

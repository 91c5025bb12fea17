"""Modules over several processes, and over several devices, of which there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft._runtime import lazy
from weft.nn.modules.module import Module

if TYPE_CHECKING:
    from weft.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]


class DataParallel(Module):
    """Splits batches over devices. Without any, calls `module`, which is in the state's names.

    >>> list(weft.nn.parallel.DataParallel(weft.nn.Linear(1, 1)).state_dict())
    ['module.weight', 'module.bias']
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        self.device_ids: list[Any] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """module(*inputs, **module_kwargs): DataParallel as a function."""
    args = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return module(*args, **(module_kwargs or {}))


_MODULE_OF = {"DistributedDataParallel": "weft.nn.parallel.distributed"}
__getattr__ = lazy.names("weft.nn.parallel", _MODULE_OF)

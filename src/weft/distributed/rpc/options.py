"""What init_rpc takes, and what workers are called."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from weft import _C


class WorkerInfo(NamedTuple):
    """A process by its name and its rank, `id`.

    >>> WorkerInfo("trainer", 0)
    WorkerInfo(id=0, name=trainer)
    """

    name: str
    id: int

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"


class BackendType(enum.Enum):
    """How calls travel: by sockets, under PyTorch's name."""

    TENSORPIPE = "TENSORPIPE"

    def __repr__(self) -> str:
        return f"BackendType.{self.name}"


class RpcBackendOptions:
    """What all backends take. Times are in seconds; a timeout of 0 is none.

    >>> RpcBackendOptions(rpc_timeout=5).init_method
    'env://'
    """

    def __init__(self, rpc_timeout: float = 60.0, init_method: str = "env://") -> None:
        self.rpc_timeout, self.init_method = float(rpc_timeout), init_method


class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """num_worker_threads: how many calls a process answers at once. device_maps and devices name
    devices of others: the CPU alone, else ValueError.

    >>> TensorPipeRpcBackendOptions(num_worker_threads=4).rpc_timeout
    60.0
    """

    def __init__(
        self,
        *,
        num_worker_threads: int = 16,
        rpc_timeout: float = 60.0,
        init_method: str = "env://",
        device_maps: Mapping[str, Mapping[Any, Any]] | None = None,
        devices: Sequence[Any] | None = None,
        _transports: Any = None,
        _channels: Any = None,
    ) -> None:
        super().__init__(rpc_timeout, init_method)
        if num_worker_threads < 1:
            raise ValueError(
                f"TensorPipeRpcBackendOptions: expected a thread or more, got {num_worker_threads}"
            )
        self.num_worker_threads = num_worker_threads
        self.device_maps: dict[str, dict[_C.device, _C.device]] = {}
        self.set_devices(devices or ())
        for to, device_map in (device_maps or {}).items():
            self.set_device_map(to, device_map)

    def set_device_map(self, to: str, device_map: Mapping[Any, Any]) -> None:
        """Where tensors for a worker go."""
        pairs = {_cpu(own): _cpu(other) for own, other in device_map.items()}
        self.device_maps.setdefault(to, {}).update(pairs)

    def set_devices(self, devices: Sequence[Any]) -> None:
        """The devices whose tensors may travel."""
        self.devices = [_cpu(each) for each in devices]


def _cpu(device: Any) -> _C.device:
    name = f"cuda:{device}" if isinstance(device, int) else device
    found = device if isinstance(device, _C.device) else _C.device(name)
    if found.type != "cpu":
        raise ValueError(f"TensorPipeRpcBackendOptions: expected the CPU, got {found}")
    return found

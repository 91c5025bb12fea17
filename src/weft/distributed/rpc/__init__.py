"""Remote procedure calls: functions that run in other processes, and references to values there.

Workers meet by init_rpc: processes that weft.multiprocessing.spawn or a launcher started, with
MASTER_ADDR and MASTER_PORT. Gradients do not cross calls: weft has no distributed autograd.

>>> import weft.distributed.rpc as rpc
>>> rpc.init_rpc("alone", rank=0, world_size=1)
>>> rpc.rpc_async("alone", weft.add, args=(weft.ones(2), 1)).wait()
tensor([2., 2.])
>>> rpc.shutdown()
"""

from weft.distributed.rpc import functions
from weft.distributed.rpc._calls import get_worker_info, remote, rpc_async, rpc_sync
from weft.distributed.rpc._reference import RRef
from weft.distributed.rpc.api import init_rpc, is_available, shutdown
from weft.distributed.rpc.options import (
    BackendType,
    RpcBackendOptions,
    TensorPipeRpcBackendOptions,
    WorkerInfo,
)

__all__ = [
    "BackendType",
    "RRef",
    "RpcBackendOptions",
    "TensorPipeRpcBackendOptions",
    "WorkerInfo",
    "functions",
    "get_worker_info",
    "init_rpc",
    "is_available",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]

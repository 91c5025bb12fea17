"""Remote procedure calls: functions that run in other processes, and references to values there.

Workers meet by init_rpc: processes that weft.multiprocessing.spawn or a launcher started, with
MASTER_ADDR and MASTER_PORT. Gradients do not cross calls: weft has no distributed autograd.

>>> import weft.distributed.rpc as rpc
>>> rpc.init_rpc("alone", rank=0, world_size=1)
>>> rpc.rpc_async("alone", weft.add, args=(weft.ones(2), 1)).wait()
tensor([2., 2.])
>>> rpc.shutdown()
"""

from weft._runtime.exports import list_exports as _list_exports
from weft.distributed.rpc import functions as functions
from weft.distributed.rpc._calls import get_worker_info as get_worker_info
from weft.distributed.rpc._calls import remote as remote
from weft.distributed.rpc._calls import rpc_async as rpc_async
from weft.distributed.rpc._calls import rpc_sync as rpc_sync
from weft.distributed.rpc._reference import RRef as RRef
from weft.distributed.rpc.api import init_rpc as init_rpc
from weft.distributed.rpc.api import is_available as is_available
from weft.distributed.rpc.api import shutdown as shutdown
from weft.distributed.rpc.options import BackendType as BackendType
from weft.distributed.rpc.options import RpcBackendOptions as RpcBackendOptions
from weft.distributed.rpc.options import TensorPipeRpcBackendOptions as TensorPipeRpcBackendOptions
from weft.distributed.rpc.options import WorkerInfo as WorkerInfo

_list_exports(vars(), "functions")

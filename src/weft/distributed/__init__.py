# ruff: noqa: F403
"""Programs of several processes: PyTorch's names over MPI, which mpi4py reaches.

`weft launch -n 4 program.py` starts four processes of a program, and each finds its place in
`init_process_group`. A world of one process needs neither a launcher nor mpi4py.

>>> import weft.distributed as dist
>>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
>>> x = weft.ones(2)
>>> dist.all_reduce(x)
>>> x, dist.get_rank(), dist.get_world_size()
(tensor([1., 1.]), 0, 1)
>>> dist.destroy_process_group()
"""

from typing import TYPE_CHECKING

from weft._runtime import lazy

if TYPE_CHECKING:
    from weft.distributed import algorithms as algorithms
    from weft.distributed import checkpoint as checkpoint
    from weft.distributed import elastic as elastic
    from weft.distributed import fsdp as fsdp
    from weft.distributed import nn as nn
    from weft.distributed import optim as optim
    from weft.distributed import rpc as rpc
    from weft.distributed.collectives import *
    from weft.distributed.device_mesh import *
    from weft.distributed.errors import *
    from weft.distributed.file_store import *
    from weft.distributed.groups import *
    from weft.distributed.objects import *
    from weft.distributed.point_to_point import *
    from weft.distributed.reductions import *
    from weft.distributed.stores import *
    from weft.distributed.tcp_store import *
    from weft.distributed.work import *
    from weft.nn.parallel.reducer import GradBucket as GradBucket


_NAMES_OF_MODULES = {
    "collectives": "all_gather all_gather_into_tensor all_reduce all_reduce_coalesced all_to_all "
    "all_to_all_single barrier broadcast gather monitored_barrier reduce reduce_op "
    "reduce_scatter reduce_scatter_tensor scatter",
    "device_mesh": "DeviceMesh init_device_mesh",
    "errors": "DistBackendError DistError DistNetworkError DistStoreError QueueEmptyError",
    "file_store": "FileStore",
    "groups": "Backend GroupMember ProcessGroup default_pg_timeout "
    "destroy_process_group get_backend get_global_rank get_group_rank get_node_local_rank "
    "get_process_group_ranks get_rank get_world_size group init_process_group is_available "
    "is_backend_available is_gloo_available is_initialized is_mpi_available is_nccl_available "
    "is_torchelastic_launched is_ucc_available is_xccl_available new_group new_subgroups "
    "new_subgroups_by_enumeration",
    "objects": "all_gather_object broadcast_object_list gather_object recv_object_list "
    "scatter_object_list send_object_list",
    "point_to_point": "P2POp batch_isend_irecv irecv isend recv send",
    "reductions": "ReduceOp",
    "stores": "HashStore PrefixStore Store",
    "tcp_store": "TCPStore",
    "work": "Work",
}
_FOLDERS = "algorithms checkpoint distributed_c10d elastic fsdp nn optim rpc"
_MODULE_OF = {name: f"weft.distributed.{name}" for name in _FOLDERS.split()} | {
    name: f"weft.distributed.{module}"
    for module, names in _NAMES_OF_MODULES.items()
    for name in names.split()
}
_MODULE_OF["GradBucket"] = "weft.nn.parallel.reducer"
if not TYPE_CHECKING:  # a checker knows what is public by the imports above
    __all__ = sorted(_MODULE_OF.keys() - {"distributed_c10d", "rpc"})
__getattr__ = lazy.names("weft.distributed", _MODULE_OF)

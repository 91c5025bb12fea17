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

from typing import TYPE_CHECKING, Any

from weft._runtime import lazy

if TYPE_CHECKING:
    from weft.distributed import algorithms as algorithms
    from weft.distributed import checkpoint as checkpoint
    from weft.distributed import elastic as elastic
    from weft.distributed import fsdp as fsdp
    from weft.distributed import nn as nn
    from weft.distributed import optim as optim
    from weft.distributed import rpc as rpc
    from weft.distributed.collectives import all_gather as all_gather
    from weft.distributed.collectives import all_gather_into_tensor as all_gather_into_tensor
    from weft.distributed.collectives import all_reduce as all_reduce
    from weft.distributed.collectives import all_reduce_coalesced as all_reduce_coalesced
    from weft.distributed.collectives import all_to_all as all_to_all
    from weft.distributed.collectives import all_to_all_single as all_to_all_single
    from weft.distributed.collectives import barrier as barrier
    from weft.distributed.collectives import broadcast as broadcast
    from weft.distributed.collectives import gather as gather
    from weft.distributed.collectives import monitored_barrier as monitored_barrier
    from weft.distributed.collectives import reduce as reduce
    from weft.distributed.collectives import reduce_op as reduce_op
    from weft.distributed.collectives import reduce_scatter as reduce_scatter
    from weft.distributed.collectives import reduce_scatter_tensor as reduce_scatter_tensor
    from weft.distributed.collectives import scatter as scatter
    from weft.distributed.device_mesh import DeviceMesh as DeviceMesh
    from weft.distributed.device_mesh import init_device_mesh as init_device_mesh
    from weft.distributed.errors import DistBackendError as DistBackendError
    from weft.distributed.errors import DistError as DistError
    from weft.distributed.errors import DistNetworkError as DistNetworkError
    from weft.distributed.errors import DistStoreError as DistStoreError
    from weft.distributed.errors import QueueEmptyError as QueueEmptyError
    from weft.distributed.file_store import FileStore as FileStore
    from weft.distributed.groups import Backend as Backend
    from weft.distributed.groups import GroupMember as GroupMember
    from weft.distributed.groups import ProcessGroup as ProcessGroup
    from weft.distributed.groups import default_pg_timeout as default_pg_timeout
    from weft.distributed.groups import destroy_process_group as destroy_process_group
    from weft.distributed.groups import get_backend as get_backend
    from weft.distributed.groups import get_global_rank as get_global_rank
    from weft.distributed.groups import get_group_rank as get_group_rank
    from weft.distributed.groups import get_node_local_rank as get_node_local_rank
    from weft.distributed.groups import get_process_group_ranks as get_process_group_ranks
    from weft.distributed.groups import get_rank as get_rank
    from weft.distributed.groups import get_world_size as get_world_size
    from weft.distributed.groups import group as group
    from weft.distributed.groups import init_process_group as init_process_group
    from weft.distributed.groups import is_available as is_available
    from weft.distributed.groups import is_backend_available as is_backend_available
    from weft.distributed.groups import is_gloo_available as is_gloo_available
    from weft.distributed.groups import is_initialized as is_initialized
    from weft.distributed.groups import is_mpi_available as is_mpi_available
    from weft.distributed.groups import is_nccl_available as is_nccl_available
    from weft.distributed.groups import is_torchelastic_launched as is_torchelastic_launched
    from weft.distributed.groups import is_ucc_available as is_ucc_available
    from weft.distributed.groups import is_xccl_available as is_xccl_available
    from weft.distributed.groups import new_group as new_group
    from weft.distributed.groups import new_subgroups as new_subgroups
    from weft.distributed.groups import new_subgroups_by_enumeration as new_subgroups_by_enumeration
    from weft.distributed.objects import all_gather_object as all_gather_object
    from weft.distributed.objects import broadcast_object_list as broadcast_object_list
    from weft.distributed.objects import gather_object as gather_object
    from weft.distributed.objects import recv_object_list as recv_object_list
    from weft.distributed.objects import scatter_object_list as scatter_object_list
    from weft.distributed.objects import send_object_list as send_object_list
    from weft.distributed.point_to_point import P2POp as P2POp
    from weft.distributed.point_to_point import batch_isend_irecv as batch_isend_irecv
    from weft.distributed.point_to_point import irecv as irecv
    from weft.distributed.point_to_point import isend as isend
    from weft.distributed.point_to_point import recv as recv
    from weft.distributed.point_to_point import send as send
    from weft.distributed.reductions import ReduceOp as ReduceOp
    from weft.distributed.stores import HashStore as HashStore
    from weft.distributed.stores import PrefixStore as PrefixStore
    from weft.distributed.stores import Store as Store
    from weft.distributed.tcp_store import TCPStore as TCPStore
    from weft.distributed.work import Work as Work
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
if not TYPE_CHECKING:  # a checker knows what is public by `as`
    __all__ = sorted(_MODULE_OF.keys() - {"distributed_c10d", "rpc"})


def __getattr__(name: str) -> Any:
    return lazy.find("weft.distributed", name, _MODULE_OF.get(name))

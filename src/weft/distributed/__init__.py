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
    from weft.distributed import algorithms, checkpoint, elastic, fsdp, nn, optim
    from weft.distributed import rpc as rpc
    from weft.distributed.collectives import (
        all_gather,
        all_gather_into_tensor,
        all_reduce,
        all_reduce_coalesced,
        all_to_all,
        all_to_all_single,
        barrier,
        broadcast,
        gather,
        monitored_barrier,
        reduce,
        reduce_op,
        reduce_scatter,
        reduce_scatter_tensor,
        scatter,
    )
    from weft.distributed.device_mesh import DeviceMesh, init_device_mesh
    from weft.distributed.errors import (
        DistBackendError,
        DistError,
        DistNetworkError,
        DistStoreError,
        QueueEmptyError,
    )
    from weft.distributed.file_store import FileStore
    from weft.distributed.groups import (
        Backend,
        GroupMember,
        ProcessGroup,
        default_pg_timeout,
        destroy_process_group,
        get_backend,
        get_global_rank,
        get_group_rank,
        get_node_local_rank,
        get_process_group_ranks,
        get_rank,
        get_world_size,
        group,
        init_process_group,
        is_available,
        is_backend_available,
        is_gloo_available,
        is_initialized,
        is_mpi_available,
        is_nccl_available,
        is_torchelastic_launched,
        is_ucc_available,
        is_xccl_available,
        new_group,
        new_subgroups,
        new_subgroups_by_enumeration,
    )
    from weft.distributed.objects import (
        all_gather_object,
        broadcast_object_list,
        gather_object,
        recv_object_list,
        scatter_object_list,
        send_object_list,
    )
    from weft.distributed.point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
    from weft.distributed.reductions import ReduceOp
    from weft.distributed.stores import HashStore, PrefixStore, Store
    from weft.distributed.tcp_store import TCPStore
    from weft.distributed.work import Work
    from weft.nn.parallel.reducer import GradBucket

__all__ = [
    "Backend",
    "DeviceMesh",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GradBucket",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "QueueEmptyError",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "algorithms",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "checkpoint",
    "default_pg_timeout",
    "destroy_process_group",
    "elastic",
    "fsdp",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_device_mesh",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "nn",
    "optim",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
]

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
_FOLDERS = (
    *("algorithms", "checkpoint", "distributed_c10d", "elastic", "fsdp", "nn", "optim", "rpc"),
)
_MODULE_OF = {name: f"weft.distributed.{name}" for name in _FOLDERS} | {
    name: f"weft.distributed.{module}"
    for module, names in _NAMES_OF_MODULES.items()
    for name in names.split()
}
_MODULE_OF["GradBucket"] = "weft.nn.parallel.reducer"


def __getattr__(name: str) -> Any:
    return lazy.find("weft.distributed", name, _MODULE_OF.get(name))

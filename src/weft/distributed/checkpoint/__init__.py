"""Checkpoints that all processes write and read together, each its own part.

    save(state, checkpoint_id=folder)       every process calls it
    load(state, checkpoint_id=folder)       fills the tensors of `state`, on any number of processes

A folder has a safetensors file of each process that had something to write, and one index. The
index is replaced last: until then the folder holds the checkpoint that it held before.
"""

from weft._runtime.exports import list_exports as _list_exports
from weft.distributed.checkpoint.files import FileSystemReader as FileSystemReader
from weft.distributed.checkpoint.files import FileSystemWriter as FileSystemWriter
from weft.distributed.checkpoint.loading import load as load
from weft.distributed.checkpoint.saving import async_save as async_save
from weft.distributed.checkpoint.saving import save as save
from weft.distributed.checkpoint.state_dict import get_model_state_dict as get_model_state_dict
from weft.distributed.checkpoint.state_dict import (
    get_optimizer_state_dict as get_optimizer_state_dict,
)
from weft.distributed.checkpoint.state_dict import get_state_dict as get_state_dict
from weft.distributed.checkpoint.state_dict import set_model_state_dict as set_model_state_dict
from weft.distributed.checkpoint.state_dict import (
    set_optimizer_state_dict as set_optimizer_state_dict,
)
from weft.distributed.checkpoint.state_dict import set_state_dict as set_state_dict

_list_exports(vars())

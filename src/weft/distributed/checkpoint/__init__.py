"""Checkpoints that all processes write and read together, each its own part.

    save(state, checkpoint_id=folder)       every process calls it
    load(state, checkpoint_id=folder)       fills the tensors of `state`, on any number of processes

A folder has a safetensors file of each process that had something to write, and one index. The
index is replaced last: until then the folder holds the checkpoint that it held before.
"""

from weft.distributed.checkpoint.files import FileSystemReader, FileSystemWriter
from weft.distributed.checkpoint.loading import load
from weft.distributed.checkpoint.saving import async_save, save
from weft.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)

__all__ = [
    "FileSystemReader",
    "FileSystemWriter",
    "async_save",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "load",
    "save",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

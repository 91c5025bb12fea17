"""Saving and loading: PyTorch's .pt files, read without executing anything, and safetensors.

weft.save(model.state_dict(), "model.pt")
model.load_state_dict(weft.load("model.pt"))
"""

from weft.serialization import safetensors
from weft.serialization._load import load
from weft.serialization._save import save
from weft.serialization.errors import LoadError
from weft.serialization.safe_globals import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from weft.serialization.storages import MapLocation as MAP_LOCATION

__all__ = [
    "MAP_LOCATION",
    "LoadError",
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "safetensors",
    "save",
]

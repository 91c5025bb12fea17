"""Saving and loading: PyTorch's .pt files, read without executing anything, and safetensors.

weft.save(model.state_dict(), "model.pt")
model.load_state_dict(weft.load("model.pt"))
"""

from weft._runtime.exports import list_exports as _list_exports
from weft.serialization import safetensors as safetensors
from weft.serialization._load import load as load
from weft.serialization._save import save as save
from weft.serialization.errors import LoadError as LoadError
from weft.serialization.options import LoadEndianness as LoadEndianness
from weft.serialization.options import get_crc32_options as get_crc32_options
from weft.serialization.options import get_default_load_endianness as get_default_load_endianness
from weft.serialization.options import get_default_mmap_options as get_default_mmap_options
from weft.serialization.options import set_crc32_options as set_crc32_options
from weft.serialization.options import set_default_load_endianness as set_default_load_endianness
from weft.serialization.options import set_default_mmap_options as set_default_mmap_options
from weft.serialization.safe_globals import add_safe_globals as add_safe_globals
from weft.serialization.safe_globals import clear_safe_globals as clear_safe_globals
from weft.serialization.safe_globals import get_safe_globals as get_safe_globals
from weft.serialization.safe_globals import safe_globals as safe_globals
from weft.serialization.storages import MapLocation as _MapLocation
from weft.serialization.storages import default_restore_location as default_restore_location
from weft.serialization.unsafe_globals import (
    get_unsafe_globals_in_checkpoint as get_unsafe_globals_in_checkpoint,
)

MAP_LOCATION = _MapLocation

_list_exports(vars(), "safetensors")

"""RemovableHandle: what every register_*_hook returns."""

from weft._runtime.hooks import RemovableHandle as RemovableHandle

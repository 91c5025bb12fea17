"""What processes of a launcher tell it."""

from weft.distributed.elastic.multiprocessing import errors

__all__ = ["errors"]

"""Names of PyTorch's elastic launcher that programs use. `weft launch` starts nothing anew."""

from weft.distributed.elastic import multiprocessing

__all__ = ["multiprocessing"]

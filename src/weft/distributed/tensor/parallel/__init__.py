"""Modules of which each process computes a part: styles, and `parallelize_module`."""

from weft._runtime.exports import list_exports as _list_exports
from weft.distributed.tensor.parallel.api import parallelize_module as parallelize_module
from weft.distributed.tensor.parallel.loss import loss_parallel as loss_parallel
from weft.distributed.tensor.parallel.prepare import PrepareModuleInput as PrepareModuleInput
from weft.distributed.tensor.parallel.prepare import (
    PrepareModuleInputOutput as PrepareModuleInputOutput,
)
from weft.distributed.tensor.parallel.prepare import PrepareModuleOutput as PrepareModuleOutput
from weft.distributed.tensor.parallel.style import ColwiseParallel as ColwiseParallel
from weft.distributed.tensor.parallel.style import ParallelStyle as ParallelStyle
from weft.distributed.tensor.parallel.style import RowwiseParallel as RowwiseParallel
from weft.distributed.tensor.parallel.style import SequenceParallel as SequenceParallel

_list_exports(vars())

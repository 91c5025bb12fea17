"""Batch normalisation with the statistics of all processes of a group, of which there is one."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor
from weft.distributed.groups import ProcessGroup
from weft.nn.modules.batchnorm import _BatchNorm, _InstanceNorm
from weft.nn.modules.module import Module


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of [n, c, ...].

    >>> net = weft.nn.Sequential(weft.nn.BatchNorm2d(3))
    >>> weft.nn.SyncBatchNorm.convert_sync_batchnorm(net)[0].running_mean
    tensor([0., 0., 0.])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: ProcessGroup | None = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        options = (eps, momentum, affine, track_running_stats, device, dtype)
        super().__init__(num_features, *options, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(
        cls, module: Module, process_group: ProcessGroup | None = None
    ) -> Module:
        """The module with each batch normalisation below replaced by one of these, sharing its
        parameters and statistics."""
        for name, child in module.named_children():
            setattr(module, name, cls.convert_sync_batchnorm(child, process_group))
        if not isinstance(module, _BatchNorm) or isinstance(module, _InstanceNorm | cls):
            return module
        other = cls(
            *(module.num_features, module.eps, module.momentum, module.affine),
            *(module.track_running_stats, process_group),
        )
        for kept in (module._parameters, module._buffers):
            for name, value in kept.items():
                setattr(other, name, value)
        other.training = module.training
        return other

"""Batch normalisation with the statistics of all processes of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._C import Tensor
from weft._runtime import lazy
from weft._runtime.public import weft
from weft.autograd.grad_mode import no_grad
from weft.nn import functional as F
from weft.nn.modules.batchnorm import _BatchNorm
from weft.nn.modules.module import Module

if TYPE_CHECKING:
    from weft.distributed.groups import ProcessGroup


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of [n, c, ...] over the batches of all processes of a group.

    In training the processes sum their statistics, and backward their gradients: the values are
    those of one process with all batches. Without groups it is BatchNorm. ValueError for inputs of
    less than two dimensions. The dtype, floating, is that of the parameters.

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

    def _normalise(
        self,
        x: Tensor,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        weight: Tensor | None,
        bias: Tensor | None,
        use_batch: bool,
        momentum: float,
        eps: float,
    ) -> Tensor:
        if not use_batch or not weft.distributed.is_initialized() or self._group().size() == 1:
            given = (weight, bias, use_batch, momentum, eps)
            return super()._normalise(x, running_mean, running_var, *given)
        mean, var, count = self._statistics(x)
        if running_mean is not None and running_var is not None:
            with no_grad():
                running_mean.lerp_(mean.to(running_mean.dtype), momentum)
                running_var.lerp_((var * count / (count - 1)).to(running_var.dtype), momentum)
        return F.batch_norm(x, mean, var, weight, bias, False, momentum, eps)

    def _group(self) -> ProcessGroup:
        return weft.distributed.groups.member("SyncBatchNorm", self.process_group)

    def _statistics(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, variance and count over all batches, with gradients. Half floats sum as float32."""
        x = x if x.dtype.itemsize > 2 else x.float()
        all_reduce = lazy.value("weft.distributed.nn.functional", "all_reduce")
        dims = [dim for dim in range(x.dim()) if dim != 1]
        sums = F.pad(x.sum(dims), (0, 1), value=x.numel() / x.shape[1])
        total = all_reduce(sums, group=self._group())
        mean, count = total[:-1] / total[-1], total[-1].detach()
        centred = x - mean.view(1, -1, *[1] * (x.dim() - 2))
        return mean, all_reduce(centred.square().sum(dims), group=self._group()) / count, count

    @classmethod
    def convert_sync_batchnorm(
        cls, module: Module, process_group: ProcessGroup | None = None
    ) -> Module:
        """The module with each batch normalisation below replaced by one of these, sharing its
        parameters and statistics."""
        for name, child in module.named_children():
            setattr(module, name, cls.convert_sync_batchnorm(child, process_group))
        if not isinstance(module, _BatchNorm) or isinstance(module, cls):
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

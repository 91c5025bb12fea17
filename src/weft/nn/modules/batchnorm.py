"""Batch normalisation."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.normalization import _Affine


class _NormBase(_Affine):
    """Weight, bias and running statistics, a number for each channel."""

    _version = 2  # since 2, num_batches_tracked is part of the state
    _input_dims: tuple[int, ...] = ()
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        options = {"device": device, "dtype": dtype}
        self._make_affine(num_features, affine, affine and bias, **options)
        if track_running_stats:
            self.register_buffer("running_mean", _C.zeros(num_features, **options))
            self.register_buffer("running_var", _C.ones(num_features, **options))
            count = _C.tensor(0, dtype=_C.int64, device=device)
            self.register_buffer("num_batches_tracked", count)
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Sets the running mean to 0, the running variance to 1 and the count to 0."""
        if self.track_running_stats:
            assert self.running_mean is not None and self.running_var is not None
            assert self.num_batches_tracked is not None
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Resets the statistics, and sets weight to 1 and bias to 0."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._input_dims:
            allowed = " or ".join(f"{dims}D" for dims in self._input_dims)
            raise ValueError(f"expected {allowed} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], *told: Any
    ) -> None:
        key = prefix + "num_batches_tracked"
        old = (local_metadata.get("version") or 1) < 2
        if old and self.track_running_stats and key not in state_dict:
            count = self.num_batches_tracked
            state_dict[key] = _C.tensor(0, dtype=_C.int64) if count is None else count
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *told)


class _BatchNorm(_NormBase):
    """Normalises each channel with the batch's statistics (training) or the running ones."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        training = self.training
        if training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # cumulative average
                momentum = 1.0 / self.num_batches_tracked.item()
        use_batch = training or self.running_mean is None
        keep = not training or self.track_running_stats
        return self._normalise(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            use_batch,
            momentum,
            self.eps,
        )

    def _normalise(self, *arguments: Any) -> Tensor:
        """F.batch_norm; another normalisation overrides it."""
        return F.batch_norm(*arguments)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of [n, c] or [n, c, l].

    Statistics of the batch in training, which the running ones follow by momentum (None: their mean
    so far), otherwise these. affine: learns a scale and a shift a channel. Raises ValueError for
    other numbers of dimensions, and for a single value a channel in training. The dtype, floating,
    is that of the parameters.

    >>> weft.nn.BatchNorm1d(1)(weft.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    """

    _input_dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of [n, c, h, w].

    Arguments and errors are those of BatchNorm1d. The dtype, floating, is that of the parameters.

    >>> weft.nn.BatchNorm2d(3)(weft.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    _input_dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of [n, c, d, h, w].

    Arguments and errors are those of BatchNorm1d. The dtype, floating, is that of the parameters.

    >>> weft.nn.BatchNorm3d(3)(weft.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    _input_dims = (5,)

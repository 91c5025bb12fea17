"""Softmax over many classes, of which few are frequent (Grave et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from weft import _C
from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.container import ModuleList, Sequential
from weft.nn.modules.linear import Linear
from weft.nn.modules.module import Module


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of the targets and their mean loss, by clusters of rarer and rarer classes.

    - in_features, n_classes: the sizes of an input and of the vocabulary, ordered by frequency.
    - cutoffs: where clusters begin; classes below the first are in the head.
    - div_value: the i-th cluster projects inputs to in_features / div_value ** i features.
    - head_bias: whether the head has a bias.

    Called with inputs [n, in_features] or [in_features] and targets [n] or none; gives (output,
    loss). Raises ValueError for cutoffs that do not rise from 1 to n_classes - 1, RuntimeError for
    shapes that do not fit and for targets that are no classes. Floating dtypes; targets are int64.

    >>> layer = weft.nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2, 4], div_value=2.0)
    >>> round(layer.log_prob(weft.zeros(1, 4)).exp().sum().item(), 4)
    1.0
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        ends = [0, *cutoffs, n_classes]
        if not cutoffs or any(int(a) >= b or b != int(b) for a, b in pairwise(ends)):
            raise ValueError(
                "AdaptiveLogSoftmaxWithLoss: expected cutoffs that rise from 1 to n_classes - 1, "
                f"got {list(cutoffs)} for {n_classes} classes"
            )
        options = {"device": device, "dtype": dtype}
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = ends[1:]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            inner = int(in_features // div_value ** (i + 1))
            count = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, bias=False, **options),
                    Linear(inner, count, bias=False, **options),
                )
            )

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for layer in cluster:
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        if input_.dim() not in (1, 2) or target_.shape != input_.shape[:-1]:
            raise RuntimeError(
                "AdaptiveLogSoftmaxWithLoss: expected inputs [n, features] and targets [n], or one "
                f"of them, got shapes {tuple(input_.shape)} and {tuple(target_.shape)}"
            )
        single = input_.dim() == 1
        input, target = (t.unsqueeze(0) if single else t for t in (input_, target_))
        if target.numel() and not 0 <= int(target.min()) <= int(target.max()) < self.n_classes:
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: expected targets in [0, {self.n_classes - 1}], got "
                f"{int(target.min())} to {int(target.max())}"
            )
        output = self._log_prob_of(input, target)
        return _ASMoutput(output.squeeze(0) if single else output, (-output).mean())

    def _log_prob_of(self, input: Tensor, target: Tensor) -> Tensor:
        """The log-probability of each row's target: the head's, plus the cluster's own."""
        entry = target  # of the head: a class or, behind them, a cluster
        extra = input.new_zeros(target.shape)
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().reshape(-1)
            if not rows.numel():
                continue
            logs = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            own = (target.index_select(0, rows) - low).unsqueeze(1)
            extra = extra.index_copy(0, rows, logs.gather(1, own).squeeze(1))
            entry = entry.index_fill(0, rows, self.shortlist_size + i)
        head = F.log_softmax(self.head(input), dim=1)
        return head.gather(1, entry.unsqueeze(1)).squeeze(1) + extra

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes: [n, n_classes] of inputs [n, in_features]."""
        head = F.log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            at = self.shortlist_size + i
            parts.append(F.log_softmax(cluster(input), dim=1) + head[:, at : at + 1])
        return _C.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each input [n, in_features]: [n]."""
        return self.log_prob(input).argmax(1)

"""Embeddings."""

from __future__ import annotations

from typing import Any, ClassVar

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.nn import functional as F
from weft.nn import init
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter


class _Table(Module):
    """A table of rows, and what embedding and embedding_bag do with those that are named."""

    weight: Parameter
    max_norm: float | None
    padding_idx: int | None
    # What repr shows where it differs from the default, and the others in this order.
    _shown: ClassVar[dict[str, Any]]

    def _set_up(
        self,
        shape: tuple[int, int],
        padding_idx: int | None,
        options: tuple[float | None, float, bool, bool],
        weight: Tensor | None,
        freeze: bool,
        place: dict[str, Any],
    ) -> None:
        name, rows = type(self).__name__, shape[0]
        if padding_idx is not None and not -rows <= padding_idx < rows:
            raise AssertionError(
                f"{name}: expected padding_idx in [-{rows}, {rows}), got {padding_idx}"
            )
        if weight is not None and tuple(weight.shape) != shape:
            raise AssertionError(
                f"{name}: expected a weight of shape {shape}, got {tuple(weight.shape)}"
            )
        self.num_embeddings, self.embedding_dim = shape
        self.padding_idx = None if padding_idx is None else padding_idx % rows
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = options
        table = _C.empty(shape, **place) if weight is None else weight
        self.weight = Parameter(table, requires_grad=not freeze)
        if weight is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the rows from N(0, 1); the padding row becomes zero."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def extra_repr(self) -> str:
        shown = [f"{self.num_embeddings}, {self.embedding_dim}"]
        for name, default in self._shown.items():
            value = getattr(self, name)
            if value != default:
                shown.append(f"{name}={value!r}")
        return ", ".join(shown)


def _sizes(name: str, embeddings: Tensor) -> tuple[int, int]:
    if embeddings.dim() != 2:
        raise AssertionError(f"{name}: expected a 2-d table, got shape {tuple(embeddings.shape)}")
    return embeddings.size(0), embeddings.size(1)


class Embedding(_Table):
    """A table of num_embeddings rows; integers [*] become rows [*, embedding_dim].

    max_norm, norm_type, scale_grad_by_freq: as for weft.nn.functional.embedding.

    sparse: the gradient of the weight is a sparse tensor of the rows that were named.

    Raises IndexError for an integer outside the table, AssertionError for padding_idx outside.

    >>> weft.nn.Embedding(5, 2, padding_idx=0)(weft.tensor([[0, 0]])).detach()
    tensor([[[0., 0.],
             [0., 0.]]])
    """

    _shown: ClassVar = {
        "padding_idx": None,
        "max_norm": None,
        "norm_type": 2.0,
        "scale_grad_by_freq": False,
        "sparse": False,
    }

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = (max_norm, norm_type, scale_grad_by_freq, sparse)
        place = {"device": device, "dtype": dtype}
        sizes = (num_embeddings, embedding_dim)
        self._set_up(sizes, padding_idx, options, _weight, _freeze, place)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An Embedding whose table is `embeddings` [n, d]; frozen unless freeze=False."""
        rows, columns = _sizes("Embedding", embeddings)
        return cls(
            rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
            embeddings, freeze,
        )  # fmt: skip


class EmbeddingBag(_Table):
    """The sum, mean or max of the rows of a table that each bag of integers names.

    The options are those of weft.nn.functional.embedding_bag.

    Raises as that function.

    >>> weft.nn.EmbeddingBag(5, 2)(weft.tensor([[0, 1], [2, 3]])).shape
    torch.Size([2, 2])
    """

    _shown: ClassVar = {
        "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False, "mode": None,
        "padding_idx": None,
    }  # fmt: skip

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = (max_norm, norm_type, scale_grad_by_freq, sparse)
        place = {"device": device, "dtype": dtype}
        self.mode = mode
        self.include_last_offset = include_last_offset
        self._set_up((num_embeddings, embedding_dim), padding_idx, options, _weight, False, place)

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """An EmbeddingBag whose table is `embeddings` [n, d]; frozen unless freeze=False."""
        rows, columns = _sizes("EmbeddingBag", embeddings)
        made = cls(
            rows, columns, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
            include_last_offset, padding_idx,
        )  # fmt: skip
        made.weight.requires_grad = not freeze
        return made

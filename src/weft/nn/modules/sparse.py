"""Embeddings."""

from __future__ import annotations

from typing import Any

import weft
from weft import Tensor
from weft.nn import functional as F
from weft.nn import init
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter


class Embedding(Module):
    """A table of num_embeddings rows; integers [*] become rows [*, embedding_dim]."""

    weight: Parameter

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
        if max_norm is not None or scale_grad_by_freq or sparse:
            raise NotImplementedError(
                "Embedding: expected max_norm=None, scale_grad_by_freq=False and sparse=False, "
                f"got {max_norm}, {scale_grad_by_freq} and {sparse}"
            )
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(
                f"Embedding: expected padding_idx in [-{num_embeddings}, {num_embeddings}), "
                f"got {padding_idx}"
            )
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        shape = (num_embeddings, embedding_dim)
        if _weight is None:
            empty = weft.empty(shape, device=device, dtype=dtype)
            self.weight = Parameter(empty, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != shape:
                raise ValueError(
                    f"Embedding: expected a weight of shape {shape}, got {tuple(_weight.shape)}"
                )
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Draws the rows from N(0, 1); the padding row becomes zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with weft.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None
    ) -> Embedding:
        """An Embedding whose table is `embeddings` [n, d]; frozen unless freeze=False."""
        rows, columns = embeddings.shape
        return cls(rows, columns, padding_idx, _weight=embeddings, _freeze=freeze)


class EmbeddingBag(Module):
    """The sum, mean or max of the rows of a table that each bag of integers names."""

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
        if max_norm is not None or scale_grad_by_freq or sparse:
            raise NotImplementedError(
                "EmbeddingBag: expected max_norm=None, scale_grad_by_freq=False and sparse=False, "
                f"got {max_norm}, {scale_grad_by_freq} and {sparse}"
            )
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.mode = mode
        self.include_last_offset = include_last_offset
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        if _weight is None:
            shape = (num_embeddings, embedding_dim)
            self.weight = Parameter(weft.empty(shape, device=device, dtype=dtype))
            self.reset_parameters()
        else:
            self.weight = Parameter(_weight)

    def reset_parameters(self) -> None:
        """Draws the rows from N(0, 1); the padding row becomes zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with weft.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        return F.embedding_bag(
            input, self.weight, offsets, mode=self.mode, per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset, padding_idx=self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode}{padding}"

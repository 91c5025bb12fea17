"""The encoder of the Transformer."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.attention import MultiheadAttention
from weft.nn.modules.container import ModuleList
from weft.nn.modules.dropout import Dropout
from weft.nn.modules.linear import Linear
from weft.nn.modules.module import Module
from weft.nn.modules.normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}


class _TransformerLayer(Module):
    """Attentions by their names and a feed-forward network, and for each a norm and a dropout."""

    _attentions: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        attention = (d_model, nhead, dropout, bias)
        for name in self._attentions:
            made = MultiheadAttention(*attention, batch_first=batch_first, **options)
            setattr(self, name, made)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **options)
        self.norm_first = norm_first
        places = range(1, len(self._attentions) + 2)
        for place in places:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **options)
            setattr(self, f"norm{place}", norm)
        for place in places:
            setattr(self, f"dropout{place}", Dropout(dropout))
        function = _ACTIVATIONS.get(activation) if isinstance(activation, str) else activation
        if function is None:
            raise RuntimeError(
                f"{type(self).__name__}: expected activation 'relu', 'gelu' or a function, "
                f"got {activation!r}"
            )
        self.activation = function

    def _own_attention(
        self, x: Tensor, mask: Tensor | None, padding: Tensor | None, causal: bool
    ) -> Tensor:
        attended, _ = self.self_attn(
            x, x, x, padding, need_weights=False, attn_mask=mask, is_causal=causal
        )
        return self.dropout1(attended)

    def _inner(self, x: Tensor) -> Tensor:
        """The feed-forward network, before its last dropout."""
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and a feed-forward network, each with dropout, shortcut and LayerNorm.

    norm_first normalises before each part instead of after it.

    [s, n, d_model] gives the same shape; batch_first: [n, s, d_model].

    >>> weft.nn.TransformerEncoderLayer(4, 2, 8)(weft.ones(5, 1, 4)).shape
    torch.Size([5, 1, 4])
    """

    _computed_attributes = ("activation_relu_or_gelu",)
    _attentions = ("self_attn",)

    @property
    def activation_relu_or_gelu(self) -> int:
        """1 for relu, 2 for gelu, 0 for another activation."""
        return {id(F.relu): 1, id(F.gelu): 2}.get(id(self.activation), 0)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The layer over src [t, n, d_model]; masks as in MultiheadAttention."""
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            src = src + self._own_attention(self.norm1(src), *masks)
            return src + self._feed_forward(self.norm2(src))
        src = self.norm1(src + self._own_attention(src, *masks))
        return self.norm2(src + self._feed_forward(src))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.dropout2(self._inner(x))


class TransformerEncoder(Module):
    """num_layers copies of an encoder layer, one after the other, then `norm` if given.

    src [s, n, d] gives [s, n, d].

    >>> layer = weft.nn.TransformerEncoderLayer(4, 2, 8)
    >>> weft.nn.TransformerEncoder(layer, 2)(weft.ones(5, 1, 4)).shape
    torch.Size([5, 1, 4])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """All layers over src [t, n, d_model]."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)

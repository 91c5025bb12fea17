"""The Transformer: encoder, decoder and both together."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

from weft import _C
from weft._C import Tensor
from weft.nn import functional as F
from weft.nn import init
from weft.nn.modules.attention import MultiheadAttention
from weft.nn.modules.container import ModuleList
from weft.nn.modules.dropout import Dropout
from weft.nn.modules.linear import Linear
from weft.nn.modules.module import Module
from weft.nn.modules.normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}


def _get_clones(module: Module, N: int) -> ModuleList:
    return ModuleList(copy.deepcopy(module) for _ in range(N))


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    """relu or gelu by its name; RuntimeError for others."""
    if activation not in _ACTIVATIONS:
        raise RuntimeError(f"_get_activation_fn: expected relu or gelu, got {activation}")
    return _ACTIVATIONS[activation]


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
        numbers = range(1, len(self._attentions) + 2)
        for number in numbers:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **options)
            setattr(self, f"norm{number}", norm)
        for number in numbers:
            setattr(self, f"dropout{number}", Dropout(dropout))
        function = _ACTIVATIONS.get(activation) if isinstance(activation, str) else activation
        if function is None:
            raise RuntimeError(
                f"{type(self).__name__}: expected activation 'relu', 'gelu' or a function, "
                f"got {activation!r}"
            )
        self.activation = function

    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        """Self-attention and its dropout, by the name that subclasses replace."""
        attended, _ = self.self_attn(
            x, x, x, key_padding_mask, need_weights=False, attn_mask=attn_mask, is_causal=is_causal
        )
        return self.dropout1(attended)

    def _inner(self, x: Tensor) -> Tensor:
        """The feed-forward network, before its last dropout."""
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and a feed-forward network, each with dropout, shortcut and LayerNorm.

    norm_first normalises before each part instead of after it.

    [s, n, d_model] gives the same shape; batch_first: [n, s, d_model]. Floating dtypes;
    RuntimeError for sizes that do not fit.

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
            src = src + self._sa_block(self.norm1(src), *masks)
            return src + self._ff_block(self.norm2(src))
        src = self.norm1(src + self._sa_block(src, *masks))
        return self.norm2(src + self._ff_block(src))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._inner(x))


class TransformerEncoder(Module):
    """num_layers copies of an encoder layer, one after the other, then `norm` if given.

    src [s, n, d] gives [s, n, d]. Floating dtypes; RuntimeError for sizes that do not fit.

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
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """All layers over src [t, n, d_model]."""
        for layer in self.layers:
            src = layer(
                src,
                src_mask=mask,
                src_key_padding_mask=src_key_padding_mask,
                is_causal=bool(is_causal),
            )
        return src if self.norm is None else self.norm(src)


class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to the encoder's output, and a feed-forward network.

    Each has dropout, shortcut and LayerNorm; norm_first normalises before each part. Floating
    dtypes; RuntimeError for sizes that do not fit.

    >>> layer = weft.nn.TransformerDecoderLayer(4, 2, 8)
    >>> layer(weft.ones(3, 1, 4), weft.ones(5, 1, 4)).shape
    torch.Size([3, 1, 4])
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The layer over tgt [t, n, d_model] and the encoder's memory [s, n, d_model]."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = tgt + self._sa_block(self.norm1(tgt), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(tgt + self._sa_block(tgt, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        """Attention to the memory and its dropout, by the name that subclasses replace."""
        attended, _ = self.multihead_attn(
            x, mem, mem, key_padding_mask, need_weights=False, attn_mask=attn_mask,
            is_causal=is_causal,
        )  # fmt: skip
        return self.dropout2(attended)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._inner(x))


class TransformerDecoder(Module):
    """num_layers copies of a decoder layer, one after the other, then `norm` if given.

    tgt [t, n, d] and memory [s, n, d] give [t, n, d]. Floating dtypes; RuntimeError for sizes that
    do not fit.

    >>> layer = weft.nn.TransformerDecoderLayer(4, 2, 8)
    >>> decoder = weft.nn.TransformerDecoder(layer, 2)
    >>> decoder(weft.ones(3, 1, 4), weft.ones(5, 1, 4)).shape
    torch.Size([3, 1, 4])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """All layers over tgt [t, n, d_model] and memory [s, n, d_model]."""
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder: src [s, n, d_model] and tgt [t, n, d_model] give [t, n, d_model].

    custom_encoder, custom_decoder stand for those that would be made here. Floating dtypes;
    RuntimeError for sizes that do not fit.

    >>> model = weft.nn.Transformer(4, 2, 1, 1, 8)
    >>> model(weft.ones(5, 1, 4), weft.ones(3, 1, 4)).shape
    torch.Size([3, 1, 4])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        layer = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias,
        )  # fmt: skip
        if custom_encoder is None:
            encoder = TransformerEncoderLayer(*layer, **options)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **options)
            custom_encoder = TransformerEncoder(encoder, num_encoder_layers, norm)
        self.encoder = custom_encoder
        if custom_decoder is None:
            decoder = TransformerDecoderLayer(*layer, **options)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **options)
            custom_decoder = TransformerDecoder(decoder, num_decoder_layers, norm)
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        """Xavier-uniform matrices."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The decoder's output; masks as in MultiheadAttention."""
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError(
                f"Transformer: expected src and tgt of one batch size, got {src.size(batch)} "
                f"and {tgt.size(batch)}"
            )
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError(
                f"Transformer: expected src and tgt of {self.d_model} features, got "
                f"{src.size(-1)} and {tgt.size(-1)}"
            )
        memory = self.encoder(src, src_mask, src_key_padding_mask, bool(src_is_causal))
        return self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
            bool(tgt_is_causal), memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """A mask that hides what comes later: -inf above the diagonal, 0 elsewhere."""
        full = _C.full((sz, sz), float("-inf"), device=device, dtype=dtype)
        return full.triu(1)

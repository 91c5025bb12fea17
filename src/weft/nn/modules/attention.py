"""MultiheadAttention."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft.nn import functional as F
from weft.nn import init
from weft.nn.modules.linear import NonDynamicallyQuantizableLinear
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter


class MultiheadAttention(Module):
    """Attention of num_heads heads over [t, n, embed_dim] (batch_first: [n, t, embed_dim]).

    add_bias_kv: learns one more key and value; add_zero_attn: adds one of zeros. Programs of
    weft.jit have neither.

    Query [t, n, embed_dim], key [s, n, kdim] and value [s, n, vdim], all without n or batched first
    too, give [t, n, embed_dim] and, with need_weights, weights [n, t, s]. Masks are boolean (true:
    not attended to) or added. Raises ValueError for an embed_dim that num_heads does not divide.

    >>> x = weft.ones(5, 2, 4)
    >>> output, weights = weft.nn.MultiheadAttention(4, 2)(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([5, 2, 4]), torch.Size([2, 5, 5]))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise (ValueError if embed_dim <= 0 or num_heads <= 0 else AssertionError)(
                "MultiheadAttention: expected num_heads that divides embed_dim, "
                f"got {num_heads} and {embed_dim}"
            )
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        options = {"device": device, "dtype": dtype}
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        shapes = {
            "q_proj_weight": None if self._qkv_same_embed_dim else (embed_dim, embed_dim),
            "k_proj_weight": None if self._qkv_same_embed_dim else (embed_dim, self.kdim),
            "v_proj_weight": None if self._qkv_same_embed_dim else (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim) if self._qkv_same_embed_dim else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
            "bias_k": (1, 1, embed_dim) if add_bias_kv else None,
            "bias_v": (1, 1, embed_dim) if add_bias_kv else None,
        }
        for name, shape in shapes.items():
            value = None if shape is None else Parameter(_C.empty(shape, **options))
            self.register_parameter(name, value)
        self.add_zero_attn = add_zero_attn
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, **options)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Xavier-uniform projections, zero biases."""
        names = ["in_proj_weight"]
        if not self._qkv_same_embed_dim:
            names = ["q_proj_weight", "k_proj_weight", "v_proj_weight"]
        for name in names:
            init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            for bias in (self.in_proj_bias, self.out_proj.bias):
                if bias is not None:
                    init.zeros_(bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The attended values, and with need_weights the weights [n, t, s] (or one a head).

        Boolean masks forbid where they are true; floating ones are added to the scores.
        attn_mask is [t, s] or [n * num_heads, t, s], key_padding_mask [n, s].
        """
        turned = self.batch_first and query.dim() == 3
        if turned and query is key and key is value:
            query = key = value = query.transpose(0, 1)
        elif turned:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        # Of out_proj its weights alone, as PyTorch: hooks of the module inside see no call.
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask, need_weights,
            attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight, self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return output.transpose(0, 1) if turned else output, weights

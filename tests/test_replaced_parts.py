"""Parts of layers that subclasses replace or call, by PyTorch's private names, in both libraries."""

from __future__ import annotations

from typing import Any

import pytest
from libraries import both


def _zero(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    return x * 0


@both
def test_blocks_of_an_encoder_layer(lib: Any) -> None:
    parts = {"_sa_block": _zero, "_ff_block": _zero}
    x = lib.randn(3, 2, 8)
    for kept in (None, *parts):
        replaced = {name: part for name, part in parts.items() if name != kept}
        layer = type("Layer", (lib.nn.TransformerEncoderLayer,), replaced)
        layer = layer(8, 2, 16, dropout=0.0, norm_first=True)
        if kept is None:
            expected = x
        elif kept == "_sa_block":
            expected = x + layer.self_attn(*[layer.norm1(x)] * 3)[0]
        else:
            inner = lib.relu(layer.linear1(layer.norm2(x)))
            expected = x + layer.linear2(inner)
        lib.testing.assert_close(layer(x), expected)


@both
def test_blocks_of_a_decoder_layer(lib: Any) -> None:
    parts = {"_sa_block": _zero, "_mha_block": _zero, "_ff_block": _zero}
    layer = type("Layer", (lib.nn.TransformerDecoderLayer,), parts)
    x, memory = lib.randn(3, 2, 8), lib.randn(4, 2, 8)
    layer = layer(8, 2, 16, dropout=0.0, norm_first=True)
    lib.testing.assert_close(layer(x, memory), x)
    del type(layer)._mha_block
    attended = layer.multihead_attn(layer.norm2(x), memory, memory)[0]
    lib.testing.assert_close(layer(x, memory), x + attended)


@both
def test_stacks_pass_masks_by_name(lib: Any) -> None:
    class Layer(lib.nn.TransformerEncoderLayer):
        def forward(
            self, src: Any, *, is_causal: Any, src_key_padding_mask: Any, src_mask: Any
        ) -> Any:
            assert src_key_padding_mask is None and src_mask.shape == (3, 3)
            return src + 1

    class DecoderLayer(lib.nn.TransformerDecoderLayer):
        def forward(self, tgt: Any, memory: Any, *, memory_mask: Any = None, **others: Any) -> Any:
            assert memory_mask is None and others["tgt_mask"].shape == (3, 3)
            return tgt + memory

    x, mask = lib.randn(3, 2, 8), lib.zeros(3, 3)
    encoder = lib.nn.TransformerEncoder(Layer(8, 2, 16), 2, enable_nested_tensor=False)
    lib.testing.assert_close(encoder(x, mask), x + 2)
    decoder = lib.nn.TransformerDecoder(DecoderLayer(8, 2, 16), 2)
    lib.testing.assert_close(decoder(x, x, tgt_mask=mask), 3 * x)


@both
def test_padding_of_a_transposed_convolution(lib: Any) -> None:
    layer = lib.nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1)
    x = lib.randn(1, 2, 5, 5)
    sizes = (layer.stride, layer.padding, layer.kernel_size, 2, layer.dilation)
    assert list(layer._output_padding(x, None, *sizes)) == [0, 0]
    assert list(layer._output_padding(x, [10, 9], *sizes)) == [1, 0]
    assert layer(x, [10, 9]).shape == (1, 3, 10, 9)
    with pytest.raises(ValueError):
        layer._output_padding(x, [11, 9], *sizes)


@both
def test_parameters_are_set_again(lib: Any) -> None:
    slopes = lib.nn.PReLU(3, 0.5)
    with lib.no_grad():
        slopes.weight.fill_(7.0)
    slopes.reset_parameters()
    assert slopes.weight.tolist() == [0.5] * 3
    table = lib.nn.Embedding(3, 2, padding_idx=1)
    with lib.no_grad():
        table.weight.fill_(7.0)
    table._fill_padding_idx_with_zero()
    assert table.weight.tolist() == [[7.0, 7.0], [0.0, 0.0], [7.0, 7.0]]


@both
def test_sums_of_adagrad_in_shared_memory(lib: Any) -> None:
    layer = lib.nn.Linear(2, 3)
    optimizer = lib.optim.Adagrad(layer.parameters(), initial_accumulator_value=0.25)
    optimizer.share_memory()
    for parameter in layer.parameters():
        total = optimizer.state[parameter]["sum"]
        assert total.is_shared() and total.unique().tolist() == [0.25]

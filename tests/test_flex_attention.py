"""Attention with functions of places, and causal masks, beside PyTorch's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def _modules(library: Any) -> tuple[Any, Any]:
    name = library.__name__
    flex = importlib.import_module(f"{name}.nn.attention.flex_attention")
    return flex, importlib.import_module(f"{name}.nn.attention.bias")


def _tensors(library: Any, heads: int = 2) -> list[Any]:
    numbers = np.sin(np.arange(2 * 2 * 5 * 4, dtype=np.float64)).reshape(2, 2, 5, 4)
    made = [numbers[:, :, :3], numbers[:, :heads] * 2, numbers[:, :heads] + 1]
    return [library.from_numpy(each.copy()).requires_grad_() for each in made]


def _causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q >= k


def _window(b: Any, h: Any, q: Any, k: Any) -> Any:
    return (q - k).abs() <= h


def _never_first(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q > 0


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "plain": lambda flex, x: flex.flex_attention(*x),
    "scale": lambda flex, x: flex.flex_attention(*x, scale=0.3),
    "relative": lambda flex, x: flex.flex_attention(
        *x, score_mod=lambda s, b, h, q, k: s + (q - k) * (h + 1)
    ),
    "causal": lambda flex, x: flex.flex_attention(
        *x, block_mask=flex.create_block_mask(_causal, None, None, 3, 5, device="cpu")
    ),
    "window of each head": lambda flex, x: flex.flex_attention(
        *x, block_mask=flex.create_block_mask(_window, None, 2, 3, 5, device="cpu")
    ),
    "rows without keys": lambda flex, x: flex.flex_attention(
        *x, block_mask=flex.create_block_mask(_never_first, None, None, 3, 5, device="cpu")
    ),
    "both masks": lambda flex, x: flex.flex_attention(
        *x,
        block_mask=flex.create_block_mask(
            flex.and_masks(_causal, flex.or_masks(_window, _never_first)), 1, 2, 3, 5, device="cpu"
        ),
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_values_and_gradients(name: str) -> None:
    """PyTorch has no gradients of it on the CPU."""
    call = CALLS[name]
    ours, theirs = (
        call(_modules(library)[0], [each.detach() for each in _tensors(library)])
        for library in (weft, torch)
    )
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-9, atol=1e-12)
    flex = _modules(weft)[0]
    assert weft.autograd.gradcheck(lambda *x: call(flex, x), _tensors(weft))


@pytest.mark.filterwarnings("ignore")
def test_shared_heads_and_sums() -> None:
    found = []
    for library in (weft, torch):
        flex = _modules(library)[0]
        x = [each.detach() for each in _tensors(library, heads=1)]
        found.append(flex.flex_attention(*x, enable_gqa=True, return_lse=True))
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


def test_masks_and_blocks() -> None:
    found = []
    for library in (weft, torch):
        flex = _modules(library)[0]
        blocks = flex.create_block_mask(_causal, 1, 1, 8, 8, device="cpu", BLOCK_SIZE=2)
        mask = flex.create_mask(_window, None, 2, 3, 4, device="cpu")
        found.append((mask.tolist(), blocks.to_dense().tolist(), blocks.sparsity(), blocks.shape))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["causal_upper_left", "causal_lower_right"])
def test_causal_biases(name: str) -> None:
    found = []
    for library in (weft, torch):
        x = [each.detach() for each in _tensors(library)]
        bias = getattr(_modules(library)[1], name)(3, 5)
        attend = library.nn.functional.scaled_dot_product_attention
        found.append((attend(*x, attn_mask=bias).numpy(), repr(bias), bias.seq_len_kv))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9)
    assert found[0][1:] == found[1][1:]


def test_errors() -> None:
    flex, bias = _modules(weft)
    x = weft.ones(1, 2, 3, 4)
    with pytest.raises(ValueError, match="flex_attention: expected tensors of 4 dimensions"):
        flex.flex_attention(x[0], x[0], x[0])
    with pytest.raises(ValueError, match="flex_attention: expected as many heads of keys as of"):
        flex.flex_attention(x, x[:, :1], x[:, :1])
    with pytest.raises(RuntimeError, match="and_masks: expected functions, got"):
        flex.and_masks(1)
    with pytest.raises(RuntimeError, match="or_masks: expected functions, got"):
        flex.or_masks(_causal, None)
    with pytest.raises(ValueError, match="CausalBias: expected at least as many keys as queries"):
        bias.causal_lower_right(3, 2)
    with pytest.raises(AssertionError, match="CausalBias: expected a CausalVariant, got 1"):
        bias.CausalBias(1, 2, 3)

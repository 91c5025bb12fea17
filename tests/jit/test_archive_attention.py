"""The operators to which PyTorch's transformer layers go in evaluation."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest
from tests.jit.archive_writer import ROOT, archive, forward

import weft
from weft import jit, nn
from weft.jit.native import compiler


def layer(**options: bool) -> nn.TransformerEncoderLayer:
    weft.manual_seed(0)
    return nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, **options).eval()


def weights(of: nn.TransformerEncoderLayer) -> list[weft.Tensor]:
    parts = [of.self_attn.in_proj_weight, of.self_attn.in_proj_bias]
    for each in (of.self_attn.out_proj, of.norm1, of.norm2, of.linear1, of.linear2):
        parts += [each.weight, each.bias]
    return [each.detach() for each in parts]


MASKS = {
    "none": ("None, None", None, None),
    "of pairs": ("CONSTANTS.c12, 0", weft.ones(5, 5).triu(1), None),
    "of keys": ("CONSTANTS.c12, 1", None, weft.tensor([[0.0, 0, 0, 1, 1], [0, 0, 0, 0, 0]])),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("norm_first", [False, True])
def test_a_layer_in_one_call(name, norm_first):
    text, mask, padding = MASKS[name]
    made = layer(norm_first=norm_first, activation="gelu" if norm_first else "relu")
    constants = [*weights(made), *(each for each in (mask, padding) if each is not None)]
    listed = ", ".join(f"CONSTANTS.c{number}" for number in range(4))
    rest = ", ".join(f"CONSTANTS.c{number}" for number in range(4, 12))
    call = f"torch._transformer_encoder_layer_fwd(x, 8, 2, {listed}, {norm_first}, {norm_first}, "
    loaded = jit.load(archive(forward(f"{call} 1e-05, {rest}, {text})"), ROOT, constants))
    x = weft.randn(2, 5, 8)
    mask, padding = (None if each is None else each != 0 for each in (mask, padding))
    # Sums of at most 16 products, in other orders, in six places one after the other.
    assert weft.allclose(loaded(x), made(x, mask, padding), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("need", "average"), [(True, True), (True, False), (False, True)])
def test_attention_in_one_call(need, average):
    made = layer().self_attn
    constants = weights(layer())[:4]
    listed = ", ".join(f"CONSTANTS.c{number}" for number in range(4))
    call = f"torch._native_multi_head_attention(x, x, x, 8, 2, {listed}, None, {need}, {average})"
    code = forward(f"({call})[0]")["__torch__"]
    code += f"""  def weights(self: __torch__.M,
    x: Tensor) -> Optional[Tensor]:
    return ({call})[1]
"""
    loaded = jit.load(archive({"__torch__": code}, ROOT, constants))
    x = weft.randn(2, 5, 8)
    wanted, attention = made(x, x, x, need_weights=need, average_attn_weights=average)
    assert weft.allclose(loaded(x), wanted, rtol=0, atol=1e-5)
    found = loaded.weights(x)
    assert (found is None) == (attention is None)
    assert found is None or weft.allclose(found, attention, rtol=0, atol=1e-6)


def _wait_for_the_compiler() -> None:
    """Python 3.11 refuses what PyTorch parses while another thread parses, too."""
    job = compiler.submit(lambda: None)
    while job is not None and not job.is_over:
        time.sleep(0.01)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("nested", [False, True])
def test_encoders_that_pytorch_scripted(nested):
    """Without gradients, in evaluation. What is padding is computed: PyTorch leaves it out where it
    has nested tensors."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    one = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    module = torch.nn.TransformerEncoder(one, 2, enable_nested_tensor=nested).eval()
    file = io.BytesIO()
    _wait_for_the_compiler()
    torch.jit.save(torch.jit.script(module), file)
    loaded = jit.load(file.getvalue())
    x = np.random.default_rng(0).standard_normal((3, 5, 8), np.float32)
    padding = np.zeros((3, 5), bool)
    padding[0, 3:] = True
    with torch.no_grad(), weft.no_grad():
        plain = module(torch.from_numpy(x)).numpy()
        padded = module(torch.from_numpy(x), None, torch.from_numpy(padding)).numpy()
        found = loaded(weft.from_numpy(x))
        other = loaded(weft.from_numpy(x), None, weft.from_numpy(padding)).numpy()
    np.testing.assert_allclose(found.numpy(), plain, rtol=0, atol=1e-5)
    np.testing.assert_allclose(other[~padding], padded[~padding], rtol=0, atol=1e-5)

"""The Transformer, attention with more keys, ParameterDict and Buffer, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from libraries import both

import weft
from weft import nn


def values(lib: Any, *shape: int) -> Any:
    numbers = np.random.default_rng(sum(shape)).standard_normal(shape)
    return lib.tensor(numbers, dtype=lib.float64)


def compare(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-6, atol=1e-8)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options", [{}, {"batch_first": True, "norm_first": True, "activation": "gelu"}]
)
def test_transformers_equal_torch(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for lib in (weft, torch):
        lib.manual_seed(0)
        model = lib.nn.Transformer(4, 2, 1, 2, 8, dropout=0.0, dtype=lib.float64, **options)
        source, target = values(lib, 5, 3, 4), values(lib, 2, 3, 4)
        if options:
            source, target = source.transpose(0, 1), target.transpose(0, 1)
        mask = lib.nn.Transformer.generate_square_subsequent_mask(2, dtype=lib.float64)
        padding = lib.tensor([[False] * 4 + [True]] * 3)
        output = model(
            source, target, tgt_mask=mask, tgt_is_causal=True, src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )  # fmt: skip
        output.square().sum().backward()
        grads = {name: p.grad for name, p in model.named_parameters()}
        results.append((output, grads))
    (ours, our_grads), (theirs, their_grads) = results
    compare(ours, theirs)
    assert list(our_grads) == list(their_grads)
    for name in our_grads:
        compare(our_grads[name], their_grads[name])


@pytest.mark.parity
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("zero", [False, True])
def test_attention_with_more_keys_equals_torch(batch_first: bool, zero: bool) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for lib in (weft, torch):
        lib.manual_seed(0)
        layer = lib.nn.MultiheadAttention(
            4, 2, add_bias_kv=True, add_zero_attn=zero, batch_first=batch_first, kdim=3, vdim=2,
            dtype=lib.float64,
        )  # fmt: skip
        query, key, value = (values(lib, n, 3, e) for n, e in ((2, 4), (5, 3), (5, 2)))
        if batch_first:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        options: dict[str, Any] = {
            "attn_mask": lib.ones(2, 5, dtype=lib.bool).triu(1),
            "key_padding_mask": lib.tensor([[False] * 4 + [True]] * 3),
        }
        output, weights = layer(query, key, value, **options)
        single, _ = layer(values(lib, 2, 4), values(lib, 5, 3), values(lib, 5, 2))
        results.append([output, weights, single, *layer.state_dict().values()])
    for ours, theirs in zip(*results):
        compare(ours, theirs)


@pytest.mark.parity
def test_the_function_takes_projected_keys() -> None:
    torch = pytest.importorskip("torch")
    results = []
    for lib in (weft, torch):
        x, weight = values(lib, 3, 2, 4), values(lib, 12, 4)
        fixed = values(lib, 4, 6, 2)
        results.append(
            lib.nn.functional.multi_head_attention_forward(
                x, x, x, 4, 2, weight, None, None, None, False, 0.0, values(lib, 4, 4), None,
                static_k=fixed, static_v=fixed, average_attn_weights=False,
            )
        )  # fmt: skip
    for ours, theirs in zip(*results):
        compare(ours, theirs)


def test_attention_refuses() -> None:
    x = weft.ones(2, 1, 4)
    text = "multi_head_attention_forward: expected"
    arguments = (weft.ones(12, 4), None, None, None, False, 0.0, weft.ones(4, 4), None)
    with pytest.raises(AssertionError, match=f"{text} a query of 2 or 3 dimensions, the last 6"):
        nn.functional.multi_head_attention_forward(x, x, x, 6, 2, *arguments)
    with pytest.raises(AssertionError, match=f"{text} num_heads that divides 4, got 3"):
        nn.functional.multi_head_attention_forward(x, x, x, 4, 3, *arguments)
    with pytest.raises(RuntimeError, match=r"Transformer: expected src and tgt of 4 features"):
        nn.Transformer(4, 2, 1, 1, 8)(weft.ones(2, 1, 3), x)


def test_parameter_dicts() -> None:
    weights = nn.ParameterDict({"a": weft.ones(2), "b": nn.Parameter(weft.zeros(1))})
    assert list(weights) == ["a", "b"] and isinstance(weights["a"], nn.Parameter)
    assert [n for n, _ in weights.named_parameters()] == list(weights.state_dict()) == ["a", "b"]
    weights.update({"c": weft.ones(1)})
    assert weights.pop("b").item() == 0 and "b" not in weights and len(weights) == 2
    assert weights.get("b") is None and weights.setdefault("d", weft.ones(1)) is weights["d"]
    assert weights.popitem()[0] == "d" and list(reversed(weights)) == ["c", "a"]
    assert weights.copy()["a"] is weights["a"]
    assert list(weights.fromkeys(["x"], weft.ones(1))) == ["x"]
    assert "(a): Parameter containing: [torch.FloatTensor of size 2]" in repr(weights)
    with pytest.raises(KeyError):
        weights["b"]
    with pytest.raises(KeyError, match="expected an unused name, got the attribute 'keys'"):
        weights["keys"] = weft.ones(1)
    weights.clear()
    assert not list(weights.parameters())


def test_buffers_are_registered_when_assigned() -> None:
    module = nn.Module()
    module.kept = nn.Buffer(weft.ones(1))
    module.lost = nn.Buffer(weft.ones(1), persistent=False)
    assert list(module.state_dict()) == ["kept"]
    assert [name for name, _ in module.named_buffers()] == ["kept", "lost"]
    assert not list(module.parameters()) and not module.kept.requires_grad
    module.kept = weft.zeros(1)
    assert module.state_dict()["kept"].item() == 0
    assert type(nn.Buffer(weft.ones(1)) + 1) is weft.Tensor
    assert list(nn.Linear(2, 2).to_empty(device="cpu").state_dict()) == ["weight", "bias"]


@both
@pytest.mark.parametrize("need_weights", [True, False])
def test_hooks_of_the_projection_see_no_call(lib: Any, need_weights: bool) -> None:
    """Its weights are read: what counts layers by their calls does not find it."""
    layer = lib.nn.MultiheadAttention(4, 2)
    called = []
    layer.out_proj.register_forward_hook(lambda *_: called.append("out_proj"))
    layer.register_forward_hook(lambda *_: called.append("attention"))
    layer(*[lib.ones(3, 1, 4)] * 3, need_weights=need_weights)
    assert called == ["attention"]

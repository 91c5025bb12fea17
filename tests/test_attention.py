"""Attention by blocks of query rows: values, gradients, memory, programs and transforms."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft
import weft.nn.functional as F

attend = F.scaled_dot_product_attention


def composed(
    query: Any, key: Any, value: Any, mask: Any = None, is_causal: bool = False, scale: Any = None
) -> Any:
    """The formula, of whole tensors."""
    scores = query @ key.transpose(-2, -1) * (query.size(-1) ** -0.5 if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(
            ~weft.ones(scores.shape[-2:], dtype=weft.bool).tril(), -weft.inf
        )
    if mask is not None:
        added = mask if mask.dtype != weft.bool else weft.zeros(()).masked_fill(~mask, -weft.inf)
        scores = scores + added
    return scores.softmax(-1) @ value


def draws(*shapes: tuple[int, ...], dtype: Any = weft.float64) -> list[Any]:
    rng = np.random.default_rng(7)
    return [
        weft.tensor(rng.normal(size=shape), dtype=dtype, requires_grad=True) for shape in shapes
    ]


def masks(t: int, s: int) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    allowed = weft.tensor(rng.random((t, s)) < 0.5)
    allowed[:, 0] = True
    return {
        "none": None,
        "bool": allowed,
        "of heads": allowed.expand(3, 1, t, s),
        "added": weft.tensor(rng.normal(size=(t, s))),
        "of keys": allowed[:1],
        "of more samples": allowed.expand(2, 1, 1, t, s),
    }


@pytest.mark.parametrize("name", list(masks(1, 1)))
@pytest.mark.parametrize("t, s", [(130, 70), (64, 64), (65, 200), (1, 300)])
def test_blocks_give_the_formula_and_its_gradients(name: str, t: int, s: int) -> None:
    mask = masks(t, s)[name]
    given = draws((3, 2, t, 8), (3, 2, s, 8), (3, 2, s, 5))
    upstream = weft.cos(attend(*given, mask)).detach()
    found = []
    for function in (attend, composed):
        result = function(*given, mask)
        found.append([result, *weft.autograd.grad(result, given, upstream)])
    for ours, expected in zip(*found):
        weft.testing.assert_close(ours, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize("name", ["bool", "added", "of keys"])
@pytest.mark.parametrize("t, s", [(5, 5), (130, 70), (65, 200)])
def test_a_mask_and_causality_hold_both(t: int, s: int, name: str, needs_gradient: bool) -> None:
    mask = masks(t, s)[name]
    if needs_gradient and mask.is_floating_point():
        mask.requires_grad_()
    given = draws((3, 2, t, 8), (3, 2, s, 8), (3, 2, s, 5))
    found = []
    for function in (attend, composed):
        result = function(*given, mask, is_causal=True)
        found.append([result, *weft.autograd.grad(result.sin().sum(), given)])
    for ours, expected in zip(*found):
        weft.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("t, s", [(200, 200), (200, 90), (90, 200)])
def test_causal_blocks_skip_keys(t: int, s: int) -> None:
    given = draws((2, t, 4), (2, s, 4), (2, s, 3))
    found = []
    for function in (attend, composed):
        result = function(*given, is_causal=True)
        found.append([result, *weft.autograd.grad(result.square().sum(), given)])
    for ours, expected in zip(*found):
        weft.testing.assert_close(ours, expected, rtol=1e-11, atol=1e-12)


def test_keys_that_no_query_sees_do_not_matter() -> None:
    query, key, value = draws((8, 4), (100, 4), (100, 4))
    with weft.no_grad():
        key[8:], value[8:] = weft.nan, weft.nan
    result = attend(query, key, value, is_causal=True)
    assert result.isfinite().all()


def test_operands_are_read_where_they_lie() -> None:
    """Heads between rows and features, as one product gives them; steps and reversed rows."""
    parts = draws((2, 70, 3, 4, 8))[0].permute(2, 0, 3, 1, 4).unbind(0)
    weft.testing.assert_close(attend(*parts), composed(*parts), rtol=1e-11, atol=1e-12)
    turned = [part[..., ::2, ::-1] for part in parts]
    weft.testing.assert_close(attend(*turned), composed(*turned), rtol=1e-11, atol=1e-12)


def test_scores_of_all_rows_never_exist() -> None:
    t = 2048
    query, key, value = draws((t, 16), (t, 16), (t, 16), dtype=weft.float32)
    before = weft.memory.stats()["bytes_in_use"]
    weft.memory.reset_peak()
    attend(query, key, value).sum().backward()
    assert weft.memory.stats()["peak_bytes_in_use"] - before < t * t * 4 // 4


def test_a_mask_that_learns_gets_its_gradient() -> None:
    query, key, value, bias = draws((2, 5, 4), (2, 6, 4), (2, 6, 4), (5, 6))
    (ours,) = weft.autograd.grad(attend(query, key, value, bias).sum(), bias)
    (expected,) = weft.autograd.grad(composed(query, key, value, bias).sum(), bias)
    weft.testing.assert_close(ours, expected)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": masks(5, 6)["bool"]}])
def test_second_gradients(options: dict[str, Any]) -> None:
    given = draws((2, 5, 4), (2, 6, 4), (2, 6, 3))
    assert weft.autograd.gradgradcheck(lambda *tensors: attend(*tensors, **options), given)


def test_half_precision_computes_in_float32() -> None:
    given = draws((2, 70, 8), (2, 90, 8), (2, 90, 8), dtype=weft.float32)
    for dtype in (weft.float16, weft.bfloat16):
        rounded = [each.detach().to(dtype) for each in given]
        expected = attend(*(each.float() for each in rounded)).to(dtype)
        assert weft.equal(attend(*rounded), expected)


def test_samples_of_vmap() -> None:
    query, key, value = (each.detach() for each in draws((3, 2, 5, 4), (2, 6, 4), (3, 2, 6, 4)))
    mask = masks(5, 6)["bool"]
    found = weft.func.vmap(lambda q, k, v: attend(q, k, v, mask), (0, None, 0))(query, key, value)
    for i in range(3):
        weft.testing.assert_close(found[i], attend(query[i], key, value[i], mask))


def test_forward_mode() -> None:
    query, key, value = (each.detach() for each in draws((5, 4), (6, 4), (6, 4)))
    _, ours = weft.func.jvp(lambda q: attend(q, key, value), (query,), (query.cos(),))
    _, expected = weft.func.jvp(lambda q: composed(q, key, value), (query,), (query.cos(),))
    weft.testing.assert_close(ours, expected)


@pytest.mark.threads
def test_results_do_not_depend_on_threads() -> None:
    given = draws((2, 3, 150, 16), (2, 3, 150, 16), (2, 3, 150, 16), dtype=weft.float32)
    found = []
    threads = weft.get_num_threads()
    for count in (1, 2):
        weft.set_num_threads(count)
        result = attend(*given, is_causal=True)
        found.append([result, *weft.autograd.grad(result.sum(), given)])
    weft.set_num_threads(threads)
    assert all(weft.equal(*pair) for pair in zip(*found))


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["script", "trace"])
@pytest.mark.parametrize("causal", [False, True])
def test_archives_say_pytorchs_operator(kind: str, causal: bool) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the reference of this test")

    class Attention(weft.nn.Module):
        def __init__(self, causal: bool) -> None:
            super().__init__()
            self.causal = causal

        def forward(self, query: weft.Tensor, key: weft.Tensor) -> weft.Tensor:
            return F.scaled_dot_product_attention(query, key, key, is_causal=self.causal)

    query, key = (each.detach() for each in draws((2, 5, 4), (2, 6, 4)))
    module = Attention(causal)
    made = weft.jit.script(module) if kind == "script" else weft.jit.trace(module, (query, key))
    file = io.BytesIO()
    weft.jit.save(made, file)
    file.seek(0)
    with weft.no_grad():
        expected = module(query, key).numpy()
    theirs = torch.jit.load(file)(*(torch.from_numpy(each.numpy()) for each in (query, key)))
    np.testing.assert_allclose(theirs.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_refuses() -> None:
    query, key, value = draws((2, 5, 4), (2, 6, 4), (2, 6, 3))
    cases = [
        (
            (query, key, value.float()),
            "expected query, key and value of one dtype, got float64, float64 and float32",
        ),
        ((query.int(), key.int(), value.int()), "expected a floating dtype, got int32"),
        (
            (query, key, value, weft.ones(5, 6, dtype=weft.int64)),
            "expected a mask of dtype bool, float32 or float64, got int64",
        ),
        (
            (query, key, value, weft.ones(2, 4, 6)),
            "expected broadcastable shapes, got (2, 4, 6) and (2, 5, 6)",
        ),
    ]
    for given, message in cases:
        with pytest.raises(RuntimeError) as raised:
            attend(*given)
        assert message in str(raised.value)


@both
def test_masks_of_sequences_without_a_batch(lib: Any) -> None:
    lib.manual_seed(0)
    layer = lib.nn.MultiheadAttention(4, 2).eval()
    x = lib.arange(12.0).reshape(3, 4) / 10
    causal = lib.ones(3, 3, dtype=lib.bool).triu(1)
    expected = layer(x, x, x, attn_mask=causal)[0]
    of_heads = layer(x, x, x, attn_mask=causal.expand(2, 3, 3))[0]
    assert lib.allclose(of_heads, expected)
    assert not lib.allclose(layer(x, x, x)[0], expected)
    with pytest.raises((AssertionError, RuntimeError)):
        layer(x, x, x, attn_mask=causal.expand(4, 3, 3))

"""Nested tensors: operators against each tensor of the batch for itself, and against PyTorch."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st
from libraries import both

import weft
from weft import nn
from weft.autograd import gradcheck
from weft.serialization.errors import LoadError
from weft.serialization.nested import read

#: PyTorch's
pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")

LENGTHS = (3, 1, 2)
WIDTH = 4


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def parts(lib: Any, *behind: int, before: tuple[int, ...] = ()) -> list[Any]:
    """A tensor [*before, length, *behind] of each length."""
    rng = np.random.default_rng(7)
    return [lib.tensor(rng.normal(size=(*before, n, *(behind or (WIDTH,))))) for n in LENGTHS]


def nest(lib: Any, tensors: Any, layout: str = "jagged", requires_grad: bool = False) -> Any:
    return lib.nested.nested_tensor(
        tensors, layout=getattr(lib, layout), requires_grad=requires_grad
    )


def matrix(lib: Any, *sizes: int) -> Any:
    return lib.tensor(np.random.default_rng(3).normal(size=sizes))


def each(x: Any) -> list[np.ndarray]:
    """The arrays of a nested tensor, or of the rows of a dense one."""
    return [row.detach().numpy() for row in x.unbind()]


def same(got: Any, expected: Any) -> None:
    assert bool(got.is_nested) == bool(expected.is_nested)
    assert str(got.dtype) == str(expected.dtype)
    if not got.is_nested:
        assert tuple(got.shape) == tuple(expected.shape)
    a, b = (each(x) if x.is_nested else [x.detach().numpy()] for x in (got, expected))
    assert [row.shape for row in a] == [row.shape for row in b]
    for left, right in zip(a, b):
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-12)


# ---- operators, of [3, j, 4] ----

Case = Callable[[Any, Any], Any]

#: functions of (library, x), which are the same functions of each tensor of the batch
EVERYWHERE: dict[str, Case] = {
    "neg": lambda lib, x: -x,
    "abs": lambda lib, x: x.abs(),
    "sigmoid": lambda lib, x: lib.sigmoid(x),
    "relu": lambda lib, x: lib.nn.functional.relu(x),
    "gelu": lambda lib, x: lib.nn.functional.gelu(x),
    "silu": lambda lib, x: lib.nn.functional.silu(x),
    "mul number": lambda lib, x: x * 3,
    "number sub": lambda lib, x: 2 - x,
    "add itself": lambda lib, x: x + x,
    "sub itself": lambda lib, x: x - 2 * x,
    "div itself": lambda lib, x: x / x,
    "double": lambda lib, x: x.to(lib.float64),
    "float": lambda lib, x: x.float(),
    "clone": lambda lib, x: x.clone(),
    "softmax": lambda lib, x: x.softmax(-1),
    "functional softmax": lambda lib, x: lib.nn.functional.softmax(x, dim=-1),
    "linear": lambda lib, x: lib.nn.functional.linear(x, matrix(lib, 2, WIDTH), matrix(lib, 2)),
    "layer_norm": lambda lib, x: lib.nn.functional.layer_norm(
        x, (WIDTH,), matrix(lib, WIDTH), matrix(lib, WIDTH)
    ),
    "transpose": lambda lib, x: x.transpose(-1, -2),
    "masked_fill": lambda lib, x: x.masked_fill(x > 0, 0.0),
    "ones_like": lambda lib, x: lib.ones_like(x),
    "last": lambda lib, x: x[..., 1],
    "logical_not": lambda lib, x: x.bool().logical_not(),
    "isnan": lambda lib, x: x.isnan(),
}
#: of layout jagged alone
JAGGED: dict[str, Case] = {
    "exp": lambda lib, x: x.exp(),
    "eq": lambda lib, x: x == x,
    "gt number": lambda lib, x: x > 0,
    "where": lambda lib, x: lib.where(x > 0, x, 0.5),
    "clamp": lambda lib, x: x.clamp(-0.5, 0.5),
    "pow": lambda lib, x: x**2,
    "mul row": lambda lib, x: x * matrix(lib, WIDTH),
    "row add": lambda lib, x: matrix(lib, WIDTH) + x,
    "leaky_relu": lambda lib, x: lib.nn.functional.leaky_relu(x),
    "log_softmax": lambda lib, x: x.log_softmax(-1),
    "rms_norm": lambda lib, x: lib.nn.functional.rms_norm(x, (WIDTH,)),
    "plain layer_norm": lambda lib, x: lib.nn.functional.layer_norm(x, (WIDTH,)),
    "matmul": lambda lib, x: x @ matrix(lib, WIDTH, 2),
    "matrix from the left": lambda lib, x: matrix(lib, 2, WIDTH) @ x.transpose(-1, -2),
    "sum": lambda lib, x: x.sum(-1),
    "sum kept": lambda lib, x: x.sum(-1, keepdim=True),
    "mean": lambda lib, x: x.mean(dim=-1),
    "mean kept": lambda lib, x: x.mean(-1, keepdim=True),
    "prod": lambda lib, x: x.prod(-1),
    "amax": lambda lib, x: x.amax(-1),
    "amin": lambda lib, x: x.amin(-1),
    "max values": lambda lib, x: x.max(-1).values,
    "min indices": lambda lib, x: x.min(-1)[1],
    "argmax": lambda lib, x: x.argmax(-1),
    "any": lambda lib, x: (x > 1).any(-1),
    "all": lambda lib, x: (x > -1).all(-1),
    "unsqueeze": lambda lib, x: x.unsqueeze(-1),
    "squeeze": lambda lib, x: x.sum(-1, keepdim=True).squeeze(-1),
    "unflatten": lambda lib, x: x.unflatten(-1, (2, 2)),
    "heads": lambda lib, x: x.unflatten(-1, (2, 2)).transpose(-3, -2),
    "there and back": lambda lib, x: x.unflatten(-1, (2, 2)).flatten(-2),
    "chunk": lambda lib, x: x.chunk(2, dim=-1)[1],
    "split": lambda lib, x: x.split([1, 3], -1)[1],
    "slice": lambda lib, x: x[..., 1:3],
    "cat": lambda lib, x: lib.cat([x, 2 * x], -1),
    "stack": lambda lib, x: lib.stack([x, 2 * x], -1),
    "select": lambda lib, x: x.select(-1, 2),
    "rank 4 matmul": lambda lib, x: x.unsqueeze(-1) @ x.unsqueeze(-2),
    "dropout of nothing": lambda lib, x: lib.nn.functional.dropout(x, 0.0),
    "zeros_like": lambda lib, x: lib.zeros_like(x),
    "float_power": lambda lib, x: x.abs().float_power(1.5),
    "contiguous": lambda lib, x: x.transpose(-1, -2).contiguous(),
}
#: functions of (library, x, the tensors of the batch): what they mean says the second one
OTHER: dict[str, tuple[Case, Case]] = {
    "ragged softmax": (lambda lib, x: x.softmax(1), lambda lib, ps: [p.softmax(0) for p in ps]),
    "ragged sum": (lambda lib, x: x.sum(1), lambda lib, ps: lib.stack([p.sum(0) for p in ps])),
    "ragged sum kept": (
        lambda lib, x: x.sum(1, keepdim=True),
        lambda lib, ps: lib.stack([p.sum(0, keepdim=True) for p in ps]),
    ),
    "ragged mean": (lambda lib, x: x.mean(1), lambda lib, ps: lib.stack([p.mean(0) for p in ps])),
    "ragged amax": (lambda lib, x: x.amax(1), lambda lib, ps: lib.stack([p.amax(0) for p in ps])),
    "ragged max": (
        lambda lib, x: x.max(1).values,
        lambda lib, ps: lib.stack([p.amax(0) for p in ps]),
    ),
    "ragged any": (
        lambda lib, x: (x > 1).any(1),
        lambda lib, ps: lib.stack([(p > 1).any(0) for p in ps]),
    ),
    "whole sum": (lambda lib, x: x.sum(), lambda lib, ps: lib.cat(ps).sum()),
    "whole mean": (lambda lib, x: x.mean(), lambda lib, ps: lib.cat(ps).mean()),
    "whole max": (lambda lib, x: x.max(), lambda lib, ps: lib.cat(ps).max()),
    "whole all": (lambda lib, x: (x > 0).all(), lambda lib, ps: (lib.cat(ps) > 0).all()),
    "over the batch": (lambda lib, x: x.sum((0, 1)), lambda lib, ps: lib.cat(ps).sum(0)),
    "a row for each": (
        lambda lib, x: x * matrix(lib, 3, 1, WIDTH),
        lambda lib, ps: [p * row for p, row in zip(ps, matrix(lib, 3, 1, WIDTH))],
    ),
    "a padded batch": (
        lambda lib, x: x * matrix(lib, 3, 3, WIDTH),
        lambda lib, ps: [p * row[: len(p)] for p, row in zip(ps, matrix(lib, 3, 3, WIDTH))],
    ),
    "a matrix for each": (
        lambda lib, x: x @ matrix(lib, 3, WIDTH, 2),
        lambda lib, ps: [p @ row for p, row in zip(ps, matrix(lib, 3, WIDTH, 2))],
    ),
    "a matrix for each, from the left": (
        lambda lib, x: matrix(lib, 3, 2, WIDTH) @ x.transpose(1, 2),
        lambda lib, ps: [row @ p.T for p, row in zip(ps, matrix(lib, 3, 2, WIDTH))],
    ),
    "over the ragged dim": (
        lambda lib, x: x.transpose(1, 2) @ x,
        lambda lib, ps: lib.stack([p.T @ p for p in ps]),
    ),
    "padded": (
        lambda lib, x: x.to_padded_tensor(-1.0),
        lambda lib, ps: lib.stack([_pad(lib, p, 3) for p in ps]),
    ),
    "padded to a size": (
        lambda lib, x: lib.nested.to_padded_tensor(x, -1.0, output_size=(3, 5, WIDTH)),
        lambda lib, ps: lib.stack([_pad(lib, p, 5) for p in ps]),
    ),
    "one of them": (lambda lib, x: x[1], lambda lib, ps: ps[1]),
    "the last": (lambda lib, x: x.select(0, -1), lambda lib, ps: ps[-1]),
    "view": (
        lambda lib, x: x.view(3, -1, 2, 2),
        lambda lib, ps: [p.view(-1, 2, 2) for p in ps],
    ),
    "reshape by its size": (
        lambda lib, x: x.reshape(3, x.size(1), 2, -1),
        lambda lib, ps: [p.view(-1, 2, 2) for p in ps],
    ),
    "expand": (
        lambda lib, x: x.unsqueeze(2).expand(3, x.size(1), 2, WIDTH),
        lambda lib, ps: [p.unsqueeze(1).expand(-1, 2, -1) for p in ps],
    ),
    "permute": (
        lambda lib, x: x.unflatten(-1, (2, 2)).permute(0, 2, 1, 3),
        lambda lib, ps: [p.unflatten(-1, (2, 2)).permute(1, 0, 2) for p in ps],
    ),
    "values": (lambda lib, x: x.values(), lambda lib, ps: lib.cat(ps)),
}
#: that PyTorch has not
OWN: dict[str, tuple[Case, Case]] = {
    "first of each": (lambda lib, x: x[:, 0], lambda lib, ps: lib.stack([p[0] for p in ps])),
    "two of each": (lambda lib, x: x[:, :2], lambda lib, ps: [p[:2] for p in ps]),
    "two of them": (lambda lib, x: x[1:], lambda lib, ps: ps[1:]),
    "more of them": (lambda lib, x: lib.cat([x, x]), lambda lib, ps: [*ps, *ps]),
    "longer ones": (
        lambda lib, x: lib.cat([x, x[:, :1]], 1),
        lambda lib, ps: [lib.cat([p, p[:1]]) for p in ps],
    ),
    "logsumexp": (
        lambda lib, x: x.logsumexp(1),
        lambda lib, ps: lib.stack([p.logsumexp(0) for p in ps]),
    ),
    "std": (lambda lib, x: x.std(-1), lambda lib, ps: [p.std(-1) for p in ps]),
    "positions": (
        lambda lib, x: x + matrix(lib, 1, 3, WIDTH),
        lambda lib, ps: [p + matrix(lib, 1, 3, WIDTH)[0, : len(p)] for p in ps],
    ),
    "glu": (
        lambda lib, x: lib.nn.functional.glu(x),
        lambda lib, ps: [lib.nn.functional.glu(p) for p in ps],
    ),
    "cumsum": (lambda lib, x: x.cumsum(1), lambda lib, ps: [p.cumsum(0) for p in ps]),
    "sort": (lambda lib, x: x.sort(-1).values, lambda lib, ps: [p.sort(-1).values for p in ps]),
}


def _pad(lib: Any, part: Any, length: int) -> Any:
    return lib.nn.functional.pad(part, (0, 0, 0, length - part.shape[0]), value=-1.0)


def _expected(name: str, layout: str, lib: Any, rows: list[Any]) -> Any:
    meaning = {**OTHER, **OWN}.get(name)
    if meaning is None:
        made = [{**EVERYWHERE, **JAGGED}[name](lib, row) for row in rows]
    else:
        made = meaning[1](lib, rows)
    return (
        lib.nested.as_nested_tensor(made, layout=getattr(lib, layout))
        if isinstance(made, list)
        else made
    )


def _run(name: str, lib: Any, x: Any) -> Any:
    pair = {**OTHER, **OWN}.get(name)
    return pair[0](lib, x) if pair else {**EVERYWHERE, **JAGGED}[name](lib, x)


#: pairs that PyTorch has not either
ABSENT = [("sigmoid", "strided"), ("number sub", "strided")]
ALL = [
    *((name, layout) for name in EVERYWHERE for layout in ("jagged", "strided")),
    *((name, "jagged") for name in (*JAGGED, *OTHER, *OWN)),
]


@pytest.mark.parametrize(("name", "layout"), ALL)
def test_as_each_for_itself(name: str, layout: str) -> None:
    rows = parts(weft)
    got = _run(name, weft, nest(weft, rows, layout))
    same(got, _expected(name, layout, weft, rows))
    assert str(got.layout) == f"torch.{layout if got.is_nested else 'strided'}"


@pytest.mark.parametrize(("name", "layout"), ALL)
def test_gradients(name: str, layout: str) -> None:
    """As those of the tensors of the batch, through the function of each."""
    rows = [row.requires_grad_() for row in parts(weft)]
    x = nest(weft, rows, layout, requires_grad=True)
    got, expected = _run(name, weft, x), _expected(name, layout, weft, rows)
    if not expected.requires_grad:
        assert not got.requires_grad
        return
    for made in (got, expected):
        flat = weft.cat([row.reshape(-1) for row in (made.unbind() if made.is_nested else [made])])
        (flat * matrix(weft, flat.numel())).sum().backward()
    assert x.grad.is_nested and x.grad.layout is x.layout
    for mine, row in zip(x.grad.unbind(), rows):
        wanted = weft.zeros_like(row) if row.grad is None else row.grad
        np.testing.assert_allclose(mine.numpy(), wanted.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("name", "layout"), [pair for pair in ALL if pair[0] not in OWN and pair not in ABSENT]
)
def test_parity(torch: Any, name: str, layout: str) -> None:
    got, expected = (_run(name, lib, nest(lib, parts(lib), layout)) for lib in (weft, torch))
    same(got, expected)
    assert str(got.layout) == str(expected.layout)
    if got.is_nested and layout == "jagged":
        a, b = (
            [str(size).rstrip("0123456789") or int(size) for size in x.shape]
            for x in (got, expected)
        )
        assert a == b  # where the ragged dimension stands


SEQUENCES = st.lists(st.integers(1, 5), min_size=1, max_size=5)


@examples(30)
@given(SEQUENCES, st.integers(0, 2), st.booleans())
def test_round_trips(lengths: list[int], extra: int, holes: bool) -> None:
    """unbind, padding and packing lose nothing, with holes as well."""
    rng = np.random.default_rng(sum(lengths))
    longest = max(lengths) + extra
    padded = weft.tensor(rng.normal(size=(len(lengths), longest, 2)))
    sizes = weft.tensor(lengths)
    mask = weft.arange(longest) < sizes[:, None]
    x = weft.nested.narrow(padded, 1, 0, sizes, layout=weft.jagged)
    if not holes:
        x = x.contiguous()
        assert x.is_contiguous() and x.lengths() is None
    rows = [padded[i, :n] for i, n in enumerate(lengths)]
    same(x, nest(weft, rows))
    np.testing.assert_array_equal(
        x.to_padded_tensor(0.0, (len(lengths), longest, 2)).numpy(),
        (padded * mask[..., None]).numpy(),
    )
    same((x * 2).sum(1), weft.stack([2 * row.sum(0) for row in rows]))
    assert float(x.sum()) == pytest.approx(float((padded * mask[..., None]).sum()))
    assert x.numel() == 2 * sum(lengths)
    same(x.transpose(1, 2).transpose(1, 2), x)


def test_gradcheck() -> None:
    rows = [row.requires_grad_() for row in parts(weft)]

    def pooled(*rows: weft.Tensor) -> weft.Tensor:
        x = weft.nested.as_nested_tensor(list(rows), layout=weft.jagged)
        scores = (x.softmax(1) * x @ matrix(weft, WIDTH, WIDTH)).sum(1)
        return scores.tanh()

    assert gradcheck(pooled, rows)


# ---- sizes, parts, text ----


@both
def test_sizes(lib: Any) -> None:
    x = nest(lib, parts(lib))
    assert x.dim() == x.ndim == 3 and len(x) == 3 and x.numel() == 24
    assert x.size(0) == 3 and x.size(-1) == WIDTH and x.shape[2] == WIDTH
    assert x.size(1) == x.shape[1] == (x * 2).shape[1] and x.size(1) != 3
    assert str(x.size(1))[0] == "j" and str(x.shape).startswith("torch.Size([3, j")
    assert x.is_nested and not x.unbind()[0].is_nested
    assert x.offsets().tolist() == [0, 3, 4, 6] and x.lengths() is None
    assert x._get_max_seqlen() == 3 and x._get_min_seqlen() == 1
    assert x.values().shape == (6, WIDTH)
    assert repr(x).startswith("NestedTensor(size=(3, j")
    assert [row.shape for row in x] == [(3, 4), (1, 4), (2, 4)]
    text = repr(lib.nested.nested_tensor([lib.ones(1), lib.zeros(2)], requires_grad=True))
    assert text == (
        "nested_tensor([\n  tensor([1.], requires_grad=True),\n"
        "  tensor([0., 0.], requires_grad=True)\n], requires_grad=True)"
    )


@both
def test_strided_of_any_sizes(lib: Any) -> None:
    x = lib.nested.nested_tensor([lib.ones(2, 3), 2 * lib.ones(1, 4)])
    assert x.layout is lib.strided and x.size(0) == 2 and x.dim() == 3
    assert x.to_padded_tensor(0.0).tolist() == [[[1, 1, 1, 0], [1, 1, 1, 0]], [[2] * 4, [0] * 4]]
    assert [row.shape for row in x.transpose(1, 2).unbind()] == [(3, 2), (4, 1)]
    assert [row.tolist() for row in (x + x).unbind()][1] == [[4.0] * 4]
    product = lib.matmul(x, x.transpose(1, 2))
    assert [row.shape for row in product.unbind()] == [(2, 2), (1, 1)]
    assert x._nested_tensor_size().tolist() == [[2, 3], [1, 4]]


@both
def test_of_lists_and_options(lib: Any) -> None:
    x = lib.nested.nested_tensor([[1, 2], [3]], layout=lib.jagged, dtype=lib.float32)
    assert x.dtype is lib.float32 and x.values().tolist() == [1.0, 2.0, 3.0]
    y = lib.nested.nested_tensor([[1, 2], [3]], dtype=lib.float64, requires_grad=True)
    assert y.requires_grad and y.dtype is lib.float64
    dense = lib.nested.as_nested_tensor(lib.ones(2, 3, 4), layout=lib.jagged)
    assert dense.offsets().tolist() == [0, 3, 6] and dense.shape[2] == 4
    assert lib.nested.as_nested_tensor(x, layout=lib.jagged) is x
    assert x.to(lib.float32) is x and x.float() is x


@both
def test_from_jagged_is_a_view(lib: Any) -> None:
    values = lib.arange(12.0).view(6, 2)
    x = lib.nested.nested_tensor_from_jagged(values, lib.tensor([0, 2, 3, 6]))
    values[0] = 7.0
    assert x[0][0].tolist() == [7.0, 7.0]
    holes = lib.nested.nested_tensor_from_jagged(
        values, lib.tensor([0, 2, 3, 6]), lib.tensor([1, 1, 2])
    )
    assert [row.tolist() for row in holes.unbind()] == [[[7, 7]], [[4, 5]], [[6, 7], [8, 9]]]
    across = lib.nested.nested_tensor_from_jagged(values.T, lib.tensor([0, 2, 6]), jagged_dim=2)
    assert [row.shape for row in across.unbind()] == [(2, 2), (2, 4)]


@both
def test_masked_select(lib: Any) -> None:
    x = lib.arange(6).view(2, 3)
    found = lib.nested.masked_select(x, x % 2 == 0)
    assert [row.tolist() for row in found.unbind()] == [[0, 2], [4]]


@both
def test_history_of_what_is_made_of_others(lib: Any) -> None:
    a, b = lib.ones(2, requires_grad=True), lib.ones(3, requires_grad=True)
    x = lib.nested.as_nested_tensor([a, b * 2], layout=lib.jagged)
    (x * x).sum().backward()
    assert a.grad.tolist() == [2, 2] and b.grad.tolist() == [8, 8, 8]
    values = lib.ones(4, requires_grad=True)
    y = lib.nested.nested_tensor_from_jagged(values, lib.tensor([0, 1, 4]))
    y.to_padded_tensor(0.0).square().sum().backward()
    assert values.grad.tolist() == [2, 2, 2, 2]


@both
def test_nested_gradients(lib: Any) -> None:
    x = nest(lib, parts(lib), requires_grad=True)
    y = x * 3
    y.backward(lib.ones_like(y))
    assert x.grad.is_nested and x.grad.values().unique().tolist() == [3]
    (g,) = lib.autograd.grad((x * x).sum(), x)
    same(g, 2 * x.detach())


# ---- models ----


class Attention(nn.Module):
    """Self-attention without padding, as PyTorch's tutorial has it."""

    def __init__(self, lib: Any, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.lib, self.heads = lib, heads

    def forward(self, x: Any, weights: dict[str, Any], causal: bool) -> Any:
        f = self.lib.nn.functional
        q, k, v = f.linear(x, weights["in"]).chunk(3, dim=-1)
        q, k, v = (
            t.contiguous().unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, v)
        )
        made = f.scaled_dot_product_attention(q, k, v, is_causal=causal)
        made = made.transpose(1, 2).flatten(-2)
        x = f.layer_norm(x + f.linear(made, weights["out"]), (8,))
        return x + f.linear(f.gelu(f.linear(x, weights["up"])), weights["down"])


def _transformer(lib: Any, nested: bool, causal: bool) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(1)
    shapes = {"in": (24, 8), "out": (8, 8), "up": (16, 8), "down": (8, 16)}
    weights = {
        name: lib.tensor(rng.normal(size=shape) / 3, requires_grad=True)
        for name, shape in shapes.items()
    }
    rows = [lib.tensor(rng.normal(size=(n, 8)), requires_grad=True) for n in LENGTHS]
    layer = Attention(lib)
    if nested:
        x = lib.nested.as_nested_tensor(rows, layout=lib.jagged)
        made = list(layer(x, weights, causal).unbind())
    else:
        made = [layer(row[None], weights, causal)[0] for row in rows]
    sum((one * one).sum() for one in made).backward()
    return made, [one.grad for one in (*weights.values(), *rows)]


@pytest.mark.parametrize("causal", [False, True])
def test_transformer_without_padding(causal: bool) -> None:
    for got, expected in zip(_transformer(weft, True, causal), _transformer(weft, False, causal)):
        for a, b in zip(got, expected):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=1e-9)


@pytest.mark.parity
def test_transformer_parity(torch: Any) -> None:
    for got, expected in zip(_transformer(weft, True, False), _transformer(torch, True, False)):
        for a, b in zip(got, expected):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=1e-9)


@both
def test_a_batch_of_sentences(lib: Any) -> None:
    """Embedding, layers, pooling, training."""
    lib.manual_seed(0)
    table, out = lib.nn.Embedding(10, 6), lib.nn.Linear(6, 2)
    body = lib.nn.Sequential(
        lib.nn.Linear(6, 6), lib.nn.ReLU(), lib.nn.LayerNorm(6), lib.nn.Dropout(0.1)
    )
    rows = [lib.tensor([1, 2, 3]), lib.tensor([4]), lib.tensor([5, 6])]
    tokens = lib.nested.nested_tensor(rows, layout=lib.jagged)
    parameters = [*table.parameters(), *body.parameters(), *out.parameters()]
    optimizer = lib.optim.Adam(parameters, lr=0.05)
    losses = []
    for _ in range(30):
        pooled = body(table(tokens)).to_padded_tensor(0.0).sum(1)
        loss = lib.nn.functional.cross_entropy(out(pooled), lib.tensor([0, 1, 0]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] / 3


def test_autocast_and_state() -> None:
    x = nest(weft, [weft.ones(2, 4), weft.ones(1, 4)])
    with weft.autocast("cpu", weft.bfloat16):
        assert nn.Linear(4, 2)(x).dtype is weft.bfloat16
    assert nn.Dropout(0.5).eval()(x) is not None
    weft.manual_seed(3)
    dropped = nn.functional.dropout(weft.ones_like(x), 0.5)
    assert set(dropped.values().flatten().tolist()) <= {0.0, 2.0}


def test_what_knows_them() -> None:
    x = nest(weft, parts(weft))
    weft.testing.assert_close(x, x.clone())
    with pytest.raises(AssertionError):
        weft.testing.assert_close(x, x + 1)
    assert weft.equal(x, x.clone()) and not weft.equal(x, x + 1)
    assert not weft.equal(x, x.values())
    for constructor in (weft.tensor, weft.Tensor, weft.as_tensor):
        with pytest.raises(NotImplementedError, match="got a nested one"):
            constructor(x)
    for batch in (x, weft.eye(2).to_sparse()):
        with pytest.raises(BufferError, match="from_dlpack: expected a strided tensor, got a"):
            weft.from_dlpack(batch)
    with pytest.raises(RuntimeError, match="got a nested one"):
        np.asarray(x)
    with pytest.raises(BufferError, match="got a nested one"):
        memoryview(x)
    assert x.type(weft.float32).is_nested and x.type() == "torch.DoubleTensor"
    with pytest.raises(NotImplementedError, match="plain tensor in a program"):
        weft.compile(lambda x: x * 2)(x)


# ---- in place ----


@both
def test_in_place(lib: Any) -> None:
    x = nest(lib, parts(lib))
    before = x.clone()
    assert x.mul_(2) is x
    x += 1
    same(x, before * 2 + 1)
    x.copy_(before)
    same(x, before)
    x.zero_()
    assert float(x.sum()) == 0.0


# ---- errors ----


def _of(lib: Any, lengths: tuple[int, ...] = LENGTHS) -> Any:
    return lib.nested.nested_tensor([lib.ones(n, WIDTH) for n in lengths], layout=lib.jagged)


ERRORS: dict[str, tuple[type[Exception], Callable[[Any], Any]]] = {
    "other lengths": (RuntimeError, lambda lib: _of(lib) + _of(lib, (1, 2, 3))),
    "dense of other sizes": (RuntimeError, lambda lib: _of(lib) + lib.ones(3, 2, WIDTH)),
    "dense of one row less": (RuntimeError, lambda lib: _of(lib) + lib.ones(3, WIDTH)),
    "two ragged dims": (
        RuntimeError,
        lambda lib: lib.nested.nested_tensor([lib.ones(1, 2), lib.ones(2, 1)], layout=lib.jagged),
    ),
    "no tensors": (RuntimeError, lambda lib: lib.nested.nested_tensor([], layout=lib.jagged)),
    "0-d tensors": (
        RuntimeError,
        lambda lib: lib.nested.nested_tensor([lib.tensor(1.0)], layout=lib.jagged),
    ),
    "several dtypes": (
        RuntimeError,
        lambda lib: lib.nested.nested_tensor([lib.ones(1), lib.ones(1).long()], layout=lib.jagged),
    ),
    "several ranks": (
        RuntimeError,
        lambda lib: lib.nested.nested_tensor([lib.ones(1), lib.ones(1, 1)], layout=lib.jagged),
    ),
    "a sparse layout": (
        RuntimeError,
        lambda lib: lib.nested.nested_tensor([lib.ones(1)], layout=lib.sparse_coo),
    ),
    "no list": (TypeError, lambda lib: lib.nested.as_nested_tensor(3)),
    "a vector": (RuntimeError, lambda lib: lib.nested.as_nested_tensor(lib.ones(3))),
    "no offsets": (
        RuntimeError,
        lambda lib: lib.nested.nested_tensor_from_jagged(lib.ones(3)),
    ),
    "jagged_dim 0": (
        ValueError,
        lambda lib: lib.nested.nested_tensor_from_jagged(
            lib.ones(3), lib.tensor([0, 3]), jagged_dim=0
        ),
    ),
    "over the batch alone": (RuntimeError, lambda lib: _of(lib).sum(0)),
    "unbind of another dim": (RuntimeError, lambda lib: _of(lib).unbind(1)),
    "the batch moved": (ValueError, lambda lib: _of(lib).transpose(0, 1)),
    "a view of the ragged dim": (RuntimeError, lambda lib: _of(lib).view(3, 4, -1)),
    "flatten over the ragged dim": (RuntimeError, lambda lib: _of(lib).flatten(1)),
    "too small a padded size": (
        RuntimeError,
        lambda lib: lib.nested.to_padded_tensor(
            lib.nested.nested_tensor([lib.ones(2), lib.ones(3)]), 0.0, (2, 2)
        ),
    ),
    "an index out of range": (IndexError, lambda lib: _of(lib)[3]),
    "no rule": (NotImplementedError, lambda lib: lib.linalg.inv(_of(lib))),
    "numpy": (RuntimeError, lambda lib: _of(lib).numpy()),
    "to_dense": (
        RuntimeError,
        lambda lib: _of(lib).to_dense() if lib is weft else _of(lib).numpy(),
    ),
    "tolist": (RuntimeError, lambda lib: _of(lib).tolist()),
    "padding of a dense tensor": (
        NotImplementedError,
        lambda lib: lib.nested.to_padded_tensor(lib.ones(2), 0.0),
    ),
    "offsets of strided": (
        AttributeError,
        lambda lib: lib.nested.nested_tensor([lib.ones(1)]).offsets(),
    ),
    "shape of strided": (RuntimeError, lambda lib: lib.nested.nested_tensor([lib.ones(1)]).shape),
    "strided narrow by tensors": (
        RuntimeError,
        lambda lib: lib.nested.narrow(lib.ones(2, 3), 1, 0, lib.tensor([1, 2])),
    ),
    "jagged narrow of another dim": (
        RuntimeError,
        lambda lib: lib.nested.narrow(lib.ones(2, 3), 0, 0, 1, layout=lib.jagged),
    ),
    "mask of attention": (
        RuntimeError,
        lambda lib: lib.nn.functional.scaled_dot_product_attention(
            *(_of(lib).unsqueeze(1),) * 3, attn_mask=lib.ones(1, 1)
        ),
    ),
}


@both
@pytest.mark.parametrize("name", ERRORS)
def test_errors(lib: Any, name: str) -> None:
    kind, call = ERRORS[name]
    if lib is not weft and name == "mask of attention":
        kind = ValueError
    with pytest.raises(kind):
        call(lib)


def test_errors_name_the_operator() -> None:
    with pytest.raises(NotImplementedError, match="inv: expected dense tensors"):
        weft.linalg.inv(_of(weft))
    with pytest.raises(RuntimeError, match=r"add: expected nested tensors of one size, got \[\(3"):
        _of(weft) + _of(weft, (1, 2, 3))
    with pytest.raises(RuntimeError, match="write to"):
        weft.ones(6, WIDTH).add_(_of(weft))


# ---- files, copies ----


@pytest.mark.parametrize("layout", ["jagged", "strided"])
def test_copies_and_files(layout: str) -> None:
    x = nest(weft, parts(weft), layout, requires_grad=True)
    file = io.BytesIO()
    weft.save({"x": x}, file)
    file.seek(0)
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), weft.load(file)["x"]):
        same(made, x)
        assert made.layout is x.layout and made.requires_grad and made.is_leaf
    with pytest.raises(RuntimeError, match="leaf"):
        copy.deepcopy(x * 2)


@pytest.mark.parity
@pytest.mark.parametrize("layout", ["jagged", "strided", "holes"])
def test_files_in_both(torch: Any, layout: str) -> None:
    def made(lib: Any) -> Any:
        if layout == "holes":
            dense = lib.arange(12.0).view(2, 3, 2)
            return lib.nested.narrow(dense, 1, 0, lib.tensor([1, 2]), layout=lib.jagged)
        return nest(lib, parts(lib), layout, requires_grad=True)

    for writer, reader in ((weft, torch), (torch, weft)):
        file = io.BytesIO()
        writer.save({"x": made(writer)}, file)
        file.seek(0)
        same(reader.load(file)["x"], made(weft))


DAMAGED: list[tuple[Any, ...]] = [
    (3,),
    ({},),
    ({"values": weft.ones(2), "offsets": weft.ones(2), "lengths": None, "_ragged_idx": 1},),
    (1, 2, 3, 4),
    (weft.ones(2), weft.tensor([[9]]), weft.tensor([[1]]), weft.tensor([0])),
    (
        {
            **{"values": weft.ones(2), "offsets": weft.tensor([0, 9]), "lengths": None},
            **{"_ragged_idx": 1, "requires_grad": False},
        },
    ),
]


@pytest.mark.parametrize("given", DAMAGED)
def test_a_damaged_file(given: tuple[Any, ...]) -> None:
    with pytest.raises(LoadError, match="nested"):
        read(*given)

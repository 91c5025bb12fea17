"""The strides of results of operands that are not row-major, beside PyTorch's.

`view` works on the one layout and fails on the other, and dropout behind a result draws its numbers in the order of
memory, so a layout is a part of a result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import weft

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

#: an operand of shape (2, 6, ...) from the library's arange
OPERANDS: dict[str, Callable[[Any], Any]] = {
    "row-major": lambda t: t.arange(240.0).view(2, 6, 4, 5),
    "transposed": lambda t: t.arange(60.0).view(2, 5, 6).transpose(1, 2),
    "rows first": lambda t: t.arange(60.0).view(6, 2, 5).permute(1, 0, 2),
    "turned": lambda t: t.arange(240.0).view(2, 4, 5, 6).permute(0, 3, 2, 1),
    "channels_last": lambda t: (
        t.arange(192.0).view(2, 6, 4, 4).contiguous(memory_format=t.channels_last)
    ),
    "channels_last, a row": lambda t: (
        t.arange(48.0).view(2, 6, 1, 4).contiguous(memory_format=t.channels_last)
    ),
    "channels_last, a column": lambda t: (
        t.arange(48.0).view(2, 6, 4, 1).contiguous(memory_format=t.channels_last)
    ),
    "channels_last_3d": lambda t: (
        t.arange(768.0).view(2, 6, 4, 4, 4).contiguous(memory_format=t.channels_last_3d)
    ),
    "sliced": lambda t: t.arange(384.0).view(2, 8, 4, 6)[:, 1:7, :, ::2],
    "expanded": lambda t: t.arange(48.0).view(2, 6, 1, 4).expand(2, 6, 4, 4),
    "one channel": lambda t: t.arange(32.0).view(2, 1, 4, 4).transpose(2, 3).expand(2, 6, 4, 4),
}


def _functional(name: str, *args: Any) -> Callable[[Any, Any], Any]:
    return lambda t, x: getattr(t.nn.functional, name)(x, *args)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: _functional(name) for name in ("relu", "gelu", "logsigmoid", "softsign", "hardswish")},
    **{name: _functional(name, 1) for name in ("softmax", "log_softmax", "glu", "normalize")},
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda t, x: t.nn.functional.rms_norm(x, x.shape[-1:]),
    "batch_norm": lambda t, x: t.nn.functional.batch_norm(x, None, None, training=True),
    "batch_norm evaluated": lambda t, x: t.nn.functional.batch_norm(x, t.zeros(6), t.ones(6)),
    "instance_norm": _functional("instance_norm"),
    "linear": lambda t, x: t.nn.functional.linear(x, t.ones(7, x.shape[-1])),
    "matmul": lambda t, x: x @ t.ones(x.shape[-1], 7),
    "channel_shuffle": _functional("channel_shuffle", 6),
    "attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(x, x, x),
    "causal attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(
        x, x, x, is_causal=True
    ),
    "masked_fill": lambda t, x: x.masked_fill(x > 7, 0.0),
    "masked_fill of a tensor": lambda t, x: x.masked_fill(x > 7, t.tensor(0.0)),
    "where": lambda t, x: t.where(x > 7, x, 0.0),
    "nonzero": lambda t, x: x.nonzero(),
    "argwhere": lambda t, x: t.argwhere(x > 7),
    "where of one": lambda t, x: t.where(x > 7)[1],
    "index_add": lambda t, x: x.index_add(1, t.tensor([0]), x[:, :1]),
    "index_select": lambda t, x: x.index_select(1, t.tensor([0, 1])),
    "gather": lambda t, x: x.gather(1, t.zeros(x.shape, dtype=t.long)),
    "scatter": lambda t, x: x.scatter(1, t.zeros(x.shape, dtype=t.long), 1.0),
    **{f"sort along {d}": lambda t, x, d=d: x.sort(d) for d in (0, 1, -1)},
    "topk": lambda t, x: x.topk(2, 1),
    "flip": lambda t, x: x.flip(0, -1),
    "roll": lambda t, x: x.roll(1, 1),
    "roll by nothing": lambda t, x: x.roll(0, 1),
    "cumsum": lambda t, x: x.cumsum(1),
    "sum": lambda t, x: x.sum(1),
    "mean": lambda t, x: x.mean(-1, keepdim=True),
    "cat": lambda t, x: t.cat([x, x], 1),
    "tril": lambda t, x: x.tril(),
    "double": lambda t, x: x.double(),
    "clone": lambda t, x: x.clone(),
    "dropout": lambda t, x: t.nn.functional.dropout(x, 0.5),
    "repeat_interleave": lambda t, x: x.repeat_interleave(2, 1),
    "sum of a row-major one": lambda t, x: x.contiguous() + x,
    "product with rows": lambda t, x: x * t.ones(x.shape[-1]),
}


def _strides(result: Any) -> list[tuple[int, ...]]:
    results = result if isinstance(result, tuple) else (result,)
    # The stride of a dimension of size 1 says nothing.
    return [
        tuple(s for s, n in zip(one.stride(), one.shape, strict=True) if n != 1) for one in results
    ]


#: layouts of images that are none of PyTorch's formats: rms_norm keeps them
OTHER = {("turned", "rms_norm"), ("one channel", "rms_norm")}


@pytest.mark.parametrize("grad", [False, True], ids=["", "with gradient"])
@pytest.mark.parametrize(
    "operand, name", [case for case in itertools.product(OPERANDS, FUNCTIONS) if case not in OTHER]
)
def test_results_lie_as_in_pytorch(operand: str, name: str, grad: bool) -> None:
    found, wanted = (
        _strides(FUNCTIONS[name](t, OPERANDS[operand](t).requires_grad_(grad)))
        for t in (weft, torch)
    )
    assert found == wanted


KEPT: dict[str, Callable[[Any, Any], Any]] = {
    "clone": lambda t, x: x.clone(),
    "empty_like": lambda t, x: t.empty_like(x),
    "exp": lambda t, x: x.exp(),
    "add": lambda t, x: x + x.contiguous(),
    "where": lambda t, x: t.where(x > 0, x, x),
    "to": lambda t, x: x.to(t.float64),
    "addcmul": lambda t, x: t.addcmul(t.ones(1, x.shape[1], 1, 1), x, x),
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("shape", [(2, 3, 1, 4), (2, 3, 4, 1), (2, 3, 1, 1), (1, 3, 4, 5)])
def test_channels_stay_last_beside_sides_of_one(shape: tuple[int, ...], name: str) -> None:
    found, wanted = (
        KEPT[name](t, t.zeros(shape).contiguous(memory_format=t.channels_last)).stride()
        for t in (weft, torch)
    )
    assert found == wanted

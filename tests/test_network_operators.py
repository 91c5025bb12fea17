"""Functions of networks as operators: `weft.group_norm` is `nn.functional.group_norm`, and PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
import weft.nn

Form = Callable[[Any], Any]


def x_of(t: Any) -> Any:
    """[2, 4, 3]."""
    return t.arange(24.0).sub(11).div(7).reshape(2, 4, 3).sin() * 2


def image_of(t: Any) -> Any:
    return x_of(t).reshape(1, 2, 3, 4)


def rows_of(t: Any) -> Any:
    return x_of(t).reshape(8, 3)


def labels_of(t: Any) -> Any:
    return t.tensor([1, -1, 1, 1, -1, 1, -1, -1])


def kernel_of(t: Any, *shape: int) -> Any:
    return t.arange(float(np.prod(shape))).cos().reshape(shape)


def ones_of(t: Any, n: int) -> Any:
    return t.arange(float(n)) + 1


#: by the operator: its call, and what it is in terms of nn.functional
FORMS: dict[str, tuple[Form, Form]] = {
    "celu": (lambda t: t.celu(x_of(t), 0.5), lambda f: f.celu(x_of(weft), 0.5)),
    "celu_": (lambda t: t.celu_(x_of(t), 0.5), lambda f: f.celu(x_of(weft), 0.5)),
    "selu": (lambda t: t.selu(x_of(t)), lambda f: f.selu(x_of(weft))),
    "selu_": (lambda t: t.selu_(x_of(t)), lambda f: f.selu(x_of(weft))),
    "rrelu": (lambda t: t.rrelu(x_of(t), 0.2, 0.4), lambda f: f.rrelu(x_of(weft), 0.2, 0.4)),
    "rrelu_": (lambda t: t.rrelu_(x_of(t), 0.2, 0.4), lambda f: f.rrelu(x_of(weft), 0.2, 0.4)),
    "threshold": (
        lambda t: t.threshold(x_of(t), 0.5, -7),
        lambda f: f.threshold(x_of(weft), 0.5, -7),
    ),
    "threshold_": (
        lambda t: t.threshold_(x_of(t), 0.5, -7),
        lambda f: f.threshold(x_of(weft), 0.5, -7),
    ),
    "group_norm": (
        lambda t: t.group_norm(x_of(t), 2, ones_of(t, 4), None, 1e-3, True),
        lambda f: f.group_norm(x_of(weft), 2, ones_of(weft, 4), None, 1e-3),
    ),
    "instance_norm": (
        lambda t: t.instance_norm(
            x_of(t), ones_of(t, 4), None, None, None, True, 0.1, 1e-3, False
        ),
        lambda f: f.instance_norm(x_of(weft), weight=ones_of(weft, 4), eps=1e-3),
    ),
    "rms_norm": (
        lambda t: t.rms_norm(x_of(t), [3], ones_of(t, 3)),
        lambda f: f.rms_norm(x_of(weft), [3], ones_of(weft, 3)),
    ),
    "native_layer_norm": (
        lambda t: t.native_layer_norm(x_of(t), [4, 3], None, kernel_of(t, 4, 3), 1e-3),
        lambda f: (
            f.layer_norm(x_of(weft), [4, 3], None, kernel_of(weft, 4, 3), 1e-3),
            x_of(weft).mean((1, 2), keepdim=True),
            (x_of(weft).var((1, 2), False, keepdim=True) + 1e-3).rsqrt(),
        ),
    ),
    "native_group_norm": (
        lambda t: t.native_group_norm(x_of(t), None, None, 2, 4, 3, 2, 1e-3),
        lambda f: (
            f.group_norm(x_of(weft), 2, eps=1e-3),
            x_of(weft).reshape(2, 2, 6).mean(2),
            (x_of(weft).reshape(2, 2, 6).var(2, False) + 1e-3).rsqrt(),
        ),
    ),
    "native_batch_norm": (
        lambda t: t.native_batch_norm(x_of(t), None, None, None, None, True, 0.1, 1e-3),
        lambda f: (
            f.batch_norm(x_of(weft), None, None, training=True, eps=1e-3),
            x_of(weft).mean((0, 2)),
            (x_of(weft).var((0, 2), False) + 1e-3).rsqrt(),
        ),
    ),
    "dropout_": (lambda t: t.dropout_(x_of(t), 0.5, False), lambda f: x_of(weft)),
    "native_dropout": (
        lambda t: t.native_dropout(x_of(t), 1.0, True),
        lambda f: (x_of(weft) * 0, x_of(weft) > 9),
    ),
    "feature_dropout": (lambda t: t.feature_dropout(x_of(t), 0.5, False), lambda f: x_of(weft)),
    "feature_dropout_": (lambda t: t.feature_dropout_(x_of(t), 1.0, True), lambda f: x_of(weft) * 0),
    "alpha_dropout": (lambda t: t.alpha_dropout(x_of(t), 0.5, train=False), lambda f: x_of(weft)),
    "alpha_dropout_": (lambda t: t.alpha_dropout_(x_of(t), 1.0, True), lambda f: x_of(weft) * 0),
    "feature_alpha_dropout": (
        lambda t: t.feature_alpha_dropout(x_of(t), 1.0, True),
        lambda f: x_of(weft) * 0,
    ),
    "convolution": (
        lambda t: t.convolution(
            image_of(t), kernel_of(t, 4, 1, 2, 2), None, [2, 1], [1, 0], [1, 1], False, [0, 0], 2
        ),
        lambda f: f.conv2d(
            image_of(weft), kernel_of(weft, 4, 1, 2, 2), None, (2, 1), (1, 0), groups=2
        ),
    ),
    "convolution: transposed": (
        lambda t: t.convolution(
            x_of(t), kernel_of(t, 4, 2, 3), ones_of(t, 2), [2], [1], [1], True, [1], 1
        ),
        lambda f: f.conv_transpose1d(
            x_of(weft), kernel_of(weft, 4, 2, 3), ones_of(weft, 2), 2, 1, 1
        ),
    ),
    "_convolution": (
        lambda t: t._convolution(
            x_of(t), kernel_of(t, 2, 4, 2), None, [1], [0], [1], False, [0], 1,
            False, False, True, True,
        ),
        lambda f: f.conv1d(x_of(weft), kernel_of(weft, 2, 4, 2)),
    ),
    "conv_tbc": (
        lambda t: t.conv_tbc(x_of(t), kernel_of(t, 2, 3, 5), ones_of(t, 5), 1),
        lambda f: f.conv1d(
            x_of(weft).permute(1, 2, 0), kernel_of(weft, 2, 3, 5).permute(2, 1, 0),
            ones_of(weft, 5), padding=1,
        ).permute(2, 0, 1),
    ),
    "native_channel_shuffle": (
        lambda t: t.native_channel_shuffle(x_of(t).unsqueeze(-1), 2),
        lambda f: f.channel_shuffle(x_of(weft).unsqueeze(-1), 2),
    ),
    "grid_sampler": (
        lambda t: t.grid_sampler(image_of(t), kernel_of(t, 1, 2, 2, 2), 0, 2, True),
        lambda f: f.grid_sample(
            image_of(weft), kernel_of(weft, 1, 2, 2, 2), "bilinear", "reflection", True
        ),
    ),
    "affine_grid_generator": (
        lambda t: t.affine_grid_generator(kernel_of(t, 1, 2, 3), [1, 1, 2, 2], False),
        lambda f: f.affine_grid(kernel_of(weft, 1, 2, 3), [1, 1, 2, 2], False),
    ),
    **{
        f"embedding_bag: {name}": (
            lambda t, m=mode: t.embedding_bag(
                rows_of(t), t.tensor([0, 7, 3, 3]), t.tensor([0, 1]), False, m
            )[0],
            lambda f, m=name: f.embedding_bag(
                weft.tensor([0, 7, 3, 3]), rows_of(weft), weft.tensor([0, 1]), mode=m
            ),
        )
        for mode, name in enumerate(("sum", "mean", "max"))
    },
    "cosine_embedding_loss": (
        lambda t: t.cosine_embedding_loss(rows_of(t), rows_of(t).flip(0), labels_of(t), 0.1, 0),
        lambda f: f.cosine_embedding_loss(
            rows_of(weft), rows_of(weft).flip(0), labels_of(weft), 0.1, reduction="none"
        ),
    ),
    "ctc_loss": (
        lambda t: t.ctc_loss(
            x_of(t).log_softmax(-1), t.tensor([[1], [2], [1], [2]]), [2] * 4, [1] * 4, 0, 2
        ),
        lambda f: f.ctc_loss(
            x_of(weft).log_softmax(-1), weft.tensor([[1], [2], [1], [2]]), [2] * 4, [1] * 4,
            reduction="sum",
        ),
    ),
    "hinge_embedding_loss": (
        lambda t: t.hinge_embedding_loss(rows_of(t).sum(1), labels_of(t), 2.0, 2),
        lambda f: f.hinge_embedding_loss(
            rows_of(weft).sum(1), labels_of(weft), 2.0, reduction="sum"
        ),
    ),
    "kl_div": (
        lambda t: t.kl_div(rows_of(t), rows_of(t).flip(0), 2, log_target=True),
        lambda f: f.kl_div(
            rows_of(weft), rows_of(weft).flip(0), reduction="sum", log_target=True
        ),
    ),
    "margin_ranking_loss": (
        lambda t: t.margin_ranking_loss(
            rows_of(t).sum(1), rows_of(t).prod(1), labels_of(t), 0.5, reduction=1
        ),
        lambda f: f.margin_ranking_loss(
            rows_of(weft).sum(1), rows_of(weft).prod(1), labels_of(weft), 0.5
        ),
    ),
    "poisson_nll_loss": (
        lambda t: t.poisson_nll_loss(rows_of(t), rows_of(t).abs(), True, False, 1e-8, 0),
        lambda f: f.poisson_nll_loss(rows_of(weft), rows_of(weft).abs(), reduction="none"),
    ),
    "triplet_margin_loss": (
        lambda t: t.triplet_margin_loss(
            rows_of(t), rows_of(t).flip(0), rows_of(t).flip(1), 1.5, 2.0, 1e-6, True, 2
        ),
        lambda f: f.triplet_margin_loss(
            rows_of(weft), rows_of(weft).flip(0), rows_of(weft).flip(1), 1.5, swap=True,
            reduction="sum",
        ),
    ),
}  # fmt: skip


def _parts(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def _check(got: Any, expected: Any) -> None:
    assert len(_parts(got)) == len(_parts(expected))
    for one, other in zip(_parts(got), _parts(expected)):
        assert str(one.dtype) == str(other.dtype)
        np.testing.assert_allclose(
            one.detach().numpy(), other.detach().numpy(), rtol=2e-5, atol=1e-6
        )


@pytest.mark.parametrize("name", FORMS)
def test_operators_are_the_functions_of_networks(name: str) -> None:
    operator, function = FORMS[name]
    _check(operator(weft), function(weft.nn.functional))


@pytest.mark.parity
@pytest.mark.parametrize("name", FORMS)
def test_operators_equal_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    _check(FORMS[name][0](weft), FORMS[name][0](torch))


# Recurrent layers: of modules the weights, padded and packed ---------------------------------------


@pytest.mark.parametrize(
    "kind, name",
    [("LSTM", "lstm"), ("GRU", "gru"), ("RNN", "rnn_tanh"), ("RNN_relu", "rnn_relu")],
)
def test_recurrent_layers_and_cells(kind: str, name: str) -> None:
    weft.manual_seed(0)
    options = {"nonlinearity": "relu"} if kind == "RNN_relu" else {}
    kind = kind.partition("_")[0]
    layer = getattr(weft.nn, kind)(3, 2, num_layers=2, bidirectional=True, **options)
    x = x_of(weft)
    start = weft.ones(4, 4, 2)
    states = (start, start * 0.5) if kind == "LSTM" else start
    params = list(layer.parameters())
    operator = getattr(weft, name)
    output, *last = operator(x, states, params, True, 2, 0.0, False, True, False)
    expected, after = layer(x, states)
    _check((output, *last), (expected, *(after if kind == "LSTM" else (after,))))
    packed = weft.nn.utils.rnn.pack_padded_sequence(x, [2, 2, 1, 1])
    data, *last = operator(
        packed.data, packed.batch_sizes, states, params, True, 2, 0.0, False, True
    )
    expected, after = layer(packed, states)
    _check((data, *last), (expected.data, *(after if kind == "LSTM" else (after,))))
    cell = getattr(weft.nn, f"{kind}Cell")(3, 2, **options)
    states = (start[0], start[1]) if kind == "LSTM" else start[0]
    _check(getattr(weft, f"{name}_cell")(x[0], states, *cell.parameters()), cell(x[0], states))


@pytest.mark.parity
def test_recurrent_layers_of_torch() -> None:
    torch = pytest.importorskip("torch")
    made = []
    for t in (weft, torch):
        params = [kernel_of(t, 12, 3), kernel_of(t, 12, 3), ones_of(t, 12), -ones_of(t, 12)]
        start = t.ones(1, 4, 3)
        made.append(t.lstm(x_of(t), [start, start], params, True, 1, 0.0, False, False, False))
    _check(*made)


def test_operators_in_place_have_gradients() -> None:
    for name, args in (("celu_", (0.5,)), ("selu_", ()), ("threshold_", (0.5, 0.0))):
        x = x_of(weft).double().requires_grad_()
        getattr(weft, name)(x.clone(), *args).square().sum().backward()
        y = x_of(weft).double().requires_grad_()
        getattr(weft, name[:-1])(y, *args).square().sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy())


def test_what_is_refused() -> None:
    with pytest.raises(RuntimeError, match="convolution: expected a kernel of 3 to 5 dimensions"):
        weft.convolution(x_of(weft), weft.ones(2, 2), None, [1], [0], [1], False, [0], 1)
    with pytest.raises(RuntimeError, match=r"conv_tbc: expected input \[t, b, c\]"):
        weft.conv_tbc(x_of(weft), weft.ones(2, 2), weft.ones(2))

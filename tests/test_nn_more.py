"""The rarer layers: their own properties, and equality with PyTorch's in value and gradient."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft
from weft import nn
from weft.nn import functional as F

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def chances(*shape: int) -> np.ndarray:
    return RNG.random(shape).astype(np.float32) * 0.98 + 0.01


# name -> (module from the library's nn, input arrays)
MODULES: dict[str, tuple[Callable[[Any], Any], tuple[np.ndarray, ...]]] = {
    "ELU": (lambda n: n.ELU(0.7), (normal(4, 5),)),
    "CELU": (lambda n: n.CELU(0.7), (normal(4, 5),)),
    "SELU": (lambda n: n.SELU(), (normal(4, 5),)),
    "ReLU6": (lambda n: n.ReLU6(), (normal(4, 5) * 6,)),
    "Hardtanh": (lambda n: n.Hardtanh(-0.5, 0.7), (normal(4, 5),)),
    "Hardsigmoid": (lambda n: n.Hardsigmoid(), (normal(4, 5) * 4,)),
    "Hardswish": (lambda n: n.Hardswish(), (normal(4, 5) * 4,)),
    "Mish": (lambda n: n.Mish(), (normal(4, 5),)),
    "LogSigmoid": (lambda n: n.LogSigmoid(), (normal(4, 5) * 20,)),
    "Softsign": (lambda n: n.Softsign(), (normal(4, 5),)),
    "Tanhshrink": (lambda n: n.Tanhshrink(), (normal(4, 5) * 3,)),
    "Softplus": (lambda n: n.Softplus(2.0, 5.0), (normal(4, 5) * 3,)),
    "Hardshrink": (lambda n: n.Hardshrink(0.4), (normal(4, 5),)),
    "Softshrink": (lambda n: n.Softshrink(0.4), (normal(4, 5),)),
    "GLU": (lambda n: n.GLU(1), (normal(4, 6),)),
    "Softmin": (lambda n: n.Softmin(dim=1), (normal(4, 6),)),
    "Threshold": (lambda n: n.Threshold(0.1, -3.0), (normal(4, 5),)),
    "PReLU": (lambda n: n.PReLU(), (normal(4, 5),)),
    "PReLU-channels": (lambda n: n.PReLU(3, 0.1), (normal(2, 3, 4, 4),)),
    "GroupNorm": (lambda n: n.GroupNorm(3, 6), (normal(2, 6, 4, 5),)),
    "GroupNorm-plain": (lambda n: n.GroupNorm(2, 6, affine=False), (normal(2, 6),)),
    "RMSNorm": (lambda n: n.RMSNorm(6), (normal(2, 3, 6),)),
    "RMSNorm-dims": (lambda n: n.RMSNorm((3, 6), eps=1e-3), (normal(2, 3, 6),)),
    "BCELoss": (lambda n: n.BCELoss(), (chances(4, 5), chances(4, 5))),
    "SmoothL1Loss": (lambda n: n.SmoothL1Loss(beta=0.6), (normal(4, 5), normal(4, 5))),
    "SmoothL1Loss-0": (lambda n: n.SmoothL1Loss(beta=0.0), (normal(4, 5), normal(4, 5))),
    "HuberLoss": (lambda n: n.HuberLoss("sum", 0.6), (normal(4, 5), normal(4, 5))),
    "KLDivLoss": (lambda n: n.KLDivLoss(reduction="batchmean"), (normal(4, 5), chances(4, 5))),
    "KLDivLoss-log": (lambda n: n.KLDivLoss(log_target=True), (normal(4, 5), normal(4, 5))),
    "GaussianNLLLoss": (
        lambda n: n.GaussianNLLLoss(full=True),
        (normal(4, 5), normal(4, 5), chances(4, 5)),
    ),
    "CosineSimilarity": (lambda n: n.CosineSimilarity(), (normal(4, 5), normal(4, 5))),
    "ConvTranspose2d": (
        lambda n: n.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
        (normal(2, 4, 5, 5),),
    ),
    "RNN": (lambda n: n.RNN(3, 4, 2), (normal(5, 2, 3), normal(2, 2, 4))),
    "RNN-relu": (lambda n: n.RNN(3, 4, nonlinearity="relu", bias=False), (normal(5, 2, 3),)),
    "LSTM": (lambda n: n.LSTM(3, 4), (normal(5, 2, 3),)),
    "LSTM-full": (
        lambda n: n.LSTM(3, 4, 2, batch_first=True, bidirectional=True, proj_size=2),
        (normal(2, 5, 3),),
    ),
    "LSTM-single": (lambda n: n.LSTM(3, 4, 2), (normal(5, 3),)),
    "GRU": (lambda n: n.GRU(3, 4, 2, bidirectional=True), (normal(5, 2, 3), normal(4, 2, 4))),
    "GRU-single": (lambda n: n.GRU(3, 4, batch_first=True), (normal(5, 3), normal(1, 4))),
    "RNNCell": (lambda n: n.RNNCell(3, 4), (normal(2, 3), normal(2, 4))),
    "RNNCell-relu": (lambda n: n.RNNCell(3, 4, nonlinearity="relu"), (normal(3),)),
    "LSTMCell": (lambda n: n.LSTMCell(3, 4), (normal(2, 3),)),
    "GRUCell": (lambda n: n.GRUCell(3, 4, bias=False), (normal(2, 3), normal(2, 4))),
    "MultiheadAttention": (
        lambda n: n.MultiheadAttention(8, 2),
        (normal(5, 2, 8), normal(6, 2, 8), normal(6, 2, 8)),
    ),
    "MultiheadAttention-dims": (
        lambda n: n.MultiheadAttention(8, 2, kdim=3, vdim=4, bias=False, batch_first=True),
        (normal(2, 5, 8), normal(2, 6, 3), normal(2, 6, 4)),
    ),
    "MultiheadAttention-single": (
        lambda n: n.MultiheadAttention(8, 4),
        (normal(5, 8), normal(6, 8), normal(6, 8)),
    ),
    "TransformerEncoderLayer": (
        lambda n: n.TransformerEncoderLayer(8, 2, 16, dropout=0.0),
        (normal(5, 2, 8),),
    ),
    "TransformerEncoderLayer-first": (
        lambda n: n.TransformerEncoderLayer(
            8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True
        ),
        (normal(2, 5, 8),),
    ),
    "TransformerEncoder": (
        lambda n: n.TransformerEncoder(
            n.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2, n.LayerNorm(8), False
        ),
        (normal(5, 2, 8),),
    ),
}


def flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flat(item)]
    return [] if value is None else [value]


def run(lib: Any, name: str) -> dict[str, np.ndarray]:
    """State keys, results and gradients of the module, starting from parameters made by NumPy."""
    make, arrays = MODULES[name]
    module = make(lib.nn)
    rng = np.random.default_rng(1)
    with lib.no_grad():
        for parameter in module.parameters():
            values = rng.standard_normal(tuple(parameter.shape)).astype(np.float32) * 0.5
            parameter.copy_(lib.from_numpy(values))
    inputs = [lib.from_numpy(array.copy()).requires_grad_() for array in arrays]
    results = flat(module(*inputs))
    sum((r * lib.from_numpy(_weights(tuple(r.shape)))).sum() for r in results).backward()
    found = {f"result {i}": r.detach().numpy() for i, r in enumerate(results)}
    found |= {f"gradient of input {i}": x.grad.numpy() for i, x in enumerate(inputs)}
    found |= {f"gradient of {n}": p.grad.numpy() for n, p in module.named_parameters()}
    return found | {f"state {key}": np.zeros(0) for key in module.state_dict()}


def _weights(shape: tuple[int, ...]) -> np.ndarray:
    return np.cos(np.arange(int(np.prod(shape)), dtype=np.float32)).reshape(shape)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::UserWarning:torch")  # advice about its own implementations
@pytest.mark.parametrize("name", MODULES)
def test_values_and_gradients_are_those_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the reference of this test")
    ours, theirs = run(weft, name), run(torch, name)
    assert [*ours] == [*theirs]
    for key, value in ours.items():
        # where terms cancel, the error is that of the largest
        largest = np.abs(theirs[key]).max(initial=1)
        np.testing.assert_allclose(value, theirs[key], rtol=2e-5, atol=2e-6 * largest, err_msg=key)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::UserWarning:torch")  # advice about its own implementations
@pytest.mark.parametrize("name", MODULES)
def test_repr_is_that_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the reference of this test")
    ours, theirs = (repr(MODULES[name][0](lib.nn)) for lib in (weft, torch))
    assert ours == theirs


@pytest.mark.parametrize("name", MODULES)
def test_state_travels_into_a_copy(name: str) -> None:
    make, arrays = MODULES[name]
    first, second = make(nn), make(nn)
    assert second.load_state_dict(first.state_dict()).missing_keys == []
    copied = copy.deepcopy(first)
    inputs = [weft.from_numpy(array) for array in arrays]
    for one, two, three in zip(*(flat(m(*inputs)) for m in (first, second, copied)), strict=True):
        assert weft.equal(one, two)
        assert weft.equal(one, three)


# Recurrent ----------------------------------------------------------------------------------------


def test_lstm_is_its_cell_step_by_step() -> None:
    layer, cell = nn.LSTM(3, 4), nn.LSTMCell(3, 4)
    for name, parameter in cell.named_parameters():
        parameter.data = getattr(layer, f"{name}_l0").data
    x = weft.randn(6, 2, 3)
    output, (hidden, memory) = layer(x)
    state = None
    for step in range(6):
        state = cell(x[step], state)
        assert weft.allclose(output[step], state[0], atol=1e-6)
    assert weft.allclose(hidden[0], state[0], atol=1e-6)
    assert weft.allclose(memory[0], state[1], atol=1e-6)


CELLS = {"RNN": (nn.RNN, nn.RNNCell), "LSTM": (nn.LSTM, nn.LSTMCell), "GRU": (nn.GRU, nn.GRUCell)}


@pytest.mark.parametrize("kind", CELLS)
def test_first_and_second_gradients_of_layers_are_those_of_their_cells(kind: str) -> None:
    """Twice through one layer: the second time its input comes of its own weights."""
    layer, cell = (make(3, 3, dtype=weft.float64) for make in CELLS[kind])
    for name, parameter in cell.named_parameters():
        parameter.data = getattr(layer, f"{name}_l0").data

    def by_cell(x: Any) -> Any:
        state, outputs = None, []
        for step in x:
            state = cell(step, state)
            outputs.append(state[0] if kind == "LSTM" else state)
        return weft.stack(outputs)

    x = weft.randn(4, 2, 3, dtype=weft.float64, requires_grad=True)
    found = []
    for run, module in ((lambda x: layer(x)[0], layer), (by_cell, cell)):
        weights = [x, *module.parameters()]
        first = weft.autograd.grad(run(run(x)).square().sum(), weights, create_graph=True)
        second = weft.autograd.grad(sum(g.square().sum() for g in first), weights)
        found.append([*first, *second])
    for one, other in zip(*found, strict=True):
        assert weft.allclose(one, other, rtol=1e-9, atol=1e-11)


def test_a_layer_is_one_node_in_each_direction() -> None:
    output, _ = nn.LSTM(3, 4)(weft.randn(6, 2, 3))
    assert output.grad_fn.name() == "RecurrentStepsBackward0"


def layer_errors(lib: Any, kind: str) -> list[float]:
    """The greatest errors of float32 against float64: of the output, and of each gradient."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 3, 24))
    values = [rng.uniform(-0.2, 0.2, p.shape) for p in getattr(lib.nn, kind)(24, 32).parameters()]
    found = []
    for dtype in (lib.float32, lib.float64):
        layer = getattr(lib.nn, kind)(24, 32, dtype=dtype)
        with lib.no_grad():
            for parameter, array in zip(layer.parameters(), values):
                parameter.copy_(lib.from_numpy(array.astype(np.float32)))
        input = lib.from_numpy(x.astype(np.float32)).to(dtype).requires_grad_()
        output = layer(input)[0]
        output.square().sum().backward()
        grads = [input.grad, *(p.grad for p in layer.parameters())]
        found.append([t.detach().double().numpy() for t in (output, *grads)])
    return [np.abs(one - two).max() / np.abs(two).max() for one, two in zip(*found)]


@pytest.mark.parametrize("kind", CELLS)
def test_errors_of_layers_are_small(kind: str) -> None:
    assert max(layer_errors(weft, kind)) < 2e-6


@pytest.mark.parity
@pytest.mark.parametrize("kind", CELLS)
def test_errors_of_layers_are_about_those_of_pytorch(kind: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the reference of this test")
    for ours, theirs in zip(layer_errors(weft, kind), layer_errors(torch, kind), strict=True):
        assert ours < 4 * theirs + 2e-7


def test_lstm_continues_from_its_state() -> None:
    layer = nn.LSTM(3, 4, 2)
    x = weft.randn(6, 2, 3)
    whole, last = layer(x)
    first, state = layer(x[:4])
    second, state = layer(x[4:], state)
    assert weft.allclose(weft.cat([first, second]), whole, atol=1e-6)
    assert weft.allclose(state[1], last[1], atol=1e-6)


def test_dropout_between_layers_only_in_training() -> None:
    layer = nn.GRU(3, 4, 2, dropout=0.5)
    x = weft.randn(6, 2, 3)
    assert not weft.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert weft.equal(layer(x)[0], layer(x)[0])


def test_recurrent_errors() -> None:
    with pytest.raises(RuntimeError, match="LSTM: expected input of 2 or 3 dimensions, the last 3"):
        nn.LSTM(3, 4)(weft.randn(5, 2, 7))
    with pytest.raises(ValueError, match="LSTM: expected input of 2 or 3 dimensions"):
        nn.LSTM(3, 4)(weft.randn(3))
    with pytest.raises(RuntimeError, match=r"GRU: expected a hidden state of shape \(1, 2, 4\)"):
        nn.GRU(3, 4)(weft.randn(5, 2, 3), weft.randn(2, 2, 4))
    with pytest.raises(ValueError, match="RNN: expected nonlinearity 'tanh' or 'relu', got 'sin'"):
        nn.RNN(3, 4, nonlinearity="sin")
    with pytest.raises(ValueError, match="GRU: expected proj_size 0"):
        nn.GRU(3, 4, proj_size=2)
    with pytest.raises(ValueError, match="LSTM: expected dropout between 0 and 1, got 2"):
        nn.LSTM(3, 4, dropout=2)
    for name in ("input_size", "hidden_size", "num_layers"):
        sizes = {"input_size": 3, "hidden_size": 4}
        with pytest.raises(ValueError, match=f"GRU: expected {name} above 0, got 0"):
            nn.GRU(**{**sizes, name: 0})
        with pytest.raises(TypeError, match=f"RNN: expected {name} as an int, got 2.0"):
            nn.RNN(**{**sizes, name: 2.0})
    for name in ("bias", "batch_first"):
        with pytest.raises(TypeError, match=f"LSTM: expected {name} as a bool, got 1"):
            nn.LSTM(3, 4, **{name: 1})
    with pytest.raises(RuntimeError, match="RNN: expected at least 1 step, got 0"):
        nn.RNN(3, 4)(weft.zeros(0, 2, 3))
    with pytest.warns(UserWarning, match="expected num_layers above 1, got 1"):
        nn.LSTM(3, 4, dropout=0.5)


@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
def test_cells_refuse_states_that_would_broadcast(kind: str) -> None:
    cell = getattr(nn, kind)(3, 4)
    for inputs, state, error in (
        ((2, 3), (1, 2, 4), ValueError),
        ((2, 3), (1, 4), RuntimeError),
        ((2, 3), (4,), RuntimeError),
        ((3,), (1, 4), RuntimeError),
        ((2, 3), (2, 1), RuntimeError),
    ):
        hidden = weft.zeros(state)
        given = (weft.zeros(*inputs[:-1], 4), hidden) if kind == "LSTMCell" else hidden
        with pytest.raises(
            error, match=rf"{kind}: expected a hidden state of .*, got \({state[0]},"
        ):
            cell(weft.ones(inputs), given)


# Attention ----------------------------------------------------------------------------------------


def test_attention_masks() -> None:
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    x = weft.randn(3, 5, 8)
    causal = weft.ones(5, 5, dtype=weft.bool).triu(1)
    _, weights = attention(x, x, x, attn_mask=causal)
    assert weights.shape == (3, 5, 5)
    assert (weights.triu(1) == 0).all()
    assert weft.allclose(weights.sum(-1), weft.ones(3, 5))
    padding = weft.tensor([[False] * 5, [False] * 4 + [True], [False, True, True, True, True]])
    _, weights = attention(x, x, x, key_padding_mask=padding, average_attn_weights=False)
    assert weights.shape == (3, 2, 5, 5)
    assert (weights[2, :, :, 1:] == 0).all()
    short, nothing = attention(x, x, x, key_padding_mask=padding, need_weights=False)
    assert nothing is None
    assert weft.allclose(short, attention(x, x, x, key_padding_mask=padding)[0], atol=1e-6)


@pytest.mark.parity
def test_attention_masks_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the reference of this test")
    x = normal(5, 3, 8)
    padding = np.array([[0, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 1, 1, 1, 1]], dtype=bool)
    additive, each = normal(5, 5), RNG.random((6, 5, 5)) < 0.3
    each[:, :, 0] = False
    results = []
    for lib in (weft, torch):
        lib.manual_seed(0)
        attention = lib.nn.MultiheadAttention(8, 2, dropout=0.3)
        inputs = [lib.from_numpy(x)] * 3
        found = []
        for mask in (None, lib.from_numpy(each), lib.from_numpy(additive)):
            # PyTorch warns where one mask is boolean and the other is not
            pad = None if mask is not None and mask.dtype != lib.bool else lib.from_numpy(padding)
            for need_weights in (True, False):
                options = {"key_padding_mask": pad, "need_weights": need_weights}
                found += flat(attention(*inputs, attn_mask=mask, **options))
        results.append(found)
    for ours, theirs in zip(*results, strict=True):
        expected = theirs.detach().numpy()
        np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parity
@pytest.mark.parametrize("p", [0.0, 0.2])
def test_scaled_dot_product_attention_is_that_of_pytorch(p: float) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the reference of this test")
    q, k, v = normal(2, 4, 5, 8), normal(2, 4, 6, 8), normal(2, 4, 6, 3)
    allowed = RNG.random((5, 6)) < 0.5
    allowed[2] = False  # a row that may look at nothing
    for options in ({}, {"is_causal": True}, {"attn_mask": allowed}, {"scale": 0.0}):
        results = []
        for lib in (weft, torch):
            lib.manual_seed(3)
            inputs = [lib.from_numpy(a).requires_grad_() for a in (q, k, v)]
            given = {n: lib.from_numpy(o) if n == "attn_mask" else o for n, o in options.items()}
            attend = lib.nn.functional.scaled_dot_product_attention
            result = attend(*inputs, dropout_p=p, **given)
            result.square().sum().backward()
            results.append([result.detach().numpy(), *(x.grad.numpy() for x in inputs)])
        for ours, theirs in zip(*results):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=2e-6)


def test_shared_heads() -> None:
    q, k, v = weft.randn(2, 4, 5, 8), weft.randn(2, 2, 6, 8), weft.randn(2, 2, 6, 8)
    result = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    whole = F.scaled_dot_product_attention(
        q, *(weft.stack([t, t], 2).flatten(1, 2) for t in (k, v))
    )
    assert weft.allclose(result, whole)


def test_attention_errors() -> None:
    with pytest.raises(AssertionError, match="num_heads that divides embed_dim, got 3 and 8"):
        nn.MultiheadAttention(8, 3)
    with pytest.raises(RuntimeError, match="activation 'relu', 'gelu' or a function, got 'sin'"):
        nn.TransformerEncoderLayer(8, 2, activation="sin")


# The rest -----------------------------------------------------------------------------------------


#: positional arguments beside the input, and the shapes of inputs other than (2, 3, 4)
REQUIRED: dict[str, tuple[float, ...]] = {"threshold": (0.1, 0.5), "Threshold": (0.1, 0.5)}
SHAPES = {"dropout2d": (2, 3, 4, 2), "dropout3d": (2, 3, 4, 2, 2)}
#: layers that have the argument, and as in PyTorch write nothing
WRITE_NOTHING = ("AlphaDropout", "FeatureAlphaDropout")


def _functions_in_place() -> list[str]:
    functions = inspect.getmembers(F, lambda f: inspect.isfunction(inspect.unwrap(f)))
    return [n for n, f in functions if "inplace" in inspect.signature(f).parameters]


def _layers_in_place() -> list[str]:
    """Those that take `inplace`, by name or among any keywords."""
    found = []
    for name, layer in inspect.getmembers(nn, inspect.isclass):
        if issubclass(layer, nn.Module) and name not in WRITE_NOTHING:
            try:
                layer(*REQUIRED.get(name, ()), inplace=True)
            except TypeError:
                continue
            found.append(name)
    return found


def _two_derivatives(function: Callable[[Any], Any], x: Any) -> list[Any]:
    """The result of a function of a copy of x, and two derivatives."""
    weft.manual_seed(3)
    target = x.clone()
    result = function(target)
    (first,) = weft.autograd.grad((result * result).sum(), x, create_graph=True)
    (second,) = weft.autograd.grad((first * first).sum(), x)
    return [target, result, first, second]


def _assert_in_place_is_plain(name: str, call: Callable[[Any, bool], Any]) -> None:
    shape = SHAPES.get(name.lower(), (2, 3, 4))
    x = (weft.randn(*shape, dtype=weft.float64) * 3).requires_grad_()
    plain = _two_derivatives(lambda target: call(target, False), x)
    written = _two_derivatives(lambda target: call(target, True), x)
    assert written[0] is written[1]
    assert weft.equal(written[0], plain[1])
    assert all(weft.allclose(a, b, rtol=1e-10) for a, b in zip(written[1:], plain[1:]))


@pytest.mark.parametrize("name", _functions_in_place())
def test_in_place_functions_have_the_derivatives_of_plain_ones(name: str) -> None:
    function = getattr(F, name)
    options = {"training": True} if "training" in inspect.signature(function).parameters else {}
    required = REQUIRED.get(name, ())
    _assert_in_place_is_plain(
        name, lambda x, inplace: function(x, *required, inplace=inplace, **options)
    )


@pytest.mark.parametrize("name", _layers_in_place())
def test_in_place_layers_have_the_derivatives_of_plain_ones(name: str) -> None:
    layer, required = getattr(nn, name), REQUIRED.get(name, ())
    _assert_in_place_is_plain(name, lambda x, inplace: layer(*required, inplace=inplace)(x))


def test_binary_cross_entropy_at_the_ends() -> None:
    """Logarithms are cut at -100 and gradients stay finite, as PyTorch does."""
    x = weft.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    target = weft.tensor([0.0, 1.0, 1.0, 0.0])
    loss = F.binary_cross_entropy(x, target, reduction="none")
    assert loss.tolist() == [0, 0, 100, 100]
    loss.sum().backward()
    assert x.grad.isfinite().all()
    with pytest.raises(RuntimeError, match=r"expected input in \[0, 1\]"):
        F.binary_cross_entropy(weft.tensor([1.5]), weft.tensor([1.0]))
    with pytest.raises(ValueError, match="expected a target of shape"):
        F.binary_cross_entropy(weft.rand(3), weft.rand(4))


@both
@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
@pytest.mark.parametrize(
    ("shape", "target", "error"),
    [
        ((3, 4), (2,), ValueError),
        ((3, 4, 2), (2,), ValueError),
        ((3, 4, 2), (2, 2), ValueError),
        ((3, 4, 2), (3, 3), RuntimeError),
        ((3, 4), (3, 1), RuntimeError),
    ],
)
def test_unequal_batches_are_value_errors(
    name: str, shape: tuple[int, ...], target: tuple[int, ...], error: type, lib: Any
) -> None:
    function = getattr(lib.nn.functional, name)
    with pytest.raises(error):
        function(lib.ones(shape), lib.ones(target, dtype=lib.int64))


def test_losses_pass_gradcheck_twice() -> None:
    x = (weft.rand(3, dtype=weft.float64) * 0.8 + 0.1).requires_grad_()
    y = (weft.rand(3, dtype=weft.float64) * 0.8 + 0.1).requires_grad_()
    for loss in (F.binary_cross_entropy, F.smooth_l1_loss, F.huber_loss, F.kl_div):
        assert weft.autograd.gradcheck(loss, (x, y))
        assert weft.autograd.gradgradcheck(loss, (x, y))


def test_conv_transpose_output_size() -> None:
    layer = nn.ConvTranspose2d(1, 1, 3, stride=2, padding=1)
    x = weft.randn(1, 1, 4, 4)
    assert layer(x).shape == (1, 1, 7, 7)
    assert layer(x, output_size=(8, 7)).shape == (1, 1, 8, 7)
    with pytest.raises(ValueError, match="expected output_size from"):
        layer(x, output_size=(9, 9))


def test_truncated_normal_stays_inside() -> None:
    for mean, a, b in ((0.0, -2.0, 2.0), (0.0, 1.0, 1.5), (3.0, -1.0, 1.5)):
        values = nn.init.trunc_normal_(weft.empty(2000), mean, 1.0, a, b)
        assert a <= values.min().item() <= values.max().item() <= b
        assert values.std().item() > 0.05
    with pytest.warns(UserWarning, match="expected a mean within 2 std"):
        nn.init.trunc_normal_(weft.empty(5), 9.0, 1.0, -1.0, 1.0)


def test_messages_name_the_function() -> None:
    with pytest.raises(RuntimeError, match="group_norm: expected groups that divide"):
        F.group_norm(weft.randn(2, 5), 2)
    with pytest.raises(ValueError, match="GroupNorm: expected num_groups that divides"):
        nn.GroupNorm(2, 5)
    with pytest.raises(RuntimeError, match="glu: expected an even size"):
        F.glu(weft.randn(3))
    with pytest.raises(RuntimeError, match="prelu: expected 1 or 3 weights"):
        F.prelu(weft.randn(2, 3), weft.ones(2))
    with pytest.raises(RuntimeError, match="huber_loss: expected delta > 0"):
        F.huber_loss(weft.randn(2), weft.randn(2), delta=0)
    with pytest.raises(TypeError, match="HuberLoss: expected delta as a number, got 1j"):
        nn.HuberLoss(delta=1j)
    with pytest.raises(ValueError, match="batch_norm: expected eps > 0 when training, got 0"):
        nn.BatchNorm1d(3, eps=0.0)(weft.randn(2, 3))
    chances = weft.full((2, 3), 1 / 3)
    with pytest.raises(RuntimeError, match="cross_entropy: expected classes as target with ignor"):
        F.cross_entropy(chances, chances, ignore_index=1)
    with pytest.raises(ValueError, match="kl_div: expected reduction"):
        F.kl_div(weft.randn(2), weft.rand(2), reduction="max")
    with pytest.raises(TypeError, match="ELU: expected arguments"):
        nn.ELU(slope=1)


@pytest.mark.parity
def test_layers_are_of_the_classes_that_pytorchs_are_of() -> None:
    """Programs that replace layers ask `isinstance(module, nn.Dropout)`."""
    torch = pytest.importorskip("torch", reason="PyTorch is the reference of this test")
    names = [name for name in dir(torch.nn) if isinstance(getattr(torch.nn, name), type)]
    names = [name for name in names if isinstance(getattr(weft.nn, name, None), type)]
    # Of another class from their first use on.
    names = [name for name in names if not name.startswith(("Lazy", "Uninitialized"))]
    assert len(names) > 100

    def kinds(library: Any) -> set[tuple[str, str]]:
        classes = [(name, getattr(library.nn, name)) for name in names]
        return {(a, b) for a, one in classes for b, other in classes if issubclass(one, other)}

    assert kinds(weft) == kinds(torch)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((0, 20), [20, 20, 20, 1]),
        ((-0.5, 2.7), [2, 2, 2, 1]),
        ((-1.5, -2.7), [-2, -2, 0, 1]),
        ((0.5, True), [1, 1, 1, 1]),
    ],
)
def test_thresholds_of_integers_lose_their_fraction(options: Any, expected: list[int]) -> None:
    x = weft.tensor([-2, -1, 0, 1])
    results = [weft.nn.functional.threshold(x, *options), weft.nn.Threshold(*options)(x)]
    results.append(weft.nn.functional.threshold_(x, *options))
    for result in results:
        assert result.dtype == weft.int64 and result.tolist() == expected


def test_arguments_of_layers():
    signature = "(kernel_size: 'Any', stride: 'Any' = None, padding: 'Any' = 0) -> 'None'"
    assert str(inspect.signature(nn.MaxUnpool2d)) == signature
    assert str(inspect.signature(nn.GaussianNLLLoss)).startswith("(*, full: 'bool' = False, ")
    told = "Shapes, dtypes and errors are those of weft.nn.functional.huber_loss."
    assert told in inspect.getdoc(nn.HuberLoss) and not hasattr(nn.HuberLoss, "delta")
    assert nn.MaxPool1d(3, padding=1).stride == 3 and nn.LocalResponseNorm(2, k=2.0).k == 2.0


@pytest.mark.parametrize("args, options", [((), {}), ((2,), {"kernel_size": 3}), ((2,), {"p": 1})])
def test_wrong_arguments_of_layers(args, options):
    with pytest.raises(TypeError, match=r"AvgPool1d: expected arguments \['kernel_size', "):
        nn.AvgPool1d(*args, **options)
    with pytest.raises(TypeError, match="GaussianNLLLoss: expected arguments"):
        nn.GaussianNLLLoss(True)


def test_old_losses_of_programs():
    class Mine(nn.modules.loss._WeightedLoss):
        def __init__(self):
            super().__init__(weft.ones(2), None, None, "sum")

    assert Mine().reduction == "sum" and [name for name, _ in Mine().named_buffers()] == ["weight"]


def test_layers_of_programs():
    class Mine(nn.HuberLoss):
        scale: float = 2.0

    class Other(nn.HuberLoss):
        def __init__(self, scale):
            super().__init__("sum")
            self.scale = scale

    assert Mine("sum", 2.0).delta == 2.0 and Mine.scale == 2.0
    assert Other(3.0).reduction == "sum" and list(inspect.signature(Other).parameters) == ["scale"]
    assert list(inspect.signature(nn.MaxPool1d(2)).parameters) == ["args", "kwargs"]  # of a call


@both
def test_a_cell_of_a_program_gives_its_number_of_gates(lib: Any) -> None:
    class Minimal(lib.nn.RNNCellBase):  # type: ignore[misc, name-defined]
        def __init__(self, size: int, hidden: int) -> None:
            super().__init__(size, hidden, True, num_chunks=2)

        def forward(self, x: Any, h: Any) -> Any:
            linear = lib.nn.functional.linear
            both = linear(x, self.weight_ih, self.bias_ih) + linear(h, self.weight_hh, self.bias_hh)
            gate, new = both.chunk(2, 1)
            return gate.sigmoid() * h + (1 - gate.sigmoid()) * new.tanh()

    lib.manual_seed(0)
    cell = Minimal(2, 3)
    assert cell.weight_hh.shape == (6, 3) and repr(cell) == "Minimal(2, 3)"
    assert cell(lib.ones(1, 2), lib.zeros(1, 3)).shape == (1, 3)
    with pytest.raises(TypeError, match="num_chunks"):
        lib.nn.RNNCellBase(2, 3, True)

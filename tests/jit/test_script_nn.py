"""Every module of weft.nn can be scripted, and gives what it gives in Python, gradients included."""

from __future__ import annotations

import copy

import pytest

import weft
from weft import jit, nn


def f(*shape):
    """Random floats."""
    return weft.randn(*shape)


def ints(*shape):
    """Random integers below 5."""
    return weft.randint(0, 5, shape)


MODULES = {
    "Linear": (lambda: nn.Linear(3, 4), lambda: (f(2, 3),)),
    "Linear no bias": (lambda: nn.Linear(3, 4, bias=False), lambda: (f(2, 3),)),
    "Identity": (lambda: nn.Identity(), lambda: (f(2, 3),)),
    "Conv1d": (lambda: nn.Conv1d(2, 3, 3, padding=1), lambda: (f(2, 2, 8),)),
    "Conv2d": (lambda: nn.Conv2d(2, 4, 3, stride=2, groups=2), lambda: (f(2, 2, 8, 8),)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2), lambda: (f(1, 2, 4, 4),)),
    "ConvTranspose2d size": (
        lambda: nn.ConvTranspose2d(2, 3, 3, stride=2), lambda: (f(1, 2, 4, 4), [10, 9]),
    ),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), lambda: (f(4, 3),)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3), lambda: (f(4, 3, 2, 2),)),
    "BatchNorm2d cumulative": (lambda: nn.BatchNorm2d(3, momentum=None), lambda: (f(4, 3, 2, 2),)),
    "BatchNorm2d no stats": (
        lambda: nn.BatchNorm2d(3, track_running_stats=False, affine=False),
        lambda: (f(4, 3, 2, 2),),
    ),
    "LayerNorm": (lambda: nn.LayerNorm(4), lambda: (f(2, 3, 4),)),
    "LayerNorm plain": (
        lambda: nn.LayerNorm([3, 4], elementwise_affine=False), lambda: (f(2, 3, 4),),
    ),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), lambda: (f(2, 4, 3),)),
    "RMSNorm": (lambda: nn.RMSNorm(4), lambda: (f(2, 4),)),
    "Dropout eval": (lambda: nn.Dropout(0.5).eval(), lambda: (f(2, 3),)),
    "Embedding": (lambda: nn.Embedding(5, 3), lambda: (ints(2, 4),)),
    "Embedding padding": (lambda: nn.Embedding(5, 3, padding_idx=1), lambda: (ints(2, 4),)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2), lambda: (f(1, 2, 4, 4),)),
    "MaxPool2d indices": (lambda: nn.MaxPool2d(2, return_indices=True), lambda: (f(1, 2, 4, 4),)),
    "AvgPool2d": (lambda: nn.AvgPool2d((2, 2)), lambda: (f(1, 2, 4, 4),)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((2, None)), lambda: (f(1, 2, 4, 4),)),
    "AdaptiveAvgPool2d one": (lambda: nn.AdaptiveAvgPool2d(1), lambda: (f(1, 2, 4, 4),)),
    "Flatten": (lambda: nn.Flatten(), lambda: (f(2, 3, 4),)),
    "Unflatten": (lambda: nn.Unflatten(1, (3, 4)), lambda: (f(2, 12),)),
    "Sequential": (
        lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), lambda: (f(2, 3),),
    ),
    "RNN": (lambda: nn.RNN(3, 4), lambda: (f(5, 2, 3),)),
    "RNN relu": (lambda: nn.RNN(3, 4, nonlinearity="relu", num_layers=2), lambda: (f(5, 2, 3),)),
    "LSTM": (lambda: nn.LSTM(3, 4), lambda: (f(5, 2, 3),)),
    "LSTM state": (lambda: nn.LSTM(3, 4), lambda: (f(5, 2, 3), (f(1, 2, 4), f(1, 2, 4)))),
    "LSTM deep": (
        lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True),
        lambda: (f(2, 5, 3),),
    ),
    "LSTM projection": (lambda: nn.LSTM(3, 4, proj_size=2), lambda: (f(5, 2, 3),)),
    "LSTM unbatched": (lambda: nn.LSTM(3, 4, bias=False), lambda: (f(5, 3),)),
    "GRU": (lambda: nn.GRU(3, 4, bidirectional=True), lambda: (f(5, 2, 3),)),
    "GRU state": (lambda: nn.GRU(3, 4), lambda: (f(5, 2, 3), f(1, 2, 4))),
    "RNNCell": (lambda: nn.RNNCell(3, 4), lambda: (f(2, 3),)),
    "LSTMCell": (lambda: nn.LSTMCell(3, 4), lambda: (f(2, 3), (f(2, 4), f(2, 4)))),
    "GRUCell": (lambda: nn.GRUCell(3, 4), lambda: (f(2, 3), f(2, 4))),
    "MultiheadAttention": (
        lambda: nn.MultiheadAttention(4, 2), lambda: (f(3, 2, 4), f(5, 2, 4), f(5, 2, 4)),
    ),
    "MultiheadAttention batch first": (
        lambda: nn.MultiheadAttention(4, 2, batch_first=True, kdim=3, vdim=2),
        lambda: (f(2, 3, 4), f(2, 5, 3), f(2, 5, 2)),
    ),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), lambda: (f(3, 2, 4),),
    ),
    "TransformerEncoderLayer gelu": (
        lambda: nn.TransformerEncoderLayer(4, 2, 8, 0.0, "gelu", norm_first=True),
        lambda: (f(3, 2, 4),),
    ),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0), 2, nn.LayerNorm(4)),
        lambda: (f(3, 2, 4),),
    ),
    "MSELoss": (lambda: nn.MSELoss(), lambda: (f(2, 3), f(2, 3))),
    "L1Loss": (lambda: nn.L1Loss(reduction="sum"), lambda: (f(2, 3), f(2, 3))),
    "CrossEntropyLoss": (lambda: nn.CrossEntropyLoss(), lambda: (f(4, 5), ints(4))),
    "NLLLoss": (lambda: nn.NLLLoss(), lambda: (f(4, 5), ints(4))),
    "BCEWithLogitsLoss": (lambda: nn.BCEWithLogitsLoss(), lambda: (f(4), weft.rand(4))),
}  # fmt: skip
for _name in ["ReLU", "GELU", "SiLU", "LeakyReLU", "Tanh", "Sigmoid", "ELU", "SELU", "CELU", "Hardtanh", "ReLU6", "Hardsigmoid", "Hardswish", "LogSigmoid", "Mish", "Softplus", "Softsign", "Tanhshrink", "Hardshrink", "Softshrink", "GLU", "PReLU"]:  # fmt: skip
    if hasattr(nn, _name):
        MODULES[_name] = (getattr(nn, _name), lambda: (f(2, 4),))
for _name in ("Softmax", "LogSoftmax", "Softmin"):
    if hasattr(nn, _name):
        MODULES[_name] = (lambda n=_name: getattr(nn, n)(dim=-1), lambda: (f(2, 4),))


def leaves(value):
    """The tensors of a result."""
    if isinstance(value, weft.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return []


@pytest.mark.parametrize("name", MODULES)
def test_scripted_module_equals_module(name):
    make, inputs = MODULES[name]
    weft.manual_seed(0)
    module = make()
    twin = copy.deepcopy(module)
    args = inputs()
    scripted = jit.script(twin)
    expected, got = leaves(module(*args)), leaves(scripted(*args))
    assert len(expected) == len(got) > 0
    for a, b in zip(expected, got):
        assert a.shape == b.shape and weft.equal(a, b), name
    assert [k for k, _ in module.named_parameters()] == [k for k, _ in scripted.named_parameters()]
    if any(t.requires_grad for t in expected):
        for results in (expected, got):
            sum(t.sum() for t in results if t.is_floating_point()).backward()
        for (key, a), (_, b) in zip(module.named_parameters(), scripted.named_parameters()):
            assert (a.grad is None) == (b.grad is None), key
            assert a.grad is None or weft.allclose(a.grad, b.grad), key
    for (key, a), (_, b) in zip(module.state_dict().items(), scripted.state_dict().items()):
        assert weft.equal(a, b), key

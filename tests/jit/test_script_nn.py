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
    "LinearCrossEntropyLoss": (lambda: nn.LinearCrossEntropyLoss(6, 5), lambda: (f(4, 6), ints(4))),
    "NLLLoss": (lambda: nn.NLLLoss(), lambda: (f(4, 5), ints(4))),
    "NLLLoss2d": (lambda: nn.NLLLoss2d(), lambda: (f(4, 5, 2, 3), weft.ones(4, 2, 3, dtype=weft.int64))),
    "BCEWithLogitsLoss": (lambda: nn.BCEWithLogitsLoss(), lambda: (f(4), weft.rand(4))),
}  # fmt: skip
S, P, Q = (2, 4, 6), (1, 4, 6, 6), (1, 2, 4, 6, 6)  # of [n, c, l], of images, of volumes


def unpooled(n):
    """The inputs of an unpooling in n dimensions."""
    places = (weft.arange(2**n) * 2).reshape(1, 1, *[2] * n)
    return f(1, 2, *[2] * n), places.expand(1, 2, *[2] * n)


# By name: arguments of the class, and the shapes of the inputs or the inputs.
for _name, _options, _inputs in [
    ("AdaptiveAvgPool1d", [2], [S]), ("AdaptiveAvgPool3d", [(2, 3, None)], [Q]), ("AdaptiveMaxPool1d", [2], [S]),
    ("AdaptiveMaxPool2d", [(2, None)], [P]), ("AdaptiveMaxPool3d", [2, True], [Q]), ("AvgPool1d", [2], [S]),
    ("AvgPool3d", [2, 1], [Q]), ("BatchNorm3d", [2], [Q]), ("Bilinear", [6, 6, 3], [(4, 6), (4, 6)]),
    ("ChannelShuffle", [2], [P]), ("CircularPad1d", [1], [S]), ("CircularPad2d", [(1, 2, 0, 1)], [P]),
    ("CircularPad3d", [1], [Q]), ("ConstantPad1d", [1, 0.5], [S]), ("ConstantPad2d", [(1, 2, 0, 1), 2.0], [P]),
    ("ConstantPad3d", [1, 0.5], [Q]), ("Conv3d", [2, 3, 2], [Q]), ("ConvTranspose1d", [4, 3, 3, 2], [S]),
    ("ConvTranspose3d", [2, 3, 2], [Q]), ("CosineSimilarity", [], [(4, 6), (4, 6)]), ("Fold", [4, 2, 1, 0, 2], [(1, 8, 4)]),
    ("HuberLoss", ["sum", 0.5], [(4, 6), (4, 6)]), ("InstanceNorm1d", [4], [S]), ("InstanceNorm2d", [4, 1e-3, 0.1, True], [P]),
    ("InstanceNorm3d", [2, 1e-5, 0.1, True, True], [Q]), ("KLDivLoss", [None, None, "batchmean"], lambda: (f(4, 6), weft.rand(4, 6))),
    ("LocalResponseNorm", [2], [P]), ("CrossMapLRN2d", [3], [P]), ("MaxPool1d", [2], [S]), ("MaxPool3d", [2, 1, 0, 1, True], [Q]),
    ("PairwiseDistance", [1.0], [(4, 6), (4, 6)]), ("PixelShuffle", [2], [P]), ("PixelUnshuffle", [3], [P]),
    ("PoissonNLLLoss", [], [(4, 6), (4, 6)]), ("ReflectionPad1d", [2], [S]), ("ReflectionPad2d", [(1, 2, 0, 1)], [P]),
    ("ReflectionPad3d", [1], [Q]), ("ReplicationPad1d", [2], [S]), ("ReplicationPad2d", [1], [P]),
    ("ReplicationPad3d", [(1, 0, 2, 1, 0, 0)], [Q]), ("SmoothL1Loss", [], [(4, 6), (4, 6)]), ("Threshold", [0.1, 20.0], [S]),
    ("SoftMarginLoss", [], [(4, 6), (4, 6)]), ("TripletMarginLoss", [0.5], [(4, 6)] * 3), ("Unfold", [2], [P]),
    ("TripletMarginWithDistanceLoss", [], [(4, 6)] * 3), ("Upsample", [None, 2.0], [P]), ("Upsample", [(3, 4), None, "bilinear"], [P]),
    ("UpsamplingBilinear2d", [(3, 8)], [P]), ("UpsamplingNearest2d", [None, 2], [P]), ("ZeroPad1d", [1], [S]),
    ("ZeroPad2d", [(1, 2, 0, -1)], [P]), ("ZeroPad3d", [1], [Q]), ("Softmax2d", [], [P]), ("EmbeddingBag", [5, 3], lambda: (ints(2, 4),)),
    ("EmbeddingBag", [5, 3, None, 2.0, False, "sum"], lambda: (ints(6), weft.tensor([0, 2, 2]))),
    ("BCELoss", [], lambda: (weft.rand(4), weft.rand(4))), ("LPPool1d", [2.0, 2], lambda: (f(*S).abs(),)),
    ("LPPool2d", [2, (2, 3), 1], lambda: (f(*P).abs(),)), ("LPPool3d", [1.5, 2], lambda: (f(*Q).abs(),)),
    ("MaxUnpool1d", [2], lambda: unpooled(1)), ("MaxUnpool2d", [2], lambda: (*unpooled(2), [5, 4])), ("MaxUnpool3d", [2], lambda: unpooled(3)),
    ("CTCLoss", [], lambda: (f(6, 2, 5).log_softmax(-1), ints(2, 3) % 4 + 1, weft.tensor([6, 5]), weft.tensor([3, 2]))),
    ("CosineEmbeddingLoss", [0.1], lambda: (f(4, 6), f(4, 6), weft.tensor([1, -1, 1, -1]))),
    ("GaussianNLLLoss", [], lambda: (f(4, 6), f(4, 6), weft.rand(4, 6))), ("HingeEmbeddingLoss", [], lambda: (f(4), weft.tensor([1, -1, 1, -1]))),
    ("MarginRankingLoss", [0.5], lambda: (f(4), f(4), weft.tensor([1, -1, 1, -1]))), ("MultiMarginLoss", [2], lambda: (f(4, 5), ints(4))),
    ("MultiLabelMarginLoss", [], lambda: (f(2, 4), weft.tensor([[0, 2, -1, 1], [3, -1, 0, 0]]))),
    ("MultiLabelSoftMarginLoss", [], lambda: (f(2, 4), weft.ones(2, 4))),
    ("Transformer", [4, 2, 1, 1, 8, 0.0], [(3, 2, 4), (5, 2, 4)]),
    ("TransformerDecoderLayer", [4, 2, 8, 0.0], [(3, 2, 4), (5, 2, 4)]),
]:  # fmt: skip
    if hasattr(nn, _name):
        _make = (
            _inputs if callable(_inputs) else lambda shapes=_inputs: tuple(f(*s) for s in shapes)
        )
        _key = _name if _name not in MODULES else f"{_name} otherwise"
        MODULES[_key] = (lambda n=_name, options=_options: getattr(nn, n)(*options), _make)
MODULES["TransformerDecoder"] = (
    lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8, 0.0), 2), lambda: (f(3, 2, 4), f(5, 2, 4)),
)  # fmt: skip
for _name, _shape in [("AlphaDropout", S), ("Dropout1d", S), ("Dropout2d", P), ("Dropout3d", Q), ("FeatureAlphaDropout", P), ("RReLU", S)]:  # fmt: skip
    MODULES[_name] = (lambda n=_name: getattr(nn, n)().eval(), lambda shape=_shape: (f(*shape),))
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
def test_an_empty_subclass_compiles_as_its_layer_does(name):
    make, inputs = MODULES[name]
    weft.manual_seed(0)
    module = make()
    args = inputs()
    expected = leaves(jit.script(copy.deepcopy(module))(*args))
    module.__class__ = type("Empty", (type(module),), {})
    got = leaves(jit.script(module)(*args))
    assert len(expected) == len(got) > 0
    assert all(weft.equal(a, b) for a, b in zip(expected, got)), name


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


def test_every_module_is_here():
    without_forward = {
        "Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "RNNBase", "RNNCellBase",
        "DataParallel", "SyncBatchNorm",  # of groups of one process: tests/test_distributed.py
        "AdaptiveLogSoftmaxWithLoss", "FractionalMaxPool2d", "FractionalMaxPool3d",  # tests/test_nn_rare.py
    }  # fmt: skip
    classes = {
        name
        for name, each in vars(nn).items()
        if isinstance(each, type) and issubclass(each, nn.Module) and name != "Container"
        and not name.startswith("Lazy")  # others after the first call: tests/test_lazy_modules.py
    }  # fmt: skip
    assert classes - without_forward - {name.partition(" ")[0] for name in MODULES} == set()


class WithoutSuper(nn.Module):
    def __init__(self):
        pass

    def forward(self, x):
        return x


class HoldsOneWithoutSuper(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = WithoutSuper()

    def forward(self, x):
        return self.inner(x)


@pytest.mark.parametrize("cls", [WithoutSuper, HoldsOneWithoutSuper])
def test_a_module_whose_init_does_not_call_that_of_its_base_is_refused(cls):
    with pytest.raises(RuntimeError, match=r"expected WithoutSuper to call super\(\).__init__\(\)"):
        weft.jit.script(cls())


class PaddedConv(nn.Conv2d):
    """A subclass of the kinds that programs have: attributes and steps of its own."""

    def __init__(self, *args, gain=2.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.gain = gain
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        x = nn.functional.pad(x, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        if self.bias is not None:
            x = x + 1
        return self._conv_forward(x, self.weight * self.gain, self.bias) + super().forward(x)


class RunningNorm(nn.BatchNorm1d):
    def forward(self, x):
        if self.training and self.track_running_stats:
            x = x * 2
        y = super().forward(x)
        return y if self.running_mean is None else y + self.running_mean


@pytest.mark.parametrize(
    "make, shape",
    [
        (lambda: PaddedConv(2, 3, 3, padding=1, padding_mode="circular"), (1, 2, 5, 5)),
        (lambda: PaddedConv(2, 3, 3, padding=1, padding_mode="reflect", bias=False), (1, 2, 5, 5)),
        (lambda: RunningNorm(3), (4, 3)),
        (lambda: RunningNorm(3, track_running_stats=False), (4, 3)),
    ],
)
def test_a_subclass_with_steps_of_its_own_compiles(make, shape):
    module = make()
    scripted = jit.script(copy.deepcopy(module))
    x = f(*shape)
    for _ in range(2):
        assert weft.equal(scripted(x), module(x))
    if isinstance(module, PaddedConv):
        assert scripted.calls == module.calls == 2


BASES = """
from __future__ import annotations
import dataclasses
from typing import List as L
import weft

class Base(weft.nn.Module):
    sizes: L[int]

    def __init__(self):
        super().__init__()
        self.sizes = []

    def forward(self, x):
        return x + len(self.sizes)

@dataclasses.dataclass
class Settings:
    sizes: L[int]
"""


def test_inherited_annotations_use_the_names_of_their_own_module(tmp_path, monkeypatch):
    (tmp_path / "bases_of_others.py").write_text(BASES)
    monkeypatch.syspath_prepend(tmp_path)
    import bases_of_others

    class Derived(bases_of_others.Base):
        pass

    class Narrow(bases_of_others.Settings):
        pass

    scripted = jit.script(Derived())
    scripted.sizes = [1, 2]
    assert scripted(weft.ones(1)).item() == 3

    def total(settings: Narrow) -> int:
        return sum(settings.sizes)

    assert jit.script(total)(Narrow([1, 2])) == 3


class Numbers(tuple):
    """A tuple whose length nobody may ask for."""

    def __len__(self):
        raise NotImplementedError


def test_tuples_of_classes_that_refuse_their_length():
    class Held(nn.Module):
        def __init__(self):
            super().__init__()
            self.numbers = Numbers((1, Numbers((2, 3))))

        def forward(self, x):
            return x + self.numbers[0] * self.numbers[1][1]

    assert jit.script(Held())(weft.ones(1)).item() == 4


def test_what_init_says_may_be_none_has_the_type_of_its_value():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.names: list[str] | None = None

        def forward(self, x):
            for _ in self.names:
                x = x + 1
            return x

    module = Named()
    module.names = ["a", "b"]
    assert jit.script(module)(weft.ones(1)).item() == 3

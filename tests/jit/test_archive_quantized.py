"""Archives of quantised networks that PyTorch wrote."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import jit
from weft.jit.archive import quantized
from weft.jit.archive.quantized_operators import linear_dynamic, rounded_by_range
from weft.serialization import LoadError

from .archive_writer import Member, Object, archive

pytestmark = pytest.mark.filterwarnings("ignore")
_LINEAR = "__torch__.torch.classes.quantized.LinearPackedParamsBase"


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def _layers(torch: Any) -> dict[str, Callable[[], tuple[Any, tuple[int, ...]]]]:
    """Networks whose numbers follow from integers alone, each with the shape of its input."""
    nn, quantization = torch.nn, torch.ao.quantization

    def dynamic(*layers: Any, shape: tuple[int, ...], dtype: Any = torch.qint8) -> Any:
        model = nn.Sequential(*layers).eval()
        kinds = {nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell, nn.RNNCell}
        return quantization.quantize_dynamic(model, kinds, dtype), shape

    def per_channel() -> Any:
        chosen = {nn.Linear: quantization.per_channel_dynamic_qconfig}
        return quantization.quantize_dynamic(nn.Sequential(nn.Linear(8, 4)), chosen), (3, 8)

    class Convolutions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quantize, self.dequantize = quantization.QuantStub(), quantization.DeQuantStub()
            self.first, self.relu = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU()
            self.second = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=2)
            self.up, self.norm = nn.ConvTranspose2d(8, 8, 3), nn.LayerNorm(8)
            self.line, self.linear = nn.Conv1d(8, 4, 3, padding=1), nn.Linear(8, 5)
            self.sum, self.join, self.scale = (nn.quantized.FloatFunctional() for _ in range(3))
            self.pool, self.swish, self.leaky = nn.MaxPool2d(1), nn.Hardswish(), nn.LeakyReLU(0.1)

        def forward(self, x):  # type: ignore[no-untyped-def]
            y = self.relu(self.first(self.quantize(x)))
            y = self.pool(self.swish(self.sum.add_relu(y, self.second(y))))
            y = self.leaky(self.up(y))
            y = self.line(y.flatten(2)).reshape(-1, 50, 8)
            y = self.join.cat([y, self.norm(y)], 1)
            return self.dequantize(self.linear(self.scale.mul(y, y)))

    def static(engine: str = "fbgemm") -> Any:
        model = Convolutions().eval()
        quantization.fuse_modules(model, [["first", "relu"]], inplace=True)
        # Activations of 7 bits: without VNNI fbgemm adds two products in 16 bits, which saturate.
        of_tensors = quantization.QConfig(
            quantization.HistogramObserver.with_args(reduce_range=True),
            quantization.default_weight_observer,
        )
        mobile = engine == "qnnpack"
        model.qconfig = of_tensors if mobile else quantization.get_default_qconfig(engine)
        model.up.qconfig = of_tensors
        quantization.prepare(model, inplace=True)
        model(torch.randn(4, 3, 16, 16))
        quantization.convert(model, inplace=True)
        return model, (2, 3, 16, 16)

    class First(nn.Module):
        def __init__(self, layer: Any) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x):  # type: ignore[no-untyped-def]
            y, _ = self.layer(x)
            return y

    def recurrent(layer: Any) -> Any:
        return First(dynamic(layer, shape=())[0][0]), (5, 2, 4)

    return {
        "linear": lambda: dynamic(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3), shape=(3, 8)),
        "without bias": lambda: dynamic(nn.Linear(8, 4, bias=False), shape=(3, 8)),
        "float16": lambda: dynamic(nn.Linear(8, 4), shape=(3, 8), dtype=torch.float16),
        "per channel": per_channel,
        "LSTM": lambda: recurrent(nn.LSTM(4, 5, 2)),
        "LSTM of both directions": lambda: recurrent(nn.LSTM(4, 5, bidirectional=True)),
        "GRU": lambda: recurrent(nn.GRU(4, 5, 2, bidirectional=True)),
        "LSTM cell": lambda: (First(dynamic(nn.LSTMCell(4, 5), shape=())[0][0]), (3, 4)),
        "GRU cell": lambda: dynamic(nn.GRUCell(4, 5), shape=(3, 4)),
        "RNN cell": lambda: dynamic(nn.RNNCell(4, 5), shape=(3, 4)),
        "convolutions": static,
        "convolutions for mobile": lambda: static("qnnpack"),
    }


NAMES = (
    "linear", "without bias", "float16", "per channel", "LSTM", "LSTM of both directions", "GRU",
    "LSTM cell", "GRU cell", "RNN cell", "convolutions", "convolutions for mobile",
)  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("how", ["script", "trace", "freeze"])
@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_those_of_pytorch(torch: Any, name: str, how: str) -> None:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, shape = _layers(torch)[name]()
        x = torch.randn(shape)
        program = torch.jit.trace(model, (x,)) if how == "trace" else torch.jit.script(model)
        program = torch.jit.freeze(program.eval()) if how == "freeze" else program
        file = io.BytesIO()
        torch.jit.save(program, file)
        wanted = program(x).detach().numpy()
    loaded = jit.load(io.BytesIO(file.getvalue()))
    given = weft.from_numpy(x.numpy().copy())
    again = io.BytesIO()
    jit.save(loaded, again)
    theirs = torch.jit.load(io.BytesIO(again.getvalue()))
    results = loaded(given), jit.freeze(loaded.eval())(given), theirs(x).detach()
    for found in results:
        # Of a sum that lies between two steps a few may be rounded to the other one.
        equal = np.isclose(found.numpy(), wanted, 1e-5, 1e-6)
        assert equal.mean() > 0.98 and np.abs(found.numpy() - wanted).max() < 0.05


def _number(torch: Any, x: Any, bits: tuple[int, int, int]) -> Any:
    scale, zero_point, number = bits
    dtype = {12: torch.qint8, 13: torch.quint8, 14: torch.qint32}[number]
    return torch.quantize_per_tensor(x, scale / 16, zero_point, dtype).dequantize()


@pytest.mark.parity
def test_numbers_of_a_scale(torch: Any) -> None:
    x = torch.linspace(-40.0, 40.0, 4001)
    for bits in ((3, 5, 12), (1, 128, 13), (7, 0, 13), (2, -3, 14)):
        text = (
            f"torch.dequantize(torch.quantize_per_tensor(x, {bits[0] / 16}, {bits[1]}, {bits[2]}))"
        )
        code = {
            "__torch__": "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n"
            f"  def forward(self: __torch__.M, x: Tensor) -> Tensor:\n    return {text}\n"
        }
        program = jit.load(archive(code, Object("__torch__.M", {})))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = _number(torch, x, bits).numpy()
        assert np.array_equal(program(weft.from_numpy(x.numpy().copy())).numpy(), wanted)


@pytest.mark.parity
def test_exported_programs_with_integers(torch: Any) -> None:
    import torch.ao.quantization.fx._decomposed  # which defines the operators

    operators = torch.ops.quantized_decomposed

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.arange(-16, 16, dtype=torch.int8).view(4, 8))
            self.register_buffer("scales", torch.tensor([0.1, 0.2, 0.5, 1.5]))
            self.register_buffer("zeros", torch.tensor([0, 1, -2, 3]))

        def forward(self, x: Any) -> Any:
            q = operators.quantize_per_tensor(x, 0.05, 3, -128, 127, torch.int8)
            x = operators.dequantize_per_tensor(q, 0.05, 3, -128, 127, torch.int8)
            told = self.scales, self.zeros, 0, -127, 127, torch.int8
            weight = operators.dequantize_per_channel(self.weight, *told)
            return x @ weight.T, q, operators.quantize_per_channel(weight, *told)

    x = torch.linspace(-9.0, 9.0, 24).view(3, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(Model(), (x,))
        file = io.BytesIO()
        torch.export.save(program, file)
    module = weft.export.load(io.BytesIO(file.getvalue())).module()
    given = weft.from_numpy(x.numpy().copy())
    for run in (module, jit.script(module)):
        for found, wanted in zip(run(given), program.module()(x), strict=True):
            assert str(found.dtype) == str(wanted.dtype)
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), 1e-6)


@pytest.mark.parametrize(
    "state", [(), (1, 2), (None, None), {"weight": 1}, ("2", [], []), 7], ids=repr
)
@pytest.mark.parametrize("kind", ["Linear", "Conv2d", "Conv3d", "rnn"])
def test_states_that_are_none(kind: str, state: Any) -> None:
    name = "__torch__.torch.classes."
    name += "rnn.CellParamsBase" if kind == "rnn" else f"quantized.{kind}PackedParamsBase"
    code = {"__torch__": f"class M(Module):\n  p : {name}\n"}
    with pytest.raises(LoadError):
        jit.load(archive(code, Object("__torch__.M", {"p": Object(name, state)})))


@pytest.mark.parity
@pytest.mark.parametrize("reduce_range", [False, True])
def test_scales_of_what_tensors_hold(torch: Any, reduce_range: bool) -> None:
    for low, high in (
        (-1.0, 5.0),
        (-5.0, 1.0),
        (-3.3, 2.9),
        (0.5, 4.0),
        (-2.0, -1.0),
        (-1e-4, 2e-4),
    ):
        x = torch.linspace(low, high, 1001)
        wanted = torch.quantize_per_tensor_dynamic(x, torch.quint8, reduce_range).dequantize()
        found = rounded_by_range(weft.from_numpy(x.numpy().copy()), reduce_range)
        # A number between two steps may go to either one.
        off = np.abs(found.numpy() - wanted.numpy()) > 1e-6 * max(-low, high)
        assert off.mean() < 0.01, (low, high)


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_numbers_without_a_scale(number: float) -> None:
    one, zero = weft.ones(1), weft.zeros(1)
    layer = quantized.LinearPackedParams(weft.ones(2, 3), one, zero, None)
    for run in (linear_dynamic, jit.script(linear_dynamic)):
        with pytest.raises(RuntimeError, match="linear_dynamic: expected finite numbers, got"):
            run(weft.tensor([[1.0, number, 2.0]]), layer)


def test_elements_that_a_small_file_repeats() -> None:
    storage, scheme = weft.ones(1, dtype=weft.int8).storage(), ("per_tensor_affine", 0.5, 0)
    assert quantized.rebuilt(storage, 0, (1,), (1,), scheme).tolist() == [0.5]
    with pytest.raises(LoadError, match="expected a dense quantised tensor"):
        quantized.rebuilt(storage, 0, (1 << 20, 1 << 20), (0, 0), scheme)


def test_scales_that_are_none() -> None:
    code = {"__torch__": f"class M(Module):\n  p : {_LINEAR}\n"}
    with pytest.raises(LoadError):
        jit.load(archive(code, Member("torch._utils._rebuild_qtensor", 1)))

"""Quantised networks in integers: the bits of PyTorch's engine fbgemm."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft import jit
from weft.jit import pipeline
from weft.jit.module_methods import compiled_method
from weft.jit.passes import quantized
from weft.jit.passes.options import INFERENCE

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
f = weft.from_numpy


@pytest.fixture(scope="module")
def torch() -> Iterator[Any]:
    torch = pytest.importorskip("torch")
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "fbgemm"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield torch
    torch.backends.quantized.engine = before


class Drawn:
    """Layers of random integers, for both."""

    def __init__(self, torch: Any, seed: int) -> None:
        self.torch, self.rng = torch, np.random.default_rng(seed)
        r = self.rng
        self.per_row, self.relu = bool(r.integers(2)), bool(r.integers(2))
        self.out = float(r.uniform(0.05, 2)), int(r.integers(0, 256))

    def images(self, *shape: int) -> tuple[Any, tuple[Any, float, int]]:
        # fbgemm adds products in 16 bits on some processors: 7 bits are safe everywhere
        q = self.rng.integers(0, 128, shape, dtype=np.uint8)
        scale, zero = float(self.rng.uniform(0.01, 0.1)), int(self.rng.integers(0, 128))
        made = self.torch._make_per_tensor_quantized_tensor(self.torch.from_numpy(q), scale, zero)
        return made, (f(q), scale, zero)

    def weight(self, *shape: int) -> tuple[Any, Any, tuple[Any, ...]]:
        torch, r, n = self.torch, self.rng, shape[0]
        w = r.integers(-64, 64, shape).astype(np.int8)
        scales = r.uniform(0.001, 0.02, n if self.per_row else 1)
        zeros = r.integers(-9, 9, 1) if len(shape) == 2 and not self.per_row else 0 * scales
        bias = r.standard_normal(n).astype(np.float32) if r.integers(4) else None
        if self.per_row:
            given = torch.from_numpy(scales), torch.zeros(n, dtype=torch.long), 0
            made = torch._make_per_channel_quantized_tensor(torch.from_numpy(w), *given)
        else:
            given = float(scales[0]), int(zeros[0])
            made = torch._make_per_tensor_quantized_tensor(torch.from_numpy(w), *given)
        theirs = None if bias is None else torch.from_numpy(bias)
        ours = f(w), f(scales), f(zeros), None if bias is None else f(bias)
        return made, theirs, ours


@given(seed=st.integers(0, 2**32 - 1))
@examples(40)
def test_linear_layers(torch: Any, seed: int) -> None:
    d = Drawn(torch, seed)
    m, k, n = (int(d.rng.integers(1, most)) for most in (40, 90, 70))
    x, ours = d.images(m, k)
    weight, bias, w = d.weight(n, k)
    packed, ops = torch.ops.quantized.linear_prepack(weight, bias), torch.ops.quantized
    wanted = (ops.linear_relu if d.relu else ops.linear)(x, packed, *d.out)
    found = weft.ops.aten._quantized_linear(*ours, *w, d.relu, *d.out)
    assert np.array_equal(found.numpy(), wanted.int_repr().numpy())
    rows = (d.rng.standard_normal((m, k)) * d.rng.uniform(0.01, 10)).astype(np.float32)
    run = ops.linear_relu_dynamic if d.relu else ops.linear_dynamic
    for reduce in (False, True):
        wanted = run(torch.from_numpy(rows), packed, reduce)
        found = weft.ops.aten._quantized_linear_dynamic(f(rows), *w, d.relu, reduce)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), 1e-5, 1e-5)


@given(seed=st.integers(0, 2**32 - 1))
@examples(60)
def test_convolutions(torch: Any, seed: int) -> None:
    d = Drawn(torch, seed)
    r, dims = d.rng, int(d.rng.choice([2, 2, 2, 3]))
    groups = int(r.choice([1, 1, 2, 3, 17, 24, 64]))
    channels, out = groups * int(r.integers(1, 9)), groups * int(r.integers(1, 9))
    if groups > 3:
        channels = out = groups
    kernel = [int(r.integers(1, 4)) for _ in range(dims)]
    size = [int(r.integers(k, 9)) for k in kernel]
    stride, padding, dilation = (
        [int(r.integers(*span)) for _ in kernel] for span in ((1, 3), (0, 2), (1, 2))
    )
    x, ours = d.images(2, channels, *size)
    weight, bias, w = d.weight(out, channels // groups, *kernel)
    name, ops = f"conv{dims}d", torch.ops.quantized
    pack = getattr(ops, f"{name}_prepack")(weight, bias, stride, padding, dilation, groups)
    wanted = getattr(ops, f"{name}_relu" if d.relu else name)(x, pack, *d.out).int_repr().numpy()
    lists = stride, padding, dilation, groups, d.relu, *d.out
    for order in (
        weft.contiguous_format,
        weft.channels_last if dims == 2 else weft.contiguous_format,
    ):
        image = ours[0].contiguous(memory_format=order)
        found = weft.ops.aten._quantized_conv(image, *ours[1:], *w, *lists)
        assert np.array_equal(found.numpy(), wanted)


@given(seed=st.integers(0, 2**32 - 1))
@examples(25)
def test_sums_products_and_steps(torch: Any, seed: int) -> None:
    d = Drawn(torch, seed)
    a, ours = d.images(3, 5, 29)
    b, others = d.images(3, 5, 29)
    for name, step in (("add", d.out[0]), ("mul", ours[1] * others[1] * 50)):
        out = step, d.out[1]
        kind = f"{name}_relu" if d.relu else name
        wanted = getattr(torch.ops.quantized, kind)(a, b, *out).int_repr().numpy()
        found = getattr(weft.ops.aten, f"_quantized_{name}")(*ours, *others, d.relu, *out)
        assert np.array_equal(found.numpy(), wanted)
    x = d.rng.standard_normal(3001).astype(np.float32)
    wanted = torch.quantize_per_tensor(torch.from_numpy(x), *d.out, torch.quint8)
    found = weft.ops.aten._quantize(f(x), *d.out, weft.uint8)
    assert np.array_equal(found.numpy(), wanted.int_repr().numpy())
    numbers = weft.ops.aten._dequantize(found, *d.out).numpy()
    assert np.array_equal(numbers, wanted.dequantize().numpy())


def _network(torch: Any, changes: bool = False) -> Any:
    nn, quantization = torch.nn, torch.ao.quantization

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quantize, self.dequantize = quantization.QuantStub(), quantization.DeQuantStub()
            self.first, self.relu = nn.Conv2d(3, 32, 3, stride=2, padding=1), nn.ReLU()
            self.depth = nn.Conv2d(32, 32, 3, padding=1, groups=32)
            self.mirrored = nn.Conv2d(32, 32, 3, padding=1, padding_mode="reflect")
            self.groups, self.pool = nn.Conv2d(32, 16, 1, groups=2), nn.MaxPool2d(3, 2, 1)
            self.sum, self.join, self.by = (nn.quantized.FloatFunctional() for _ in range(3))
            self.average, self.linear = nn.AdaptiveAvgPool2d(2), nn.Linear(128, 5)
            self.leaky = nn.LeakyReLU(0.1)  # of numbers, rounded to a scale

        def forward(self, x, deep: bool = True):  # type: ignore[no-untyped-def]
            y = self.pool(self.relu(self.first(self.quantize(x))))
            if deep:
                z = self.mirrored(self.leaky(self.depth(y)))
            else:
                z = y
            y = self.groups(self.sum.add_relu(y, z))
            y = self.join.cat([y, self.by.mul(y, y)], 1).relu()
            return self.dequantize(self.linear(self.average(self.changed(y)).flatten(1)))

        def changed(self, y):  # type: ignore[no-untyped-def]
            return y

    class Changing(Network):
        def changed(self, y):  # type: ignore[no-untyped-def]
            y[:, 0] = y[:, 1]
            return y

    torch.manual_seed(0)
    model = (Changing if changes else Network)().eval()
    quantization.fuse_modules(model, [["first", "relu"]], inplace=True)
    model.qconfig = quantization.get_default_qconfig("fbgemm")
    quantization.prepare(model, inplace=True)
    images = torch.randn(4, 3, 24, 24)
    for deep in (False, True):  # numbers beyond 7 bits saturate in fbgemm's sums without VNNI
        model(images, deep)
    return quantization.convert(model, inplace=True)


def _saved(program: Any) -> io.BytesIO:
    file = io.BytesIO()
    program.save(file) if not hasattr(program, "save_to_buffer") else file.write(
        program.save_to_buffer()
    )
    file.seek(0)
    return file


def _kinds(module: Any) -> set[str]:
    function = compiled_method(module._jit_info, "forward").function
    return {node.kind for node in pipeline.optimize(function, 2, INFERENCE).graph.walk()}


@pytest.mark.parametrize("how", ["script", "trace", "freeze"])
def test_networks(torch: Any, how: str, tmp_path: Path) -> None:
    model, x = _network(torch), torch.randn(3, 3, 24, 24)
    program = torch.jit.trace(model, (x,)) if how == "trace" else torch.jit.script(model)
    program = torch.jit.freeze(program.eval()) if how == "freeze" else program
    wanted = program(x).numpy()
    loaded, given = jit.load(_saved(program)).eval(), f(x.numpy())
    frozen = jit.freeze(loaded)
    for module in (loaded, frozen):
        for _ in range(3):  # the first one before it is optimised
            assert np.array_equal(module(given).numpy(), wanted)
        kinds = _kinds(module)
        assert "aten::_quantized_conv" in kinds and "aten::conv2d" not in kinds
    if how == "script":
        other = program(x, False).numpy()
        assert np.array_equal(loaded(given, False).numpy(), other)
    path = str(tmp_path / "program.weft")
    jit.aot_compile(loaded, path)
    compiled = weft._C.CompiledModule(path)
    assert np.array_equal(
        compiled.call("forward", given, *([] if how == "trace" else [True])).numpy(), wanted
    )
    again = torch.jit.load(_saved(loaded))(x).numpy()  # by numbers
    assert np.abs(again - wanted).max() < 0.1


def test_tensors_that_are_changed_stay_numbers(torch: Any) -> None:
    program, x = torch.jit.script(_network(torch, True)), torch.randn(2, 3, 24, 24)
    loaded = jit.load(_saved(program)).eval()
    wanted = program(x).numpy()
    assert np.abs(loaded(f(x.numpy())).numpy() - wanted).max() < 0.1
    assert "aten::_quantized_conv" not in _kinds(loaded)


def test_packed_weights_are_kept_in_integers(torch: Any) -> None:
    loaded = jit.load(_saved(torch.jit.script(_network(torch))))
    for layer in (loaded.first, loaded.depth, loaded.linear):
        packed = (
            layer._packed_params
            if hasattr(layer._packed_params, "integers")
            else layer._packed_params._packed_params
        )
        assert packed.integers.dtype == weft.int8 and packed.scales.numel() == packed.integers.size(
            0
        )


def test_names_of_functions_are_found() -> None:
    for known in quantized.KNOWN.values():
        assert known.integers is None or known.integers().graph.inputs

"""Settings and questions about devices: answered as PyTorch's CPU build does."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import pytest

import weft

ANSWERS = [
    "cuda.is_available()",
    "cuda.device_count()",
    "cuda.memory_allocated()",
    "cuda.max_memory_allocated()",
    "cuda.memory_reserved()",
    "cuda.max_memory_reserved()",
    "cuda.empty_cache()",
    "cuda.is_bf16_supported()",
    "cuda.is_initialized()",
    "cuda.get_rng_state_all()",
    "cuda.manual_seed(0)",
    "cuda.manual_seed_all(0)",
    "cuda.memory_stats()",
    "backends.cudnn.enabled",
    "backends.cudnn.benchmark",
    "backends.cudnn.deterministic",
    "backends.cudnn.allow_tf32",
    "backends.cudnn.is_available()",
    "backends.cudnn.version()",
    "backends.cuda.matmul.allow_tf32",
    "backends.cuda.is_built()",
    "backends.cuda.flash_sdp_enabled()",
    "backends.mps.is_available()",
    "cuda.amp.amp_definitely_not_available()",
    "backends.quantized.engine in backends.quantized.supported_engines",
    "{*fft.__all__} >= {'fft', 'irfftn', 'fftshift'}",
    "backends.mps.is_built()",
    "mps.is_available()",
    "xpu.is_available()",
    "xpu.device_count()",
    "accelerator.is_available()",
    "accelerator.current_accelerator()",
    "accelerator.device_count()",
    "version.cuda",
    "version.hip",
    "version.debug",
    "get_float32_matmul_precision()",
    "are_deterministic_algorithms_enabled()",
    "is_deterministic_algorithms_warn_only_enabled()",
    "get_deterministic_debug_mode()",
    "compiler.is_compiling()",
    "compiler.is_dynamo_compiling()",
    "is_autocast_enabled()",
    "is_autocast_enabled('cpu')",
    "ones(1).is_pinned()",
    "_check(True)",
    "_assert(True,'')",
    "use_deterministic_algorithms(False)",
    "cuda.synchronize()",
    "cuda.current_device()",
    "cuda.get_device_name()",
    "cuda.get_device_capability()",
    "cuda.get_device_properties(0)",
    "cuda.mem_get_info()",
    "cuda.current_stream()",
    "ones(1).pin_memory()",
    "_check(False)",
    "_check_is_size(-1)",
    "_assert(False,'x')",
    "cuda.get_rng_state()",
    "set_deterministic_debug_mode('x')",
]


def _answer(lib: Any, text: str) -> Any:
    try:
        return repr(eval(f"lib.{text}", {"lib": lib}))
    except Exception as error:
        return type(error)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", ANSWERS)
def test_answers_equal_torch(text: str) -> None:
    torch = pytest.importorskip("torch")
    assert _answer(weft, text) == _answer(torch, text)


def test_every_public_name_is_there() -> None:
    assert [name for name in weft.__all__ if not hasattr(weft, name)] == []


def test_the_default_device_is_the_cpu() -> None:
    weft.set_default_device("cpu")
    weft.set_default_device(None)
    assert weft.get_default_device() == weft.device("cpu")
    with pytest.raises(
        RuntimeError, match="set_default_device: expected device cpu or meta, got cuda"
    ):
        weft.set_default_device("cuda")
    attention = weft.nn.attention
    with attention.sdpa_kernel([attention.SDPBackend.MATH, attention.SDPBackend.FLASH_ATTENTION]):
        pass
    with (
        pytest.raises(AssertionError, match="sdpa_kernel: expected SDPBackend members, got str"),
        attention.sdpa_kernel(["math"]),  # type: ignore[list-item]
    ):
        pass


def test_modules_are_called_with_other_tensors() -> None:
    model = weft.nn.Sequential(weft.nn.Linear(2, 2), weft.nn.BatchNorm1d(2))
    model[1].twin = model[0]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    weight = weft.ones(2, 2, requires_grad=True)
    call = weft.func.functional_call
    x = weft.tensor([[1.0, 2.0], [3.0, 5.0]])
    output = call(model, ({"0.weight": weight}, {"1.bias": weft.full((2,), 7.0)}), (x,))
    output.square().sum().backward()
    assert weight.grad is not None and output.mean().item() == pytest.approx(7, abs=1e-4)
    for name, value in model.state_dict().items():
        if not name.startswith("1.running") and "num_batches" not in name:
            assert (value == before[name]).all()
    assert model[0].weight.grad is None
    call(model, {"0.other": weight}, x)
    assert not hasattr(model[0], "other")
    with pytest.raises(RuntimeError, match="functional_call: expected the names of the module"):
        call(model, {"0.weight": weight}, x, strict=True)
    with pytest.raises(ValueError, match="expected each name once"):
        call(model, ({"0.weight": weight}, {"0.weight": weight}), x)
    with pytest.raises(ValueError, match="expected one value for the tied"):
        call(model, {"0.weight": weight, "1.twin.weight": weight + 1}, x)


class Counter(weft.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("anew", weft.zeros(1))
        self.register_buffer("twin", self.anew)
        self.register_buffer("inplace", weft.zeros(1))

    def forward(self, fails: bool) -> weft.Tensor:
        self.anew = self.anew + 1
        self.inplace += 2
        if fails:
            raise ArithmeticError
        return self.anew


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("ties", [False, True])
def test_buffers_that_a_call_changed_are_in_the_dict(fails: bool, ties: bool) -> None:
    model, given = Counter(), {"anew": weft.full((1,), 5.0), "inplace": weft.full((1,), 7.0)}
    anew = model.anew
    for expected in (6.0, 7.0):
        with pytest.raises(ArithmeticError) if fails else contextlib.nullcontext():
            weft.func.functional_call(model, given, (fails,), tie_weights=ties)
        assert given["anew"].item() == expected
    assert list(given) == ["anew", "inplace"] and given["inplace"].item() == 11.0
    assert model.anew is anew and model.twin is anew and anew.item() == 0.0
    parts = ({"anew": weft.ones(1)}, {"inplace": weft.ones(1)})
    weft.func.functional_call(model, parts, (False,))
    assert parts[0]["anew"].item() == 1.0 and parts[1]["inplace"].item() == 3.0


def test_settings_are_kept() -> None:
    weft.set_float32_matmul_precision("medium")
    assert weft.get_float32_matmul_precision() == "medium"
    with pytest.warns(UserWarning, match="expected 'highest', 'high' or 'medium'"):
        weft.set_float32_matmul_precision("low")
    weft.set_float32_matmul_precision("highest")
    weft.use_deterministic_algorithms(True, warn_only=True)
    assert weft.get_deterministic_debug_mode() == 1
    assert weft.is_deterministic_algorithms_warn_only_enabled()
    weft.set_deterministic_debug_mode("default")
    assert not weft.are_deterministic_algorithms_enabled()
    with weft.backends.cudnn.flags(benchmark=True):
        assert weft.backends.cudnn.benchmark
    assert not weft.backends.cudnn.benchmark
    with weft.backends.cuda.sdp_kernel(enable_flash=False):
        assert not weft.backends.cuda.flash_sdp_enabled()
    assert weft.backends.cuda.flash_sdp_enabled()


def test_what_needs_a_device_says_so() -> None:
    for name in ("synchronize", "current_stream"):
        with pytest.raises(AssertionError, match=f"cuda.{name}: expected a GPU, got a build for"):
            getattr(weft.cuda, name)()
    with weft.cuda.device(None), weft.cuda.stream(None):
        pass
    with pytest.raises(AssertionError, match=r"cuda\.device: expected a GPU"):
        weft.cuda.device(0)
    with pytest.raises(RuntimeError, match="pin_memory: expected a device"):
        weft.ones(1).pin_memory()
    assert issubclass(weft.cuda.OutOfMemoryError, RuntimeError)


def test_marks_count() -> None:
    weft.profiler.reset()

    @weft.profiler.record_function("outer")
    def work(depth: int) -> int:
        with weft.profiler.record_function("inner"):
            return depth if depth == 0 else work(depth - 1)

    work(2)
    regions = weft.profiler.regions()
    assert regions["outer"].count == regions["inner"].count == 3
    assert regions["outer"].seconds >= regions["inner"].seconds >= 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with weft.autograd.profiler.record_function("again"):
            pass
    assert weft.profiler.regions()["again"].count == 1


def test_streams_of_the_cpu_have_nothing_to_wait_for() -> None:
    stream, event = weft.Stream(), weft.Event("cpu")
    with stream as same:
        assert same is stream == weft.Stream(device="cpu")
        assert stream.record_event(event) is event
        event.wait(stream)
        stream.wait_event(event)
        stream.wait_stream(weft.Stream())
    event.synchronize()
    stream.synchronize()
    assert stream.query() and event.query()
    assert stream.device == weft.device("cpu")
    assert len({stream, weft.Stream()}) == 1
    for kind in (weft.Stream, weft.Event):
        with pytest.raises(RuntimeError, match=f"{kind.__name__}: expected device cpu, got cuda"):
            kind("cuda")


FACTORIES = {
    "empty": lambda **k: weft.empty(2, **k),
    "tensor": lambda **k: weft.tensor([1.0], **k),
    "arange": lambda **k: weft.arange(3, **k),
    "full": lambda **k: weft.full((2,), 1, **k),
    "normal": lambda **k: weft.normal(0.0, 1.0, (2,), **k),
    "logspace": lambda **k: weft.logspace(0, 1, 3, **k),
    "hann_window": lambda **k: weft.hann_window(3, **k),
    "tril_indices": lambda **k: weft.tril_indices(2, 2, **k),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_a_device_is_a_context(name):
    make = FACTORIES[name]
    with weft.device("cuda") as device:
        assert weft.get_default_device() == device == weft.device("cuda")
        with pytest.raises(AssertionError, match="device"):
            make()
        assert make(device="cpu").device.type == "cpu"  # what a call says holds
        with weft.device("cpu"):
            assert make().device == weft.get_default_device() == weft.device("cpu")
    assert make().device.type == "cpu"


def test_a_device_context_leaves_what_follows_a_tensor():
    x = weft.ones(2)
    with weft.device("cuda"):
        made = [
            weft.zeros_like(x),
            x.new_empty(3),
            x + 1,
            weft.normal(x, 1.0),
            weft.from_numpy(x.numpy()),
        ]
        with pytest.raises(AssertionError, match="cuda"):
            weft.nn.Linear(2, 2)
    assert {each.device.type for each in made} == {"cpu"}
    with pytest.raises(ValueError, match="left"), weft.device("cuda"):
        raise ValueError("left")
    assert weft.ones(1).device.type == "cpu"

"""Archives that PyTorch wrote: results, gradients and state are those of PyTorch's loaded program."""

from __future__ import annotations

import importlib
import io
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.jit.test_corpus import close, observe, plain

import weft
from weft import jit


def _modules() -> dict[str, Any]:
    """(module, arguments) by name, made with PyTorch."""
    import torch
    from torch import nn

    class Loop(nn.Module):
        def forward(self, x, n: int):
            out = x
            for i in range(n):
                if i == 3:
                    continue
                if i > 6:
                    break
                out = out * 2 + i
            while bool(out.sum() > 100):
                out = out / 2
                if bool(out.max() < 1):
                    return out
            return -out

    def image(channels: int = 4, size: int = 9) -> Any:
        return torch.randn(2, channels, size, size)

    flat = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    norms = (
        nn.GroupNorm(2, 4),
        nn.InstanceNorm2d(4, affine=True),
        nn.GELU(),
        nn.SiLU(),
        nn.PReLU(),
    )
    more = (nn.Hardswish(), nn.Hardtanh(), nn.Softplus(), nn.ELU(), nn.LeakyReLU(0.1), nn.Mish())
    pools = (nn.AvgPool2d(2), nn.AdaptiveMaxPool2d(2), nn.LPPool2d(2, 2))
    pads = (nn.ReflectionPad2d(1), nn.ConstantPad2d(1, 2.0), nn.PixelShuffle(2))
    sequence = torch.randn(2, 5, 8)
    return {
        "conv": (nn.Sequential(*flat, nn.Flatten(), nn.Linear(36, 5)), (image(3, 8),)),
        "conv_transpose": (nn.ConvTranspose1d(3, 4, 3, stride=2), (torch.randn(2, 3, 8),)),
        "norms": (nn.Sequential(*norms), (image(),)),
        "activations": (nn.Sequential(*more), (torch.randn(3, 4),)),
        "pools": (nn.Sequential(*pools), (image(),)),
        "pads": (nn.Sequential(*pads), (image(4, 5),)),
        "embedding": (
            nn.Sequential(nn.Embedding(9, 4), nn.LayerNorm(4)),
            (torch.tensor([[1, 8]]),),
        ),
        "bilinear": (nn.Bilinear(3, 4, 5), (torch.randn(2, 3), torch.randn(2, 4))),
        "softmax": (nn.Sequential(nn.Dropout(), nn.Softmax(-1), nn.LogSoftmax(-1)), (sequence,)),
        "attention": (nn.MultiheadAttention(8, 2, batch_first=True), (sequence,) * 3),
        "lstm": (nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True), (sequence,)),
        "gru": (nn.GRU(8, 6), (sequence,)),
        "rnn": (nn.RNN(8, 6, nonlinearity="relu", bias=False), (sequence,)),
        "loop": (Loop(), (torch.randn(3), 9)),
    }


def _archives(module: Any, args: Any) -> dict[str, Any]:
    """The ways in which PyTorch makes a program of the module."""
    import torch

    scripted = torch.jit.script(module)
    made = {"scripted": scripted, "frozen": torch.jit.freeze(scripted.eval())}
    if all(isinstance(arg, torch.Tensor) for arg in args):
        made["traced"] = torch.jit.trace(module, args, check_trace=False)
    return {way: each for way, each in made.items() if hasattr(each, "forward")}


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [item for each in value for item in _flat(each)]
    return [] if value is None else [value]


NAMES = [
    "conv",
    "conv_transpose",
    "norms",
    "activations",
    "pools",
    "pads",
    "embedding",
    "bilinear",
    "softmax",
    "attention",
    "lstm",
    "gru",
    "rnn",
    "loop",
]


@pytest.mark.parity
@pytest.mark.parametrize("name", NAMES)
def test_archives_of_torch(name):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module, args = _modules()[name]
    module.eval()
    mine = [weft.from_numpy(a.numpy()) if isinstance(a, torch.Tensor) else a for a in args]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for way, program in _archives(module, args).items():
            if name in ("lstm", "gru", "rnn") and way != "traced":
                continue  # methods with overloads have no forward
            file = io.BytesIO()
            torch.jit.save(program, file)
            file.seek(0)
            loaded = jit.load(file)
            expected = _flat(program(*args))
            found = _flat(loaded(*mine))
            assert len(found) == len(expected)
            for one, other in zip(found, expected):
                torch.testing.assert_close(torch.from_numpy(one.detach().numpy()), other.detach())
            if way == "frozen":
                continue
            program.zero_grad()
            sum(each.sum() for each in expected if each.requires_grad)
            if any(each.requires_grad for each in expected):
                sum(each.square().sum() for each in expected).backward()
                sum(each.square().sum() for each in found).backward()
                wanted = {k: p.grad for k, p in program.named_parameters() if p.grad is not None}
                for key, parameter in loaded.named_parameters():
                    if key in wanted:
                        grad = torch.from_numpy(parameter.grad.numpy())
                        torch.testing.assert_close(grad, wanted[key], rtol=1e-4, atol=1e-4)


# One archive of each kind ---------------------------------------------------------------------


def _kinds() -> list[tuple[str, str]]:
    """File and name of the cases in the folder archives, without an import of PyTorch."""
    files = ("objects", "language", "programs", "layers")
    texts = {file: (Path(__file__).parent / f"archives/{file}.py").read_text() for file in files}
    pattern = re.compile(r'^(?:@case|layer)\(\s*"([^"]+)"', re.MULTILINE)
    return [(f, n) for f in files for n in pattern.findall(texts[f])]


def _from_torch(value: Any) -> Any:
    """Arguments of PyTorch for weft."""
    if hasattr(value, "detach"):
        dtype = getattr(weft, str(value.dtype).partition(".")[2])
        return weft.tensor(value.tolist(), dtype=dtype).reshape(tuple(value.shape))
    if isinstance(value, dict):
        return {key: _from_torch(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_from_torch, value))
    return value


def code(data: bytes) -> dict[str, bytes]:
    """The files of code of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".py")]
        return {name: archive.read(name) for name in names}


def _saved(program: Any) -> io.BytesIO:
    import torch

    if not isinstance(program, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        program = torch.jit.script(program)
    file = io.BytesIO()
    torch.jit.save(program, file)
    file.seek(0)
    return file


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("file", "name"), _kinds())
def test_each_kind_of_archive(file, name):
    """Results, gradients, and buffers after each call are those of PyTorch's loaded program; so are
    those of the archive that weft writes of it, in PyTorch and in weft, which has the same code when it is saved again,
    and of the one that PyTorch writes of that."""
    torch = pytest.importorskip("torch")
    from tests.jit.archives import CASES

    importlib.import_module(f"tests.jit.archives.{file}")
    program, calls = CASES[name]()
    with torch.jit.optimized_execution(False):
        file = _saved(program)
        expected, loaded = torch.jit.load(file), jit.load(io.BytesIO(file.getvalue()))
        data = loaded.save_to_buffer()
        again, theirs = jit.load(io.BytesIO(data)), torch.jit.load(io.BytesIO(data))
        assert code(again.save_to_buffer()) == code(data)
        mine = (loaded, again, jit.load(_saved(theirs)))
        for args in calls:
            wanted = observe(expected, expected, args, True, torch, calls=1)[0]
            found = [observe(each, each, _from_torch(args), True, calls=1)[0] for each in mine]
            for got in (*found, observe(theirs, theirs, args, True, torch, calls=1)[0]):
                for part in wanted:
                    assert close(wanted[part], got[part]), (part, wanted[part], got[part])
        state = weft.load(io.BytesIO(file.getvalue()))
        before = torch.jit.load(io.BytesIO(file.getvalue())).state_dict()
        assert list(state) == list(before)
        assert all(close(plain(before[key]), plain(state[key])) for key in before)


@pytest.mark.parity
def test_errors_show_the_lines_of_pytorchs_source():
    pytest.importorskip("torch")
    from tests.jit.archives import CASES, objects

    program, _ = CASES["module interfaces, items by a number of the program"]()
    with pytest.raises(RuntimeError) as error:
        jit.load(_saved(program))(weft.ones(3, 5), 0)
    text, file = str(error.value), objects.__file__
    assert f'File "{file}", line' in text and "return layer.forward(x, 2.0)" in text
    assert "return x * self.weight * scale" in text and "code/__torch__" not in text


@pytest.mark.parity
def test_autocast():
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 3)

        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.layer(x)
            with torch.autocast("cpu", enabled=False):
                z = self.layer(x)
            return y, z

    program = torch.jit.script(Net().eval())
    for file in (_saved(program), _saved(torch.jit.freeze(program))):
        theirs, mine = torch.jit.load(file), jit.load(io.BytesIO(file.getvalue()))
        again = jit.load(io.BytesIO(mine.save_to_buffer()))
        expected = theirs(torch.ones(2, 4))
        for results in (mine(weft.ones(2, 4)), again(weft.ones(2, 4))):
            for wanted, found in zip(expected, results, strict=True):
                assert str(found.dtype) == str(wanted.dtype)
                assert weft.allclose(found.float(), _from_torch(wanted.detach().float()), rtol=0.02)


@pytest.mark.parity
def test_names_for_the_profiler_and_grad_modes_in_frozen_programs():
    torch = pytest.importorskip("torch")

    class Named(torch.nn.Module):
        def forward(self, x):
            with torch.autograd.profiler.record_function("a part"):
                y = x + 1
            with torch.no_grad():
                return y, y * 2

    file = _saved(torch.jit.freeze(torch.jit.script(Named().eval())))
    y, z = jit.load(file)(weft.ones(2, requires_grad=True))
    assert y.requires_grad and not z.requires_grad

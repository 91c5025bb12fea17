"""The same source scripted by PyTorch: what its compiler takes gives the same here."""

from __future__ import annotations

import copy
import importlib.util
import sys
import warnings
from pathlib import Path

import pytest
from tests.jit import frontend_cases

import weft
from weft import jit

pytestmark = pytest.mark.parity
torch = pytest.importorskip("torch")

# Where TorchScript differs from Python, and weft follows Python.
FOLLOWS_PYTHON = {
    "arithmetic": "TorchScript's int ** int is a float",
    "conversions": "TorchScript's round gives a float",
    "value_logic": "TorchScript's and, or give bools",
    "tensor_operators": "TorchScript cannot divide a number by a tensor with //",
}


@pytest.fixture(scope="module")
def torch_cases(tmp_path_factory):
    """The functions of frontend_cases, over PyTorch."""
    text = Path(frontend_cases.__file__).read_text()
    text = text.replace("import weft as torch\nfrom weft import Tensor, jit\n",
                        "import torch\nfrom torch import Tensor, jit\n")  # fmt: skip
    path = tmp_path_factory.mktemp("cases") / "torch_cases.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("torch_cases", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["torch_cases"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["torch_cases"]


def plain(value):
    """Tensors as lists, dtypes and sizes as text, tuples and lists as lists."""
    if isinstance(value, (weft.Tensor, torch.Tensor)):
        return [str(value.dtype), list(value.shape), value.tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def to_torch(value):
    """The inputs of a case, for PyTorch."""
    if isinstance(value, weft.Tensor):
        return torch.tensor(value.tolist()).reshape(tuple(value.shape))
    return copy.deepcopy(value)


def same(a, b):
    """Equal, but for the last digits of floats."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-5 * max(1.0, abs(a))
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


@pytest.mark.parametrize(
    ("function", "inputs"), frontend_cases.CASES, ids=lambda v: getattr(v, "__name__", "")
)
def test_same_as_torchscript(function, inputs, torch_cases):
    name = function.__name__
    if name in FOLLOWS_PYTHON:
        pytest.skip(FOLLOWS_PYTHON[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reference = torch.jit.script(getattr(torch_cases, name))
        except Exception:
            pytest.skip("PyTorch's compiler refuses it")
        expected = plain(reference(*map(to_torch, inputs)))
    got = plain(jit.script(function)(*copy.deepcopy(inputs)))
    assert same(expected, got), f"{got!r} for {expected!r}"

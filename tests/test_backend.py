"""Tensors on a second backend, whose memory the host may not touch (csrc/testing_backend.h).

Its pages are protected except while it copies or computes itself: a test that gets a result shows
that nothing else reached for them. What it computes must equal the CPU bit for bit.
"""

import copy
import ctypes
import hashlib
import os
import pickle
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

import weft
from weft import nn

ROOT = Path(__file__).resolve().parent.parent
DEVICE = "privateuseone:0"


def build_backend() -> Path:
    """Compiles the backend; the library lies in the temporary folder, by what it was made of."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    lib = Path(weft.__file__).parent / "lib"
    sources = [
        *ROOT.glob("csrc/*.h"),
        *ROOT.glob("csrc/*/*.h"),
        ROOT / "tests/protected_backend.cpp",
    ]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(sources)))
    digest.update(str(lib).encode())
    made = Path(tempfile.gettempdir()) / f"weft_backend_{os.getuid()}_{digest.hexdigest()[:16]}.so"
    if not made.exists():
        own = made.with_suffix(f".{os.getpid()}")
        command = [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{ROOT}/csrc"]
        command += [str(sources[-1]), "-o", str(own), f"-L{lib}", "-lweft", f"-Wl,-rpath,{lib}"]
        subprocess.run(command, check=True)
        own.replace(made)
    return made


@pytest.fixture(scope="module", autouse=True)
def backend():
    return ctypes.CDLL(str(build_backend()))


def numbers(*shape, dtype=weft.float32, seed=0):
    """Numbers in [0.5, 2), in eighths."""
    draw = np.random.default_rng(seed).integers(4, 16, shape) / 8
    return weft.tensor(draw).to(dtype)


def check_same(there, here):
    assert str(there.device) == DEVICE
    assert there.dtype is here.dtype
    assert there.shape == here.shape
    assert weft.equal(there.cpu(), here)


POINTWISE = {
    "add": lambda x, y: x + y,
    "add number": lambda x, y: 2 + x * 3.5,
    "add cpu number": lambda x, y: x + weft.tensor(3.0),
    "sub alpha": lambda x, y: weft.sub(x, y, alpha=2),
    "div": lambda x, y: x / y,
    "broadcast": lambda x, y: x * y[0],
    "transposed": lambda x, y: x.t() * y.t(),
    "mixed dtypes": lambda x, y: x + y.to(weft.float64),
    "compare": lambda x, y: x < y,
    "where": lambda x, y: weft.where(x < y, x, y),
    "exp": lambda x, y: x.exp(),
    "relu": lambda x, y: (x - 1).relu(),
    "gelu": lambda x, y: nn.functional.gelu(x),
    "clamp": lambda x, y: x.clamp(0.75, 1.5),
    "half": lambda x, y: x.half() + y.half(),
    "in place": lambda x, y: x.clone().mul_(y).add_(1),
    "out": lambda x, y: weft.add(x, y, out=weft.empty_like(x)),
    "integers": lambda x, y: (8 * x).long() // (8 * y).long(),
}
ROWS = {
    "sum": lambda x, y: x.sum(),
    "sum dim": lambda x, y: x.sum(0),
    "sum keepdim": lambda x, y: x.sum(1, keepdim=True),
    "mean": lambda x, y: x.mean(-1),
    "max": lambda x, y: x.max(),
    "argmax": lambda x, y: x.argmax(1),
    "var": lambda x, y: x.var(0),
    "norm": lambda x, y: x.norm(),
    "all": lambda x, y: (x > 0).all(),
    "softmax": lambda x, y: x.softmax(-1),
    "log_softmax columns": lambda x, y: x.log_softmax(0),
    "layer_norm": lambda x, y: nn.functional.layer_norm(x, (5,)),
    "mse_loss": lambda x, y: nn.functional.mse_loss(x, y),
}
VIEWS = {
    "t": lambda x, y: x.t(),
    "slice": lambda x, y: x[1:, ::2],
    "select": lambda x, y: x[2],
    "reshape": lambda x, y: x.reshape(5, -1),
    "reshape copy": lambda x, y: x.t().reshape(-1),
    "flatten": lambda x, y: x.flatten(),
    "expand": lambda x, y: x[:1].expand(3, 5),
    "unsqueeze": lambda x, y: x.unsqueeze(1),
    "contiguous": lambda x, y: x.t().contiguous(),
    "clone": lambda x, y: x.t().clone(),
    "view dtype": lambda x, y: x.view(weft.int32),
    "chunk": lambda x, y: x.chunk(2)[1],
}
MAKERS = {
    "zeros_like": lambda x, y: weft.zeros_like(x),
    "ones_like": lambda x, y: weft.ones_like(x.t()),
    "full_like": lambda x, y: weft.full_like(x, 7),
    "new_zeros": lambda x, y: x.new_zeros(2, 3),
    "new_full": lambda x, y: x.new_full((2,), 3),
    "zeros": lambda x, y: weft.zeros(2, 3, device=x.device),
    "ones": lambda x, y: weft.ones(2, 3, device=x.device, dtype=weft.int64),
    "full": lambda x, y: weft.full((2,), 0.5, device=x.device),
    "tensor": lambda x, y: weft.tensor([[1.5, 2.0]], device=x.device),
    "as_tensor": lambda x, y: weft.as_tensor([1, 2], device=x.device),
    "scalar_tensor": lambda x, y: weft.scalar_tensor(4, device=x.device),
}
PRODUCTS = {
    "mm": lambda x, y: x @ y.t(),
    "linear": lambda x, y: nn.functional.linear(x, y, y[:, 0]),
    "matmul folded": lambda x, y: x.unsqueeze(0) @ y.t(),
}
CASES = {**POINTWISE, **ROWS, **VIEWS, **MAKERS, **PRODUCTS}
WITHOUT_GRADIENT = {*MAKERS, "out", "compare", "integers", "argmax", "all", "view dtype"}


@pytest.mark.parametrize("name", CASES)
def test_operators_equal_the_cpu(name):
    x, y = numbers(4, 5), numbers(4, 5, seed=1)
    check_same(CASES[name](x.to(DEVICE), y.to(DEVICE)), CASES[name](x, y))


@pytest.mark.parametrize("name", [name for name in CASES if name not in WITHOUT_GRADIENT])
def test_gradients_equal_the_cpu(name):
    def gradients(device):
        x, y = (numbers(4, 5, seed=seed).to(device).requires_grad_() for seed in (0, 1))
        result = CASES[name](x, y)
        (result * numbers(*result.shape, seed=2).to(device)).sum().backward()
        return [each.grad for each in (x, y) if each.grad is not None]

    for there, here in zip(gradients(DEVICE), gradients("cpu"), strict=True):
        check_same(there, here)


# ---- copies ----


@pytest.mark.parametrize(
    "dtype", [weft.float64, weft.float16, weft.bool, weft.int32, weft.complex64]
)
def test_to(dtype):
    x = numbers(3, 4)
    for each in (x, x.t(), x[::2], x[:, :1].expand(3, 4), x[:0]):
        there = each.to(DEVICE, dtype)
        check_same(there, each.to(dtype))
        assert weft.equal(there.to("cpu", weft.complex128), each.to(dtype).to(weft.complex128))
        assert weft.equal(there.cpu(), each.to(dtype))


def test_to_gives_the_tensor_itself_where_nothing_changes():
    there = numbers(3).to(DEVICE)
    assert there.to(DEVICE) is there
    assert there.to("privateuseone") is there
    assert there.to(there) is there
    assert there.to(DEVICE, copy=True) is not there
    assert str(numbers(3).to(there).device) == DEVICE
    assert str(numbers(3).type_as(there).device) == DEVICE
    here = numbers(3)
    assert here.cpu() is here
    assert here.to("cpu:0") is here


def test_copy_between_devices():
    x = numbers(3, 4)
    there = weft.zeros(3, 4, device=DEVICE)
    check_same(there.copy_(x), x)
    check_same(there.t().copy_(x.t() + 1), x.t() + 1)
    assert weft.equal(weft.zeros(3, 4).copy_(there), x + 1)
    second = there.to("privateuseone:1")
    assert str(second.device) == "privateuseone:1"
    check_same(second.to(DEVICE), x + 1)


def test_gradients_flow_between_devices():
    x = numbers(3).requires_grad_()
    (x.to(DEVICE) * 2).cpu().sum().backward()
    assert weft.equal(x.grad, weft.full((3,), 2.0))
    number = weft.tensor(3.0, requires_grad=True)
    (numbers(3).to(DEVICE) * number).sum().backward()
    assert number.grad.device == number.device


# ---- tensors as Python sees them ----


def test_device_of_a_tensor():
    there = numbers(3).to("privateuseone")
    assert there.device == weft.device("privateuseone", 0)
    assert there.get_device() == 0
    assert not there.is_cpu
    assert numbers(3).get_device() == -1


def test_reading():
    there = numbers(2, 2).to(DEVICE)
    assert there.tolist() == numbers(2, 2).tolist()
    assert there[0, 1].item() == numbers(2, 2)[0, 1].item()
    assert float(there.sum()) == float(numbers(2, 2).sum())
    assert bool((there > 0).all())
    assert np.array_equal(there.cpu().numpy(), numbers(2, 2).numpy())
    assert np.array_equal(there.numpy(force=True), numbers(2, 2).numpy())


def test_printing():
    there = weft.tensor([1.0, 2.5], device=DEVICE)
    assert repr(there) == "tensor([1.0000, 2.5000], device='privateuseone:0')"
    assert repr(weft.tensor(1, dtype=weft.int32, device=DEVICE)) == (
        "tensor(1, device='privateuseone:0', dtype=torch.int32)"
    )


def test_parameters_train_as_on_the_cpu():
    def train(device):
        weft.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
        optimizer = weft.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
        for step in range(3):
            x, y = numbers(6, 4, seed=step).to(device), numbers(6, 2, seed=step + 9).to(device)
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        return list(model.parameters())

    for there, here in zip(train(DEVICE), train("cpu"), strict=True):
        assert str(there.device) == DEVICE
        assert weft.equal(there.cpu(), here)


def test_state_dict_crosses_devices():
    model = nn.Linear(3, 2)
    there = copy.deepcopy(model).to(DEVICE)
    nn.init.zeros_(model.weight)
    model.load_state_dict(there.state_dict())
    assert weft.equal(model.weight, there.weight.cpu())


def test_views_see_writes():
    there = weft.zeros(2, 3, device=DEVICE)
    row = there[1]
    row += 1
    assert there.tolist() == [[0, 0, 0], [1, 1, 1]]


def test_storages_resize():
    there = numbers(4).to(DEVICE)
    there.untyped_storage().resize_(64)
    check_same(there, numbers(4))


# ---- what fails ----

MISSING = "expected a body for the device privateuseone:0, got none; move the tensors to the CPU"
TWO = "Expected all tensors to be on the same device, but found at least two devices"


@pytest.mark.parametrize(
    ("name", "call"),
    {
        "sort": lambda x: x.sort(),
        "cumsum": lambda x: x.cumsum(0),
        "cat": lambda x: weft.cat([x, x]),
        "bmm": lambda x: weft.bmm(x.unsqueeze(0), x.unsqueeze(0)),
        "nonzero": lambda x: x.nonzero(),
        "normal_": lambda x: x.normal_(),
        "arange.start": lambda x: weft.arange(1, 3, device=x.device),
        "polygamma": lambda x: x.polygamma(1),
        "linalg_inv_ex": lambda x: weft.linalg.inv(x),
    }.items(),
)
def test_missing_bodies(name, call):
    with pytest.raises(NotImplementedError) as caught:
        call(numbers(3, 3).to(DEVICE))
    assert str(caught.value) == f"{name}: {MISSING}"


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x + y,
        lambda x, y: y + x,
        lambda x, y: x.add_(y),
        lambda x, y: y.add_(x),
        lambda x, y: weft.where(x > 0, x, y),
        lambda x, y: x @ y,
        lambda x, y: nn.functional.linear(x, y),
        lambda x, y: weft.add(y, y, out=x),
        lambda x, y: nn.functional.mse_loss(x, y),
    ],
)
def test_two_devices(call):
    with pytest.raises(RuntimeError) as caught:
        call(numbers(3, 3).to(DEVICE), numbers(3, 3))
    assert str(caught.value) == f"{TWO}, privateuseone:0 and cpu!"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: x.numpy(), TypeError, "numpy: expected a tensor on the CPU, got one on privateuseone:0"),
        (memoryview, NotImplementedError, "data: expected memory of the CPU, got a tensor on"),
        (lambda x: x.__dlpack__(), NotImplementedError, "data: expected memory of the CPU"),
        (lambda x: x.share_memory_(), NotImplementedError, "data: expected memory of the CPU"),
        (lambda x: weft.zeros(1, device="privateuseone:2"), RuntimeError, "expected a device index below 2"),
        (lambda x: x.to("cuda"), AssertionError, "not compiled with CUDA enabled"),
        (lambda x: weft.Generator(x.device), RuntimeError, "Generator: expected device cpu, got"),
    ],
)  # fmt: skip
def test_refused(call, error, text):
    with pytest.raises(error) as caught:
        call(numbers(3).to(DEVICE))
    assert text in str(caught.value)


def test_scripts_run_on_the_device():
    @weft.jit.script
    def f(x, y):
        for _ in range(3):
            x = (x * y + 1).relu()
        return x.sum()

    for _ in range(4):
        check_same(f(numbers(4).to(DEVICE), numbers(4).to(DEVICE)), f(numbers(4), numbers(4)))


def test_devices_pickle():
    device = weft.device("privateuseone:1")
    assert pickle.loads(pickle.dumps(device)) == device

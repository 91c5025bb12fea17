"""The device meta: results look as they do on the CPU, and nobody gets at elements."""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import pickle
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from op_cases import CASES, Case, calling
from op_cases.realise import realise, to_library
from op_cases.spec import S

import weft
from weft import nn

#: rows whose results have sizes that depend on elements, or are no tensors
REFUSING = {
    *("_unique2", "allclose", "argwhere", "bincount", "equal", "is_nonzero", "item", "nonzero"),
    *("masked_select", "repeat_interleave.Tensor", "repeat_interleave.self_Tensor", "where"),
    *("tensor_split.tensor_indices_or_sections", "unique_consecutive", "unique_dim"),
}
#: rows whose backward asks whether there are zeros
REFUSING_BACKWARD = {"prod", "prod.dim_int", "cumprod"}
SAMPLED = [case.name for case in CASES.values() if case.samples]


def on_meta(value: Any) -> Any:
    """Tensors, also in lists, on meta with the layouts that they have."""
    if isinstance(value, list):
        return list(map(on_meta, value))
    if not isinstance(value, weft.Tensor):
        return value
    layout = tuple(value.shape), value.stride()
    return weft.empty_strided(*layout, dtype=value.dtype, device="meta")


def look(result: Any) -> Any:
    """Sizes, dtypes and strides of the tensors in a result."""
    if isinstance(result, weft.Tensor):
        return tuple(result.shape), result.dtype, result.stride()
    return [look(item) for item in result] if isinstance(result, (tuple, list)) else result


def tensors(value: Any) -> list[weft.Tensor]:
    if isinstance(value, (tuple, list)):
        return list(itertools.chain(*map(tensors, value)))
    return [value] if isinstance(value, weft.Tensor) else []


def calls(case: Case, dtype: str) -> Iterator[tuple[S, S]]:
    """The case's calls in two memory orders: on the CPU, and on meta."""
    for index, sample in enumerate(case.samples):
        for layout in ("contiguous", "transposed") if case.layouts else ("contiguous",):
            here = to_library(realise(sample, case, dtype, index, layout), weft, dtype)
            there = {name: on_meta(value) for name, value in here.kwargs.items()}
            masks = [t for t in tensors(list(here.args)) if t.dtype == weft.bool]
            if case.name == "index.Tensor" and masks:
                continue  # how many elements a mask takes depends on them
            if tensors(list(here.args)):
                yield here, S(*map(on_meta, here.args), **there)


@pytest.mark.parametrize("name", [name for name in SAMPLED if name not in REFUSING])
def test_results_look_as_on_the_cpu(name: str) -> None:
    case = CASES[name]
    for dtype in {case.dtypes[0], case.dtypes[-1]}:
        for here, there in calls(case, dtype):
            result = calling.call(name, there)
            assert {tensor.device.type for tensor in tensors(result)} <= {"meta"}
            assert look(result) == look(calling.call(name, here)), (dtype, here)


@pytest.mark.parametrize("name", sorted(REFUSING & set(SAMPLED)))
def test_results_that_depend_on_elements_are_refused_by_name(name: str) -> None:
    case = CASES[name]
    refused = 0
    for here, there in calls(case, case.dtypes[0]):
        try:
            result = calling.call(name, there)
        except (NotImplementedError, RuntimeError) as error:
            assert re.search(r"on the device meta|item\(\)", str(error))
            refused += 1
        else:
            assert look(result) == look(calling.call(name, here))  # told by sizes alone
    assert refused


def gradients(name: str, sample: S) -> Any:
    """What the gradients of the sum of all results look like."""
    wanted = [t for t in tensors(list(sample.args)) if t.is_floating_point()]
    for tensor in wanted:
        tensor.requires_grad_()
    results = [t for t in tensors(calling.call(name, sample)) if t.requires_grad]
    if not results:
        return []
    try:
        found = weft.autograd.grad(
            results, wanted, list(map(weft.ones_like, results)), allow_unused=True
        )
    except NotImplementedError as error:  # a derivative that nobody wrote
        return str(error)
    return [None if grad is None else (tuple(grad.shape), grad.dtype) for grad in found]


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in SAMPLED
        if name not in REFUSING | REFUSING_BACKWARD and CASES[name].grad and calling.ROWS[name].grad
    ],
)
def test_gradients_look_as_on_the_cpu(name: str) -> None:
    case = CASES[name]
    floats = [dtype for dtype in case.dtypes if dtype in ("float32", "float64")]
    for here, there in itertools.islice(calls(case, floats[0]), 2) if floats else ():
        assert gradients(name, there) == gradients(name, here), here


@pytest.mark.parametrize("name", sorted(REFUSING_BACKWARD))
def test_gradients_that_depend_on_elements_are_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match="cannot be called on meta tensors"):
        gradients(name, next(calls(CASES[name], "float32"))[1])


@pytest.mark.parametrize("drop", [nn.functional.dropout, nn.functional.alpha_dropout])
def test_gradients_flow_through_what_is_drawn(drop: Any) -> None:
    x = weft.empty(40, 3, device="meta", requires_grad=True)
    drop(x, 0.5).sum().backward()
    assert look(x.grad) == look(x)


# ---- what a tensor tells ----

LOSSES_AND_POOLS = {
    "cross entropy of chances": lambda at: nn.functional.binary_cross_entropy(at(2, 3), at(2, 3)),
    "ctc of rows": lambda at: nn.functional.ctc_loss(
        at(5, 2, 4), weft.ones(2, 3, dtype=weft.int64, device=at(1).device), [5, 4], [3, 1]
    ),
    "ctc of a vector": lambda at: nn.functional.ctc_loss(
        at(5, 2, 4), weft.ones(4, dtype=weft.int64, device=at(1).device), [5, 0], [3, 0], 0, "none"
    ),
    "ctc of no steps": lambda at: nn.functional.ctc_loss(
        at(0, 1, 4), weft.ones(1, 1, dtype=weft.int64, device=at(1).device), [0], [0], 0, "sum"
    ),
    "pool with samples": lambda at: nn.functional.fractional_max_pool2d(
        at(1, 3, 5, 7), 2, (2, 3), None, True, at(1, 3, 2)
    ),
    "pool of volumes": lambda at: nn.functional.fractional_max_pool3d(
        at(2, 3, 5, 5, 5), 2, 2, _random_samples=at(2, 3, 3)
    ),
    "pool that draws": lambda at: nn.functional.fractional_max_pool2d(at(1, 3, 5, 7), 2, 2),
}


@pytest.mark.parametrize("name", LOSSES_AND_POOLS)
def test_losses_and_pools_look_as_on_the_cpu(name: str) -> None:
    call: Any = LOSSES_AND_POOLS[name]
    found = []
    for device in ("cpu", "meta"):
        leaves: list[weft.Tensor] = []

        def at(*shape: int, device: str = device, leaves: Any = leaves) -> weft.Tensor:
            leaves.append(weft.full(shape, 0.5, device=device, requires_grad=len(leaves) == 0))
            return leaves[-1]

        result = call(at)
        assert {tensor.device.type for tensor in tensors(result)} == {device}
        tensors(result)[0].sum().backward()
        found.append((look(result), look(leaves[0].grad)))
    assert found[0] == found[1]


REPRS = {
    "floats": (lambda: weft.empty(2, 3, device="meta"), "size=(2, 3)"),
    "number": (lambda: weft.empty((), device="meta"), "size=()"),
    "empty": (lambda: weft.empty(0, device="meta"), "size=(0,)"),
    "integers": (lambda: weft.tensor([1, 2], device="meta"), "size=(2,), dtype=torch.int64"),
    "gradient": (
        lambda: weft.empty(2, device="meta", requires_grad=True),
        "size=(2,), requires_grad=True",
    ),
    "history": (
        lambda: weft.empty(2, device="meta", requires_grad=True).sum(),
        "size=(), grad_fn=<SumBackward0>",
    ),
}


@pytest.mark.parametrize("name", REPRS)
def test_printing_shows_no_elements(name: str) -> None:
    make, rest = REPRS[name]
    assert repr(make()) == f"tensor(..., device='meta', {rest})"


def test_a_tensor_answers_for_its_device() -> None:
    x = weft.empty(3, 4, device="meta:0")
    assert x.device == weft.device("meta") and str(x.device) == "meta"
    assert x.is_meta and not x.is_cpu and not weft.ones(2).is_meta
    assert x.data_ptr() == 0 == x.untyped_storage().data_ptr()
    assert x.untyped_storage().nbytes() == 48 and x.element_size() == 4
    assert x.to("meta") is x and weft.ones(3).to("meta").is_meta
    assert len(x) == 3 and [row.shape for row in x] == [(4,)] * 3


FACTORIES = {
    "empty": lambda **k: weft.empty(2, 3, **k),
    "zeros": lambda **k: weft.zeros(2, 3, **k),
    "ones": lambda **k: weft.ones(2, 3, dtype=weft.int32, **k),
    "full": lambda **k: weft.full((2,), 1.5, **k),
    "tensor": lambda **k: weft.tensor([[1, 2]], **k),
    "as_tensor": lambda **k: weft.as_tensor([1.0], **k),
    "arange": lambda **k: weft.arange(2, 9, 3, **k),
    "arange floats": lambda **k: weft.arange(0, 1, 0.3, **k),
    "linspace": lambda **k: weft.linspace(0, 1, 5, **k),
    "logspace": lambda **k: weft.logspace(0, 1, 5, **k),
    "eye": lambda **k: weft.eye(3, 4, **k),
    "tril_indices": lambda **k: weft.tril_indices(3, 4, -1, **k),
    "triu_indices": lambda **k: weft.triu_indices(3, 4, 1, **k),
    "rand": lambda **k: weft.rand(2, 3, **k),
    "randn": lambda **k: weft.randn(2, 3, dtype=weft.float64, **k),
    "randint": lambda **k: weft.randint(9, (2, 3), **k),
    "randperm": lambda **k: weft.randperm(5, **k),
    "normal": lambda **k: weft.normal(0.0, 1.0, (2, 3), **k),
    "empty_strided": lambda **k: weft.empty_strided((2, 3), (1, 2), **k),
    "channels last": lambda **k: weft.empty(2, 3, 4, 5, memory_format=weft.channels_last, **k),
    "hann_window": lambda **k: weft.hann_window(5, **k),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_factories(name: str) -> None:
    make = FACTORIES[name]
    expected = look(make())
    weft.manual_seed(3)
    before = weft.get_rng_state()
    with weft.device("meta"):
        inside = make()
    for made in (make(device="meta"), inside):
        assert made.is_meta and look(made) == expected
    assert weft.equal(weft.get_rng_state(), before)
    with weft.device("meta"):
        assert not make(device="cpu").is_meta


READS = {
    "item": (lambda x: x.item(), RuntimeError, r"Tensor.item\(\) cannot be called on meta tensors"),
    "bool": (bool, RuntimeError, r"Tensor.item\(\) cannot be called on meta tensors"),
    "float": (float, RuntimeError, r"Tensor.item\(\) cannot be called on meta tensors"),
    "int": (int, RuntimeError, r"Tensor.item\(\) cannot be called on meta tensors"),
    "index": (lambda x: [1, 2][x.long()], RuntimeError, "cannot be called on meta tensors"),
    "numpy": (lambda x: x.numpy(), TypeError, "expected a tensor on the CPU, got one on meta"),
    "asarray": (np.asarray, TypeError, "expected a tensor on the CPU, got one on meta"),
    "tolist": (
        lambda x: x.tolist(),
        NotImplementedError,
        "Cannot copy out of meta tensor; no data!",
    ),
    "cpu": (lambda x: x.cpu(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    "to": (lambda x: x.to("cpu"), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    "copy_": (lambda x: weft.ones(()).copy_(x), NotImplementedError, "Cannot copy out of meta"),
    "format": (lambda x: f"{x:.2f}", RuntimeError, "cannot be called on meta tensors"),
    "memory": (memoryview, (BufferError, NotImplementedError, TypeError), "meta"),
    "dlpack": (lambda x: x.__dlpack__(), (BufferError, NotImplementedError), "meta"),
    "share": (lambda x: x.share_memory_(), (RuntimeError, NotImplementedError), "meta"),
    "two devices": (lambda x: x + weft.ones(2), RuntimeError, "two devices, meta and cpu"),
    "storage": (lambda x: list(x.untyped_storage()), (NotImplementedError, RuntimeError), "meta"),
}


@pytest.mark.parametrize("name", READS)
def test_elements_cannot_be_read(name: str) -> None:
    read, error, text = READS[name]
    with pytest.raises(error, match=text):
        read(weft.empty((), device="meta"))


def test_numbers_of_the_cpu_and_indices_of_the_cpu_are_taken() -> None:
    x = weft.empty(3, 4, device="meta")
    assert look(x + weft.tensor(2.0)) == look(x)
    assert x[weft.tensor([0, 1])].shape == (2, 4)
    assert x.copy_(weft.ones(3, 4)) is x


# ---- gradients, modules, programs ----


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(2)
        self.attention = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.lstm = nn.LSTM(8, 6, num_layers=2, batch_first=True, bidirectional=True)
        self.embedding = nn.Embedding(10, 12)
        self.head = nn.Linear(12, 5)
        self.register_buffer("scale", weft.ones(1))

    def forward(self, x: weft.Tensor, token: weft.Tensor) -> weft.Tensor:
        y = self.pool(self.norm(self.conv(x)).relu()).flatten(2).transpose(1, 2)
        y, _ = self.lstm(self.attention(y))
        return self.head(y + self.embedding(token).unsqueeze(1)) * self.scale


def trained(device: str) -> Any:
    with weft.device(device):
        model = Block()
        x, token = weft.randn(2, 3, 8, 8), weft.zeros(2, dtype=weft.int64)
        target = weft.zeros(32, dtype=weft.int64)
    optimizer = weft.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x, token).flatten(0, 1), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    grads = {name: look(p.grad) for name, p in model.named_parameters()}
    return model, look(loss), grads, {k: look(v) for k, v in model.state_dict().items()}


def test_a_model_trains_on_meta() -> None:
    model, *there = trained("meta")
    assert {tensor.device.type for tensor in model.state_dict().values()} == {"meta"}
    assert there == list(trained("cpu")[1:])


def test_modules_move_to_meta_and_get_memory() -> None:
    model = Block().to("meta")
    assert all(tensor.is_meta for tensor in model.state_dict().values())
    with pytest.raises(NotImplementedError, match=r"to_empty\(device='cpu'\)"):
        model.to("cpu")
    assert all(tensor.is_cpu for tensor in model.to_empty(device="cpu").state_dict().values())
    assert model(weft.ones(1, 3, 8, 8), weft.zeros(1, dtype=weft.int64)).shape == (1, 16, 5)


def test_a_model_made_on_meta_takes_the_tensors_of_a_checkpoint() -> None:
    source = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    with weft.device("meta"):
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    with pytest.warns(UserWarning, match="assign=True"):
        model.load_state_dict(source.state_dict())
    assert model[0].weight.is_meta
    model.load_state_dict(source.state_dict(), assign=True)
    assert isinstance(model[0].weight, nn.Parameter) and model[0].weight.requires_grad
    x = weft.randn(5, 3)
    assert weft.equal(model(x), source(x))


def test_a_checkpoint_without_elements_fills_no_model() -> None:
    with weft.device("meta"):
        state = nn.Linear(2, 3).state_dict()
    with pytest.raises(RuntimeError, match=r'parameter named "weight".*no data'):
        nn.Linear(2, 3).load_state_dict(state)


@contextlib.contextmanager
def empty_weights() -> Iterator[None]:
    """Parameters go to meta as soon as a module gets them, as loaders of large models have it."""
    register = nn.Module.register_parameter

    def register_empty(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        register(module, name, parameter)
        if parameter is not None:
            there = module._parameters[name].to("meta")
            module._parameters[name] = nn.Parameter(there, parameter.requires_grad)

    nn.Module.register_parameter = register_empty
    try:
        yield
    finally:
        nn.Module.register_parameter = register


def test_weights_are_left_out_and_assigned_one_by_one() -> None:
    with empty_weights():
        model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    assert all(parameter.is_meta for parameter in model.parameters())
    source = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    for name, value in source.state_dict().items():
        path, _, last = name.rpartition(".")
        setattr(model.get_submodule(path), last, nn.Parameter(value))
    x = weft.randn(2, 3)
    assert weft.equal(model(x), source(x))


def test_checkpoints_load_on_meta_and_without_elements() -> None:
    file = io.BytesIO()
    state = {"a": weft.ones(2, 3), "t": weft.ones(3, 2).t(), "p": nn.Parameter(weft.ones(4))}
    weft.save(state, file)
    file.seek(0)
    loaded = weft.load(file, map_location="meta")
    assert {name: look(t) for name, t in loaded.items()} == {n: look(t) for n, t in state.items()}
    assert all(tensor.is_meta for tensor in loaded.values()) and loaded["p"].requires_grad
    file = io.BytesIO()
    weft.save(loaded, file)
    file.seek(0)
    again = weft.load(file)
    assert {n: look(t) for n, t in again.items()} == {n: look(t) for n, t in state.items()}
    assert all(tensor.is_meta for tensor in again.values())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_stay_on_meta(copied: Any) -> None:
    x = weft.empty(4, 3, device="meta", requires_grad=True)
    assert copied(x).is_meta and copied(x).requires_grad
    views = copied([x.detach(), x.detach().t()])
    assert look(views) == look([x, x.t()]) and views[0]._storage_key() == views[1]._storage_key()


def test_operators_of_programs_run_what_register_fake_gave() -> None:
    @weft.library.custom_op("meta_test::rows", mutates_args=())
    def rows(x: weft.Tensor, count: int) -> weft.Tensor:
        return weft.from_numpy(np.repeat(x.numpy(), count, axis=0))

    x = weft.empty(2, 3, device="meta")
    with pytest.raises((NotImplementedError, TypeError), match="meta"):
        rows(x, 2)
    rows.register_fake(lambda x, count: x.new_empty(count * x.shape[0], x.shape[1]))
    assert rows(x, 2).shape == (4, 3) and rows(x, 2).is_meta
    assert weft.ops.meta_test.rows(weft.ones(1, 2), 3).sum() == 6


def test_a_default_device() -> None:
    weft.set_default_device("meta")
    try:
        assert weft.get_default_device() == weft.device("meta")
        assert weft.ones(2).is_meta and nn.Linear(2, 3).weight.is_meta
        with weft.device("cpu"):
            assert weft.ones(2).is_cpu
    finally:
        weft.set_default_device(None)
    assert weft.ones(2).is_cpu


def test_scripts_run_on_meta() -> None:
    @weft.jit.script
    def f(x: weft.Tensor, y: weft.Tensor) -> weft.Tensor:
        for _ in range(3):
            x = (x * y + 1).relu() @ y.t()
        return x.softmax(-1).sum(0)

    x, y = weft.empty(4, 4, device="meta"), weft.empty(4, 4, device="meta")
    for _ in range(4):
        assert look(f(x, y)) == look(f(weft.ones(4, 4), weft.ones(4, 4)))


def test_large_tensors_cost_nothing() -> None:
    x = weft.empty(1 << 20, 1 << 20, device="meta")  # 4 TiB
    assert (x @ x + 1).relu().cumsum(0).shape == x.shape
    assert nn.Linear(1 << 20, 1 << 20, device="meta").weight.shape == x.shape

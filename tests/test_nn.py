"""Modules: registration, state, hooks, printing, errors, and equality with PyTorch's."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import weft
from weft import nn


def small_net(lib: Any) -> Any:
    n = lib.nn
    return n.Sequential(
        n.Conv2d(1, 4, 3, padding=1),
        n.BatchNorm2d(4),
        n.ReLU(),
        n.MaxPool2d(2),
        n.Flatten(),
        n.Dropout(0.0),
        n.Linear(64, 5),
    )


def images(lib: Any) -> Any:
    values = np.random.default_rng(0).standard_normal((6, 1, 8, 8), dtype=np.float32)
    return lib.from_numpy(values)


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(2, 2)
        self.again = self.shared
        self.scale = nn.Parameter(weft.ones(2))
        self.register_buffer("offset", weft.zeros(2))
        self.register_buffer("scratch", weft.zeros(2), persistent=False)
        self.register_parameter("missing", None)

    def forward(self, x: weft.Tensor) -> weft.Tensor:
        return self.again(self.shared(x)) * self.scale + self.offset


# Registration -------------------------------------------------------------------------------------


def test_members_are_listed_once_in_order() -> None:
    net = Branches()
    assert [n for n, _ in net.named_parameters()] == ["scale", "shared.weight", "shared.bias"]
    assert [n for n, _ in net.named_buffers()] == ["offset", "scratch"]
    assert [n for n, _ in net.named_modules()] == ["", "shared"]
    assert [n for n, _ in net.named_children()] == ["shared"]
    assert len([*net.named_parameters(remove_duplicate=False)]) == 5
    assert net.missing is None and "missing" in net._parameters
    assert net.get_parameter("shared.weight") is net.shared.weight
    assert net.get_submodule("again") is net.shared


def test_assignment_keeps_the_kind() -> None:
    net = Branches()
    new = nn.Parameter(weft.zeros(2))
    net.scale = new
    assert dict(net.named_parameters())["scale"] is new
    with pytest.raises(TypeError, match=r"^scale: expected a Parameter or None, got "):
        net.scale = weft.zeros(2)
    net.offset = weft.ones(2)
    assert net._buffers["offset"].tolist() == [1, 1]
    with pytest.raises(TypeError, match=r"^shared: expected a Module or None, got int$"):
        net.shared = 3
    del net.shared
    assert "shared" not in net._modules and not hasattr(net, "shared")
    net.offset = nn.Parameter(weft.ones(2))  # a buffer may become a parameter
    assert "offset" in net._parameters and "offset" not in net._buffers


def test_views_of_members_write_through() -> None:
    net = nn.Linear(2, 2)
    net._parameters["weight"] = None
    assert net.weight is None
    del net._parameters["weight"]
    assert not hasattr(net, "weight")
    net._modules["child"] = nn.ReLU()
    assert isinstance(net.child, nn.ReLU) and list(net._modules) == ["child"]


def test_registration_errors() -> None:
    class Early(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.ReLU()

    with pytest.raises(AttributeError, match=r"expected Module.__init__\(\) to be called before"):
        Early()
    net = nn.Module()
    with pytest.raises(KeyError, match=r"expected a non-empty name without '\.', got 'a\.b'"):
        net.register_parameter("a.b", None)
    with pytest.raises(KeyError, match="expected an unused name, got the attribute 'forward'"):
        net.register_buffer("forward", None)
    with pytest.raises(TypeError, match="expected a Parameter or None for 'p', got int"):
        net.register_parameter("p", 1)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="'Module' object has no attribute 'absent'"):
        net.absent  # noqa: B018
    with pytest.raises(NotImplementedError, match="missing the required"):
        net(1)


def test_modules_are_freed_without_the_garbage_collector() -> None:
    gc.disable()
    try:
        net = Branches()
        watcher = weakref.ref(net)
        del net
        assert watcher() is None
    finally:
        gc.enable()


# State --------------------------------------------------------------------------------------------


def test_state_dict_round_trip() -> None:
    source, target = small_net(weft), small_net(weft)
    source(images(weft))
    state = source.state_dict()
    assert list(state)[-3:] == ["1.num_batches_tracked", "6.weight", "6.bias"]
    assert state["6.weight"].data_ptr() == source[6].weight.data_ptr()
    assert not state["6.weight"].requires_grad
    assert repr(target.load_state_dict(state)) == "<All keys matched successfully>"
    source.eval(), target.eval()
    assert source(images(weft)).tolist() == target(images(weft)).tolist()
    assert "scratch" not in Branches().state_dict()


def test_load_state_dict_names_every_problem() -> None:
    net = nn.Sequential(OrderedDict(a=nn.Linear(2, 3), b=nn.Linear(3, 1)))
    state = net.state_dict()
    del state["a.bias"]
    state["c.weight"] = weft.zeros(1)
    state["b.weight"] = weft.zeros(1, 2)
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "a.bias". \n'
        '\tUnexpected key(s) in state_dict: "c.weight". \n'
        "\tsize mismatch for b.weight: copying a param with shape torch.Size([1, 2]) from "
        "checkpoint, the shape in current model is torch.Size([1, 3])."
    )
    state["b.weight"] = weft.zeros(1, 3)
    keys = net.load_state_dict(state, strict=False)
    assert (keys.missing_keys, keys.unexpected_keys) == (["a.bias"], ["c.weight"])
    assert repr(keys).startswith("_IncompatibleKeys(missing_keys=['a.bias'], unexp")


def test_load_by_assignment_takes_the_tensors() -> None:
    net = nn.Linear(2, 2)
    state = {name: value.clone() for name, value in net.state_dict().items()}
    net.load_state_dict(state, assign=True)
    assert net.weight.data_ptr() == state["weight"].data_ptr()
    assert isinstance(net.weight, nn.Parameter) and net.weight.requires_grad


def test_copies_and_pickles() -> None:
    net = small_net(weft)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert list(twin.state_dict()) == list(net.state_dict())
        assert twin[0].weight is not net[0].weight
        assert isinstance(twin[0].weight, nn.Parameter)
        assert twin[0].weight.tolist() == net[0].weight.tolist()


# Behaviour ----------------------------------------------------------------------------------------


def test_modes_and_conversion() -> None:
    net = small_net(weft)
    assert not net.eval()[5].training and net.train()[5].training
    net.double()
    assert net[0].weight.dtype == weft.float64 and net[1].running_mean.dtype == weft.float64
    assert net[1].num_batches_tracked.dtype == weft.int64
    weight = net[6].weight
    net.to(weft.float32)
    assert net[6].weight is weight and weight.dtype == weft.float32
    net(images(weft)).sum().backward()
    assert weight.grad is not None
    net.zero_grad()
    assert weight.grad is None
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    visited: list[str] = []
    net.apply(lambda m: visited.append(type(m).__name__))
    assert visited[-1] == "Sequential" and visited[0] == "Conv2d"
    with pytest.raises(TypeError, match="expected a floating point or complex dtype"):
        net.to(weft.int64)


DOUBLE = weft.zeros((), dtype=weft.float64)


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((weft.float64,), {}),
        (("cpu", weft.float64), {}),
        ((DOUBLE,), {}),
        ((), {"tensor": DOUBLE}),
        ((), {"device": weft.device("cpu"), "dtype": weft.float64}),
    ],
)
def test_to_takes_its_arguments_in_all_forms(args: tuple[Any, ...], named: dict[str, Any]) -> None:
    blocking = ((), (False,), (True,)) if args else ((),)
    forms = [((*args, *rest), named) for rest in blocking]
    for given, names in (*forms, (args, {**named, "non_blocking": True})):
        net = nn.Linear(1, 1)
        assert net.to(*given, **names) is net
        assert net.weight.dtype == weft.float64


@pytest.mark.parametrize("value", [1.5, (weft.float64,), nn.ReLU()])
def test_to_refuses_what_is_no_device_or_dtype(value: Any) -> None:
    name = type(value).__name__
    with pytest.raises(TypeError, match=f"Module.to: expected device or dtype, got {name}"):
        nn.Linear(1, 1).to(value)


def test_forward_hooks() -> None:
    net, seen = nn.Linear(2, 1), []
    pre = net.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    post = net.register_forward_hook(lambda m, args, out: seen.append(args[0].tolist()) or out + 1)
    x = weft.ones(1, 2)
    assert net(x).item() == pytest.approx(
        nn.functional.linear(x * 2, net.weight, net.bias).item() + 1
    )
    assert seen == [[[2, 2]]]
    pre.remove(), post.remove()
    assert net(x).tolist() == nn.functional.linear(x, net.weight, net.bias).tolist()


def test_full_backward_hooks() -> None:
    net, seen = nn.Linear(2, 1, bias=False), []
    net.register_full_backward_pre_hook(lambda m, out: (out[0] * 3,))

    def hook(module: Any, grad_input: Any, grad_output: Any) -> Any:
        seen.append((grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 2,)

    net.register_full_backward_hook(hook)
    x = weft.ones(1, 2, requires_grad=True)
    net(x).sum().backward()
    weight = np.array(net.weight.tolist())
    np.testing.assert_allclose(seen[0][0], weight * 3, rtol=1e-6)
    assert seen[0][1] == [[3.0]]
    np.testing.assert_allclose(x.grad.tolist(), weight * 6, rtol=1e-6)


def test_containers() -> None:
    layers = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1)])
    layers.append(nn.ReLU()).insert(0, nn.Tanh())
    assert [type(m).__name__ for m in layers] == ["Tanh", "Linear", "Linear", "ReLU"]
    assert len(layers[1:3]) == 2 and layers[-1] is layers[3]
    del layers[0]
    assert next(iter(layers.state_dict())) == "0.weight"
    with pytest.raises(IndexError, match=r"expected an index in \[-3, 3\), got 3"):
        layers[3]
    table = nn.ModuleDict({"a": nn.ReLU()})
    table["b"] = nn.Tanh()
    assert list(table) == ["a", "b"] and "a" in table
    assert table.keys() & {"b", "c"} == {"b"} and repr(table.keys()) == "dict_keys(['a', 'b'])"
    assert table.pop("a") is not None
    net = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    assert len(net[:1]) == 1 and isinstance(net[:1], nn.Sequential)
    assert len(nn.ParameterList([weft.ones(2), weft.ones(3)])) == 2


def test_parameter() -> None:
    p = nn.Parameter(weft.ones(2))
    assert isinstance(p, weft.Tensor) and p.requires_grad and p.is_leaf
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert type(p + 1) is weft.Tensor
    data = weft.zeros(2)
    assert nn.Parameter(data).data_ptr() == data.data_ptr()


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="expected p between 0 and 1, got 2"):
        nn.Dropout(2)
    with pytest.raises(ValueError, match=r"expected 4D input \(got 2D input\)"):
        nn.BatchNorm2d(3)(weft.ones(2, 3))
    with pytest.raises(ValueError, match="expected more than 1 value per channel"):
        nn.BatchNorm1d(3)(weft.ones(1, 3))
    with pytest.raises(ValueError, match="expected reduction 'none', 'mean' or 'sum', got 'max'"):
        nn.MSELoss(reduction="max")(weft.ones(1), weft.ones(1))
    with pytest.raises(ValueError, match="expected groups that divide both channel counts"):
        nn.Conv2d(3, 4, 1, groups=2)
    with pytest.raises(AssertionError, match=r"expected padding_idx in \[-4, 4\), got 9"):
        nn.Embedding(4, 2, padding_idx=9)


def test_initialisers() -> None:
    for fill in (nn.init.orthogonal_, nn.init.eye_):
        w = fill(weft.empty(4, 4))
        np.testing.assert_allclose((w @ w.t()).numpy(), np.eye(4), atol=1e-5)
    w = nn.init.trunc_normal_(weft.empty(20000), std=1.0, a=-1.0, b=1.0)
    assert w.min().item() >= -1 and w.max().item() <= 1
    assert w.std().item() == pytest.approx(0.5395, abs=0.02)
    w = nn.init.sparse_(weft.empty(10, 3), 0.3)
    assert (w == 0).sum(0).tolist() == [3, 3, 3]
    w = nn.init.dirac_(weft.empty(2, 2, 3))
    assert w.sum().item() == 2 and w[0, 0, 1].item() == 1
    assert nn.init.calculate_gain("leaky_relu", 1) == 1.0


def test_gradient_clipping_and_vectors() -> None:
    p, q = nn.Parameter(weft.zeros(2)), nn.Parameter(weft.zeros(2))
    p.grad, q.grad = weft.tensor([3.0, 0.0]), weft.tensor([0.0, 4.0])
    assert nn.utils.clip_grad_norm_([p, q], 1.0).item() == pytest.approx(5.0)
    np.testing.assert_allclose(p.grad.tolist() + q.grad.tolist(), [0.6, 0, 0, 0.8], rtol=1e-5)
    nn.utils.clip_grad_value_([p, q], 0.5)
    assert q.grad.max().item() == 0.5
    vector = nn.utils.parameters_to_vector([p, q])
    nn.utils.vector_to_parameters(vector + weft.arange(4.0), [p, q])
    assert (p.tolist(), q.tolist()) == ([0, 1], [2, 3])


def test_scaled_dot_product_attention() -> None:
    q = weft.randn(2, 3, 4)
    out = nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    assert out.shape == (2, 3, 4)
    np.testing.assert_allclose(out[:, 0].tolist(), q[:, 0].tolist(), rtol=1e-5)


@pytest.mark.parametrize("momentum", [0.1, None])
def test_statistics_that_are_no_longer_tracked_stay(momentum: float | None) -> None:
    """track_running_stats may be switched off later: training leaves the statistics and the count."""
    norm = nn.BatchNorm1d(3, momentum=momentum)
    norm(weft.randn(8, 3) + 5)
    norm.track_running_stats = False
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    x = weft.randn(8, 3)
    out = norm(x)
    assert all(weft.equal(value, before[name]) for name, value in norm.state_dict().items())
    mean, var = x.mean(0), x.var(0, correction=0)
    np.testing.assert_allclose(
        out.detach(), (x - mean) / (var + norm.eps).sqrt(), rtol=1e-4, atol=1e-5
    )
    norm.eval()
    expected = (x - before["running_mean"]) / (before["running_var"] + norm.eps).sqrt()
    np.testing.assert_allclose(norm(x).detach(), expected, rtol=1e-4, atol=1e-5)


# Parity -------------------------------------------------------------------------------------------

MODULES = [
    "nn.Linear(3, 4)",
    "nn.Linear(3, 4, bias=False)",
    "nn.Conv1d(2, 4, 3, stride=2, padding=1)",
    "nn.Conv2d(2, 4, (3, 2), stride=2, padding=1, dilation=(1, 2), groups=2, bias=False)",
    "nn.BatchNorm1d(3)",
    "nn.BatchNorm2d(3, momentum=None, affine=False, track_running_stats=False)",
    "nn.LayerNorm((2, 3))",
    "nn.LayerNorm(3, bias=False)",
    "nn.LayerNorm(3, elementwise_affine=False)",
    "nn.Dropout(0.25)",
    "nn.ReLU(inplace=True)",
    "nn.GELU()",
    "nn.SiLU()",
    "nn.LeakyReLU(0.2)",
    "nn.Softmax(dim=1)",
    "nn.LogSoftmax(dim=-1)",
    "nn.MaxPool2d(2)",
    "nn.AvgPool2d((2, 3), stride=1)",
    "nn.AdaptiveAvgPool2d((1, None))",
    "nn.Flatten()",
    "nn.Unflatten(1, (2, 2))",
    "nn.Identity()",
    "nn.Embedding(5, 2, padding_idx=-1)",
    "nn.CrossEntropyLoss()",
    "nn.BCEWithLogitsLoss()",
    "nn.Sequential()",
    "nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()])",
    "nn.ModuleDict({'a': nn.Sequential(nn.ReLU(), nn.Tanh())})",
    "nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Sigmoid()), nn.Identity())",
]


@pytest.mark.parity
@pytest.mark.parametrize("text", MODULES)
def test_repr_state_and_initialisation_equal_torch(text: str) -> None:
    torch = pytest.importorskip("torch")
    built = []
    for lib in (weft, torch):
        lib.manual_seed(3)
        built.append(eval(text, {"nn": lib.nn}))
    ours, theirs = built
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for mine, other in zip(ours.state_dict().values(), theirs.state_dict().values()):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-6, atol=1e-7)


LOSSES = [
    ("CrossEntropyLoss", {}),
    ("CrossEntropyLoss", {"reduction": "sum", "ignore_index": 1}),
    ("NLLLoss", {"reduction": "none"}),
    ("MSELoss", {}),
    ("L1Loss", {"reduction": "sum"}),
    ("BCEWithLogitsLoss", {"reduction": "none"}),
]


@pytest.mark.parity
@pytest.mark.parametrize(("name", "options"), LOSSES)
def test_losses_equal_torch(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    logits = rng.standard_normal((6, 4), dtype=np.float32)
    classes = name in ("CrossEntropyLoss", "NLLLoss")
    target = rng.integers(0, 4, 6) if classes else rng.random((6, 4), dtype=np.float32)
    results = []
    for lib in (weft, torch):
        x = lib.tensor(logits, requires_grad=True)
        loss = getattr(lib.nn, name)(**options)(x, lib.tensor(target))
        loss.sum().backward()
        results.append((loss.detach().numpy(), x.grad.numpy()))
    for mine, other in zip(*results):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parity
def test_a_network_forward_and_backward_equals_torch() -> None:
    torch = pytest.importorskip("torch")
    nets = [small_net(weft), small_net(torch)]
    state = {k: torch.from_numpy(v.numpy().copy()) for k, v in nets[0].state_dict().items()}
    nets[1].load_state_dict(state)
    for _ in range(2):
        outputs = [net(images(lib)) for net, lib in zip(nets, (weft, torch))]
        for out in outputs:
            (out * out).sum().backward()
        np.testing.assert_allclose(
            outputs[0].detach().numpy(), outputs[1].detach().numpy(), rtol=1e-4, atol=1e-5
        )
    for mine, other in zip(nets[0].parameters(), nets[1].parameters()):
        # The convolution's bias has no influence after batch norm: its gradient is rounding noise.
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-3, atol=1e-3)
    for mine, other in zip(nets[0].buffers(), nets[1].buffers()):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parity
def test_load_state_dict_message_equals_torch() -> None:
    torch = pytest.importorskip("torch")
    messages = []
    for lib in (weft, torch):
        net = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.BatchNorm1d(3))
        state = lib.nn.Sequential(lib.nn.Linear(2, 4), lib.nn.ReLU(), lib.nn.ReLU()).state_dict()
        state["0.weight.extra"] = state["2.bias"] = lib.ones(1)
        with pytest.raises(RuntimeError) as caught:
            net.load_state_dict(state)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]

"""weft.jit.trace of modules: parameters, buffers, submodules, several methods, other programs."""

from __future__ import annotations

import copy
import gc
import sys
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import weft
from weft import jit, nn
from weft.jit.ir import ClassType

X = weft.arange(6.0).reshape(2, 3)


def quiet_trace(*args: Any, **kwargs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return jit.trace(*args, **kwargs)


def equal(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 4), nn.Linear(4, 3)])
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("steps", weft.zeros(()))
        self.register_buffer("nothing", None)
        self.tied = self.layers[0]
        self.scale = 2.0

    def forward(self, x):
        y = self.layers[1](self.layers[0](x).relu())
        self.steps = self.steps + 1
        return self.norm(y) * self.scale + self.tied(x).sum() * self.steps

    def twice(self, x):
        return self.layers[0](x) * 2 + self.steps

    @property
    def width(self):
        return 3


def test_a_traced_module_shares_its_parameters() -> None:
    module = Block()
    reference = copy.deepcopy(module)
    traced = quiet_trace(module, X, check_trace=False)
    reference(X)
    assert isinstance(traced, jit.ScriptModule)
    assert isinstance(traced, jit.TopLevelTracedModule)
    assert list(traced.state_dict()) == list(module.state_dict())
    assert [n for n, _ in traced.named_parameters()] == [n for n, _ in module.named_parameters()]
    assert traced.layers[0].weight is module.layers[0].weight
    assert traced.tied is traced.layers[0]
    assert traced.original_name == "Block"
    for x in (X, weft.randn(5, 3)):
        equal(traced(x), reference(x))
        traced(x).sum().backward()
        reference(x).sum().backward()
    for (_, a), (name, b) in zip(traced.named_parameters(), reference.named_parameters()):
        np.testing.assert_array_equal(a.grad.numpy(), b.grad.numpy(), err_msg=name)
    for (_, a), (_, b) in zip(traced.named_buffers(), reference.named_buffers()):
        equal(a, b)
    assert float(traced.steps) == 5


def test_buffers_that_are_set_are_set_in_every_call() -> None:
    traced = quiet_trace(Block(), X, check_trace=False)
    assert "prim::SetAttr" in str(traced.graph)
    before = float(traced.steps)
    traced(X)
    assert float(traced.steps) == before + 1


def test_a_tensor_that_is_set_but_no_buffer_warns() -> None:
    class Remembers(nn.Module):
        def forward(self, x):
            self.last = x * 2
            return self.last + 1

    with pytest.warns(jit.TracerWarning, match="attribute last was set"):
        jit.trace(Remembers(), X, check_trace=False)


def test_modes() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).eval()
    traced = quiet_trace(module, X)
    assert traced.training is False
    traced.train()
    assert traced[1].training
    equal(traced(X), module(X))  # the trace is of eval mode


def test_trace_module() -> None:
    module = Block().eval()
    inputs = {"forward": (X,), "twice": (X,)}
    traced = jit.trace_module(module, inputs, check_trace=False)
    reference = copy.deepcopy(module)
    for x in (X, weft.randn(4, 3)):
        equal(traced(x), reference(x))
        equal(traced.twice(x), reference.twice(x))
    assert str(traced.twice.schema).startswith("twice(")
    with pytest.raises(AttributeError, match="expected a dict"):
        jit.trace_module(module, X)
    with pytest.raises(AttributeError, match="expected a module"):
        jit.trace_module(lambda x: x, {"forward": X})
    with pytest.raises(AttributeError):
        jit.trace_module(module, {"nope": X})


def test_trace_of_a_bound_forward_is_one_of_the_module() -> None:
    assert isinstance(quiet_trace(nn.Linear(3, 2).forward, X), jit.TopLevelTracedModule)


def test_names() -> None:
    module = nn.Bilinear(3, 3, 2)
    traced = quiet_trace(module, example_kwarg_inputs={"input2": X, "input1": X + 1})
    equal(traced(input1=X, input2=X * 2), module(X, X * 2))
    equal(traced(X, X * 2), module(X, X * 2))  # in the order of the signature
    traced = jit.trace_module(
        module, {"forward": {"input1": X, "input2": X}}, example_inputs_is_kwarg=True
    )
    equal(traced(X, X * 2), module(X, X * 2))


def test_hooks_are_recorded() -> None:
    module = nn.Linear(3, 2)
    module.register_forward_hook(lambda mod, args, out: out * 3)
    module.register_forward_pre_hook(lambda mod, args: (args[0] + 1,))
    equal(quiet_trace(module, X)(-X), module(-X))


class Decides(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(weft.tensor([1.0, 2.0, 3.0]))

    def forward(self, x):
        if bool(x.sum() > 3):
            return x * self.weight
        return x - self.weight


class Holds(nn.Module):
    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(self.inner(x)) + self.inner.weight


def test_scripted_submodules_keep_their_control_flow() -> None:
    module = Holds(jit.script(Decides()))
    traced = quiet_trace(module, X)
    assert "prim::CallFunction" in str(traced.graph)
    for x in (X, -X):
        equal(traced(x), module(x))
    traced(X).sum().backward()
    assert traced.inner.weight.grad is not None


def test_scripted_modules_hold_traced_ones() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = quiet_trace(nn.Sequential(nn.Linear(3, 3), nn.Tanh()), X)

        def forward(self, x, n: int):
            for _ in range(n):
                x = self.inner(x)
            return x

    module = Outer()
    scripted = jit.script(module)
    equal(scripted(X, 2), module.inner(module.inner(X)))
    scripted(X, 2).sum().backward()
    assert module.inner[0].weight.grad is not None


def test_modules_outside_the_traced_one_are_refused() -> None:
    scripted = jit.script(Decides())
    with pytest.raises(RuntimeError, match="submodules of the traced one"):
        jit.trace(lambda x: scripted(x), X)
    linear = nn.Linear(3, 3)
    with pytest.raises(RuntimeError, match="do not require grad"):
        jit.trace(lambda x: linear(x), X)


def test_only_what_was_traced_can_be_called() -> None:
    traced = quiet_trace(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), X)
    with pytest.raises(NotImplementedError, match="got none"):
        traced[0](X)
    assert not hasattr(traced, "twice")


def test_dropout_of_training_warns_with_its_line() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    with pytest.warns(
        jit.TracerWarning, match=r"aten::dropout of training.*call \.eval\(\)"
    ) as told:
        jit.trace(module, X)
    assert told[0].filename.endswith("_dropout_functions.py") and told[0].lineno > 1
    quiet_trace(module, X, check_trace=False)
    quiet_trace(nn.Sequential(nn.Dropout(0.0)), X)
    traced = quiet_trace(module.eval(), X)
    equal(traced(X), module(X))


@pytest.mark.parametrize("proj_size", [0, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_recurrent_layers_are_traced_for_any_length(
    kind: Any, bidirectional: bool, proj_size: int
) -> None:
    more = {"proj_size": proj_size} if kind is nn.LSTM else {}
    module = kind(3, 4, 2, bidirectional=bidirectional, batch_first=True, **more)
    traced = quiet_trace(module, weft.randn(2, 2, 3))
    state = module(weft.randn(3, 1, 3))[1]
    with_state = quiet_trace(module, (weft.randn(3, 2, 3), state))
    for length in (1, 2, 7):
        x = weft.randn(3, length, 3)
        equal(traced(x)[0], module(x)[0])
        equal(with_state(x, state)[0], module(x, state)[0])
        (expected,) = weft.autograd.grad(module(x)[0].sum(), [module.weight_hh_l0])
        (got,) = weft.autograd.grad(traced(x)[0].sum(), [traced.weight_hh_l0])
        equal(got, expected)
    with pytest.raises(RuntimeError, match="expected at least 1 step, got 0"):
        traced(weft.randn(3, 0, 3))


MODULES = {
    "conv": (lambda: nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(),
                                   nn.MaxPool2d(2), nn.Flatten(2)), (2, 2, 6, 6), (3, 2, 8, 4)),
    "transposed": (lambda: nn.ConvTranspose2d(2, 3, 2, stride=2), (1, 2, 3, 3), (2, 2, 4, 5)),
    "norms": (lambda: nn.Sequential(nn.LayerNorm(4), nn.GroupNorm(2, 6), nn.InstanceNorm1d(6)),
              (2, 6, 4), (3, 6, 4)),
    "attention": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 3, 8),
                  (2, 3, 8)),
    "pools": (lambda: nn.Sequential(nn.AvgPool2d(2), nn.AdaptiveAvgPool2d((2, 1))), (1, 2, 6, 6),
              (2, 2, 8, 10)),
    "upsample": (lambda: nn.Upsample(scale_factor=2), (1, 2, 3, 3), (2, 2, 4, 5)),
    "activations": (lambda: nn.Sequential(nn.GELU(), nn.Softmax(-1), nn.PReLU(), nn.Softplus(),
                                          nn.Hardswish(), nn.GLU(1)), (2, 4), (5, 6)),
    "pixel shuffle": (lambda: nn.PixelShuffle(2), (1, 4, 3, 3), (2, 8, 2, 5)),
    "padding": (lambda: nn.ReflectionPad2d(1), (1, 1, 3, 4), (2, 3, 5, 3)),
}  # fmt: skip


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", MODULES)
def test_modules_of_the_library(name: str, training: bool) -> None:
    make, shape, other = MODULES[name]
    weft.manual_seed(0)
    module = make().train(training)
    reference = copy.deepcopy(module)
    traced = quiet_trace(module, weft.randn(shape), check_trace=False)
    traced.load_state_dict(reference.state_dict())
    for size in (shape, other):
        x = weft.randn(size)
        weft.manual_seed(3)
        expected = reference(x)
        weft.manual_seed(3)
        equal(traced(x), expected)


@pytest.mark.filterwarnings("ignore::weft.jit.TracerWarning")
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_modules(kind: Any) -> None:
    module = kind(3, 4, num_layers=2, batch_first=True)
    traced = jit.trace(module, weft.randn(2, 5, 3))
    x = weft.randn(2, 5, 3)
    equal(traced(x)[0], module(x)[0])


# Memory -----------------------------------------------------------------------------------------


def test_a_trace_keeps_nothing_of_what_it_saw() -> None:
    class Watched(nn.Module):
        def forward(self, x):
            y = x * 2
            seen.append(weakref.ref(y))
            return y + 1

    seen: list[Any] = []
    module = Watched()
    traced = jit.trace(module, X)
    gc.collect()
    assert seen
    assert all(each() is None for each in seen)
    given = X.clone()
    count = sys.getrefcount(given)
    for _ in range(5):
        jit.trace(lambda x: x[0] + x.shape[0] * x.T.sum(), given)
        traced(given)
    gc.collect()
    assert sys.getrefcount(given) == count


def test_a_trace_that_fails_keeps_nothing() -> None:
    given = X.clone()
    count = sys.getrefcount(given)
    for function in (
        lambda x: x.view(weft.int32),
        lambda x: x + "a",
        lambda x: weft.zeros(x.shape, 3),
    ):
        for _ in range(3):
            with pytest.raises((RuntimeError, TypeError)):
                jit.trace(function, given)
    gc.collect()
    assert sys.getrefcount(given) == count


@pytest.mark.parametrize("compile", [jit.script, lambda module: jit.trace(module, weft.ones(1, 2))])
def test_modules_and_their_types_are_freed(compile):
    def types():
        gc.collect()
        return sum(type(each) is ClassType for each in gc.get_objects())

    def use():
        class Local(weft.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = weft.nn.Linear(2, 2)

            def forward(self, x):
                return self.inner(x).relu() * 2

        module = Local()
        program = compile(module)
        for _ in range(3):
            program(weft.ones(1, 2))
        return weakref.ref(module), weakref.ref(program)

    use()
    before = types()
    made = [use() for _ in range(5)]
    assert types() - before <= 2  # the thread that compiles groups may hold the last one
    assert sum(each() is not None for pair in made for each in pair) <= 2

"""weft.compile: programs where they do the same as Python, and a word where Python runs."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import pytest

import weft
from weft import nn
from weft.compiler.optimized_module import OptimizedModule

SCALE = 2.0


def _scaled(x):
    return x * SCALE


def _times(x, n):
    return x * n


def _reads_files(x):
    with open("/dev/null") as file:
        return x + len(file.read())


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x + 1


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = 2.0
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(x) * self.scale


@pytest.fixture
def strict() -> Any:
    """Python must not run."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_functions_run_as_programs(strict: Any) -> None:
    calls = []

    def f(x, y):
        return (x * y).sum()

    compiled = weft.compile(f)
    x = weft.ones(3, requires_grad=True)
    result = compiled(x, y=weft.full((3,), 2.0))
    result.backward()
    assert result.item() == 6 and x.grad.tolist() == [2, 2, 2] and not calls
    assert compiled(weft.ones(2, 2), weft.ones(2)).item() == 4  # another shape
    decorated = weft.compile(fullgraph=True, dynamic=True, mode="max-autotune")(f)
    assert decorated(weft.ones(3), weft.ones(3)).item() == 3 and decorated.__name__ == "f"


def test_modules_share_everything(strict: Any) -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.ReLU())
    compiled = weft.compile(module)
    x = weft.ones(4, 2)
    for training in (True, False, True):
        compiled.train(training)
        weft.manual_seed(0)
        ours = compiled(x)
        weft.manual_seed(0)
        assert (ours == module(x)).all() and module.training == training
    compiled(x).sum().backward()
    assert module[0].weight.grad is not None and compiled._orig_mod[0] is module[0]
    assert next(iter(compiled.state_dict())) == "_orig_mod.0.weight"
    assert compiled._orig_mod is module and isinstance(compiled, OptimizedModule)
    twin = copy.deepcopy(compiled)
    assert twin._orig_mod[0].weight is not module[0].weight
    nn.init.zeros_(module[0].weight)  # in place: the program sees it
    assert (compiled.eval()(x) == module(x)).all()
    loaded = pickle.loads(pickle.dumps(weft.compile(Scaled())))
    assert isinstance(loaded, OptimizedModule)


def test_changed_attributes_and_parameters_are_seen(strict: Any) -> None:
    module = Scaled()
    compiled = weft.compile(module)
    x = weft.ones(1, 2)
    assert (compiled(x) == module(x)).all()
    module.scale = 5.0
    assert (compiled(x) == module(x)).all()
    module.linear = nn.Linear(2, 2)
    assert (compiled(x) == module(x)).all()
    module.linear.weight = nn.Parameter(weft.zeros(2, 2))
    assert (compiled(x) == module(x)).all()


def test_compile_in_place(strict: Any) -> None:
    module = Scaled()
    x = weft.ones(1, 2)
    before = module(x)
    module.compile()
    assert (module(x) == before).all() and module.forward.program is not None
    assert list(module.state_dict()) == ["linear.weight", "linear.bias"]
    twin = copy.deepcopy(module)
    nn.init.zeros_(twin.linear.weight)
    assert (module(x) == before).all() and not (twin(x) == before).all()
    seen: list[Any] = []
    for one in (module, weft.compile(Scaled())):
        one.register_forward_hook(lambda m, args, output: seen.append(output))
    with pytest.warns(UserWarning, match="hooks of Scaled"):
        assert (module(x) == before).all() and len(seen) == 1
    one(x)
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("make", "args", "reason"),
    [
        (lambda: _times, (3,), "arguments that are not those of"),
        (lambda: _reads_files, (), "open"),
        (Counter, (), "a forward that assigns attributes"),
        (lambda: nn.Sequential(_hooked()), (), "hooks of Linear"),
    ],
)
def test_python_runs_and_says_why(make: Any, args: Any, reason: str) -> None:
    original = make()
    compiled = weft.compile(original)
    x = weft.ones(1, 2)
    with pytest.warns(UserWarning, match=f"compile: .* runs in Python: .*{reason}"):
        result = compiled(x, *args)
    with warnings.catch_warnings():  # said once
        warnings.simplefilter("error")
        assert (compiled(x, *args) == result).all()
    assert (original(x, *args) == result).all()
    with pytest.raises(RuntimeError, match=r"compile: expected .* to be one program"):
        weft.compile(make(), fullgraph=True)(x, *args)


def _hooked() -> nn.Module:
    layer = nn.Linear(2, 2)
    nn.init.ones_(layer.weight)
    layer.register_forward_hook(lambda m, args, output: output * 2)
    nn.init.zeros_(layer.bias)
    return layer


def test_a_changed_global_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = weft.compile(_scaled)
    assert compiled(weft.ones(1)).item() == 2
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    with pytest.warns(UserWarning, match="a value outside of it that has changed"):
        assert compiled(weft.ones(1)).item() == 3
    factor = 2.0

    def closure(x):
        return x * factor

    inner = weft.compile(closure)
    assert inner(weft.ones(1)).item() == 2
    factor = 4.0
    with pytest.warns(UserWarning, match="has changed"):
        assert inner(weft.ones(1)).item() == 4


def test_default_backend() -> None:
    try:
        weft.compiler.set_default_backend("eager")
        assert weft.compiler.get_default_backend() == "eager"
        assert weft.compile(_scaled) is _scaled
        assert weft.compile(_scaled, backend="inductor") is not _scaled
        with pytest.raises(RuntimeError, match="compile: expected a backend of"):
            weft.compiler.set_default_backend("tpu")
        assert weft.compiler.get_default_backend() == "eager"
    finally:
        weft.compiler.set_default_backend(None)
    assert weft.compiler.get_default_backend() == "inductor"
    assert weft.compile(_scaled) is not _scaled


def test_backends_and_disable() -> None:
    assert weft.compile(_scaled, backend="eager") is _scaled
    assert weft.compile(_scaled, disable=True) is _scaled
    with pytest.raises(RuntimeError, match="compile: expected a backend of"):
        weft.compile(_scaled, backend="tpu")
    with pytest.raises(RuntimeError, match="got a function"):
        weft.compile(_scaled, backend=lambda graph, inputs: graph)
    with pytest.raises(RuntimeError, match="compile: expected a function or module, got int"):
        weft.compile(3)
    kept = weft.compiler.disable(lambda x: x)
    assert weft.compile(kept) is kept
    assert not weft.compiler.is_compiling() and weft.compiler.list_backends()

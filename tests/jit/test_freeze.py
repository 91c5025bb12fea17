"""weft.jit.freeze: the modules of the corpus give what they gave, from constants."""

from __future__ import annotations

import copy
import gc
import io
import warnings

import pytest
from tests.jit.archive_writer import ROOT, archive, forward
from tests.jit.test_corpus import CASES, check_same, close, is_module, observe, prepare

import weft
from weft import Tensor, jit, nn
from weft.jit.passes.gradients import may_start

MODULES = [(family, name) for family, name in CASES if is_module(prepare(family, name)[0])]


# Where parameters stay, and why.
KEEPING = {
    "interface": "which of the modules is called is known at run time",
    "ensemble": "forks get the modules",
    "unrolled": "the parameter's own gradient is asked for",
}


def results(seen):
    """What calls gave, and the gradients of their inputs."""
    return [{part: record[part] for part in ("result", "inputs")} for record in seen]


@pytest.mark.parametrize(("family", "name"), MODULES)
def test_frozen_equals_module(family, name):
    module, inputs = prepare(family, name)
    scripted = jit.script(copy.deepcopy(module).eval())
    frozen = jit.freeze(scripted, optimize_numerics=False)
    assert bool(list(frozen.parameters())) == (name in KEEPING)
    expected = observe(module.eval(), module, inputs, False)
    check_same(results(expected), results(observe(frozen, frozen, inputs, False)))
    if name != "unrolled":  # which asks for the gradient of a parameter
        check_gradients(module, frozen, inputs)


def check_gradients(module, frozen, inputs):
    """Inputs of a frozen module have the gradients they had."""
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    seen = observe(module, module, inputs, True, calls=1)[0]["inputs"]
    assert close(seen, observe(frozen, frozen, inputs, True, calls=1)[0]["inputs"])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.scale, self.count = 2.0, 0
        self.register_buffer("seen", weft.zeros(1))

    def forward(self, x):
        self.seen.add_(1)
        return weft.relu(self.norm(self.conv(x))) * self.scale

    @jit.export
    def scaled(self, x):
        return x * self.scale

    @jit.export
    def rescale(self, scale: float):
        self.scale = scale


def net():
    weft.manual_seed(0)
    module = Net()
    module(weft.randn(8, 3, 6, 6))
    return module.eval()


def test_batch_norm_is_folded():
    module = net()
    frozen = jit.freeze(jit.script(module))
    assert "batch_norm" not in str(frozen.graph)
    x = weft.randn(2, 3, 6, 6)
    assert weft.allclose(frozen(x), module(x), rtol=1e-4, atol=1e-5)
    exact = jit.freeze(jit.script(module), optimize_numerics=False)
    assert "batch_norm" in str(exact.graph) and bool((exact(x) == module(x)).all())
    jit.run_frozen_optimizations(exact)
    assert "batch_norm" not in str(exact.graph) and bool((exact(x) == frozen(x)).all())


def test_groups_of_frozen_programs_are_made_for_their_programs():
    """What is written to stays out of those of the one that records gradients: freezing makes
    none."""
    frozen = jit.freeze(jit.script(net()))
    assert "weft::Fused" not in str(frozen.graph)


def reloaded(program):
    file = io.BytesIO()
    jit.save(program, file)
    return jit.load(file.getvalue())


def programs(program):
    """Which programs calls of forward have made: (without gradients, with them)."""
    (entry,) = program._jit_info.executables.values()
    return [made is not None for made in entry[1].programs]


@pytest.mark.parametrize("place", [lambda program: program, reloaded], ids=["frozen", "loaded"])
def test_constants_require_no_gradient(place):
    """So calls in which no argument requires one run the program that records none."""
    frozen = place(jit.freeze(jit.script(net())))
    x = weft.ones(1, 3, 6, 6)
    first = frozen(x)
    assert not may_start(frozen.graph)
    assert weft.allclose(frozen(x), first, atol=1e-6) and programs(frozen) == [True, False]
    assert frozen(x.requires_grad_()).requires_grad and programs(frozen) == [True, True]


def test_constants_of_others_may_require_one():
    """What a trace holds of the process is not its own; nor is what requires a gradient."""
    scale = weft.ones(3)
    traced = jit.trace(lambda x: x * scale, weft.ones(3))
    assert may_start(traced.graph)
    own_one = archive(forward("x * CONSTANTS.c0"), ROOT, [scale])
    assert not may_start(jit.load(own_one).graph)
    wants = archive(forward("x * CONSTANTS.c0"), ROOT, [scale.requires_grad_()])
    loaded = jit.load(wants)
    assert may_start(loaded.graph) and loaded(weft.ones(3)).requires_grad


def test_what_forward_writes_stays_its_own():
    module = net()
    scripted = jit.script(module)
    frozen = jit.freeze(scripted)
    x = weft.randn(2, 3, 6, 6)
    frozen(x)
    frozen(x)
    assert module.seen.item() == 1 and frozen.seen.item() == 3
    expected = frozen(x)
    with weft.no_grad():
        module.conv.weight.zero_()
    assert bool((frozen(x) == expected).all())
    assert list(dict(frozen.named_buffers())) == ["seen"]


class Counted(nn.Module):
    """A layer that counts its calls; `spare` is never used."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.spare = nn.Linear(2, 2)
        self.register_buffer("count", weft.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return self.linear(x) + self.count


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Counted()
        self.again = self.first
        self.second = nn.Sequential(Counted(), nn.Linear(2, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.again(self.first(x)))


def test_what_no_program_reads_is_gone():
    """Also below submodules of which something stays; modules that are found twice are one still."""
    module = Counts().eval()
    frozen = jit.freeze(jit.script(module), ["second.1.bias"])
    x = weft.ones(1, 2)
    for _ in range(2):
        assert weft.equal(frozen(x), module(x))
    assert frozen.first is frozen.again and frozen.first.count.item() == 4
    names = ["first.count", "second.0.count"]
    assert [name for name, _ in frozen.named_buffers()] == names
    assert [name for name, _ in frozen.named_parameters()] == ["second.1.bias"]
    assert not hasattr(frozen.first, "linear") and not hasattr(frozen.first, "spare")
    again = jit.load(frozen.save_to_buffer())
    assert weft.equal(again(x), module(x)) and list(again.state_dict()) == list(frozen.state_dict())
    whole = jit.freeze(jit.script(module), ["second.0"])
    assert whole.second[0].spare.weight.shape == (2, 2)


def test_preserved_methods_and_attributes():
    scripted = jit.script(net())
    frozen = jit.freeze(scripted, ["scaled", "rescale", "count", "conv.bias"])
    x = weft.randn(2, 3, 6, 6)
    before = frozen(x)
    assert frozen.count == 0 and list(frozen.conv.bias.shape) == [4]
    frozen.rescale(4.0)  # what one method sets is no constant of the others
    assert frozen.scaled(weft.ones(1)).item() == 4.0
    assert bool((frozen(x) == 2 * before).all())
    with weft.no_grad():
        frozen.conv.bias.fill_(100.0)
    assert frozen(x).max() > 100
    whole = jit.freeze(scripted, ["conv"])
    with weft.no_grad():
        whole.conv.weight.zero_()
    assert whole(x).flatten(2).std(-1).max() < 1e-6
    assert not hasattr(jit.freeze(scripted), "scaled")
    assert not hasattr(jit.freeze(scripted), "count")


def test_frozen_branches_are_decided():
    class Switch(nn.Module):
        def __init__(self):
            super().__init__()
            self.deep, self.inner = False, nn.Linear(2, 2)

        def forward(self, x):
            if self.deep or self.training:
                return self.inner(x)
            return x + 1

    frozen = jit.freeze(jit.script(Switch().eval()))
    assert "prim::If" not in str(frozen.graph) and "linear" not in str(frozen.graph)
    assert not hasattr(frozen, "inner")


def test_calls_that_stay_see_the_module():
    class Forked(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.bias = nn.Linear(2, 2), nn.Parameter(weft.ones(2))

        @jit.ignore
        def python(self, x: weft.Tensor) -> weft.Tensor:
            return x * 2

        def forward(self, x):
            waiting = jit.fork(self.inner, x)
            return jit.wait(waiting) + self.bias + self.python(x)

    module = Forked().eval()
    frozen, x = jit.freeze(jit.script(module)), weft.randn(3, 2)
    assert bool((frozen(x) == module(x)).all())


def test_freezing_again_and_traces():
    module = nn.Sequential(nn.Linear(2, 3), nn.ReLU()).eval()
    x = weft.randn(4, 2)
    traced = jit.trace(module, x)
    frozen = jit.freeze(traced)
    assert "GetAttr" not in str(frozen.graph)
    for each in (
        frozen,
        jit.freeze(frozen),
        copy.deepcopy(frozen),
        jit.optimize_for_inference(traced),
    ):
        assert bool((each(x) == module(x)).all())
    assert jit.optimize_for_inference(frozen) is frozen
    assert jit.optimize_for_inference(jit.script(nn.Dropout()))(x) is not None


def test_frozen_modules_are_freed():
    module, x = net(), weft.randn(2, 3, 6, 6)
    for _ in range(3):
        jit.freeze(jit.script(module))(x)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(10):
        jit.freeze(jit.script(module))(x)
    gc.collect()
    assert len(gc.get_objects()) - before < 100


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: jit.freeze(net()), "expected a compiled module, got Net"),
        (lambda: jit.freeze(jit.script(Net())), "expected a module in evaluation mode"),
        (lambda: jit.freeze(jit.script(net()), ["nothing"]), "got 'nothing'"),
        (lambda: jit.run_frozen_optimizations(jit.script(net())), "expected a frozen module"),
    ],
)
def test_what_cannot_be_frozen(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


@pytest.mark.parity
def test_as_in_pytorch():
    torch = pytest.importorskip("torch")

    class Theirs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.scale = torch.nn.Linear(2, 2), 2.0

        def forward(self, x):
            return self.linear(x) * self.scale

        @torch.jit.export
        def plain(self, x):
            return x * self.scale

    class Ours(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.scale = nn.Linear(2, 2), 2.0

        def forward(self, x):
            return self.linear(x) * self.scale

        @jit.export
        def plain(self, x):
            return x * self.scale

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripts = torch.jit.script(Theirs().eval()), jit.script(Ours().eval())
        for preserved in (None, ["plain"], ["scale"], ["plain", "linear"]):
            pair = torch.jit.freeze(scripts[0], preserved), jit.freeze(scripts[1], preserved)
            for name in ("forward", "plain", "scale", "linear"):
                assert hasattr(pair[0], name) == hasattr(pair[1], name), (preserved, name)
        assert not list(pair[0].parameters()) and len(list(pair[1].parameters())) == 2
        for wrong in (["other"],):
            for library, script in ((torch, scripts[0]), (weft, scripts[1])):
                with pytest.raises(Exception, match="other"):
                    library.jit.freeze(script, wrong)

"""A function has a program for calls that may record gradients and one for those that do not. They
give the same results; which of them runs follows from grad mode and the arguments alone."""

from __future__ import annotations

import gc
import io
import threading

import pytest

import weft
from weft import jit
from weft.jit import execution
from weft.jit.module_methods import compiled_method
from weft.jit.passes.gradients import may_start
from weft.jit.script_function import ScriptFunction

pytestmark = pytest.mark.threads


def chain(x, y):
    return weft.tanh(x * 2.0 + y) * weft.sigmoid(x) - y.exp()


def lists(xs: list[weft.Tensor]):
    return xs[0] * 2.0 + xs[1].exp()


def dicts(xs: dict[str, weft.Tensor]):
    return xs["a"] * 2.0 + xs["a"].exp()


def tuples(pair: tuple[weft.Tensor, int], other: weft.Tensor | None = None):
    x = pair[0] * pair[1]
    if other is not None:
        x = x + other.exp()
    return x * 3.0


def fresh(function, *args) -> ScriptFunction:
    """The function, compiled anew; called once with `args`, for the very first call of a function
    has a program of its own."""
    function.__dict__.pop("_weft_script_function", None)
    scripted = jit.script(function)
    if args:
        scripted(*args)
        assert made(scripted) == (False, False)
    return scripted


def made(function) -> tuple[bool, bool]:
    """Which programs there are: (without gradients, with them)."""
    return tuple(program is not None for program in function._run.programs)


def plain():
    return weft.linspace(-1, 1, 5)


def wanting():
    return plain().requires_grad_()


CALLS = {
    "tensor": (chain, lambda t: (t, plain())),
    "second": (chain, lambda t: (plain(), t)),
    "list": (lists, lambda t: ([plain(), t],)),
    "dict": (dicts, lambda t: ({"a": t},)),
    "tuple": (tuples, lambda t: ((t, 2),)),
    "optional": (tuples, lambda t: ((plain(), 2), t)),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_program_follows_the_arguments(name):
    function, arguments = CALLS[name]
    scripted = fresh(function, *arguments(plain()))
    for tensor, mode, programs in (
        (wanting(), False, (True, False)),
        (plain(), True, (True, False)),
        (wanting(), True, (True, True)),
    ):
        with weft.set_grad_enabled(mode):
            got, expected = scripted(*arguments(tensor)), function(*arguments(tensor))
        assert made(scripted) == programs
        assert weft.equal(got, expected)
        assert got.requires_grad == expected.requires_grad == (tensor.requires_grad and mode)
    x, again = wanting(), wanting()
    scripted(*arguments(x)).sum().backward()
    function(*arguments(again)).sum().backward()
    assert weft.equal(x.grad, again.grad)


def test_keywords_count():
    scripted = fresh(chain, plain(), plain())
    assert scripted(x=plain(), y=wanting()).requires_grad
    assert made(scripted) == (False, True)
    scripted(y=plain(), x=plain())
    assert made(scripted) == (True, True)


def test_modules_count_with_their_parameters():
    class Inner(weft.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = weft.nn.Parameter(weft.ones(5))

        def forward(self, x):
            return weft.tanh(x * self.weight) + x

    class Outer(weft.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x) * 2.0

    module = Outer()
    scripted = jit.script(module)
    scripted(plain())
    with weft.no_grad():
        assert not scripted(plain()).requires_grad
    (entry,) = scripted._jit_info.executables.values()
    choice = entry[1]
    assert [p is not None for p in choice.programs] == [True, False]
    out = scripted(plain())
    assert out.requires_grad and weft.equal(out, module(plain()))
    assert [p is not None for p in choice.programs] == [True, True]
    module.inner.weight.requires_grad_(False)
    assert not scripted(plain()).requires_grad


def starts(x):
    y = x.detach().requires_grad_()
    return y * 2.0


def turns_on(x):
    with weft.enable_grad():
        y = x * 2.0
        return y * y


def makes(x):
    return weft.tensor([1.0], requires_grad=True) * x + x


def asks(x):
    return starts(x) + 1.0


@pytest.mark.parametrize("function", [starts, turns_on, makes, asks], ids=lambda f: f.__name__)
def test_programs_that_start_gradients_have_one_program(function):
    scripted = fresh(function)
    assert may_start(scripted.graph)
    for argument in (plain, wanting):
        for mode in (False, True):
            with weft.set_grad_enabled(mode):
                got, expected = scripted(argument()), function(argument())
            assert weft.equal(got, expected) and got.requires_grad == expected.requires_grad
    first, second = scripted._run.programs
    assert first is None or second is None or first is second


@pytest.mark.parametrize("function", [chain, lists, dicts, tuples], ids=lambda f: f.__name__)
def test_others_may_have_two(function):
    assert not may_start(jit.script(function).graph)


def test_inference_keeps_no_inputs():
    scripted = fresh(chain)
    x = weft.ones(1000)
    with weft.no_grad():
        out = scripted(x.requires_grad_(), weft.ones(1000))
    assert out.grad_fn is None
    del x
    gc.collect()
    assert weft.equal(out, chain(weft.ones(1000), weft.ones(1000)))


def test_both_programs_are_made_once_by_many_threads():
    scripted = fresh(chain)
    scripted._run = None
    expected = chain(plain(), plain())
    failures: list[object] = []
    start = threading.Barrier(8)

    def call(tensor) -> None:
        start.wait()
        for _ in range(20):
            if not weft.equal(scripted(tensor(), plain()), expected):
                failures.append(tensor)

    threads = [threading.Thread(target=call, args=((plain, wanting)[i % 2],)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and made(scripted) == (True, True)


def test_errors_of_either_program_are_the_same():
    scripted = fresh(chain)
    for mode in (False, True):
        with weft.set_grad_enabled(mode), pytest.raises(TypeError, match="argument 'y'"):
            scripted(wanting(), "no tensor")


def unrelated(q, k, angles):
    cos = angles.cos()
    return q * cos + q, k * cos - k


def test_parts_of_a_group_may_have_shapes_that_do_not_fit_together():
    """Both results read `cos`, so without gradients they are one group."""
    scripted = fresh(unrelated)
    arguments = (weft.randn(2, 4, 3), weft.randn(2, 2, 3), weft.randn(3))
    for _ in range(3):
        got, expected = scripted(*arguments), unrelated(*arguments)
        assert all(weft.equal(a, b) for a, b in zip(got, expected, strict=True))
    assert made(scripted) == (True, False)


# ---- the very first call ----


def looped(x, n: int):
    for _ in range(n):
        x = x.tanh()
    return x


def calls_looped(x):
    return looped(x, 2) + 1.0


def calls_chain(x):
    return chain(chain(x, x), x)


def calls_itself(x, n: int) -> weft.Tensor:
    return x if n == 0 else calls_itself(x * 2.0, n - 1)


@pytest.mark.parametrize(
    ("function", "args", "at_once"),
    [
        (chain, (5,), False),
        (chain, (1 << 15,), True),  # two of them: worth to be fused
        (calls_chain, (5,), False),
        (looped, (5, 3), True),
        (calls_looped, (5,), True),
        (calls_itself, (5, 3), True),
    ],
)
def test_first_calls_of_small_work_run_what_the_frontend_made(function, args, at_once):
    x = weft.linspace(-1, 1, args[0])
    args = (x, x) if function is chain else (x, *args[1:])
    expected = function(*args)
    scripted = fresh(function)
    assert weft.equal(scripted(*args), expected)
    assert made(scripted) == (at_once, False)
    assert weft.equal(scripted(*args), expected)
    assert made(scripted) == (True, False)


def test_first_calls_may_fail():
    scripted = fresh(chain)
    with pytest.raises(RuntimeError, match="broadcast"):
        scripted(weft.ones(2), weft.ones(3))
    with pytest.raises(RuntimeError, match="broadcast"):
        scripted(weft.ones(2), weft.ones(3))
    assert weft.equal(scripted(plain(), plain()), chain(plain(), plain()))


def test_first_calls_of_many_threads():
    expected = chain(plain(), plain())
    for _ in range(20):
        scripted, wrong = fresh(chain), []
        barrier = threading.Barrier(4)

        def call(scripted=scripted, wrong=wrong, barrier=barrier):
            barrier.wait()
            for _ in range(3):
                if not weft.equal(scripted(plain(), plain()), expected):
                    wrong.append(1)

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong and made(scripted) == (True, False)


def test_calls_do_not_wait_for_the_passes_of_a_long_function():
    lines = "".join(f"    x = (x * {i}.5).sin()\n" for i in range(150))
    unit = jit.CompilationUnit(f"def f(x: Tensor) -> Tensor:\n{lines}    return x\n")
    programs = execution.executable(unit.f.function)
    x = weft.full((3,), 1e-3)
    expected = unit.f(x)
    with execution.LOCK:  # so the passes wait, on their thread
        for _ in range(3):
            assert weft.equal(programs(x), expected) and programs.programs == (None, None)
    while programs.programs == (None, None):
        assert weft.equal(programs(x), expected)
    assert weft.equal(programs(x), expected)


def padded(x):
    return weft.nn.functional.pad(x, [1, 1, 0, 1])


def attended(x):
    return weft.nn.functional.scaled_dot_product_attention(x, x, x)


def added(x, n: int):
    for i in range(n):
        x = x + i
    return x


@pytest.mark.parametrize("function", [padded, attended])
def test_loops_of_the_library_do_not_hold_up_a_first_call(function):
    """They go over dimensions: the call runs the graph as it is. Loops of a program are worth the passes."""
    fresh(function, weft.ones(1, 2, 3, 4))
    looping = fresh(added)
    assert looping(weft.zeros(1), 4).item() == 6 and made(looping) != (False, False)


def test_very_long_programs_do_not_hold_up_a_first_call(monkeypatch):
    """Their passes take seconds, and run while calls take the loops as they stand."""
    monkeypatch.setattr(execution, "_LONG", 2)
    monkeypatch.setattr(execution, "_VERY_LONG", 4)
    looping = fresh(added, weft.zeros(1), 4)
    while made(looping) == (False, False):
        assert looping(weft.zeros(1), 4).item() == 6


def test_layers_of_archives_do_not_hold_up_a_first_call():
    """In archives they have the names of PyTorch's."""
    encoder = weft.nn.TransformerEncoder(weft.nn.TransformerEncoderLayer(8, 2, 8), 2).eval()
    file = io.BytesIO()
    jit.save(jit.script(encoder), file)
    loaded = jit.load(io.BytesIO(file.getvalue()))
    again = jit.load(io.BytesIO(file.getvalue()))  # whose classes have other names
    for module in (loaded, again):
        assert not execution._may_repeat(compiled_method(module._jit_info, "forward").function)

"""The contract of autograd, clause by clause, beside PyTorch where both can be asked."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

import weft
from weft.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

try:
    import torch
except ImportError:
    torch: Any = None  # type: ignore[no-redef]

pytestmark = pytest.mark.parity
TENSORS = (weft.Tensor,) if torch is None else (weft.Tensor, torch.Tensor)


def outcome(run: Callable[[Any], Any], library: Any) -> Any:
    """What `run` returns, as lists and numbers, or the class of what it raises."""
    try:
        return plain(run(library))
    except Exception as error:
        return type(error).__name__


def plain(value: Any) -> Any:
    if isinstance(value, TENSORS):
        return value.tolist()
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value


def agree(run: Callable[[Any], Any]) -> Any:
    """Runs the same program with both libraries (if PyTorch is there): the outcomes must agree."""
    mine = outcome(run, weft)
    assert mine not in ("AttributeError", "NameError")
    if torch is not None:
        assert mine == outcome(run, torch)
    return mine


def multiplied(t: Any, seen: list[Any]) -> Any:
    """A product as a Function, which notes what it gets back of what it saved."""

    class Multiplied(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            result = x * y
            ctx.save_for_backward(x, y, result)
            return result

        @staticmethod
        def backward(ctx, grad):
            seen.extend((x.requires_grad, x.is_leaf) for x in ctx.saved_tensors)
            x, y, _ = ctx.saved_tensors
            return grad * y, grad * x

    return Multiplied


class TestInferenceMode:
    def test_results_carry_the_flag(self):
        def run(t):
            x = t.ones(2, requires_grad=True)
            with t.inference_mode():
                y = x * 2
                states = [y.is_inference(), y.requires_grad, x[0].is_inference()]
                states += [y[0].is_inference(), y.detach().is_inference(), t.is_inference(y)]
                states += [t.zeros(2).is_inference(), t.is_inference_mode_enabled()]
            return [*states, y.is_inference(), y[0].is_inference(), y.clone().is_inference()]

        assert agree(run)[0] is True

    @pytest.mark.parametrize("grad", [True, False])
    def test_in_place_outside_raises(self, grad):
        def run(t):
            with t.inference_mode():
                y = t.ones(2)
            with t.set_grad_enabled(grad):
                y.add_(1)

        assert agree(run) == "RuntimeError"

    @pytest.mark.parametrize(
        "write",
        [
            lambda t, y: y.zero_(),
            lambda t, y: y.copy_(t.ones(2)),
            lambda t, y: y.__setitem__(0, 1.0),
            lambda t, y: y.fill_(3),
            lambda t, y: y[:1].mul_(2),
            lambda t, y: t.add(t.ones(2), t.ones(2), out=y),
            lambda t, y: y.masked_fill_(t.tensor([True, False]), 1.0),
            lambda t, y: y.scatter_(0, t.tensor([0]), t.ones(1)),
            lambda t, y: y.uniform_(),
        ],
    )
    def test_every_kind_of_write_raises(self, write):
        def run(t):
            with t.inference_mode():
                y = t.ones(2)
            write(t, y)

        assert outcome(run, weft) == "RuntimeError"

    def test_in_place_inside(self):
        def run(t):
            x = t.ones(2)
            with t.inference_mode():
                y = t.ones(2)
                y.add_(1)
                x.add_(1)
            x.add_(1)
            return [x, y, x.is_inference()]

        agree(run)

    def test_saving_for_backward_raises(self):
        def run(t):
            with t.inference_mode():
                y = t.ones(2)
            return y * t.ones(2, requires_grad=True)

        assert agree(run) == "RuntimeError"

    def test_use_without_saving(self):
        def run(t):
            with t.inference_mode():
                y = t.ones(2)
            x = t.ones(2, requires_grad=True)
            (x + y).sum().backward()
            return [x.grad, (y * 2).is_inference()]

        agree(run)

    def test_requires_grad(self):
        def inside(t):
            with t.inference_mode():
                return t.ones(2, requires_grad=True).requires_grad

        def outside(t):
            with t.inference_mode():
                y = t.ones(2)
            y.requires_grad_()

        agree(inside)
        assert agree(outside) == "RuntimeError"

    def test_no_version_counter(self):
        def run(t):
            with t.inference_mode():
                y = t.ones(2)
            return y._version

        assert agree(run) == "RuntimeError"

    def test_view_made_inside_of_a_graph_tensor(self):
        def run(t):
            x = t.ones(2, requires_grad=True) * 1
            with t.inference_mode():
                v = x[0]
            v.mul_(t.ones((), requires_grad=True))

        assert agree(run) == "RuntimeError"

    def test_decorator_and_false(self):
        def run(t):
            @t.inference_mode()
            def f():
                return t.ones(2)

            with t.inference_mode(), t.inference_mode(False):
                y = t.ones(2, requires_grad=True) * 2
            return [f().is_inference(), y.is_inference(), y.requires_grad]

        agree(run)


class TestGradModes:
    def test_generator_functions(self):
        def run(t):
            states = []

            @t.no_grad()
            def f():
                states.append(t.is_grad_enabled())
                sent = yield 1
                states.append((sent, t.is_grad_enabled()))
                try:
                    yield 2
                except ValueError:
                    states.append(t.is_grad_enabled())
                    yield 3
                return 4

            g = f()
            got = [next(g), t.is_grad_enabled(), g.send("x"), g.throw(ValueError())]
            try:
                next(g)
            except StopIteration as end:
                got.append(end.value)
            return [got, states, t.is_grad_enabled()]

        agree(run)

    def test_restored_by_exceptions(self):
        def run(t):
            try:
                with t.no_grad():
                    raise ValueError
            except ValueError:
                return t.is_grad_enabled()

        assert agree(run) is True

    def test_decorators(self):
        def run(t):
            @t.no_grad
            def f():
                return t.is_grad_enabled()

            @t.no_grad()
            def g():
                return t.is_grad_enabled(), h()

            @t.enable_grad()
            def h():
                return t.is_grad_enabled()

            return [f(), g(), h(), f.__name__]

        agree(run)

    def test_subclass(self):
        class Mine(weft.no_grad):
            def __init__(self, value):
                self.value = value

        with Mine(3) as nothing:
            assert nothing is None
            assert not weft.is_grad_enabled()
        assert weft.is_grad_enabled()
        assert isinstance(weft.no_grad(), weft.no_grad)

    def test_bad_arguments(self):
        for bad in (lambda: weft.no_grad(1, 2), lambda: weft.no_grad(mode=True)):
            with pytest.raises(TypeError):
                bad()


class TestAnomalyMode:
    def test_nan_names_operator_and_line(self):
        x = weft.zeros(1, requires_grad=True)
        with weft.autograd.set_detect_anomaly(True):
            y = x.sqrt() * 0  # the line to be named
            with (
                pytest.warns(UserWarning, match="the line to be named"),
                pytest.raises(
                    RuntimeError, match=r"(?s)'SqrtBackward0' returned nan.*test_autograd_contract"
                ),
            ):
                y.backward()
        assert x.grad is None

    def test_nan_as_pytorch(self):
        def run(t):
            x = t.zeros(1, requires_grad=True)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                try:
                    with t.autograd.detect_anomaly():
                        (x.sqrt() * 0).backward()
                except RuntimeError as error:
                    message = str(error).splitlines()[0]
                    return [message, len(seen), "x.sqrt() * 0" in str(seen[-1].message)]

        assert agree(run)[1:] == [2, True]

    @pytest.mark.filterwarnings("ignore")
    def test_nan_behind_an_input_without_gradient(self):
        """Every gradient of a node is looked at, also those behind one that nobody wants."""

        def run(t):
            wanted = t.ones(1, requires_grad=True)
            with t.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError) as error:
                (t.mul(t.full((1,), float("inf")), wanted) * 0).backward()
            return str(error.value).splitlines()[0]

        assert agree(run) == "Function 'MulBackward0' returned nan values in its 1th output."

    def test_check_nan_off(self):
        def run(t):
            x = t.zeros(1, requires_grad=True)
            with t.autograd.set_detect_anomaly(True, check_nan=False):
                (x.sqrt() * 0).backward()
            return [str(x.grad.item()), t.is_anomaly_enabled()]

        assert agree(run) == ["nan", False]

    def test_version_error_names_the_line(self):
        x = weft.ones(2, requires_grad=True)
        with weft.autograd.set_detect_anomaly(True):
            a = x * 2
            y = a.exp()  # what saved it
            y.add_(1)
            with (
                pytest.warns(UserWarning, match="what saved it"),
                pytest.raises(
                    RuntimeError, match=r"(?s)ExpBackward0.*changed in place.*what saved it"
                ),
            ):
                y.sum().backward()

    def test_error_in_python_backward(self):
        class Bad(weft.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                raise KeyError("mine")

        x = weft.ones(2, requires_grad=True)
        with weft.autograd.set_detect_anomaly(True):
            y = Bad.apply(x)  # the call
            with pytest.warns(UserWarning, match="BadBackward"), pytest.raises(KeyError):
                y.sum().backward()

    def test_double_backward_names_both_lines(self):
        x = weft.zeros(1, requires_grad=True)
        with weft.autograd.set_detect_anomaly(True):
            y = x.pow(1.5)  # forward
            (g,) = weft.autograd.grad(y, x, create_graph=True)
            with pytest.warns(UserWarning) as seen, pytest.raises(RuntimeError, match="nan"):
                (g * g / g).backward()
        assert any("_contract.py" in str(one.message) for one in seen)

    def test_state(self):
        def run(t):
            a = t.autograd
            states = [t.is_anomaly_enabled()]
            with a.set_detect_anomaly(True, check_nan=False):
                states += [t.is_anomaly_enabled(), t.is_anomaly_check_nan_enabled()]
            a.set_detect_anomaly(True)
            states += [t.is_anomaly_enabled()]
            a.set_detect_anomaly(False)
            return [*states, t.is_anomaly_enabled(), t.is_anomaly_check_nan_enabled()]

        agree(run)


class TestSavedTensorHooks:
    def test_pack_and_unpack(self):
        def run(t):
            log = []

            def pack(x):
                log.append(["pack", x.tolist()])
                return x.tolist()

            def unpack(values):
                log.append(["unpack", values])
                return t.tensor(values) * 10

            a = t.tensor([1.0, 2.0], requires_grad=True)
            with t.autograd.graph.saved_tensors_hooks(pack, unpack):
                y = a.exp()
                z = a * y
            z.sum().backward()
            return [sorted(map(str, log)), a.grad]

        agree(run)

    def test_nesting_and_end(self):
        def run(t):
            log = []

            def make(name):
                return lambda x: (log.append(name), x)[1]

            a = t.ones(1, requires_grad=True)
            hooks = t.autograd.graph.saved_tensors_hooks
            with hooks(make("outer"), make("out")):
                x = a.exp()
                with hooks(make("inner"), make("in")):
                    y = x.exp()
            z = y.exp()
            z.backward()
            return [log, a.grad]

        agree(run)

    def test_disabled(self):
        def run(t):
            graph = t.autograd.graph
            log = []

            def attempt(name, *blocks):
                try:
                    with ExitStack() as stack:
                        for block in blocks:
                            stack.enter_context(block)
                        log.append(name)
                except RuntimeError as error:
                    log.append([name, str(error)])

            def disabled(message):
                return graph.disable_saved_tensors_hooks(message)

            def hooks():
                return graph.saved_tensors_hooks(lambda x: x, lambda x: x)

            attempt("inside", disabled("a"), hooks())
            attempt("nested", disabled("a"), disabled("b"), hooks())
            attempt("around", hooks(), disabled("a"))
            attempt("without", disabled("a"))
            with disabled("a"):
                attempt("left", disabled("b"))
                attempt("outer again", hooks())
                thread = threading.Thread(target=attempt, args=("thread", hooks()))
                thread.start()
                thread.join()
            attempt("after", hooks(), hooks())
            return log

        assert agree(run)[0] == ["inside", "a"]

    def test_double_backward(self):
        def run(t):
            a = t.tensor([1.0, 2.0], dtype=t.float64, requires_grad=True)
            with t.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), lambda x: x):
                y = (a.exp() * a).sum()
            (g,) = t.autograd.grad(y, a, create_graph=True)
            g.sum().backward()
            return [[round(v, 9) for v in a.grad.tolist()]]

        agree(run)

    def test_custom_function(self):
        def run(t):
            class Double(t.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.save_for_backward(x)
                    return x * x

                @staticmethod
                def backward(ctx, grad):
                    (x,) = ctx.saved_tensors
                    return 2 * x * grad

            a = t.ones(2, requires_grad=True)
            with t.autograd.graph.saved_tensors_hooks(lambda x: x.tolist(), lambda v: t.tensor(v)):
                y = Double.apply(a)
            y.sum().backward()
            return a.grad

        agree(run)

    @pytest.mark.parametrize("create_graph", [False, True])
    @pytest.mark.parametrize(
        "unpack",
        [
            lambda x, w: x,
            lambda x, w: x.clone(),
            lambda x, w: x.detach(),
            lambda x, w: x.detach().requires_grad_(),
            lambda x, w: x.detach() * w,
        ],
    )
    def test_history_of_what_is_unpacked(self, unpack, create_graph):
        """It is that of the tensor that was saved, not what the hook gave."""

        def run(t):
            seen = []
            w = t.ones(2, requires_grad=True)
            a = t.tensor([1.0, 2.0], dtype=t.float64, requires_grad=True)
            b = t.tensor([3.0, 4.0], dtype=t.float64)
            with t.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: unpack(x, w)):
                y = multiplied(t, seen).apply(a, b)
                z = multiplied(t, seen).apply(a * 2, y) * a
            (g,) = t.autograd.grad(z.sum(), a, create_graph=create_graph)
            more = t.autograd.grad(g.sum(), [a, w], allow_unused=True) if create_graph else []
            return [seen, g, list(more)]

        agree(run)

    def test_reentrant_checkpoint_inside(self):
        def run(t):
            a = t.tensor([1.0, 2.0], requires_grad=True)
            with t.autograd.graph.save_on_cpu(pin_memory=t is weft):
                y = t.utils.checkpoint.checkpoint(t.exp, a * 2, use_reentrant=True)
            y.sum().backward()
            return [round(v, 3) for v in a.grad.tolist()]

        assert agree(run) == [14.778, 109.196]

    def test_errors(self):
        def raising(x):
            raise ZeroDivisionError

        def identity(x):
            return x

        def packing(t):
            with t.autograd.graph.saved_tensors_hooks(raising, identity):
                t.ones(1, requires_grad=True).exp()

        def unpacking(t):
            with t.autograd.graph.saved_tensors_hooks(identity, raising):
                y = t.ones(1, requires_grad=True).exp()
            y.backward()

        def no_tensor(t):
            with t.autograd.graph.saved_tensors_hooks(identity, lambda x: 3):
                y = t.ones(1, requires_grad=True).exp()
            y.backward()

        def changing(t):
            with t.autograd.graph.saved_tensors_hooks(lambda x: x.add_(1), identity):
                t.ones(1, requires_grad=True).exp()

        assert agree(packing) == "ZeroDivisionError"
        assert agree(unpacking) == "ZeroDivisionError"
        assert agree(no_tensor) == "TypeError"
        assert agree(changing) == "RuntimeError"

    def test_belongs_to_the_thread(self):
        seen = []
        with weft.autograd.graph.saved_tensors_hooks(lambda x: seen.append(1), lambda x: x):
            thread = threading.Thread(target=lambda: weft.ones(1, requires_grad=True).exp())
            thread.start()
            thread.join()
        assert seen == []

    def test_packed_values_are_freed(self):
        class Packed:
            def __init__(self, tensor):
                self.tensor = tensor

        refs = []

        def pack(tensor):
            packed = Packed(tensor)
            refs.append(weakref.ref(packed))
            return packed

        a = weft.ones(2, requires_grad=True)
        with weft.autograd.graph.saved_tensors_hooks(pack, lambda p: p.tensor):
            y = a.exp().sum()
        assert refs[0]() is not None
        y.backward()
        assert refs[0]() is None


def program(t, reentrant, **kwargs):
    """Gradients and random numbers of a small model with a checkpointed middle."""
    run = t.utils.checkpoint.checkpoint
    t.manual_seed(3)
    w = t.arange(9.0).reshape(3, 3).div(9).requires_grad_()
    x = t.ones(2, 3, requires_grad=True)
    calls = []

    def middle(v):
        calls.append(t.is_grad_enabled())
        return t.dropout((v @ w).tanh(), 0.5, True) @ w

    y = run(middle, x * 1, use_reentrant=reentrant, **kwargs)
    after = t.rand(2).tolist()
    y.sum().backward()
    return [
        [round(v, 5) for v in w.grad.flatten().tolist() + x.grad.flatten().tolist()],
        calls,
        after,
        t.rand(2),
    ]


class TestCheckpoint:
    @pytest.mark.parametrize("reentrant", [True, False])
    def test_as_pytorch(self, reentrant):
        agree(lambda t: program(t, reentrant))

    def test_without_rng_state(self):
        agree(lambda t: program(t, False, preserve_rng_state=False))

    def test_keeps_nothing(self):
        held = []

        def f(v):
            y = v.exp()
            held.append(weakref.ref(y))
            return y.exp().exp()

        x = weft.ones(2, requires_grad=True)
        y = checkpoint(f, x, use_reentrant=False)
        gc.collect()
        assert held[0]() is None
        y.sum().backward()
        assert len(held) == 2

    @pytest.mark.parametrize("reentrant", [True, False])
    def test_grad_and_tuples(self, reentrant):
        def run(t):
            check = t.utils.checkpoint.checkpoint
            a, b = t.ones(2, requires_grad=True), t.full((2,), 2.0)
            y, n, z = check(lambda u, v: (u * v, 3, v * 1), a, b, use_reentrant=reentrant)
            y.sum().backward()
            return [a.grad, n, z, z.requires_grad]

        agree(run)

    def test_autograd_grad_and_double_backward(self):
        def run(t):
            check = t.utils.checkpoint.checkpoint
            x = t.tensor([1.0, 2.0], dtype=t.float64, requires_grad=True)
            y = check(lambda v: (v * v * v).sum(), x, use_reentrant=False)
            (g,) = t.autograd.grad(y, x, create_graph=True)
            (h,) = t.autograd.grad(g.sum(), x)
            return [g, h]

        agree(run)

    def test_nested(self):
        def run(t):
            check = t.utils.checkpoint.checkpoint
            x = t.tensor([0.5], requires_grad=True)

            def inner(v):
                return v.sin().cos()

            def outer(v):
                return check(inner, v.exp(), use_reentrant=False).exp()

            check(outer, x, use_reentrant=False).backward()
            return round(x.grad.item(), 4)

        agree(run)

    def test_retain_graph(self):
        x = weft.tensor([0.5], requires_grad=True)
        y = checkpoint(lambda v: v.sin().cos(), x, use_reentrant=False)
        y.backward(retain_graph=True)
        first = x.grad.clone()
        y.backward()
        assert weft.equal(x.grad, first * 2)

    def test_kwargs_and_context(self):
        log = []

        class Note:
            def __init__(self, name):
                self.name = name

            def __enter__(self):
                log.append(self.name)

            def __exit__(self, *exception):
                pass

        x = weft.ones(2, requires_grad=True)
        y = checkpoint(
            lambda v, scale: v.exp() * scale,
            x,
            scale=2,
            use_reentrant=False,
            context_fn=lambda: (Note("first"), Note("again")),
        )
        y.sum().backward()
        assert log == ["first", "again"]

    def test_differing_second_run(self):
        sizes = iter([2, 3])
        x = weft.ones((), requires_grad=True)
        y = checkpoint(lambda v: (v * weft.ones(next(sizes))).sum(), x, use_reentrant=False)
        with pytest.raises(CheckpointError, match="shape"):
            y.backward()

    def test_default_warns(self):
        x = weft.ones(2, requires_grad=True)
        with pytest.warns(UserWarning, match="use_reentrant"):
            checkpoint(lambda v: v * 2, x)

    @pytest.mark.parametrize("reentrant", [True, False])
    def test_sequential(self, reentrant):
        weft.manual_seed(0)
        model = weft.nn.Sequential(*[weft.nn.Linear(3, 3) for _ in range(5)])
        x = weft.ones(2, 3, requires_grad=True)
        checkpoint_sequential(model, 2, x, use_reentrant=reentrant).sum().backward()
        mine = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        model(x).sum().backward()
        for got, parameter in zip(mine, model.parameters()):
            assert weft.equal(got, parameter.grad)


class TestWalking:
    def test_names_and_edges(self):
        def run(t):
            x = t.ones(2, requires_grad=True)
            y = (x * 2 + x).sum()
            names, todo = [], [y.grad_fn]
            while todo:
                node = todo.pop()
                names.append(node.name().rsplit("::")[-1])
                todo += [below for below, _ in node.next_functions if below is not None]
            return sorted(names)

        agree(run)

    def test_gradient_edge(self):
        def run(t):
            x = t.ones(2, 3, requires_grad=True)
            values, _ = x.max(1)
            edge = t.autograd.graph.get_gradient_edge(values)
            leaf = t.autograd.graph.get_gradient_edge(x)
            return [
                edge.output_nr,
                edge.node == values.grad_fn,
                leaf.node.name().rsplit("::")[-1],
                values.grad_fn.next_functions[0][0] == leaf.node,
            ]

        agree(run)
        assert agree(lambda t: t.autograd.graph.get_gradient_edge(t.ones(2))) == "RuntimeError"

    def test_context_of_a_function(self):
        def run(t):
            class Scale(t.autograd.Function):
                @staticmethod
                def forward(ctx, x, scale):
                    ctx.scale = scale
                    ctx.save_for_backward(x)
                    return x * scale

                @staticmethod
                def backward(ctx, grad):
                    return grad * ctx.scale, None

            y = Scale.apply(t.ones(2, requires_grad=True), 3)
            node = y.grad_fn
            return [node.scale, node.saved_tensors, node.needs_input_grad, hasattr(node, "other")]

        agree(run)


class TestGrad:
    def test_batched(self):
        def run(t):
            x = t.arange(3.0, requires_grad=True)
            y = x * x
            return t.autograd.grad(y, x, t.eye(3), is_grads_batched=True)

        agree(run)

    def test_materialize_and_unused(self):
        def run(t, **kwargs):
            x, y = t.ones(2, requires_grad=True), t.ones(3, requires_grad=True)
            return t.autograd.grad((x * 2).sum(), [x, y], **kwargs)

        for kwargs in (
            {"allow_unused": True},
            {"materialize_grads": True},
            {"materialize_grads": True, "allow_unused": False},
            {},
        ):
            agree(lambda t, kwargs=kwargs: run(t, **kwargs))

    def test_functional(self):
        def run(t):
            f = t.autograd.functional
            x = t.tensor([1.0, 2.0], dtype=t.float64)
            m = t.tensor([[1.0, 2.0], [3.0, 5.0], [0.0, 1.0]], dtype=t.float64)

            def vector(v):
                return m @ (v * v)

            def scalar(v):
                return (v * v * v).sum() * v[0]

            def two(u, v):
                return u * v, (u + v).sum()

            return [
                f.jacobian(vector, x),
                f.jacobian(two, (x, x * 2)),
                f.hessian(scalar, x),
                f.hessian(lambda u, v: (u * v * v).sum(), (x, x * 2)),
                f.vjp(vector, x, t.ones(3, dtype=t.float64)),
                f.jvp(vector, x, t.ones(2, dtype=t.float64)),
                f.vhp(scalar, x, x),
                f.hvp(scalar, x, x),
            ]

        assert isinstance(agree(run), list)

    def test_functional_errors(self):
        for run in (
            lambda t: t.autograd.functional.vjp(lambda v: v * 2, t.ones(2)),
            lambda t: t.autograd.functional.hessian(lambda v: v * 2, t.ones(2)),
            lambda t: t.autograd.functional.jacobian(lambda v: v * 2, 3),
            lambda t: t.autograd.functional.jacobian(lambda v: t.ones(2), t.ones(2), strict=True),
        ):
            assert agree(run) in ("RuntimeError", "TypeError")

    def test_jacobian_with_graph(self):
        def run(t):
            x = t.tensor([1.0, 2.0], dtype=t.float64, requires_grad=True)
            j = t.autograd.functional.jacobian(lambda v: v * v, x, create_graph=True)
            return t.autograd.grad(j.sum(), x)

        agree(run)


TEN_THOUSAND = """
import gc, resource
import weft
from weft.utils.checkpoint import checkpoint

w = weft.ones(64, requires_grad=True)

def step():
    y = (w * 2).tanh()
    y.register_hook(lambda grad: grad * 2)
    checkpoint(lambda v: v.exp().sum(), y, use_reentrant=False).backward()
    w.grad = None

def measured():
    gc.collect()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return len(gc.get_objects()), weft._C.memory_stats()["bytes_in_use"], peak

for _ in range(500):
    step()
before = measured()
for _ in range(10_000):
    step()
for now, then, growth in zip(measured(), before, (50, 4096, 16_000)):
    assert now <= then + growth, (now, then)
"""


class TestCollection:
    """Cycles through hooks and contexts are found by the garbage collector."""

    def freed(self, make):
        gc.collect()
        ref = make()
        gc.collect()
        return ref() is None

    def test_tensor_hook_of_a_result(self):
        def make():
            y = weft.ones(2, requires_grad=True) * 2
            y.register_hook(lambda grad: print(y))
            return weakref.ref(y)

        assert self.freed(make)

    def test_hooks_of_a_leaf(self):
        def make():
            w = weft.ones(2, requires_grad=True)
            w.register_hook(lambda grad: grad * w)
            w.register_post_accumulate_grad_hook(lambda tensor: print(w))
            (w * 2).sum().backward()
            return weakref.ref(w)

        assert self.freed(make)

    def test_node_hooks(self):
        def make():
            y = weft.ones(2, requires_grad=True) * 2
            y.grad_fn.register_hook(lambda a, b: print(y))
            y.grad_fn.register_prehook(lambda a: print(y))
            y.mark = y  # tracked by the collector
            return weakref.ref(y)

        assert self.freed(make)

    def test_context_that_holds_its_output(self):
        class Keep(weft.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 2
                ctx.y = y
                return y

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        def make():
            return weakref.ref(Keep.apply(weft.ones(2, requires_grad=True)))

        assert self.freed(make)

    def test_hooks_in_use_stay(self):
        seen = []
        w = weft.ones(2, requires_grad=True)
        y = w * 2
        y.register_hook(lambda grad: seen.append(y is not None))
        total = y.sum()
        gc.collect()
        total.backward()
        assert seen == [True]
        y = None
        w.register_hook(lambda grad: seen.append(w is not None))
        gc.collect()
        (w * 3).sum().backward()
        assert seen == [True, True]

    def test_ten_thousand_iterations(self):
        # In a process of its own: what else runs in this one takes and leaves memory as well.
        subprocess.run([sys.executable, "-c", TEN_THOUSAND], check=True, timeout=300)

    def test_a_million_nodes(self):
        x = weft.ones(1, requires_grad=True)
        y = x
        for _ in range(1_000_000):
            y = y + 1
        del y
        y = x
        for _ in range(100_000):
            y = y * 1
        y.backward()
        assert x.grad.item() == 1


class TestModuleHooks:
    def test_full_backward_hooks(self):
        def run(t):
            log = []
            t.manual_seed(0)
            layer = t.nn.Linear(2, 2)
            layer.register_full_backward_pre_hook(lambda m, g: log.append(["pre", plain(g)]))
            layer.register_full_backward_hook(
                lambda m, gi, go: (log.append(["post", plain(go)]), (gi[0] * 2,))[1]
            )
            x = t.ones(1, 2, requires_grad=True)
            (layer(x) * 3).sum().backward()
            return [log, [round(v, 5) for v in x.grad.flatten().tolist()]]

        agree(run)

    def test_hooks_of_all_modules(self):
        def run(t):
            log = []
            module = t.nn.modules.module

            def note(name):
                return lambda m, *rest: log.append((name, type(m).__name__))

            handles = [
                module.register_module_forward_pre_hook(note("pre")),
                module.register_module_forward_hook(note("post")),
                module.register_module_full_backward_pre_hook(note("back pre")),
                module.register_module_full_backward_hook(note("back")),
            ]
            model = t.nn.Sequential(t.nn.Linear(2, 2), t.nn.ReLU())
            model[0].register_forward_hook(note("own"))
            model(t.ones(1, 2, requires_grad=True)).sum().backward()
            for handle in handles:
                handle.remove()
            model(t.ones(1, 2))
            return [list(entry) for entry in log]

        agree(run)


class TestThreads:
    def test_backward_in_many_threads(self):
        w = weft.ones(100, dtype=weft.float64, requires_grad=True)
        shared = (w * 2).exp()
        failures = []

        def work():
            try:
                for _ in range(50):
                    shared.sum().backward(retain_graph=True)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        once = weft.autograd.grad(shared.sum(), w)[0]
        assert weft.allclose(w.grad, once * 200)

    def test_python_hooks_and_functions_in_many_threads(self):
        class Half(weft.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x / 2

            @staticmethod
            def backward(ctx, grad):
                return grad / 2

        w = weft.ones(3, requires_grad=True)
        shared = Half.apply(w * 2)
        counts = []
        shared.register_hook(lambda grad: counts.append(1))

        def work():
            for _ in range(50):
                shared.sum().backward(retain_graph=True)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(counts) == 200
        assert w.grad.tolist() == [200.0] * 3


def test_save_on_cpu() -> None:
    def run(t: Any) -> Any:
        x = t.arange(3.0).requires_grad_()
        with t.autograd.graph.save_on_cpu():
            y = (x * x).exp()
        y.sum().backward()
        return x.grad

    assert run(weft).tolist() == pytest.approx([0.0, 2 * 2.718281828, 4 * 54.598150033], rel=1e-6)


def test_allow_mutation_on_saved_tensors() -> None:
    graph = weft.autograd.graph

    def run(t: Any) -> Any:
        x, w = t.ones(3, requires_grad=True), t.arange(3.0)
        with t.autograd.graph.allow_mutation_on_saved_tensors():
            y = (x * w).exp()
            z = y * y
            w.add_(10)
            y.zero_()
            z.sum().backward()
        return x.grad

    expected = [0.0, 2 * 2.718281828**2, 4 * 2.718281828**4]
    assert run(weft).tolist() == pytest.approx(expected, rel=1e-5)
    if torch is not None:
        assert run(torch).tolist() == pytest.approx(expected, rel=1e-5)
    x = weft.ones(3, requires_grad=True)
    with graph.allow_mutation_on_saved_tensors():
        y = (x * x).sum()
        with pytest.raises(RuntimeError, match="expected one block, got a nested one"):
            graph.allow_mutation_on_saved_tensors().__enter__()
    with pytest.raises(RuntimeError, match="expected backward inside the block"):
        y.backward()


@pytest.mark.parametrize("mode", ["all", "any"])
def test_multi_grad_hooks(mode: str) -> None:
    def run(t: Any) -> Any:
        a, b, c = (t.full((2,), float(i), requires_grad=True) for i in (1, 2, 3))
        seen: list[Any] = []

        def hook(grads: Any) -> None:
            seen.append(plain(grads) if mode == "any" else [plain(g) for g in grads])

        handle = t.autograd.graph.register_multi_grad_hook([a, b, c], hook, mode=mode)
        (a * b).sum().backward()  # c takes no part
        (a * b * c).sum().backward()
        (a * 5).sum().backward()
        if t is weft:  # PyTorch refuses a leaf there
            t.autograd.grad((a * b * c).sum(), [b])
            assert len(seen) == 4
            assert seen.pop() == ([3.0, 3.0] if mode == "any" else [None, [3.0, 3.0], None])
        handle.remove()
        (a * b * c).sum().backward()
        return [sorted(map(str, seen)), len(seen)]

    mine = run(weft)
    assert mine[1] == 3
    if torch is not None and mode == "all":
        assert mine == run(torch)


def test_multi_grad_hook_of_nested_runs_and_what_stays() -> None:
    x = weft.ones(2, requires_grad=True)
    seen: list[Any] = []

    def inner(grad: weft.Tensor) -> None:
        if len(seen) < 3:
            with weft.enable_grad():
                (x * 3).sum().backward()

    handle = weft.autograd.graph.register_multi_grad_hook([x], seen.append)
    y = x * 2
    y.register_hook(inner)
    y.sum().backward()
    assert [grads[0].tolist() for grads in seen] == [[3, 3], [2, 2]]
    handle.remove()
    (x * 2).sum().backward()
    assert len(seen) == 2
    for mode, error in (("some", ValueError), (None, ValueError)):
        with pytest.raises(error, match="expected mode 'all' or 'any'"):
            weft.autograd.graph.register_multi_grad_hook([x], print, mode=mode)
    with pytest.raises(TypeError, match="expected a callable, got int"):
        weft.autograd.graph.register_multi_grad_hook([x], 3)

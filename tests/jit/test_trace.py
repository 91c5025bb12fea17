"""weft.jit.trace: what is recorded, what stays symbolic, what is refused and warned of."""

from __future__ import annotations

import contextlib
import copy
import gc
import itertools
import math
import operator
import pickle
import random
import re
import threading
import warnings
import weakref
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft import Tensor, jit
from weft.jit.ir.block import Block

X = weft.arange(6.0).reshape(2, 3)
Pair = namedtuple("Pair", ["first", "second"])


def line_of(function: Any, offset: int) -> int:
    return function.__code__.co_firstlineno + offset


def equal(a: Any, b: Any) -> None:
    if isinstance(a, dict):
        assert list(a) == list(b)
        a, b = list(a.values()), list(b.values())
    if isinstance(a, (list, tuple)):
        assert isinstance(b, (list, tuple))
        assert len(a) == len(b)
        for one, other in zip(a, b):
            equal(one, other)
        return
    if not isinstance(a, Tensor):
        assert (a, type(a)) == (b, type(b))
        return
    assert a.dtype == b.dtype
    assert a.requires_grad == b.requires_grad
    np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def quiet_trace(*args: Any, **kwargs: Any) -> Any:
    """A trace that must not warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return jit.trace(*args, **kwargs)


# Sizes ----------------------------------------------------------------------------------------


def heads(x):
    b, t, c = x.shape
    return x.view(b, t, 3, c // 3).transpose(1, 2).reshape(-1, t * (c // 3))


SIZES = {
    "shape": lambda x: x.reshape(x.shape[0] * x.shape[1], -1),
    "slice of the shape": lambda x: x.new_zeros(x.shape[:-1]) + x.sum(-1),
    "sum of shapes": lambda x: weft.zeros(x.shape + (2,)),
    "size": lambda x: x.expand(x.size(0), x.size(-2), x.size(2)) / x.size(2),
    "size()": lambda x: weft.ones(*x.size()[1:]),
    "numel": lambda x: x.sum() / x.numel() + x.nelement() * 2,
    "numel of a size": lambda x: x.reshape(x.shape.numel()),
    "math.prod": lambda x: x.reshape(math.prod(x.shape)),
    "floor and rest": lambda x: (x.flatten()[: x.numel() // 2], x.flatten()[x.numel() % 5 :]),
    "negative": lambda x: x.flatten()[-x.size(0) :] * -x.size(1) + abs(-x.size(2)),
    "true division": lambda x: x * (1.0 / x.size(0)) + x.size(1) / 3,
    "power": lambda x: x / x.size(-1) ** 0.5 * x.size(0) ** 2 * 2 ** x.size(1),
    "divmod": lambda x: x + divmod(x.size(0), 2)[0],
    "number on the left": lambda x: x + (7 - x.size(0)) + 7 // x.size(1) + 7 % x.size(2),
    "float on the left": lambda x: x * (0.5 + x.size(0)) * (2.5 - x.size(1)) ** 2,
    "arange": lambda x: weft.arange(x.size(1)) + x.sum(),
    "arange from": lambda x: weft.arange(1, x.size(0) + 1, dtype=weft.float64),
    "tensor": lambda x: weft.tensor(x.size(1)) + weft.tensor([x.size(0), 2]),
    "float tensor": lambda x: weft.tensor([[x.size(1) * 0.5], [2]]),
    "full": lambda x: weft.full((x.size(0),), x.size(1)),
    "index": lambda x: x[x.size(0) - 1, 0 : x.size(1) - 1],
    "assign": lambda x: x.clone().index_fill_(0, weft.tensor([0]), x.size(2)),
    "strides": lambda x: x.as_strided((x.size(0), x.size(1)), (x.stride(0), x.stride()[1])),
    "len of nothing": lambda x: x[:, :0].sum(0) + x.size(1),
    "view_as": lambda x: x.sum(0).expand_as(x) + x.reshape(-1).view_as(x),
    "repeat": lambda x: x.repeat(x.size(0), 1, 1),
    "split": lambda x: weft.cat(x.split([1, x.size(1) - 1], dim=1), 1),
    "device": lambda x: weft.zeros(2, device=x.device) + x.sum(),
    "iterated range": lambda x: x.unfold(0, x.size(0) - 1, 1),
    "nbytes": lambda x: x + x.nbytes + x.storage_offset(),
    "result": lambda x: (x, x.size(0) * 2, x.size(1) / 2),
}


@pytest.mark.parametrize("name", [*SIZES, "heads"])
def test_sizes_are_those_of_the_inputs_of_each_call(name: str) -> None:
    function = SIZES.get(name, heads)
    traced = quiet_trace(function, weft.randn(2, 3, 6))
    for shape in ((2, 3, 6), (4, 5, 9), (3, 2, 3)):
        x = weft.randn(shape)
        equal(function(x), traced(x))


def test_a_number_of_the_trace_is_a_plain_one_afterwards() -> None:
    kept: list[Any] = []

    def f(x):
        kept.extend((x.size(0), x.size(0) / 2))
        return x

    jit.trace(f, X, check_trace=False)
    assert kept == [2, 1.0]
    assert type(kept[0] + 1) is int
    assert type(kept[1] * 2) is float
    assert type(copy.deepcopy(kept)[0] + 0) is int
    assert {2: "two"}[kept[0]] == "two"


BINARY = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod),
    *(operator.pow, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift),
)


@pytest.mark.parametrize("operation", BINARY)
def test_arithmetic_on_sizes_is_that_of_each_call(operation: Any) -> None:
    def f(x):
        n, m = x.shape
        results = []
        for a, b in itertools.product((n, n * 0.5), (3, 2.5, True, m, m * 0.5)):
            with contextlib.suppress(TypeError):
                results += [operation(a, b), operation(b, a)]
        return (x, *results)

    traced = quiet_trace(f, weft.ones(4, 2))
    for shape in ((4, 2), (3, 5), (1, 1)):
        equal(traced(weft.ones(shape)), f(weft.ones(shape)))


QUESTIONS = {
    **{f.__name__: f for f in (int, float, bool, complex, round, abs, hash, repr, str, copy.copy)},
    **{f.__name__: f for f in (math.trunc, math.floor, math.ceil, math.isnan, copy.deepcopy)},
    **{f.__name__: f for f in (operator.index, operator.neg, operator.pos, operator.invert)},
    "attribute": lambda n: (n.real, n.conjugate()), "compare": lambda n: (n == 2.5, n < 0, n >= 5),
    "count": lambda n: [0] * n, "digits": lambda n: round(n, 1), "format": lambda n: f"{n:7.2f} {n}",
    "divmod": lambda n: (divmod(n, 3), divmod(7, n)), "key": lambda n: {5: "five", 2.5: 1}.get(n),
    "isinstance": lambda n: (isinstance(n, int), isinstance(n, float), isinstance(n, bool)),
    "pickle": lambda n: pickle.loads(pickle.dumps(n)), "percent": "%d".__mod__,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", QUESTIONS)
def test_numbers_of_a_trace_answer_as_those_of_python(name: str) -> None:
    def answer(number):
        try:
            return repr(QUESTIONS[name](number))
        except Exception as error:
            return type(error)

    def numbers(n):
        return n, -n, n - n, n / 2, -n / 2, n / 2 + 1, n / 4 - 2

    kept: list[Any] = []
    answers: list[Any] = []

    def f(x):
        kept.extend(numbers(x.size(0)))
        answers.extend(map(answer, kept))
        return x

    jit.trace(f, weft.ones(5), check_trace=False)
    expected = [*map(answer, numbers(5))]
    assert answers == expected
    assert [*map(answer, kept)] == expected  # behind the trace


# In place, views, indexing ----------------------------------------------------------------------


def writes(x):
    y = x * 1
    y[0] = 7
    y[:, 1] += 2
    y[y > 8] = -1.0
    y[..., 0:1].mul_(3)
    y[[0, 1], [1, 2]] = weft.tensor([10.0, 20.0])
    y[None, True, 1] -= x[0]
    z = y.view(-1)
    z[::2] = x.flatten()[1::2]
    y -= 1
    y //= 2
    return y, z


INDEXING = {
    "int": lambda x: x[1], "negative": lambda x: x[-1, -2], "slice": lambda x: x[:1, ::2],
    "dots": lambda x: x[..., 1], "none": lambda x: x[None, :, None, 1:], "all": lambda x: x[:] + x[...],
    "list": lambda x: x[[1, 0, 1]], "mask": lambda x: x[x > 1], "rows": lambda x: x[x[:, 0] > 1],
    "true": lambda x: x[True], "false": lambda x: x[False], "two lists": lambda x: x[[0, 1], [2, 1]],
    "list behind dots": lambda x: x[..., [0, 2]], "tensor": lambda x: x[(x[0] * 0).long() + 1],
    "0-d": lambda x: x[(x.sum() * 0).long()], "0-d mask": lambda x: x[x.sum() > 100],
    "array": lambda x: x[np.array([1, 0])], "0-d array": lambda x: x[np.array(1)],
    "int of NumPy": lambda x: x[np.int64(-1), :1], "mixed": lambda x: x[:, None, [1, 2]],
    "split": lambda x: x[[0], :, None, [0]] if x.dim() > 2
    else x[[0], None, [0]],
}  # fmt: skip


@pytest.mark.parametrize("name", [*INDEXING, "writes"])
def test_indexing(name: str) -> None:
    function = INDEXING.get(name, writes)
    traced = quiet_trace(function, X)
    for x in (X, -X, X.flip(1) * 2):
        equal(function(x), traced(x))


ITEMS = (1, slice(None, None, 2), None, ..., True, [1, 0], weft.tensor([True, False]))


def read(x: Tensor, index: Any) -> Tensor:
    return x[index]


def write(x: Tensor, index: Any) -> Tensor:
    y = x * 1
    y[index] = 7.0
    return y


@pytest.mark.parametrize("use", [read, write])
def test_every_index_of_up_to_three_items(use: Any) -> None:
    taken = []
    for index in (each for n in range(4) for each in itertools.product(ITEMS, repeat=n)):
        try:
            use(X, index)
        except (IndexError, RuntimeError) as error:
            with pytest.raises(type(error), match="expected"):
                jit.trace(lambda x, index=index: use(x, index), X)
        else:
            taken.append(index)
    traced = jit.trace(lambda x: tuple(use(x, i) for i in taken), X, check_trace=False)
    equal(traced(-X), tuple(use(-X, i) for i in taken))


def test_writes_to_inputs_are_writes_of_the_program() -> None:
    def f(x):
        x.add_(1)
        x.T[0].zero_()
        return x.sum()

    traced = quiet_trace(f, X.clone())
    a, b = X.clone(), X.clone()
    equal(f(a), traced(b))
    equal(a, b)


def test_a_tensor_made_from_numbers_is_made_anew_in_every_call() -> None:
    def f(x):
        y = weft.tensor([0.0, 0.0, 0.0])
        y += x[0]
        return y

    traced = quiet_trace(f, X)
    equal(traced(X), f(X))
    equal(traced(X), f(X))


OPERATORS = {
    "right": lambda x: (2 - x, 2 / (x + 1), 2 // (x + 1), 2 % (x + 1), 2**x, 2 + x, 2 * x),
    "left": lambda x: (x - 2, x / 2, x // 2, x % 2, x**2, x * 2.5, x + 1j),
    "tensors": lambda x: (x - x.T.T, x / (x + 1), x // (x + 1), x % (x + 1), x**x),
    "ints": lambda x: ((n := x.int()) & 3, n | 4, 4 ^ n, ~n, n & n, 3 & n, 4 | n),
    "unary": lambda x: (-x, abs(x), +x, ~(x > 1)),
    "compare": lambda x: (x > 1, x <= x, x == 2, x != 2, x > 1, x >= 2.0, x < True),
    "matmul": lambda x: (x @ x.T, x.mT @ x, x.H @ x),
    "numpy numbers": lambda x: (x * np.float64(2), x - np.int64(1)),
    "convert": lambda x: (x.double(), x.to(weft.int64), x.half().float(), x.long(), x.bool()),
    "convert more": lambda x: (x.to("cpu", weft.float64), x.type(weft.int32), x.to(x.int()),
                               x.type_as(x.long()), x.to(dtype=weft.bool), x.to(x.device), x.cpu()),
    "python dtypes": lambda x: (x.to(int), weft.zeros(2, dtype=float), x.sum(dtype=bool)),
    "data": lambda x: (x.data * 2, x.detach() + 1, x.real, weft.as_tensor(x), weft.tensor(X)),
    "complex": lambda x: ((z := weft.complex(x, x)).real, z.imag, z.conj(), z.H, z.abs()),
    "lists": lambda x: (*x.unbind(1), *x.chunk(2, 1), weft.stack([x, x]), weft.cat((x, x), dim=0)),
    "pairs": lambda x: (x.max(1).values, *x.sort(1, descending=True), x.topk(2).indices),
    "out": lambda x: weft.add(x, x, out=weft.empty(2, 3)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:tensor. expected numbers")
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_the_language(name: str) -> None:
    function = OPERATORS[name]
    traced = jit.trace(function, X, check_trace=False)
    for x in (X, -X, X.flip(1) * 2):
        equal(function(x), traced(x))


def test_real_and_imaginary_parts_are_views() -> None:
    def function(x):
        y = x * 2
        y.real.add_(1)
        y.imag.mul_(x.real)
        return y

    traced = jit.trace(function, weft.complex(X, X))
    for z in (weft.complex(-X, X + 1), weft.complex(X * 3, -X)):
        equal(function(z), traced(z))


# What Python learns -----------------------------------------------------------------------------


def branches(x):
    y = x + 1
    if y.sum() > 3:
        return y
    return -y


LEAKS = {
    "if": (branches, "Python boolean", 2),
    "float": (lambda x: x * float(x.sum()), "Python float", 0),
    "int": (lambda x: x * int(x.sum()), "Python integer", 0),
    "item": (lambda x: x * x.sum().item(), "Python number", 0),
    "list": (lambda x: x * x.tolist()[0][1], "Python list", 0),
    "numpy": (lambda x: x * float(x.numpy()[0, 1]), "NumPy array", 0),
    "index": (lambda x: x * [1, 2, 3][x[0, 1].long()], "Python index", 0),
    "iteration": (lambda x: sum(row for row in x), "Iterating over a tensor", 0),
    "unpacking": (lambda x: (lambda a, b: a * b)(*x), "Iterating over a tensor", 0),
    "in": (lambda x: x * (2 in x), "Python boolean", 0),
    "len": (lambda x: x * len(x), "len", 0),
    "size decides": (lambda x: x if x.size(0) == 2 else -x, "Python boolean", 0),
    "size in range": (lambda x: sum(x[i] for i in range(x.size(0))), "Python index", 0),
    "size as float": (lambda x: x / math.sqrt(x.size(-1)), "Python float", 0),
    "equal": (lambda x: x * weft.equal(x, x), "Python boolean", 0),
    "min": (lambda x: x[: min(x.size(0), 5)], "Python boolean", 0),
    "array of sizes": (lambda x: x * float(np.array(x.shape).sum()), "NumPy array", 0),
    "tensor of a tensor": (lambda x: weft.tensor([x[0, 1], 2.0]) + x[0, :2], "Python number", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", LEAKS)
def test_a_warning_names_the_line_where_python_learns_a_value(name: str) -> None:
    function, text, offset = LEAKS[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traced = jit.trace(function, X, check_trace=False)
    found = [w for w in caught if text in str(w.message)]
    assert found, [str(w.message) for w in caught]
    assert all(w.category is jit.TracerWarning for w in caught)
    assert found[0].filename == __file__
    assert found[0].lineno == line_of(function, offset)
    equal(function(X), traced(X))


def test_constants_may_be_looked_at() -> None:
    flag = weft.tensor(True)

    def f(x):
        return x * 2 if flag else x

    equal(quiet_trace(f, X)(X), X * 2)


def test_another_number_of_rows_than_iterated_raises() -> None:
    with pytest.warns(jit.TracerWarning):
        traced = jit.trace(lambda x: sum(row for row in x), X)
    with pytest.raises(ValueError, match="expected 2, got 3"):
        traced(weft.ones(3, 3))


def test_sizes_by_which_weft_unwrapped_are_checked_by_the_program() -> None:
    def f(x):
        return weft.nn.functional.batch_norm(x, None, None, training=True)

    traced = quiet_trace(f, weft.randn(4, 3))
    equal(f(X), traced(X))
    with pytest.raises(RuntimeError, match="expected sizes and values for which the traced"):
        traced(X[:1])


def test_values_by_which_weft_unwrapped_are_checked_by_the_program() -> None:
    loss = weft.nn.functional.binary_cross_entropy
    traced = quiet_trace(loss, (weft.full((3,), 0.5), weft.ones(3)))
    given = weft.tensor([0.1, 0.2, 0.9]), weft.tensor([0.0, 1.0, 1.0])
    equal(loss(*given), traced(*given))
    with pytest.raises(RuntimeError, match="expected sizes and values for which the traced"):
        traced(given[0] * 9, given[1])


def test_a_library_function_that_is_refused_says_what_the_trace_holds_for() -> None:
    def f(x):
        return weft.nn.utils.rnn.pack_padded_sequence(x, np.array([2, 1])).data

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traced = jit.trace(f, weft.ones(2, 2, 1))
    (warned,) = [w for w in caught if "pack_padded_sequence decides by" in str(w.message)]
    assert "could not be compiled: as_tensor: expected arguments that" in str(warned.message)
    assert (warned.filename, warned.lineno) == (__file__, line_of(f, 1))
    assert "\n" not in str(warned.message)
    equal(traced(X.reshape(2, 3, 1)[:, :2] + 1), f(X.reshape(2, 3, 1)[:, :2] + 1))
    with pytest.raises(RuntimeError, match="expected sizes and values for which the traced"):
        traced(weft.ones(2, 3, 1))


def test_calls_of_library_functions_do_not_look_at_the_trace_before_them(monkeypatch) -> None:
    looked = []
    nodes = Block.nodes

    def spy(block):
        found = nodes.fget(block)
        looked.append(len(found))
        return found

    def work(count):
        def f(x):
            for _ in range(count):
                x = weft.nn.functional.cosine_similarity(x, x + 1, dim=0).expand(3)
            return x

        looked.clear()
        jit.trace(f, weft.ones(3), check_trace=False)
        return sum(looked)

    monkeypatch.setattr(Block, "nodes", property(spy))
    work(2)
    assert work(80) < 3 * work(40)


def test_seeds_are_recorded() -> None:
    def f(x):
        weft.manual_seed(x.size(0))
        return x + weft.rand_like(x)

    traced = quiet_trace(f, X)
    equal(traced(X), f(X))
    assert not weft.equal(traced(X[:1]), f(X)[:1])
    equal(traced(X[:1]), f(X[:1]))


def scaled_matmul(x):
    return weft.fft.ifft(x, norm="ortho").real + weft.fft.irfft(x).sum()


def test_transforms_keep_their_sizes() -> None:
    traced = quiet_trace(scaled_matmul, X)
    for x in (X, -X):
        equal(traced(x), scaled_matmul(x))


def test_what_is_not_recorded_warns() -> None:
    def f(x):
        return copy.deepcopy(x.detach()) + x

    with pytest.warns(jit.TracerWarning, match="made by something that is not recorded"):
        jit.trace(f, X, check_trace=False)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x.resize_(3), "resize_"),
        (lambda x: x.view(weft.int32), "another dtype"),
        (lambda x: x.set_(X), "set_"),
        (lambda x: setattr(x, "grad", X), "assignment to .grad"),
        (lambda x: x.nope, "nope"),
    ],
)
def test_refusals(function: Any, text: str) -> None:
    with pytest.raises((RuntimeError, AttributeError), match=text):
        jit.trace(function, X.clone())
    assert not jit.is_tracing()
    assert weft._C._recorder() is None


# State of a trace -------------------------------------------------------------------------------


def test_is_tracing() -> None:
    seen = []

    def f(x):
        seen.append(jit.is_tracing())
        return x

    jit.trace(f, X, check_trace=False)
    assert seen == [True]
    assert not jit.is_tracing()


def test_a_trace_ends_when_the_function_raises() -> None:
    def f(x):
        x = x + 1
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        jit.trace(f, X)
    assert not jit.is_tracing()
    assert type(X.shape[0]) is int


@pytest.mark.parametrize("fails", [False, True])
def test_a_trace_that_is_done_holds_no_tensors(fails: bool) -> None:
    made = []

    def f(x):
        y = x * 2
        made.append(weakref.ref(y))
        repr(y)  # a pause
        return y.gather() if fails else y + 1

    with pytest.raises(TypeError) if fails else contextlib.nullcontext():
        jit.trace(f, X, check_trace=False)
    gc.collect()
    assert [each() for each in made] == [None]


def test_other_threads_are_not_recorded() -> None:
    inside, done = threading.Event(), threading.Event()
    shapes = []

    def work():
        inside.wait(30)
        shapes.append(type((X + 1).shape[0]))
        done.set()

    def f(x):
        inside.set()
        assert done.wait(30)
        return x * 2

    thread = threading.Thread(target=work)
    thread.start()
    traced = jit.trace(f, X, check_trace=False)
    thread.join(30)
    assert shapes == [int]
    assert [node.kind for node in traced.graph.walk()] == ["prim::Constant", "aten::mul.Scalar"]


def test_threads_of_the_function_may_compile() -> None:
    def f(x):
        @jit.script
        def late(x, n: int):
            for _ in range(n):
                x = x * 2
            return x

        results = []
        thread = threading.Thread(target=lambda: results.append(late(X, 2)))
        thread.start()
        thread.join(60)
        return x + results[0].sum()

    with pytest.warns(jit.TracerWarning, match="made by something that is not recorded"):
        traced = jit.trace(f, X, check_trace=False)
    equal(traced(-X), f(-X))


def test_what_a_trace_shows() -> None:
    traced = quiet_trace(heads, weft.randn(2, 3, 6))
    assert "reshape" in traced.code
    assert str(jit.script(traced).inlined_graph).startswith("graph(%x : Tensor)")
    assert "test_trace.py" in traced.graph.to_html()
    line = line_of(heads, 2)
    node = next(n for n in traced.graph.walk() if n.kind == "aten::view")
    assert node.range.file_line_col()[1] == line
    assert "~" in node.range.highlight()


def test_errors_of_a_trace_show_the_line() -> None:
    traced = quiet_trace(heads, weft.randn(2, 3, 6))
    with pytest.raises(RuntimeError, match=r"b, t, 3, c // 3") as caught:
        traced(weft.randn(2, 3, 7))
    assert f"line {line_of(heads, 2)}" in str(caught.value)


def test_printing_is_not_recorded(capsys: Any) -> None:
    def f(x):
        print(x, f"{x.sum()} {x.shape} {x.size(0)}")
        return x + 1

    traced = quiet_trace(f, X)
    assert "torch.Size([2, 3]) 2" in capsys.readouterr().out
    assert [n.kind for n in traced.graph.walk() if "Constant" not in n.kind] == [
        "aten::sum", "aten::add.Scalar",
    ]  # fmt: skip


# Inputs and results -----------------------------------------------------------------------------


def structured(pairs, by_name):
    (a, b), (c, _) = pairs
    return Pair(a + by_name["x"], (b * c, by_name["y"]))


def test_structures() -> None:
    def inputs(scale):
        return [(X * scale, X + 1), (X, X)], {"x": X, "y": X * scale}

    traced = quiet_trace(structured, inputs(1))
    equal(tuple(structured(*inputs(3))), traced(*inputs(3)))


def test_lists_and_dicts_as_results_ask_for_strict_false() -> None:
    with pytest.warns(jit.TracerWarning, match="strict=False"):
        equal(jit.trace(lambda x: [x, x + 1], X)(-X), [-X, 1 - X])
    with pytest.raises(RuntimeError, match="strict=False"):
        jit.trace(lambda x: {"a": x, "b": [x, x]}, X)
    equal(jit.trace(lambda x: [x, x + 1], X, strict=False)(-X), [-X, 1 - X])
    equal(jit.trace(lambda x: {"a": x, "b": x * 2}, X, strict=False)(-X), {"a": -X, "b": -X * 2})


NO_INPUTS = [
    *[(X, 3), (X, None), ("a",), ([],), ({},), ([{}],), ({"a": []},), ((X, {}),)],
    *[({1: X},), ({"a": X, 1: X},), ([X, (X,)],), ({"a": X, "b": [X]},)],
]


@pytest.mark.parametrize("given", NO_INPUTS)
def test_inputs_are_tensors(given: Any) -> None:
    with pytest.raises(RuntimeError, match=r"trace: expected"):
        jit.trace(lambda *args: args[0], given)


@pytest.mark.parametrize("given", [None, "text", (), [], {}, 1.5, (X, []), ({}, X)])
def test_results_are_tensors(given: Any) -> None:
    with (
        pytest.raises(RuntimeError, match="as output") if given != () else warnings.catch_warnings()
    ):
        jit.trace(lambda x: given, X)


def test_names_of_arguments() -> None:
    def f(a, b=None, *, c):
        return a - b * c

    traced = jit.trace(f, example_kwarg_inputs={"a": X, "c": X + 2, "b": X + 1})
    equal(traced(c=X, a=X * 2, b=X), f(X * 2, X, c=X))
    assert str(traced.schema).endswith("(Tensor a, Tensor b, Tensor c) -> Tensor")
    assert str(jit.trace(lambda u, v: u - v, (X, X)).schema).endswith(
        "(Tensor u, Tensor v) -> Tensor"
    )
    with pytest.raises(RuntimeError, match="got both"):
        jit.trace(f, X, example_kwarg_inputs={"a": X})
    with pytest.raises(RuntimeError, match="got none"):
        jit.trace(f)


def test_one_tensor_as_two_arguments() -> None:
    traced = quiet_trace(lambda a, b: a - 2 * b, (X, X))
    equal(traced(X, X * 3), X - 6 * X)


def test_tensors_from_outside() -> None:
    scale = weft.tensor([1.0, 2.0, 3.0])
    traced = quiet_trace(lambda x: x * scale, X)
    equal(traced(X), X * scale)
    weight = scale.clone().requires_grad_()
    for each in (weight, weight * 2, weight[:1], weight.sum()):
        with pytest.raises(RuntimeError, match="from outside that do not require grad, got one of"):
            jit.trace(lambda x, each=each: x * each, X)
        constant = each.detach()
        equal(quiet_trace(lambda x, constant=constant: x * constant, X)(-X), -X * constant)


def test_random_numbers() -> None:
    def f(x):
        y = weft.nn.functional.dropout(x + weft.rand_like(x), 0.5)
        return y + weft.randn(x.size(0), 1) + weft.bernoulli(weft.full_like(x, 0.5))

    state = weft.get_rng_state()
    with pytest.warns(jit.TracerWarning, match="which is random"):
        traced = jit.trace(f, X)
    x = weft.randn(5, 3)
    weft.manual_seed(4)
    expected = f(x)
    weft.manual_seed(4)
    equal(expected, traced(x))
    weft.set_rng_state(state)


RANDOM = {
    "rand": lambda x: x + weft.rand(3),
    "randn_like": lambda x: x + weft.randn_like(x),
    "uniform_": lambda x: x.clone().uniform_(),
    "bernoulli_": lambda x: weft.zeros_like(x).bernoulli_(0.5),
    "randperm": lambda x: x[:, weft.randperm(3)],
}


@pytest.mark.parametrize("name", RANDOM)
def test_recorded_random_numbers_are_warned_of(name: str) -> None:
    with pytest.warns(jit.TracerWarning, match=rf"aten::{name}\S*, which is random") as caught:
        jit.trace(RANDOM[name], X)
    assert caught[0].filename == __file__ and caught[0].lineno == line_of(RANDOM[name], 0)


def test_random_numbers_that_are_seeded_or_never_drawn_are_not_warned_of() -> None:
    def seeded(x):
        weft.manual_seed(3)
        return x + weft.rand(3)

    state = weft.get_rng_state()
    for function in (seeded, lambda x: weft.nn.functional.dropout(x, 0.5, training=False)):
        equal(quiet_trace(function, X)(X), function(X))
    weft.set_rng_state(state)


@jit.script
def steps(x: Tensor, n: int, sizes: list[int], scale: float) -> Tensor:
    for i in range(n):
        x = x + i
    return x.reshape(sizes) * scale


def test_sizes_for_the_numbers_of_a_program_are_recorded() -> None:
    def f(x):
        return steps(x, x.shape[0], [x.shape[1], x.shape[0]], x.shape[1] / 2)

    traced = quiet_trace(f, X)
    for x in (X, weft.ones(5, 4)):
        equal(traced(x), f(x))


# Gradients --------------------------------------------------------------------------------------


def gradient_penalty(x):
    (grad,) = weft.autograd.grad((x**3).sum(), x, create_graph=True)
    return (grad**2).sum() + x.sum()


class Cube(weft.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x**3 * factor, x * 2

    @staticmethod
    def backward(ctx, grad, other):
        return grad * 100 * ctx.factor * ctx.saved_tensors[0] + other, None


def modes(x):
    with weft.no_grad():
        y = x * 2
        with weft.enable_grad():
            z = x * 3
    return (y * x + z).sum()


GRADIENTS = {
    "chain": lambda x: (x.sin() * x.size(0)).exp().sum(),
    "detach": lambda x: (x.detach() * x + x.data).sum(),
    "modes": modes,
    "write": lambda x: x.clone().mul_(2)[0].pow(2).sum(),
    "penalty": gradient_penalty,
    "function": lambda x: sum(each.sum() for each in Cube.apply(x, 2)),
    "leaf": lambda x: (x.detach().requires_grad_() * x).sum(),
    "factory": lambda x: (weft.ones(3, requires_grad=True) * x).sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_pythons(name: str) -> None:
    function = GRADIENTS[name]
    traced = quiet_trace(function, X.clone().requires_grad_())
    for scale in (1.0, -0.5):
        grads = []
        for call in (function, traced):
            x = (X * scale).requires_grad_()
            result = call(x)
            result.backward()
            grads.append((result, x.grad))
        equal(*grads)


def test_grad_mode_is_that_of_the_call() -> None:
    traced = quiet_trace(modes, X.clone().requires_grad_())
    with weft.no_grad():
        assert not jit.trace(lambda x: x * 2, X.clone().requires_grad_())(X).requires_grad
        assert weft.is_grad_enabled() is False
    traced(X.clone().requires_grad_())
    assert weft.is_grad_enabled()


# Programs ---------------------------------------------------------------------------------------


@jit.script
def decides(x, n: int):
    if bool(x.sum() > 3):
        return x * n
    return x - n


def test_programs_stay_calls() -> None:
    traced = quiet_trace(lambda x: decides(x, x.size(0)) + 1, X)
    assert "prim::CallFunction" in str(traced.graph)
    for x in (X, -X, weft.ones(1, 1)):
        equal(decides(x, x.size(0)) + 1, traced(x))


@jit.script
def parts(
    xs: list[Tensor], by_name: dict[str, int]
) -> tuple[Tensor, list[Tensor], dict[str, Tensor]]:
    total = xs[0] * by_name["n"]
    return total, [total, xs[1]], {"last": xs[-1]}


def test_programs_take_and_give_containers() -> None:
    def f(x):
        total, both, named = parts([x, x + 1], {"n": x.size(0)})
        return total + both[1] - named["last"] * both[0]

    traced = quiet_trace(f, X)
    equal(traced(weft.ones(3, 2)), f(weft.ones(3, 2)))


inner = jit.trace(lambda x: x * x.size(0), X)


def test_programs_call_traces() -> None:
    @jit.script
    def f(x, n: int):
        for _ in range(n):
            x = inner(x) + 1
        return x

    equal(f(X, 2), (X * 2 + 1) * 2 + 1)
    equal(quiet_trace(lambda x: inner(x) + 1, X)(weft.ones(3)), weft.ones(3) * 3 + 1)


def test_tracing_a_program_gives_it_back() -> None:
    with pytest.warns(UserWarning, match="a program already"):
        assert jit.trace(decides, (X, 3)) is decides


# Checks -----------------------------------------------------------------------------------------


def draws(x):
    y = x + 1
    return y * random.random()


def test_check_trace_names_the_line_that_differs() -> None:
    with pytest.raises(jit.TracingCheckError) as caught:
        jit.trace(draws, X)
    assert re.search(rf'test_trace.py", line {line_of(draws, 2)}\b', str(caught.value))
    assert "aten::mul.Scalar" in str(caught.value)
    jit.trace(draws, X, check_trace=False)


def test_check_inputs() -> None:
    with pytest.warns(jit.TracerWarning):
        jit.trace(branches, X, check_inputs=[(X * 2,)])
    with (
        pytest.warns(jit.TracerWarning),
        pytest.raises(jit.TracingCheckError, match="check_inputs"),
    ):
        jit.trace(branches, X, check_inputs=[(X * 2,), (-X,)])


def test_check_compares_results() -> None:
    calls = []
    kept = weft.zeros(())

    def f(x):
        calls.append(1)
        kept.add_(1)
        return x + kept

    with pytest.raises(jit.TracingCheckError, match=r"results within 1e-05 .* by up to 1"):
        jit.trace(f, X)


def test_checks_leave_generator_and_buffers_alone() -> None:
    model = weft.nn.Sequential(weft.nn.BatchNorm1d(3), weft.nn.Dropout(0.5))
    weft.manual_seed(1)
    jit.trace(model, weft.randn(4, 3), check_trace=False)
    expected, after = model[0].running_mean.clone(), weft.randn(3)
    model[0].reset_running_stats()
    weft.manual_seed(1)
    with pytest.warns(jit.TracerWarning, match="aten::dropout of training"):
        jit.trace(model, weft.randn(4, 3))
    equal((model[0].running_mean, weft.randn(3)), (expected, after))
    assert int(model[0].num_batches_tracked) == 1


def test_devices_are_those_of_the_inputs() -> None:
    def made(x: Any) -> Any:
        y = weft.zeros(x.shape[0], device=x.device) + weft.arange(3, device=x.device)
        return y.to(x.device) + weft.ones_like(x)

    text = str(jit.trace(made, weft.ones(3)).graph)
    assert text.count("prim::device(%x)") == 3
    assert "Device = prim::Constant" not in text and 'device("cpu")' not in text


@given(leading=st.integers(0, 3), dims=st.sampled_from(["index", "mask", "two", "slice"]))
def test_assigned_values_with_leading_dimensions_of_size_one(leading, dims):
    rows = weft.tensor([2, 0, 1])
    key = {
        "index": (rows,),
        "mask": (weft.tensor([True, True, False, True]),),
        "two": (weft.tensor([[0], [1]]), slice(None), rows),
        "slice": (slice(1, 4), rows),
    }[dims]

    def put(x: Tensor, value: Tensor) -> Tensor:
        x[key] = value
        return x

    x = weft.zeros(4, 2, 3) if dims == "two" else weft.zeros(4, 3)
    value = weft.randn((1,) * leading + tuple(x[key].shape))
    traced = jit.trace(put, (x.clone(), value))
    assert weft.equal(traced(x.clone(), value), put(x.clone(), value))


@pytest.mark.parametrize("keys", [("a", "b"), (1, -7), (0.5, 2.0)])
def test_dicts_as_inputs(keys):
    def weighted(d: dict) -> Tensor:
        return d[keys[0]]["x"] - d[keys[1]]["x"] * 2

    def inputs(start: float) -> dict:
        return {key: {"x": weft.full((2,), start + i)} for i, key in enumerate(keys)}

    traced = jit.trace(weighted, (inputs(1.0),))
    assert weft.equal(traced(inputs(3.0)), weighted(inputs(3.0)))


def test_functions_that_the_traced_one_scripts():
    def outer(flag: Tensor, x: Tensor) -> Tensor:
        @jit.script
        def choose(flag: Tensor, x: Tensor) -> Tensor:
            return x if bool(flag) else -x

        return choose(flag, x * 2)

    traced = jit.trace(outer, (weft.tensor(True), weft.ones(2)))  # which calls it three times
    assert traced(weft.tensor(False), weft.ones(2)).tolist() == [-2.0, -2.0]

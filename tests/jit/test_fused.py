"""Fusion groups: the same bits as the operators one by one, on kernels and as native code."""

from __future__ import annotations

import sys

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
from jit.groups import NATIVE, compile_now, needs_native
from weft import _C
from weft.jit.cache import files
from weft.jit.native import compiler, llvm

UNARY = [
    "neg",
    "abs",
    "sigmoid",
    "tanh",
    "exp",
    "sqrt",
    "relu",
    "sin",
    "erf",
    "floor",
    "reciprocal",
]
BINARY = ["mul.Tensor", "div.Tensor", "maximum", "minimum", "atan2"]
SCALED = ["add.Tensor", "sub.Tensor"]  # with alpha
SCALAR = ["mul.Scalar", "div.Scalar"]
COMPARE = ["lt.Tensor", "ge.Tensor", "eq.Tensor"]


def group(inputs, steps, outputs, constants=()):
    """A group; steps are (operator, tensors, numbers), operands "i0", "s1", "c2"."""
    kinds = {"i": "input", "s": "step", "c": "constant"}

    def operands(texts):
        return [(kinds[t[0]], int(t[1:])) for t in texts]

    wanted = [(op.replace(".", "_"), operands(t), operands(n)) for op, t, n in steps]
    return _C._FusedGroup(inputs, list(constants), wanted, list(outputs))


def bits(t):
    return t.contiguous().reshape(-1).numpy().tobytes()


CHAIN = [
    ("mul.Tensor", ["i0", "i1"], []),
    ("add.Scalar", ["s0"], ["c0", "c0"]),
    ("sigmoid", ["s1"], []),
    ("sub.Tensor", ["i0", "i1"], ["c0"]),
    ("tanh", ["s3"], []),
    ("mul.Tensor", ["s2", "s4"], []),
    ("mul.Scalar", ["i0"], ["c1"]),
    ("add.Tensor", ["s5", "s6"], ["c0"]),
]


def chain(x, y):
    return weft.sigmoid(x * y + 1) * weft.tanh(x - y) + x * 0.5


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (0, 3), (33, 17), (70_000,)])
def test_chain_gives_the_operators_bits(dtype, shape):
    x, y = weft.randn(shape, dtype=dtype), weft.randn(shape, dtype=dtype)
    made = group(2, CHAIN, [7], [1, 0.5])
    wanted = bits(chain(x, y))
    assert bits(made.run([x, y])[0]) == wanted
    compile_now(made, dtype)
    assert made.has_native(dtype, 0)
    assert bits(made.run([x, y])[0]) == wanted


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
def test_native_code_calls_functions_of_libweft(dtype):
    x = weft.rand(1000, dtype=dtype) * 9
    made = group(1, [("digamma", ["i0"], []), ("i0", ["s0"], [])], [1])
    compile_now(made, dtype)
    assert made.has_native(dtype, 0)
    assert bits(made.run([x])[0]) == bits(x.digamma().i0())


def test_strided_and_broadcast_operands():
    made = group(2, CHAIN, [7], [1, 0.5])
    x = weft.randn(40, 30)
    cases = [
        (x.t(), weft.randn(40)),
        (x[::2, 1::3], weft.randn(20, 1)),
        (x.flip(0), weft.tensor(0.3)),
    ]
    for _ in range(2):
        for a, b in cases:
            assert bits(made.run([a, b])[0]) == bits(chain(a, b))
        compile_now(made)


def test_several_outputs_and_masks():
    steps = [
        ("gt.Scalar", ["i0"], ["c0"]),
        ("where.self", ["s0", "i0", "i1"], []),
        ("mul.Tensor", ["s1", "s0"], []),  # a mask as a number
        ("where.self", ["i2", "s2", "i1"], []),
    ]
    made = group(3, steps, [0, 1, 3], [0.25])
    x, y, mask = weft.randn(1000), weft.randn(1000), weft.rand(1000) > 0.5
    first = x > 0.25
    second = weft.where(first, x, y)
    wanted = [first, second, weft.where(mask, second * first, y)]
    for _ in range(2):
        got = made.run([x, y, mask])
        assert [g.dtype for g in got] == [w.dtype for w in wanted]
        assert [bits(g) for g in got] == [bits(w) for w in wanted]
        compile_now(made, masks=0b100)


@pytest.mark.parametrize("exponent", [2, 3.0, 0.5, -1, 2.7])
def test_powers_take_the_loop_the_operator_takes(exponent):
    steps = [("pow.Tensor_Scalar", ["i0"], ["c0"]), ("neg", ["s0"], [])]
    made = group(1, steps, [1], [exponent])
    x = weft.rand(1000) * 3
    compile_now(made)
    assert bits(made.run([x])[0]) == bits(-(x**exponent))


def test_numbers_of_the_call():
    made = group(2, [("mul.Scalar", ["i0"], ["i1"]), ("exp", ["s0"], [])], [1])
    x = weft.randn(100)
    for factor in (2, 0.1, True):
        assert bits(made.run([x, factor])[0]) == bits((x * factor).exp())
    assert made.run([x, 1j]) is None
    assert made.run([x, x]) is None


def test_refuses_what_the_operators_must_do():
    made = group(2, CHAIN, [7], [1, 0.5])
    x = weft.randn(5)
    assert made.run([x, x.double()]) is None  # promotion
    assert made.run([x.long(), x.long()]) is None
    assert made.run([x.requires_grad_(), x]) is None  # a gradient is recorded
    with weft.no_grad():
        assert made.run([x, x]) is not None


def test_an_output_that_is_narrower_than_the_group_is_refused():
    made = group(2, [("exp", ["i0"], []), ("mul.Tensor", ["s0", "i1"], [])], [0, 1])
    assert made.run([weft.randn(4), weft.randn(3, 4)]) is None
    assert made.run([weft.randn(3, 4), weft.randn(4)]) is not None


def test_shapes_that_do_not_fit_are_left_to_the_operators():
    made = group(2, CHAIN, [7], [1, 0.5])
    assert made.run([weft.randn(3), weft.randn(4)]) is None


BAD_SPECS = [
    (1, [("nothing", ["i0"], [])], [0], [], "expected a pointwise operator, got 'nothing'"),
    (1, [("sum", ["i0"], [])], [0], [], "expected a pointwise operator"),
    (1, [("exp", ["i1"], [])], [0], [], "expected an operand below 1"),
    (1, [("exp", ["s0"], [])], [0], [], "expected an operand below 0"),
    (1, [("exp", ["c0"], [])], [0], [1], "expected an operand"),
    (1, [("exp", [], [])], [0], [], "expected 1 tensors and 0 numbers"),
    (1, [("exp", ["i0"], [])], [1], [], "expected distinct steps as outputs"),
    (1, [("exp", ["i0"], [])], [0, 0], [], "expected distinct steps as outputs"),
    (1, [("exp", ["i0"], [])], [], [], "some output"),
    (1, [], [0], [], "expected 1 to"),
    (1, [("exp", ["i0"], [])], [0], [1j], "expected real numbers"),
]


@pytest.mark.parametrize(("inputs", "steps", "outputs", "constants", "text"), BAD_SPECS)
def test_bad_specs(inputs, steps, outputs, constants, text):
    with pytest.raises(RuntimeError, match=text):
        group(inputs, steps, outputs, constants)


@st.composite
def random_group(draw):
    """(steps, outputs): operators on two inputs and earlier results."""
    steps = []
    floats = ["i0", "i1"]
    for _ in range(draw(st.integers(1, 12))):
        pick = lambda: draw(st.sampled_from(floats))  # noqa: E731
        family = draw(st.sampled_from(["unary", "binary", "scaled", "scalar", "where"]))
        if family == "unary":
            steps.append((draw(st.sampled_from(UNARY)), [pick()], []))
        elif family == "binary":
            steps.append((draw(st.sampled_from(BINARY)), [pick(), pick()], []))
        elif family == "scaled":
            steps.append((draw(st.sampled_from(SCALED)), [pick(), pick()], ["c0"]))
        elif family == "scalar":
            steps.append((draw(st.sampled_from(SCALAR)), [pick()], ["c1"]))
        else:
            steps.append((draw(st.sampled_from(COMPARE)), [pick(), pick()], []))
            steps.append(("where.self", [f"s{len(steps) - 1}", pick(), pick()], []))
        floats.append(f"s{len(steps) - 1}")
    others = draw(st.sets(st.integers(0, len(steps) - 1), max_size=3))
    return steps, sorted(others | {len(steps) - 1})


def eagerly(steps, inputs, constants):
    results = []
    for op, tensors, numbers in steps:
        args = [inputs[int(t[1:])] if t[0] == "i" else results[int(t[1:])] for t in tensors]
        values = [constants[int(n[1:])] for n in numbers]
        function = getattr(weft, op.partition(".")[0])
        if op in SCALED:
            results.append(function(*args, alpha=values[0]))
        else:
            results.append(function(*args, *values))
    return results


@examples(60)
@given(random_group(), st.sampled_from([1, 5, 600, 1031]), st.sampled_from(NATIVE))
def test_random_groups(spec, size, native):
    steps, outputs = spec
    constants = [1.5, 0.3]
    made = group(2, steps, outputs, constants)
    x, y = weft.randn(size), weft.randn(size)
    wanted = eagerly(steps, [x, y], constants)
    if native:
        compile_now(made)
    got = made.run([x, y])
    assert got is not None
    for g, index in zip(got, outputs):
        assert bits(g) == bits(wanted[index])


@needs_native
def test_native_code_comes_in_the_background():
    made = group(2, CHAIN, [7], [1, 0.5])
    x, y = weft.randn(64), weft.randn(64)
    compiler.start()
    for _ in range(compiler.RUNS_BEFORE):
        made.run([x, y])
    assert compiler.wait(made, weft.float32)
    assert bits(made.run([x, y])[0]) == bits(chain(x, y))


def test_deep_groups_have_room_below_the_recursion_limit():
    before = sys.getrecursionlimit()
    deep = [("tanh", [f"s{i - 1}" if i else "i0"], []) for i in range(40)]
    sys.setrecursionlimit(300)  # what pytest itself needs is around 100
    try:
        compile_now(group(1, deep, [39]))
        assert sys.getrecursionlimit() == 300
    finally:
        sys.setrecursionlimit(before)


def test_images_are_cached_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    compile_now(group(2, CHAIN, [7], [1, 0.5]))
    (file,) = (tmp_path / "native").iterdir()

    def refuse(*_):
        raise AssertionError("compiled again")

    with monkeypatch.context() as patch:
        patch.setattr(llvm, "object_of", refuse)
        made = group(2, CHAIN, [7], [1, 0.5])
        compile_now(made)
        x = weft.randn(9)
        assert bits(made.run([x, x])[0]) == bits(chain(x, x))
    file.write_bytes(file.read_bytes()[:-1] + b"!")  # damaged: dropped, made again
    assert files.NATIVE.load(file.name) is None
    assert not file.exists()
    compile_now(group(2, CHAIN, [7], [1, 0.5]))
    assert file.exists()


def test_a_cache_others_may_write_to_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    (tmp_path / "native").mkdir()
    (tmp_path / "native").chmod(0o777)
    assert files.NATIVE.folder() is None


@needs_native
@examples(100)
@given(st.data())
def test_damaged_images_raise(data):
    made = group(1, [("exp", ["i0"], []), ("neg", ["s0"], [])], [1])
    good = compiler._image(made, "float32", 0)
    size = int.from_bytes(good[20:24], "little")
    at = data.draw(st.integers(0, len(good) - size - 1))  # in the header: code is trusted
    bad = good[:at] + bytes([data.draw(st.integers(0, 255))]) + good[at + 1 :]
    if bad != good and at not in range(12, 20):  # another entry or instruction set may be valid
        with pytest.raises(RuntimeError, match="native code"):
            made.install(weft.float32, 0, bad)
    with pytest.raises(RuntimeError, match="native code"):
        made.install(weft.float32, 0, good[: data.draw(st.integers(0, len(good) - 1))])

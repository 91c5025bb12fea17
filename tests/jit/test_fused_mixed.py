"""Groups that read int64 beside floats, and results that take over memory."""

from __future__ import annotations

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
from jit.allocations import use_of
from jit.groups import NATIVE, assert_same_sums, bits, results, run_group


def padded(x, ids):
    return weft.where(ids != 0, x * 0.5, -1e9)


def positions(x, ids):
    return (x + ids) * (ids * 2 + 1) - weft.where(x > ids, x, ids)


def counted(x, ids):
    y = weft.maximum(ids, -ids) - 3
    return y, x * y, y > 1


@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
@pytest.mark.parametrize(
    "shapes", [((7,), (7,)), ((40, 30), (30,)), ((300, 7), (300, 1)), ((9000,), ())]
)
@pytest.mark.parametrize("function", [padded, positions])
def test_integers_beside_floats(function, shapes, dtype, native):
    x, ids = weft.randn(shapes[0], dtype=dtype) * 4, weft.randint(-3, 9, shapes[1])
    wanted = function(x, ids)
    (got,) = run_group(function, dtype if native else None, x=x, ids=ids)
    assert got.dtype == wanted.dtype == dtype
    assert bits(got) == bits(wanted)
    mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    got, wanted = weft.jit.script(function)(mine, ids), function(other, ids)
    seed = weft.randn(wanted.shape, dtype=dtype)
    (a,), (b,) = (weft.autograd.grad(r, [v], seed) for r, v in ((got, mine), (wanted, other)))
    assert_same_sums(a, b)


@pytest.mark.parametrize("native", NATIVE)
def test_integers_as_results(native):
    x, ids = weft.randn(50, 20), weft.randint(-9, 9, (50, 20))
    got = run_group(counted, weft.float32 if native else None, x=x, ids=ids)
    wanted = counted(x, ids)
    assert [g.dtype for g in got] == [weft.int64, weft.float32, weft.bool]
    assert [bits(g) for g in got] == [bits(w) for w in wanted]


def test_bfloat16_beside_integers():
    x, ids = weft.randn(33, 20).bfloat16(), weft.randint(0, 300, (20,))
    (got,) = run_group(positions, x=x, ids=ids)
    assert got.dtype == weft.bfloat16
    assert bits(got.view(weft.int16)) == bits(positions(x, ids).view(weft.int16))


def scaled(x, ids, s: float):
    return x * (ids * s)


def divided(x, ids):
    return x + ids // 2


def rooted(x, ids):
    return x * weft.sqrt(ids)


def test_what_would_change_the_dtype_of_integers_goes_by_operators():
    x, ids = weft.randn(20), weft.randint(1, 9, (20,))
    assert run_group(scaled, x=x, ids=ids, s=0.5) is None
    assert run_group(scaled, x=x, ids=ids, s=2) is not None
    assert run_group(rooted, x=x, ids=ids) is None
    assert run_group(positions, x=ids, ids=ids) is None  # integers alone
    assert run_group(padded, x=x, ids=ids.int()) is None
    for function, args in [(scaled, (x, ids, 0.5)), (rooted, (x, ids)), (divided, (x, ids))]:
        assert bits(weft.jit.script(function)(*args)) == bits(function(*args))


def test_masks_of_integers_in_a_group_with_rows():
    def masked(x, ids):
        return weft.softmax(weft.where(ids > 0, x * 0.125, -1e9), -1) * (ids + 1)

    for rows in (3, 200):
        x, ids = weft.randn(rows, 100), weft.randint(0, 3, (rows, 100))
        (got,) = run_group(masked, x=x, ids=ids)
        assert bits(got) == bits(masked(x, ids))


TERMS = [
    "{0} + {1}",
    "{0} * {1}",
    "weft.where({1} > {0}, {0}, {1})",
    "weft.maximum({0}, {1})",
    "-{0}",
    "{0} * 3",
]


@examples(50)
@given(st.data(), st.sampled_from(NATIVE))
def test_random_mixtures(data, native):
    names, lines = ["x", "ids", "mask"], []
    for i in range(data.draw(st.integers(2, 8))):
        text = data.draw(st.sampled_from(TERMS))
        pair = (data.draw(st.sampled_from(names[:2] + names[3:])) for _ in "ab")
        lines.append(f"    v{i} = " + text.format(*pair))
        names.append(f"v{i}")
    lines.append(f"    return weft.where(mask, x, {names[-1]}), {names[-1]}")
    source = "\n".join(["def f(x, ids, mask):", *lines, ""])
    scope = {"weft": weft}
    exec(source, scope)
    scripted = weft.jit.CompilationUnit(source).f
    x, ids, mask = weft.randn(37), weft.randint(-5, 5, (37,)), weft.rand(37) > 0.5
    for _ in range(4 if native else 1):
        got, wanted = scripted(x, ids, mask), scope["f"](x, ids, mask)
        assert [(g.dtype, bits(g)) for g in got] == [(w.dtype, bits(w)) for w in wanted]


# ---- memory ----


def activated(a, b):
    y = a.mm(b)
    return weft.relu(y) * 0.5 + y


def kept(a, b):
    y = a.mm(b)
    return weft.relu(y) * 0.5, y


def listed(a, b):
    y = a.mm(b)
    held = [y]
    z = weft.relu(y) * 0.5
    return z, held[0]


def viewed(a, b):
    y = a.mm(b)
    row = y[0]
    z = weft.relu(y) * 0.5
    return z, row


@pytest.mark.parametrize("function", [activated, kept, listed, viewed])
@pytest.mark.parametrize("size", [20, 200])
def test_results_in_the_memory_of_operands_change_nothing_that_is_seen(function, size):
    a, b = weft.randn(size, size), weft.randn(size, size)
    before = bits(a), bits(b)
    scripted = weft.jit.script(function)
    for _ in range(4):
        got, wanted = results(scripted(a, b)), results(function(a, b))
        assert [bits(g) for g in got] == [bits(w) for w in wanted]
        assert (bits(a), bits(b)) == before
    assert len({g.data_ptr() for g in got}) == len(got)


def test_integers_take_no_memory_of_floats():
    """The result that may is the second one."""

    def numbered(x, ids):
        y = weft.cumsum(x, 0)
        k = ids * 2 + 1
        return k, y * k

    x, ids = weft.randn(256, 256), weft.randint(-9, 9, (256, 256))
    wanted, scripted = numbered(x, ids), weft.jit.script(numbered)
    for _ in range(4):
        got = scripted(x, ids)
        assert [(g.dtype, bits(g)) for g in got] == [(w.dtype, bits(w)) for w in wanted]
    used = use_of(scripted, x, ids, least=x.nbytes)
    assert used == (x.nbytes + ids.nbytes, 2)


def test_arguments_are_no_temporaries():
    @weft.jit.script
    def f(x):
        return weft.relu(x) * 0.5

    x = weft.randn(200, 200)
    y = x.clone()
    f(x)
    assert bits(x) == bits(y)
    assert bits(f(y + 0.0)) == bits(weft.relu(x) * 0.5)

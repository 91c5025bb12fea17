"""Gradients of fusion groups: the sums that the operators give one by one."""

from __future__ import annotations

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
from jit.groups import NATIVE, assert_same_sums, bits, compile_now, make
from weft.jit.codegen import tiles
from weft.jit.codegen.steps import NotFusible, Operand, Steps


def build(program, inputs, outputs):
    """A GroupSpec; `program` lists (key, args), args being "i0", "s1" or constants."""
    steps = Steps()
    made = []

    def value(arg):
        if isinstance(arg, str) and arg[0] in "is" and arg[1:].isdigit():
            return Operand("input", int(arg[1:])) if arg[0] == "i" else made[int(arg[1:])]
        return arg

    for key, args in program:
        made.append(steps.apply(key, [value(a) for a in args]))
    ends = [made[o].index for o in outputs]
    return tiles._group(steps, ends, inputs, tiles._backward(steps, ends, inputs))


def leaves(*shapes, seed=0, dtype=weft.float32):
    weft.manual_seed(seed)
    return [weft.randn(s, dtype=dtype).requires_grad_() for s in shapes]


def compare(spec, eager, shapes, dtype=weft.float32, native=False):
    """Runs both on leaves of these shapes; results must have the same bits, gradients those of the
    same sums."""
    a, b = leaves(*shapes, dtype=dtype), leaves(*shapes, dtype=dtype)
    group = make(spec)
    if native:
        compile_now(group, dtype, 0)
    got = group.run(a)
    if got is None:
        return False
    wanted = eager(*b)
    weft.manual_seed(1)
    for g, w in zip(got, wanted):
        assert bits(g) == bits(w)
        assert g.requires_grad == w.requires_grad
    seeds = [weft.randn(w.shape, dtype=dtype) for w in wanted if w.requires_grad]
    weft.autograd.backward([g for g in got if g.requires_grad], seeds)
    weft.autograd.backward([w for w in wanted if w.requires_grad], seeds)
    for x, y in zip(a, b):
        assert_same_sums(x.grad, y.grad, wanted[0].numel() // x.numel() or 1)
    return True


CHAIN = [
    ("mul.Tensor", ["i0", "i1"]),
    ("add.Scalar", ["s0", 1, 1]),
    ("sigmoid", ["s1"]),
    ("sub.Tensor", ["i0", "i1", 1]),
    ("tanh", ["s3"]),
    ("mul.Tensor", ["s2", "s4"]),
    ("mul.Scalar", ["i0", 0.5]),
    ("add.Tensor", ["s5", "s6", 1]),
]


def chain(x, y):
    return (weft.sigmoid(x * y + 1) * weft.tanh(x - y) + x * 0.5,)


@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
@pytest.mark.parametrize(
    "shapes", [((5,), (5,)), ((40, 30), (30,)), ((40, 30), (40, 1)), ((70_000,), ())]
)
def test_chain(shapes, dtype, native):
    spec = build(CHAIN, 2, [7])
    assert spec.backward is not None
    assert compare(spec, chain, shapes, dtype, native)


ROWS = [
    ("relu", ["i0"], lambda x: x.relu()),
    ("silu", ["i0"], weft.nn.functional.silu),
    ("gelu", ["i0", "none"], weft.nn.functional.gelu),
    ("gelu", ["i0", "tanh"], lambda x: weft.nn.functional.gelu(x, approximate="tanh")),
    ("pow.Tensor_Scalar", ["i0", 3], lambda x: x**3),
    ("maximum", ["i0", "i1"], weft.maximum),
    ("atan2", ["i0", "i1"], weft.atan2),
    ("div.Tensor", ["i0", "i1"], weft.div),
    ("clamp_min", ["i0", 0.1], lambda x: x.clamp_min(0.1)),
    ("leaky_relu", ["i0", 0.1], lambda x: weft.nn.functional.leaky_relu(x, 0.1)),
    ("softplus", ["i0", 1, 20], weft.nn.functional.softplus),
    ("hypot", ["i0", "i1"], weft.hypot),
    ("lerp.Scalar", ["i0", "i1", 0.3], lambda x, y: weft.lerp(x, y, 0.3)),
    ("addcmul", ["i0", "i1", "i0", 2], lambda x, y: weft.addcmul(x, y, x, value=2)),
    ("hardtanh", ["i0", -1, 1], weft.nn.functional.hardtanh),
]


@pytest.mark.parametrize(
    ("key", "args", "function"), ROWS, ids=[f"{r[0]}-{r[1][-1]}" for r in ROWS]
)
def test_rows(key, args, function):
    count = 2 if "i1" in args else 1
    spec = build([(key, args), ("exp", ["s0"]), ("mul.Tensor", ["s1", "s0"])], count, [2])

    def eager(*inputs):
        y = function(*inputs[:count])
        return (y.exp() * y,)

    assert spec.backward is not None
    assert compare(spec, eager, [(100,)] * count)
    assert compare(spec, eager, [(100,)] * count, native=True)


def test_values_used_outside_too():
    """Contributions from outside the group are added to its own."""
    spec = build(CHAIN[:6], 2, [2, 5])
    group = make(spec)
    (x, y), (u, v) = leaves(9, 9), leaves(9, 9)
    s, p = group.run([x, y])
    (s * p + x * 3).sum().backward()
    s2 = weft.sigmoid(u * v + 1)
    p2 = s2 * weft.tanh(u - v)
    (s2 * p2 + u * 3).sum().backward()
    assert_same_sums(x.grad, u.grad)
    assert_same_sums(y.grad, v.grad)


def test_inputs_without_gradient_get_none():
    group = make(build(CHAIN, 2, [7]))
    x, y = weft.randn(9), weft.randn(9, requires_grad=True)
    (out,) = group.run([x, y])
    out.sum().backward()
    assert x.grad is None
    assert y.grad is not None
    assert out.grad_fn.name() == "FusedBackward"


def test_an_output_without_path_to_a_wanting_input_is_refused():
    group = make(build([("exp", ["i0"]), ("mul.Tensor", ["s0", "i1"])], 2, [0, 1]))
    x, y = weft.randn(9), weft.randn(9, requires_grad=True)
    assert group.run([x, y]) is None


def test_narrow_values_inside_are_refused():
    """Their gradient would be summed at another place."""
    group = make(build([("exp", ["i1"]), ("mul.Tensor", ["i0", "s0"])], 2, [1]))
    x, y = leaves((4, 3), 3)
    assert group.run([x, y]) is None
    assert group.run([x, y.detach().requires_grad_(False).expand(4, 3)]) is not None


def test_second_derivatives():
    group = make(build(CHAIN, 2, [7]))
    x, y = leaves(6, 6, dtype=weft.float64)
    assert weft.autograd.gradgradcheck(lambda a, b: group.run([a, b])[0], (x, y))


def test_changes_in_place_are_caught():
    group = make(build(CHAIN, 2, [7]))
    x = weft.randn(5)
    y = weft.randn(5, requires_grad=True)
    (out,) = group.run([x, y])
    x.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation|changed in place"):
        out.sum().backward()


@pytest.mark.parametrize("key", ["floor", "digamma"])
def test_operators_without_arithmetic_gradient_have_none(key):
    assert build([(key, ["i0"]), ("exp", ["s0"])], 1, [1]).backward is None


def test_what_is_no_arithmetic_on_elements_is_refused():
    for key, args in [
        ("prod", ["i0"]),
        ("cumsum", ["i0", 0, None]),
        ("where", ["i0"]),
        ("copy_", ["i0", "i1", False]),
    ]:
        with pytest.raises(NotFusible):
            Steps().apply(key, [Operand("input", 0)] * len(args))


UNARY = ["neg", "abs", "sigmoid", "tanh", "exp", "sin", "relu", "silu", "square", "reciprocal"]
BINARY = ["mul.Tensor", "div.Tensor", "maximum", "atan2"]


@st.composite
def random_program(draw):
    program, values = [], ["i0", "i1"]
    for _ in range(draw(st.integers(1, 10))):
        kind = draw(st.sampled_from(["unary", "binary", "add", "scale", "where"]))
        a, b = (draw(st.sampled_from(values)) for _ in range(2))
        if kind == "unary":
            program.append((draw(st.sampled_from(UNARY)), [a]))
        elif kind == "binary":
            program.append((draw(st.sampled_from(BINARY)), [a, b]))
        elif kind == "add":
            program.append(("add.Tensor", [a, b, draw(st.sampled_from([1, 0.3]))]))
        elif kind == "scale":
            program.append(("mul.Scalar", [a, 1.7]))
        else:
            program.append(("gt.Tensor", [a, b]))
            program.append(("where.self", [f"s{len(program) - 1}", b, a]))
        values.append(f"s{len(program) - 1}")
    last = len(program) - 1
    return program, sorted({last} | draw(st.sets(st.integers(0, last), max_size=2)))


def eagerly(program, outputs):
    def run(*inputs):
        made = []
        for key, args in program:
            tensors = [
                inputs[int(a[1:])] if a[0] == "i" else made[int(a[1:])]
                for a in args
                if isinstance(a, str)
            ]
            numbers = [a for a in args if not isinstance(a, str)]
            name = key.partition(".")[0]
            function = getattr(weft, name, None) or getattr(weft.nn.functional, name)
            made.append(
                function(*tensors, alpha=numbers[0])
                if name == "add"
                else function(*tensors, *numbers)
            )
        return [made[o] for o in outputs]

    return run


@examples(80)
@given(random_program(), st.sampled_from(NATIVE), st.sampled_from([(7,), (3, 4), (1,)]))
def test_random_programs(spec, native, shape):
    program, outputs = spec
    compare(build(program, 2, outputs), eagerly(program, outputs), [shape, shape], native=native)


HALVES = """
def pointwise(x, y):
    a = torch.relu(x) * 2.0
    return a, a * torch.exp(y)

def rows(x, y):
    a = torch.relu(x) * 2.0
    return a, (a * y).sum()

def softened(x, y):
    a = torch.softmax(x * 2.0, -1)
    return a * 3.0, a + torch.tanh(y)

def product(x, y):
    a = torch.mm(x, x) * 0.5
    return torch.relu(a), a * torch.sigmoid(y)
"""


@pytest.mark.parametrize("name", ["pointwise", "rows", "softened", "product"])
def test_what_no_gradient_reaches_has_none(name):
    """Of two results only one has a gradient: what is behind the other has none, not zeros."""
    names = {"torch": weft}
    exec(HALVES, names)
    scripted = getattr(weft.jit.CompilationUnit(HALVES), name)
    for which in (0, 1):
        grads = []
        for function in (names[name], *[scripted] * 3):  # operators, then the group
            x, y = (weft.linspace(-1, 2, 64).reshape(8, 8).requires_grad_() for _ in range(2))
            outputs = function(x, y)
            grads.append(weft.autograd.grad(outputs[which].sum(), [x, y], allow_unused=True))
        for got in grads[1:]:
            for g, w in zip(got, grads[0]):
                assert_same_sums(g, w)
            assert (got[1] is None) == (which == 0)
    assert outputs[0].grad_fn.name() == "FusedBackward"


def test_a_result_that_is_only_looked_at_gives_no_gradient():
    source = """
def f(x, y, least: float):
    z = torch.relu(x) * 2.0
    return z, bool((z * y).sum() > least)
"""
    scripted = weft.jit.CompilationUnit(source).f
    for _ in range(3):
        x, y = (weft.linspace(-1, 2, 6).requires_grad_() for _ in range(2))
        out, _ = scripted(x, y, 0.5)
        out.sum().backward()
        assert y.grad is None
        assert weft.equal(x.grad, (x > 0).float() * 2.0)
    assert out.grad_fn.name() == "FusedBackward"

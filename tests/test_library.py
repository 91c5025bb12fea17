"""weft.library and weft.ops: operators that programs define. The programs of the table take the
library that they run with: PyTorch gives the same (mark parity)."""

import copy
import io
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import weft
from weft import library, ops

_names = (f"weft_test_{i}" for i in itertools.count())


def error_of(call: Callable[[], Any]) -> str:
    """The class of the exception that a call raises."""
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "nothing"


def _scaled(t, name):
    @t.library.custom_op(f"{name}::scaled", mutates_args=())
    def scaled(x: t.Tensor, n: int = 2, *, by: float = 1.5) -> t.Tensor:
        return x * n * by

    return scaled


def called(t, name):
    scaled = _scaled(t, name)
    x = t.ones(2)
    named = getattr(t.ops, name).scaled
    results = (scaled(x), scaled(x, 3), named(x, by=2.0), named.default(x, n=1))
    schema = str(named.default._schema).replace(name, "ns")
    arguments = [(a.name, a.kwarg_only, a.default_value) for a in named.default._schema.arguments]
    return [r.tolist() for r in results], schema, arguments, named.overloads()


def wrong_calls(t, name):
    scaled = _scaled(t, name)
    x = t.ones(1)
    wrong = [
        lambda: scaled(3),
        lambda: scaled(),
        lambda: scaled(x, 1, 2.0),
        lambda: scaled(x, x=x),
        lambda: scaled(x, to=2),
        lambda: scaled(x, "2"),
        lambda: scaled(x, 2.5),
        lambda: scaled(x, by="2"),
        lambda: getattr(t.ops, name).absent,
        lambda: getattr(t.ops, name).scaled.absent,
        lambda: t.ops.load_library("absent.so"),
        lambda: t.library.custom_op("bad", mutates_args=())(lambda x: x),
        lambda: t.library.define("bad", "(Tensor x) -> Tensor"),
        lambda: t.library.define(f"{name}::scaled", "(Tensor x) -> Tensor"),
        lambda: t.library.Library("aten", "DEF"),
        lambda: t.library.Library(name, "OTHER"),
    ]
    return [error_of(call) for call in wrong]


def gradients(t, name):
    @t.library.custom_op(f"{name}::joined", mutates_args=())
    def joined(xs: Sequence[t.Tensor], y: t.Tensor, n: int) -> tuple[t.Tensor, t.Tensor]:
        return sum(xs) * y * n, y * y

    def setup(ctx, inputs, output):
        xs, y, ctx.n = inputs
        ctx.save_for_backward(y, *xs)

    def backward(ctx, g, h):
        y, *xs = ctx.saved_tensors
        seen.append((list(ctx.needs_input_grad[0]), ctx.needs_input_grad[1]))
        return [g * y * ctx.n for _ in xs], (g * sum(xs) * ctx.n) + 2 * h * y, None

    seen: list[Any] = []
    joined.register_autograd(backward, setup_context=setup)
    a, b = t.tensor([1.0, 2.0], requires_grad=True), t.tensor([3.0, 4.0])
    y = t.tensor([5.0, 6.0], requires_grad=True)
    first, second = joined([a, b], y, 3)
    (first.sum() + second.sum()).backward()
    (ga,) = t.autograd.grad(joined([a, a], y, 1)[0].sum(), a)
    (gg,) = t.autograd.grad(
        t.autograd.grad(joined([a], y, 1)[0].sum(), y, create_graph=True)[0].sum(), a
    )
    with t.no_grad():
        silent = joined([a], y, 1)[0].requires_grad
    return a.grad.tolist(), y.grad.tolist(), ga.tolist(), gg.tolist(), silent, seen[0]


def no_gradient(t, name):
    result = _scaled(t, name)(t.ones(1, requires_grad=True))
    return result.requires_grad, error_of(lambda: result.sum().backward())


def in_place(t, name):
    @t.library.custom_op(f"{name}::add_one", mutates_args={"x"})
    def add_one(x: t.Tensor) -> None:
        x.add_(1)

    x = t.zeros(2)
    version = x._version
    return (
        add_one(x),
        x.tolist(),
        x._version > version,
        error_of(lambda: add_one.register_autograd(lambda ctx: None)),
    )


def aliases(t, name):
    @t.library.custom_op(f"{name}::same", mutates_args=())
    def same(x: t.Tensor, view: bool) -> t.Tensor:
        return x[:1] if view else x

    return [error_of(lambda: same(t.ones(2), True)), error_of(lambda: same(t.ones(2), False))]


def kernels(t, name):
    @t.library.custom_op(f"{name}::there", mutates_args=(), device_types="cuda")
    def there(x: t.Tensor) -> t.Tensor:
        return x + 1

    before = error_of(lambda: there(t.zeros(1)))

    @there.register_kernel("cpu")
    def _(x):
        return x + 2

    return before, there(t.zeros(1)).tolist()


def libraries(t, name):
    made = t.library.Library(name, "DEF")
    kept = [made.define("half(Tensor x) -> Tensor"), made.define("two.int(int n) -> int")]
    made.define("two.Tensor(Tensor x) -> Tensor")
    made.impl("half", lambda x: x / 2, "CompositeImplicitAutograd")
    more = t.library.Library(name, "IMPL", "CPU")
    more.impl("two.Tensor", lambda x: x * 2)
    named = getattr(t.ops, name)
    x = t.ones(1, requires_grad=True)
    (grad,) = t.autograd.grad(named.half(x), x)
    again = error_of(lambda: t.library.Library(name, "DEF"))
    part = t.library.Library(name, "FRAGMENT")
    part.define("third(Tensor x, *, Tensor? y=None) -> Tensor")
    part.impl(
        "third", lambda x, y=None: x / 3 if y is None else y.clone(), "CompositeExplicitAutograd"
    )
    third = [named.third(t.ones(1) * 3).tolist(), named.third(t.ones(1), y=t.ones(2)).tolist()]
    return (
        kept,
        grad.tolist(),
        named.two.Tensor(t.ones(1)).tolist(),
        again,
        third,
        named.two.overloads(),
    )


def autograd_kernel(t, name):
    made = t.library.Library(name, "DEF")
    made.define("twice(Tensor x) -> Tensor")

    class Twice(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 10

    made.impl("twice", Twice.apply, "Autograd")
    made.impl("twice", lambda x: x * 2, "CPU")
    x = t.ones(1, requires_grad=True)
    result = getattr(t.ops, name).twice(x)
    return result.tolist(), t.autograd.grad(result, x)[0].tolist()


def batches(t, name):
    scaled = _scaled(t, name)
    x = t.arange(6.0).reshape(3, 2)
    one_by_one = t.vmap(scaled)(x)

    @scaled.register_vmap
    def _(info, in_dims, x, n=2, *, by=1.5):
        seen.append((info.batch_size, in_dims[0]))
        return scaled(x.movedim(in_dims[0], -1) + 1, n, by=by), x.dim() - 1

    seen: list[Any] = []
    at_once = t.vmap(lambda v: scaled(v, 1, by=1.0), in_dims=1)(x)
    return one_by_one.tolist(), at_once.tolist(), seen[0][0]


def batches_of_lists(t, name):
    @t.library.custom_op(f"{name}::halves", mutates_args=())
    def halves(x: t.Tensor, dim: int) -> tuple[list[t.Tensor], int]:
        return [part.clone() for part in x.chunk(2, dim)], 2

    @halves.register_vmap
    def _(info, in_dims, x, dim):
        parts, count = halves(x.movedim(in_dims[0], 0), dim + 1)
        return ([parts[0], parts[1].movedim(0, -1)], count), ([0, x.dim() - 1], None)

    x = t.arange(24.0).reshape(2, 4, 3)
    made = [t.vmap(lambda v: halves(v, 0)[0], in_dims=dim)(x) for dim in (0, 1, -1)]
    return [[(tuple(part.shape), part.sum().item()) for part in parts] for parts in made]


def autocast(t, name):
    @t.library.custom_op(f"{name}::dtype_of", mutates_args=())
    def lowered(x: t.Tensor) -> t.Tensor:
        seen.append(str(x.dtype))
        return x.clone()

    seen: list[str] = []
    lowered.register_autocast("cpu", t.bfloat16)
    with t.autocast("cpu", dtype=t.bfloat16):
        lowered(t.ones(1))
        lowered(t.ones(1, dtype=t.int32))
    lowered(t.ones(1))
    return seen


def graphs(t, name):
    scaled = _scaled(t, name)
    named = getattr(t.ops, name)

    def f(x):
        y = named.scaled(x, 5, by=0.5) + scaled(x)
        return t.ops.aten.add.Tensor(y, x) + t.ops.aten.relu(x)

    made = t.fx.symbolic_trace(f)
    nodes = [(n.op, n.name, str(n.target).replace(name, "ns")) for n in made.graph.nodes]
    code = made.code.replace(name, "ns").strip()
    return nodes, code, made(t.ones(1)).tolist(), copy.deepcopy(made)(t.ones(1)).tolist()


def table(t, name):
    x = t.tensor([-1.0, 2.0])
    aten = t.ops.aten
    add = aten.add.Tensor
    names = (add.name(), str(add), add.__name__, repr(add), str(aten.add), repr(aten.add))
    schema = [(a.name, a.default_value, a.kwarg_only) for a in add._schema.arguments]
    values = (
        add(x, x, alpha=2), aten.add(x, 1), aten.mul.Tensor(x, x), aten.relu(x),
        aten.sum.dim_IntList(x, [0]), aten.relu.default(x), add(x, other=x), aten.add_(x.clone(), x),
    )  # fmt: skip
    same = copy.deepcopy(add) is add and add.overloadpacket is aten.add and aten.add.Tensor is add
    names_of = {"Tensor", "Scalar", "out"} <= set(aten.add.overloads())
    return names, schema, [v.tolist() for v in values], same, names_of, add.namespace


def overrides(t, name):
    scaled = _scaled(t, name)

    class Logged(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(str(func).replace(name, "ns"))
            return super().__torch_function__(func, types, args, kwargs)

    seen: list[str] = []
    x = t.ones(1).as_subclass(Logged)
    result = scaled(x)
    t.ops.aten.relu.default(x)
    return seen, type(result).__name__


PROGRAMS: dict[Callable[..., Any], Any] = {
    called: (
        [[3.0, 3.0], [4.5, 4.5], [4.0, 4.0], [1.5, 1.5]],
        "ns::scaled(Tensor x, SymInt n=2, *, float by=1.5) -> Tensor",
        [("x", False, None), ("n", False, 2), ("by", True, 1.5)],
        ["default"],
    ),
    wrong_calls: ["RuntimeError"] * 8
    + ["AttributeError"] * 2
    + ["OSError", "ValueError", "ValueError", "RuntimeError", "RuntimeError", "ValueError"],
    gradients: (
        [15.0, 18.0], [22.0, 30.0], [10.0, 12.0], [1.0, 1.0], False, ([True, False], True),
    ),
    no_gradient: (True, "RuntimeError"),
    in_place: (None, [1.0, 1.0], True, "RuntimeError"),
    aliases: ["RuntimeError"] * 2,
    kernels: ("NotImplementedError", [2.0]),
    libraries: (
        ["half", "two"], [0.5], [2.0], "RuntimeError", [[1.0], [1.0, 1.0]], ["int", "Tensor"],
    ),
    autograd_kernel: ([2.0], [10.0]),
    batches: (
        [[0.0, 3.0], [6.0, 9.0], [12.0, 15.0]], [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]], 2,
    ),
    batches_of_lists: [
        [((2, 2, 3), 102.0), ((2, 2, 3), 174.0)],
        [((4, 1, 3), 66.0), ((4, 1, 3), 210.0)],
        [((3, 1, 4), 66.0), ((3, 1, 4), 210.0)],
    ],
    autocast: ["torch.bfloat16", "torch.int32", "torch.float32"],
    graphs: (
        [
            ("placeholder", "x", "x"),
            ("call_function", "scaled", "ns.scaled"),
            ("call_function", "scaled_default", "ns.scaled.default"),
            ("call_function", "add", "<built-in function add>"),
            ("call_function", "add_tensor", "aten.add.Tensor"),
            ("call_function", "relu", "aten.relu"),
            ("call_function", "add_1", "<built-in function add>"),
            ("output", "output", "output"),
        ],
        "def forward(self, x):\n"
        "    scaled = torch.ops.ns.scaled(x, 5, by = 0.5)\n"
        "    scaled_default = torch.ops.ns.scaled.default(x)\n"
        "    add = scaled + scaled_default;  scaled = scaled_default = None\n"
        "    add_tensor = torch.ops.aten.add.Tensor(add, x);  add = None\n"
        "    relu = torch.ops.aten.relu(x);  x = None\n"
        "    add_1 = add_tensor + relu;  add_tensor = relu = None\n"
        "    return add_1",
        [7.5], [7.5],
    ),
    table: (
        (
            "aten::add.Tensor", "aten.add.Tensor", "add.Tensor",
            "<OpOverload(op='aten.add', overload='Tensor')>", "aten.add",
            "<OpOverloadPacket(op='aten.add')>",
        ),
        [
            ("self", None, False), ("other", None, False), ("alpha", 1, True),
        ],
        [
            [-3.0, 6.0], [0.0, 3.0], [1.0, 4.0], [0.0, 2.0], 1.0, [0.0, 2.0], [-2.0, 4.0],
            [-2.0, 4.0],
        ],
        True, True, "aten",
    ),
    overrides: (["ns.scaled.default", "aten.relu.default"], "Logged"),
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program):
    assert program(weft, next(_names)) == PROGRAMS[program]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program_of_torch(program):
    assert program(pytest.importorskip("torch"), next(_names)) == PROGRAMS[program]


def test_schemas_may_name_their_namespace():
    """PyTorch's library fails when it goes then."""
    name = next(_names)
    library = weft.library.Library(name, "DEF")
    assert library.define(f" {name}::f(Tensor x) -> Tensor") == "f"
    library.impl("f", lambda x: -x)
    assert getattr(weft.ops, name).f(weft.ones(1)).tolist() == [-1.0]
    with pytest.raises(ValueError, match="schema: expected"):
        library.define("another::g(Tensor x) -> Tensor")


# ---- schemas ----


def _schema_function(t):
    def f(
        x: t.Tensor,
        y: t.Tensor | None,
        n: list[int],
        xs: Sequence[t.Tensor],
        flag: bool = True,
        dtype: t.dtype | None = None,
        *,
        word: str = "a",
        number: int | float | bool = 3,
        maybe: list[float] | None = None,
    ) -> tuple[t.Tensor, list[t.Tensor]]: ...

    return f


SCHEMAS = {
    (): "(Tensor x, Tensor? y, SymInt[] n, Tensor[] xs, bool flag=True, ScalarType? dtype=None, *, "
    'str word="a", Scalar number=3, float[]? maybe=None) -> (Tensor, Tensor[])',
    ("y", "xs"): "(Tensor x, Tensor(a1!)? y, SymInt[] n, Tensor(a3!)[] xs, bool flag=True, "
    'ScalarType? dtype=None, *, str word="a", Scalar number=3, float[]? maybe=None) '
    "-> (Tensor, Tensor[])",
    "unknown": "(Tensor(a0!) x, Tensor(a1!)? y, SymInt[] n, Tensor(a3!)[] xs, bool flag=True, "
    'ScalarType? dtype=None, *, str word="a", Scalar number=3, float[]? maybe=None) '
    "-> (Tensor, Tensor[])",
}


@pytest.mark.parametrize("written", SCHEMAS, ids=str)
def test_infer_schema(written):
    assert library.infer_schema(_schema_function(weft), mutates_args=written) == SCHEMAS[written]


@pytest.mark.parity
@pytest.mark.parametrize("written", SCHEMAS, ids=str)
def test_infer_schema_of_torch(written):
    torch = pytest.importorskip("torch")
    given = torch.library.infer_schema(_schema_function(torch), mutates_args=written)
    assert given == SCHEMAS[written]


def _unannotated(x): ...
def _rest(*x: weft.Tensor) -> weft.Tensor: ...
def _mapping(x: dict) -> weft.Tensor: ...
def _nested(x: list[list[int]]) -> weft.Tensor: ...
def _no_return(x: weft.Tensor): ...
def _wrong_return(x: weft.Tensor) -> dict: ...
def _wrong_default(x: int = len) -> weft.Tensor: ...
def _unresolved(x: "Absent") -> weft.Tensor: ...  # noqa: F821


REFUSED = {
    _unannotated: r"parameter x with a type annotation, got none",
    _rest: r"no positional-only, \* and \*\* parameters, got x",
    _mapping: r"parameter x of a type of schemas, got <class 'dict'>",
    _nested: r"parameter x of a type of schemas, got list\[list\[int\]\]",
    _no_return: r"a return type annotation, got none",
    _wrong_return: r"results of types of schemas, got <class 'dict'>",
    _wrong_default: r"parameter x with a number, a string or None as default, got <built-in",
    _unresolved: r"annotations that can be read, got name 'Absent' is not defined",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_infer_schema_refuses(function):
    with pytest.raises(ValueError, match=rf"infer_schema\(func\): expected {REFUSED[function]}"):
        library.infer_schema(function, mutates_args=())
    with pytest.raises(ValueError, match="mutates_args with names of parameters, got"):
        library.infer_schema(_schema_function(weft), mutates_args="absent")


# ---- programs ----


class Layer(weft.nn.Module):
    def __init__(self, scaled: Any) -> None:
        super().__init__()
        self.scaled = scaled

    def forward(self, x: weft.Tensor, n: int) -> weft.Tensor:
        return weft.ops.aten.add.Tensor(self.scaled(x, n, by=0.5), x, alpha=2)


@pytest.fixture
def name():
    return next(_names)


def test_a_program_calls_an_operator(name):
    scaled = _scaled(weft, name)
    scaled.register_autograd(
        lambda ctx, g: (g * 100, None), setup_context=lambda ctx, inputs, output, **_: None
    )
    program = weft.jit.script(Layer(scaled))
    for _ in range(3):  # the graph, the optimised program, native code
        x = weft.ones(2, requires_grad=True)
        result = program(x, 4)
        assert result.tolist() == [4.0, 4.0]
        assert weft.autograd.grad(result.sum(), x)[0].tolist() == [102.0, 102.0]
    assert f"ops.{name}.scaled(x, n, by=0.5)" in program.code
    with pytest.raises(weft.jit.frontend.FrontendError, match=r"argument 'x': expected a value"):
        weft.jit.script(Wrong(scaled))


class Wrong(Layer):
    def forward(self, x: weft.Tensor, n: int) -> weft.Tensor:
        return self.scaled(n, n)


def test_a_trace_records_an_operator(name):
    scaled = _scaled(weft, name)
    traced = weft.jit.trace(lambda x: scaled(x, x.shape[0]) + 1, weft.ones(2))
    assert traced(weft.ones(4)).tolist() == [7.0] * 4  # the size is that of the call


class Quarter(Layer):
    def forward(self, x: weft.Tensor) -> weft.Tensor:
        return self.scaled(x, by=0.25)


MAKERS = {
    "script": weft.jit.script,
    "trace": lambda module: weft.jit.trace(module, weft.ones(1)),
}


@pytest.mark.parametrize("make", MAKERS)
def test_an_archive_names_an_operator(name, make):
    _scaled(weft, name)
    module = MAKERS[make](Quarter(getattr(ops, name).scaled))
    data = module.save_to_buffer()
    loaded = weft.jit.load(io.BytesIO(data))
    assert loaded(weft.ones(1)).tolist() == [0.5]
    assert loaded.save_to_buffer() == data


@pytest.mark.parity
def test_torch_reads_the_operator_of_an_archive(name):
    torch = pytest.importorskip("torch")
    _scaled(torch, name)
    scaled = _scaled(weft, name)
    data = weft.jit.script(Layer(scaled)).save_to_buffer()
    assert torch.jit.load(io.BytesIO(data))(torch.ones(2), 4).tolist() == [4.0, 4.0]


def test_operators_of_archives_are_in_ops():
    @weft.jit.register_operator("weft_test_archive::thrice")
    def thrice(x: weft.Tensor) -> weft.Tensor:
        return x * 3

    assert ops.weft_test_archive.thrice(weft.ones(1)).tolist() == [3.0]
    boxes = weft.tensor([[0.0, 0, 2, 2], [0, 0, 2, 2], [3, 3, 4, 4]])
    assert ops.torchvision.nms(boxes, weft.tensor([0.5, 1.0, 0.2]), 0.5).tolist() == [1, 2]
    pooled = ops.torchvision.roi_align(
        weft.ones(1, 1, 4, 4), weft.tensor([[0.0, 0, 0, 2, 2]]), 1.0, 2, 2, 2, True
    )
    assert pooled.tolist() == [[[[1.0, 1.0], [1.0, 1.0]]]]


# ---- checks ----


def test_opcheck(name):
    @library.custom_op(f"{name}::first", mutates_args=())
    def first(x: weft.Tensor, write: bool) -> weft.Tensor:
        if write:
            x.zero_()
        return x[:1].clone()

    first.register_fake(lambda x, write: x.new_empty(2))
    x = weft.ones(2, requires_grad=True)
    found = library.opcheck(first, (x, False), raise_exception=False)
    assert found["test_schema"] == "SUCCESS"
    assert "expected register_autograd" in found["test_autograd_registration"]
    assert "expected results as those on the CPU" in found["test_faketensor"]
    first.register_fake(lambda x, write: x.new_empty(1))
    found = library.opcheck(first, (x, False), test_utils="test_faketensor")
    assert found == {"test_faketensor": "SUCCESS"}
    with pytest.raises(Exception, match="expected x to stay as it is"):
        library.opcheck(first, (weft.ones(2), True), test_utils="test_schema")
    with pytest.raises(ValueError, match="test_utils among"):
        library.opcheck(first, (x, False), test_utils="test_everything")


ABSENT = {
    "wrap_triton": lambda: library.wrap_triton(None),
    "register_torch_dispatch": lambda: library.register_torch_dispatch("a::b", weft.Tensor),
    "get_ctx": lambda: library.get_ctx(),
    "fallthrough_kernel": lambda: library.fallthrough_kernel(),
}


@pytest.mark.parametrize("what", ABSENT)
def test_absent(what):
    with pytest.raises(NotImplementedError, match=f"{what}: expected"):
        ABSENT[what]()


def test_an_operator_of_triton_runs_its_function(name):
    @library.triton_op(f"{name}::kept", mutates_args=())
    def kept(x: weft.Tensor) -> weft.Tensor:
        return x.clone()

    made = library.triton_op(
        f"{name}::made", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    assert kept(weft.ones(1)).item() == 1 and made(weft.ones(1)).item() == 2
    assert getattr(ops, name).kept(weft.ones(1)).item() == 1


def test_a_library_takes_back_what_it_made(name):
    made = library.Library(name, "DEF")
    made.define("one() -> int")
    made.impl("one", lambda: 1)
    assert getattr(ops, name).one() == 1
    made._destroy()
    with pytest.raises(RuntimeError, match="expected an operator that custom_op or define made"):
        library.impl(f"{name}::one", "cpu", lambda: 2)
    again = library.Library(name, "DEF")
    again.define("one() -> int")
    again.impl("one", lambda: 3)
    assert getattr(ops, name).one() == 3 and getattr(ops, name).one.default() == 3


def test_fakes_wait_for_their_operators() -> None:
    name = next(_names)

    @library.register_fake(f"{name}::doubled")
    def fake(x: weft.Tensor) -> weft.Tensor:
        return x.new_empty(2 * x.shape[0])

    mine = library.Library(name, "DEF")
    mine.define("doubled(Tensor x) -> Tensor")
    assert getattr(ops, name).doubled(weft.ones(3, device="meta")).shape == (6,)


def test_a_library_may_come_first(name) -> None:
    """As PyTorch before 2.4 wrote it: impl(library, "op", "CPU"), define(library, schema)."""
    mine = library.Library(name, "DEF")
    operators = getattr(ops, name)

    @library.define(mine, "one_more(Tensor x) -> Tensor")
    def one_more(x: weft.Tensor) -> weft.Tensor:
        return x + 1

    mine.define("times(Tensor x, int n=2) -> Tensor")

    @library.impl(mine, "times", "CompositeExplicitAutograd")
    def times(x: weft.Tensor, n: int = 2) -> weft.Tensor:
        return x * n

    mine.define("zero(Tensor x) -> Tensor")
    library.impl(library.Library(name, "IMPL", "CPU"), "zero")(weft.zeros_like)

    x = weft.ones(1)
    assert operators.one_more(x).item() == one_more(x).item() == 2
    assert operators.times(x).item() == 2 and operators.times(x, n=5).item() == times(x, 5).item()
    assert operators.zero(x).item() == 0

"""A tour of weft: the whole architecture once more, in one file of plain Python.

weft is large because it is fast and complete. Its ideas are few, and all of them fit here: storages
and layouts, promotion, the operator table, the tile driver, the tape and its engine, then `script`
with its graph, passes, programs and bytes. Each section is prose, then code, then a session whose
output is checked: `python docs/tour.py` runs them all. Names are those of the real library, and so
are the numbers. The end of the file says where each section lives and what the real one adds.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import dataclasses
import doctest
import functools
import heapq
import itertools
import json
import math
import operator
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, NoReturn

__test__: dict[str, str] = {}  # the sessions, by section; doctest finds them under this name

# ==== 1. Storage and layout ===========================================================
# A tensor is two things. A storage is bytes with an owner: it has no shape and no dtype. A layout
# says how to walk over them: sizes, strides and an offset, all counted in elements.
#
# So most changes of shape copy nothing. A transposed matrix is another layout over the same
# storage: a view. A stride of 0 repeats one element, and this is all that broadcasting is.
#
# A storage counts the writes to it. The tape (section 5) will compare these counts.


class Storage:
    """Bytes with an owner, and how often they were written to."""

    def __init__(self, nbytes: int) -> None:
        self.data = bytearray(nbytes)
        self.version = 0


class Layout(NamedTuple):
    """Element [i, j, ...] lies at offset + i * strides[0] + j * strides[1] + ..."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @staticmethod
    def contiguous(sizes: Iterable[int]) -> Layout:
        """Row-major: the last dimension has stride 1."""
        sizes = tuple(sizes)
        strides = [math.prod(max(n, 1) for n in sizes[i + 1 :]) for i in range(len(sizes))]
        return Layout(sizes, tuple(strides))

    def offsets(self) -> list[int]:
        """Where the elements lie, in row-major order of their indices."""
        offsets = [self.offset]
        for size, stride in zip(self.sizes, self.strides):
            offsets = [place + i * stride for place in offsets for i in range(size)]
        return offsets

    def permute(self, order: list[int]) -> Layout:
        sizes, strides = (tuple(dims[i] for i in order) for dims in (self.sizes, self.strides))
        return Layout(sizes, strides, self.offset)

    def transpose(self, dim0: int, dim1: int) -> Layout:
        a, b = (wrap_dim("transpose", dim, len(self.sizes)) for dim in (dim0, dim1))
        swap = {a: b, b: a}
        return self.permute([swap.get(i, i) for i in range(len(self.sizes))])

    def unsqueeze(self, dim: int) -> Layout:
        dim = wrap_dim("unsqueeze", dim, len(self.sizes) + 1)
        stride = self.sizes[dim] * self.strides[dim] if dim < len(self.sizes) else 1
        sizes = self.sizes[:dim] + (1,) + self.sizes[dim:]
        return Layout(sizes, self.strides[:dim] + (stride,) + self.strides[dim:], self.offset)

    def expand(self, sizes: Iterable[int]) -> Layout:
        sizes = tuple(sizes)
        if broadcast_sizes("expand", self.sizes, sizes) != sizes:
            raise RuntimeError(f"expand: expected sizes that {self.sizes} can take, got {sizes}")
        new = len(sizes) - len(self.sizes)
        kept = [s if n == m else 0 for n, m, s in zip(self.sizes, sizes[new:], self.strides)]
        return Layout(sizes, (0,) * new + tuple(kept), self.offset)


def wrap_dim(op: str, dim: int, ndim: int) -> int:
    """A dimension in [-ndim, ndim) as one in [0, ndim)."""
    if not -ndim <= dim < ndim:
        raise IndexError(f"{op}: expected dim in [{-ndim}, {ndim - 1}], got {dim}")
    return dim % ndim


def broadcast_sizes(op: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape: aligned at the right, a size of 1 takes any other."""
    result = []
    for sizes in itertools.zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1):
        wide = {size for size in sizes if size != 1} or {1}
        if len(wide) > 1:
            got = " and ".join(map(str, shapes))
            raise RuntimeError(f"{op}: expected broadcastable shapes, got {got}")
        result.append(wide.pop())
    return tuple(result[::-1])


__test__["1 storage and layout"] = r"""
>>> floats = memoryview(Storage(6 * 4).data).cast("f")
>>> floats[0], floats[5] = 1.0, 6.0
>>> matrix = Layout.contiguous((2, 3))
>>> matrix, matrix.transpose(0, 1)
(Layout(sizes=(2, 3), strides=(3, 1), offset=0), Layout(sizes=(3, 2), strides=(1, 3), offset=0))
>>> [floats[place] for place in matrix.transpose(0, 1).offsets()]
[1.0, 0.0, 0.0, 0.0, 0.0, 6.0]
>>> matrix.unsqueeze(0).expand((2, 2, 3)).strides
(0, 3, 1)
>>> broadcast_sizes("add", (2, 3), (4, 1, 3))
(4, 2, 3)
"""

# ==== 2. Dtypes and promotion =========================================================
# A dtype says how the bytes of one element are read. What does float32 + int64 give? Each dtype
# has a category: bool, integer, floating. The higher category wins, and within one the wider dtype.
#
# Operands have ranks too: tensors with dimensions, then tensors without, then Python numbers. An
# operand of a lower rank changes the result only by a higher category. So `x * 2.5` keeps the
# float64 of x, and `n * 2.5` of an integer tensor n has the default dtype, float32.


class DType(NamedTuple):
    name: str
    format: str  # of `struct` and `memoryview`
    category: int  # 0 bool, 1 integer, 2 floating
    cast: Callable[[Any], Any]  # any number to the nearest one of this dtype

    def __repr__(self) -> str:
        return self.name


bool_ = DType("bool", "?", 0, bool)
int32 = DType("int32", "i", 1, lambda x: ctypes.c_int32(int(x)).value)  # wraps around
int64 = DType("int64", "q", 1, lambda x: ctypes.c_int64(int(x)).value)
float32 = DType("float32", "f", 2, lambda x: ctypes.c_float(x).value)
float64 = DType("float64", "d", 2, float)
DTYPES = (bool_, int32, int64, float32, float64)  # each can be promoted to those behind it
OF_NUMBERS = {bool: bool_, int: int64, float: float32}


def result_type(operands: Iterable[Tensor | float]) -> DType:
    """The dtype of an arithmetic result."""
    ranks: tuple[list[DType], ...] = ([], [], [])
    for each in operands:
        if isinstance(each, Tensor):
            ranks[0 if each.shape else 1].append(each.dtype)
        else:
            ranks[2].append(OF_NUMBERS[type(each)])
    best = [max(rank, key=DTYPES.index) for rank in ranks if rank]
    return max(best, key=lambda dtype: dtype.category)  # of equals the first


class Tensor:
    """A layout and a dtype over a storage; `autograd` is for the tape."""

    def __init__(self, storage: Storage, layout: Layout, dtype: DType) -> None:
        self.storage, self.layout, self.dtype = storage, layout, dtype
        self.autograd: AutogradMeta | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.sizes

    @property
    def elements(self) -> memoryview:
        """All of the storage, in this dtype."""
        return memoryview(self.storage.data).cast(self.dtype.format)

    def with_layout(self, layout: Layout) -> Tensor:
        """A view."""
        return Tensor(self.storage, layout, self.dtype)

    def tolist(self) -> Any:
        flat = [self.elements[place] for place in self.layout.offsets()]
        for size in self.shape[:0:-1]:
            flat = [flat[i : i + size] for i in range(0, len(flat), size)]
        return flat if self.shape else flat[0]

    def __repr__(self) -> str:
        return f"tensor({self.tolist()}, {self.dtype})"


def empty(sizes: Iterable[int], dtype: DType) -> Tensor:
    """New memory; here it happens to be zeros."""
    layout = Layout.contiguous(sizes)
    return Tensor(Storage(math.prod(layout.sizes) * struct.calcsize(dtype.format)), layout, dtype)


def tensor(data: Any, dtype: DType | None = None, requires_grad: bool = False) -> Tensor:
    """From a number, or from lists of lists."""
    sizes, flat = [], [data]
    while isinstance(flat[0], list):
        sizes.append(len(flat[0]))
        flat = [item for row in flat for item in row]
    dtype = dtype or result_type(flat)
    result = empty(sizes, dtype)
    for place, item in enumerate(flat):
        result.elements[place] = dtype.cast(item)
    return AccumulateGrad().made(result) if requires_grad else result


__test__["2 dtypes and promotion"] = r"""
>>> x = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
>>> x.with_layout(x.layout.transpose(0, 1))
tensor([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]], float32)
>>> tensor(0.1).tolist()                                     # the float32 nearest to 0.1
0.10000000149011612
>>> result_type([x, tensor(1.0, float64)]), result_type([tensor([1, 2]), 2.5])
(float32, float32)
"""

# ==== 3. The table ====================================================================
# One row is one operator. A row says only what is special about the operator: its schema, its
# body, and the gradient of each input. Everything else is made from the row.
#
# A `pointwise` body is a formula on single numbers, a `reduce` body folds many numbers into one, a
# `view` body makes a layout. A `compose` body is written in other operators and needs no gradient.
# (What rows cannot say is native code in weft.)
#
# A pointwise body is called once, with symbols instead of numbers. What it gives is an expression,
# and from this a kernel is written: the text of a loop over contiguous memory. (weft writes LLVM.)
# `cast` rounds after each operation, so that float32 arithmetic has its own bits.


class Arg(NamedTuple):
    type: str
    name: str
    default: str = ""  # as in the schema; "" where there is none


@dataclasses.dataclass(frozen=True, eq=False)
class Row:
    """One operator. Its schema is `key(type name, ...) -> type`, its key `name.overload`. Tensor(a)
    given and made means a view."""

    key: str
    args: list[Arg]
    returns: str
    kind: str
    body: Callable[..., Any]
    grad: dict[str, str]
    promotion: str  # common; floating: integers become float32; sum: they become int64
    result: str  # compute: the dtype that arithmetic happens in; bool: of comparisons

    @property
    def name(self) -> str:
        return self.key.partition(".")[0]


TABLE: dict[str, Row] = {}  # by key


def op(schema: str, grad: Any = None, promotion: str = "common", result: str = "compute",
       **body: Callable[..., Any]) -> None:  # fmt: skip
    """Adds a row; the keyword of the body names its kind."""
    key, _, rest = schema.replace("(a)", "").partition("(")
    inside, _, returns = rest.rpartition(") -> ")
    pairs = (arg.split(" ") for arg in inside.split(", "))
    args = [Arg(type, *name.split("=")) for type, name in pairs]
    TABLE[key] = Row(key, args, returns, *body.popitem(), grad or {}, promotion, result)


def symbolic(form: str) -> Callable[..., Expr]:
    """A function of the kernel language."""
    return lambda *args: Expr(form.format(*args))


class Expr(str):
    """An expression of the kernel language: Python text over the loop variable i."""

    __add__, __radd__ = symbolic("cast({} + {})"), symbolic("cast({1} + {0})")
    __sub__, __neg__ = symbolic("cast({} - {})"), symbolic("cast(-{})")
    __lt__, __gt__ = symbolic("({} < {})"), symbolic("({} > {})")
    __truediv__, __rtruediv__ = symbolic("cast(divide({}, {}))"), symbolic("cast(divide({1}, {0}))")
    __mul__ = symbolic("cast({} * {})")


exp, tanh = symbolic("cast(exp({}))"), symbolic("cast(tanh({}))")
FUNCTIONS = {  # those of Python raise where IEEE 754 has a value
    "divide": lambda a, b: a / b if b else a * math.copysign(math.inf, b),
    "exp": lambda x: math.exp(x) if x < 709.78 else x * math.inf,
    "tanh": math.tanh,
}


def kernel_text(row: Row) -> str:
    """The loop of a pointwise or reduce row over n contiguous elements."""
    args = row.args[:1] if row.kind == "reduce" else row.args
    symbols = [Expr(f"{arg.name}[i]" if arg.type == "Tensor" else arg.name) for arg in args]
    out = Expr("out[0]" if row.kind == "reduce" else "out[i]")
    value = row.body(out, *symbols) if row.kind == "reduce" else row.body(*symbols)
    names = ", ".join(arg.name for arg in args)
    return f"def kernel(out, {names}, n):\n    for i in range(n):\n        {out} = {value}\n"


@functools.cache
def kernel(row: Row, compute: DType) -> Callable[..., None]:
    """That loop for a dtype."""
    scope: dict[str, Any] = {"cast": compute.cast, **FUNCTIONS}
    exec(kernel_text(row), scope)
    return scope["kernel"]


def _unary(name: str, body: Callable[..., Any], grad: str, promotion: str = "common") -> None:
    """A family: functions of one number."""
    op(f"{name}(Tensor self) -> Tensor", {"self": grad}, promotion, pointwise=body)


def _binary(name: str, body: Callable[..., Any], grad: dict[str, str], **rest: str) -> None:
    """A family: the second operand is a tensor, or a number, which has no gradient."""
    op(f"{name}.Tensor(Tensor self, Tensor other) -> Tensor", grad, pointwise=body, **rest)
    grad = {key: formula for key, formula in grad.items() if key == "self"}
    op(f"{name}.Scalar(Tensor self, Scalar other) -> Tensor", grad, pointwise=body, **rest)


_QUOTIENT = {"self": "grad / other", "other": "-grad * (self / other / other)"}
_unary("neg", lambda x: -x, "-grad")
_unary("exp", exp, "grad * result", "floating")
_unary("tanh", tanh, "grad * (1 - result * result)", "floating")
_unary("sigmoid", lambda x: 1 / (1 + exp(-x)), "grad * ((1 - result) * result)", "floating")
_unary("clone", lambda x: x, "grad")
_binary("add", lambda x, y: x + y, {"self": "grad", "other": "grad"})
_binary("sub", lambda x, y: x - y, {"self": "grad", "other": "-grad"})
_binary("mul", lambda x, y: x * y, {"self": "grad * other", "other": "grad * self"})
_binary("div", lambda x, y: x / y, _QUOTIENT, promotion="floating")
_binary("lt", lambda x, y: x < y, {}, result="bool")
_binary("gt", lambda x, y: x > y, {}, result="bool")
# fmt: off
op("sum(Tensor self, int? dim=None) -> Tensor", {"self": "spread(grad, self.shape, dim)"}, "sum",
   reduce=lambda total, x: total + x)
op("transpose(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
   {"self": "grad.transpose(dim0, dim1)"}, view=Layout.transpose)
op("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", {"self": "grad.sum(dim)"},
   view=Layout.unsqueeze)
op("expand(Tensor(a) self, int[] sizes) -> Tensor(a)", {"self": "grad"}, view=Layout.expand)
op("mean(Tensor self) -> Tensor", compose=lambda self: self.sum() / math.prod(self.shape))
op("matmul(Tensor self, Tensor other) -> Tensor",
   compose=lambda self, other: (self.unsqueeze(-1) * other.unsqueeze(-3)).sum(-2))
# fmt: on

__test__["3 the table"] = r"""
>>> print(kernel_text(TABLE["sigmoid"]), end="")
def kernel(out, self, n):
    for i in range(n):
        out[i] = cast(divide(1, cast(1 + cast(exp(cast(-self[i]))))))
>>> out = tensor([0.0, 0.0])
>>> kernel(TABLE["sigmoid"], float32)(out.elements, tensor([0.0, 2.0]).elements, 2)
>>> out
tensor([0.5, 0.8807970285415649], float32)
"""

# ==== 4. The tile driver ==============================================================
# A kernel sees contiguous memory of one dtype and nothing else. Strides, broadcasting and dtypes
# are the driver's work, once for all operators.
#
# It merges dimensions that lie contiguously in every operand, and cuts the last one into tiles that
# stay in the cache. A kernel takes a contiguous operand where it lies. An operand that is strided,
# broadcast or of another dtype is brought into scratch memory first.
#
# A program has one or more steps, and each runs a kernel over the same tile. An eager `a + b` has
# one step; a fused graph (section 10) has more, and its temporaries never leave the cache.

TILE = 4  # elements; as many as the cache holds, in earnest


class Step(NamedTuple):
    """One kernel. Slots are numbered: the inputs of the program, then the results of its steps."""

    row: Row
    slots: tuple[int, ...]
    numbers: tuple[int, ...] = ()  # of the program's numbers


@functools.cache
def one_step(row: Row) -> tuple[Step, ...]:
    """The tile program of an eager operator."""
    tensors = sum(arg.type == "Tensor" for arg in row.args)
    return (Step(row, tuple(range(tensors)), tuple(range(len(row.args) - tensors))),)


def compute_dtype(row: Row, operands: Iterable[Tensor | float]) -> DType:
    dtype = result_type(operands)
    if row.promotion == "common" or dtype.category == 2:
        return dtype
    return float32 if row.promotion == "floating" else int64


def tiles(layouts: list[Layout]) -> Iterator[tuple[list[tuple[int, int]], int]]:
    """The tiles of layouts of the same sizes: (place, stride) in each, and the length."""
    merged: list[tuple[int, tuple[int, ...]]] = []
    for size, *strides in zip(layouts[0].sizes, *(layout.strides for layout in layouts)):
        if size == 1:
            continue
        if merged and all(outer == size * inner for outer, inner in zip(merged[-1][1], strides)):
            size *= merged.pop()[0]
        merged.append((size, tuple(strides)))
    *outer, (length, steps) = merged or [(1, (1,) * len(layouts))]
    sizes = tuple(size for size, _ in outer)
    outsides = (
        Layout(sizes, strides, layout.offset)
        for layout, *strides in zip(layouts, *(s for _, s in outer))
    )
    for starts in zip(*(outside.offsets() for outside in outsides)):
        for begin in range(0, length, TILE):
            offsets = [start + begin * step for start, step in zip(starts, steps)]
            yield list(zip(offsets, steps)), min(TILE, length - begin)


def bring(tensor: Tensor, at: tuple[int, int], n: int, dtype: DType) -> memoryview:
    """A tile as kernels want it: where it lies, or in scratch memory."""
    (place, stride), elements = at, tensor.elements
    if stride == 1 and tensor.dtype == dtype:
        return elements[place : place + n]
    scratch = empty((n,), dtype).elements
    for i in range(n):
        scratch[i] = dtype.cast(elements[place + i * stride])
    return scratch


def run(
    steps: tuple[Step, ...], inputs: list[Tensor], numbers: list[float], out: Tensor | None = None
) -> Tensor:
    """Runs a pointwise program; `out`: a tensor to write to, which may be an input."""
    row = steps[-1].row
    compute = compute_dtype(row, [*inputs, *numbers])
    sizes = broadcast_sizes(row.name, *(tensor.shape for tensor in inputs))
    made = bool_ if row.result == "bool" else compute
    if out is not None:
        out.storage.version += 1
    out = out or empty(sizes, made)
    if out.shape != sizes or out.dtype.category < made.category:
        raise RuntimeError(f"{row.name}: expected a result of {sizes} and {made}, got {out}")
    numbers = [compute.cast(number) for number in numbers]
    for (target, *offsets), n in tiles([t.layout.expand(sizes) for t in (out, *inputs)]):
        slots = [bring(tensor, at, n, compute) for tensor, at in zip(inputs, offsets)]
        for step in steps:
            tile = empty((n,), bool_ if step.row.result == "bool" else compute).elements
            operands = [slots[i] for i in step.slots] + [numbers[i] for i in step.numbers]
            kernel(step.row, compute)(tile, *operands, n)
            slots.append(tile)
        for i, value in enumerate(slots[-1]):
            out.elements[target[0] + i * target[1]] = out.dtype.cast(value)
    return out


def fold(row: Row, self: Tensor, dim: int | None) -> Tensor:
    """Runs a reduction: for each element of the result the tiles of one row."""
    ndim = len(self.shape)
    dims = [*range(ndim)] if dim is None else [wrap_dim(row.name, dim, ndim)]
    outer = self.layout.permute([d for d in range(ndim) if d not in dims])
    compute = compute_dtype(row, [self])
    result = empty(outer.sizes, compute)
    for i, start in enumerate(outer.offsets()):
        for (at,), n in tiles([self.layout.permute(dims)._replace(offset=start)]):
            kernel(row, compute)(result.elements[i : i + 1], bring(self, at, n, compute), n)
    return result


__test__["4 the tile driver"] = r"""
>>> x = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
>>> row = tensor([10, 20, 30])
>>> run(one_step(TABLE["add.Tensor"]), [x, row], [])
tensor([[11.0, 22.0, 33.0], [14.0, 25.0, 36.0]], float32)
>>> list(tiles([x.layout]))                                  # one dimension of 6
[([(0, 1)], 4), ([(4, 1)], 2)]
>>> list(tiles([x.layout.transpose(0, 1)]))                  # three of 2, strided
[([(0, 3)], 2), ([(1, 3)], 2), ([(2, 3)], 2)]
>>> steps = (Step(TABLE["mul.Scalar"], (0,), (0,)), Step(TABLE["add.Tensor"], (2, 1)))
>>> run(steps, [x, row], [0.5])                              # x * 0.5 + row
tensor([[10.5, 21.0, 31.5], [12.0, 22.5, 33.0]], float32)
"""

# ==== 5. The tape =====================================================================
# Autograd records while operators run. A node is one operator call: it knows how the gradient of
# its result gives those of its inputs. Its edges lead to the nodes that made the inputs. A leaf (a
# tensor that the user made) has an accumulator there, which adds up what arrives.
#
# A node saves the tensors that its formulas read, each with the version of its storage. A write in
# place between forward and backward would make gradients wrong without a word; the version tells.
# A saved result keeps no history: the result owns the node, so the node must not own the result.


@dataclasses.dataclass
class AutogradMeta:
    """What autograd hangs on a tensor."""

    node: Node  # what made it; the accumulator of a leaf
    grad: Tensor | None = None


class SavedTensor(NamedTuple):
    tensor: Tensor
    version: int  # of its storage, when it was saved
    is_result: bool  # of the node that saved it


class Node:
    """One operator call."""

    sequence_numbers = itertools.count()

    def __init__(self, *inputs: Tensor) -> None:
        self.edges = [tensor.autograd.node if tensor.autograd else None for tensor in inputs]
        self.sequence = next(Node.sequence_numbers)  # later calls have larger ones
        self.saved: dict[str, Any] | None = {}

    def made(self, result: Tensor) -> Tensor:
        """Becomes the history of a result."""
        self.shape, self.dtype = result.shape, result.dtype
        self.meta = result.autograd = AutogradMeta(self)
        return result

    def save(self, name: str, value: Any) -> None:
        """Keeps a tensor or a plain value for `apply`."""
        if isinstance(value, Tensor):
            is_result = value.autograd is not None and value.autograd.node is self
            kept = value.with_layout(value.layout) if is_result else value
            value = SavedTensor(kept, value.storage.version, is_result)
        self.saved[name] = value

    def unpack(self, name: str) -> Any:
        operator = type(self).__name__
        if self.saved is None:
            raise RuntimeError(f"{operator}: expected saved tensors, got freed ones")
        saved = self.saved[name]
        if not isinstance(saved, SavedTensor):
            return saved
        now = saved.tensor.storage.version
        if now != saved.version:
            expected = f"saved tensor '{name}' at version {saved.version}"
            raise RuntimeError(f"{operator}: expected {expected}, got version {now}")
        tensor = saved.tensor
        return self.made(tensor.with_layout(tensor.layout)) if saved.is_result else tensor

    def apply(self, grad: Tensor) -> list[Tensor | None]:
        """The gradient for each edge."""
        raise NotImplementedError


class AccumulateGrad(Node):
    """The accumulator of a leaf."""

    def apply(self, grad: Tensor) -> list[Tensor | None]:
        self.meta.grad = grad if self.meta.grad is None else self.meta.grad + grad
        return []


recording = True


@contextlib.contextmanager
def grad_mode(enabled: bool) -> Iterator[None]:
    """Within `with grad_mode(False):` nothing is recorded."""
    global recording
    before, recording = recording, enabled
    try:
        yield
    finally:
        recording = before


def needs_graph(*tensors: Tensor) -> bool:
    return recording and any(tensor.autograd for tensor in tensors)


__test__["5 the tape"] = r"""
>>> w = tensor([2.0], requires_grad=True)
>>> node = Node(w)                                           # an operator would do this
>>> node.save("other", w)
>>> node.edges[0] is w.autograd.node, node.sequence > w.autograd.node.sequence
(True, True)
>>> _ = run(one_step(TABLE["mul.Scalar"]), [w], [0.5], out=w)  # w *= 0.5
>>> node.unpack("other")
Traceback (most recent call last):
RuntimeError: Node: expected saved tensor 'other' at version 0, got version 1
"""

# ==== 6. Operators ====================================================================
# Now each row becomes a function. A generator writes its text: run the body; if a gradient may be
# wanted, make a node that saves what the formulas name. The node's `apply` is the formulas
# themselves, in terms of operators, and so backward can be recorded and differentiated again.
#
# Formulas never undo broadcasting: the engine does, once for all.
#
# A name may have several rows (`mul.Tensor`, `mul.Scalar`). The call picks the first whose schema
# takes the arguments. Eager calls resolve by values, the compiler (section 9) by types.

BODIES = {
    "pointwise": "run(one_step(row), [{tensors}], [{numbers}])",
    "reduce": "fold(row, {args})",
    "view": "self.with_layout(row.body(self.layout, {rest}))",
}


def operator_text(row: Row) -> str:
    """The function of a row, and the node of its gradients."""
    args = [arg.name for arg in row.args]
    tensors = [arg.name for arg in row.args if arg.type == "Tensor"]
    parts = {"args": args, "tensors": tensors, "rest": args[1:]}
    parts["numbers"] = [name for name in args if name not in tensors]
    form = BODIES.get(row.kind, "row.body({args})")
    body = form.format(**{key: ", ".join(names) for key, names in parts.items()})
    head = f"def operator({', '.join(args)}):\n"
    if not row.grad:
        return f"{head}    return {body}\n"
    formulas = [row.grad.get(name, "None") for name in tensors]
    parsed = [node for text in formulas for node in ast.walk(ast.parse(text))]
    named = {node.id for node in parsed if isinstance(node, ast.Name)}
    saved = [name for name in [*args, "result"] if name in named]
    grads = ", ".join(f"{text} if node.edges[{i}] else None" for i, text in enumerate(formulas))
    name = f"{row.name.title()}Backward0"
    lines = [
        f"class {name}(Node):\n    def apply(node, grad):",
        *(f"        {name} = node.unpack({name!r})" for name in saved),
        f"        return [{grads}]\n\n{head}    result = {body}",
        f"    if needs_graph({', '.join(tensors)}):\n        node = {name}({', '.join(tensors)})",
        "        node.made(result)",
        *(f"        node.save({name!r}, {name})" for name in saved),
        "    return result\n",
    ]
    return "\n".join(lines)


def spread(grad: Tensor, shape: tuple[int, ...], dim: int | None) -> Tensor:
    """The gradient of a sum: the same for each element that was added."""
    return (grad if dim is None else grad.unsqueeze(dim)).expand(shape)


@functools.cache
def operator_of(row: Row) -> Callable[..., Any]:
    scope: dict[str, Any] = {**globals(), "row": row}
    exec(operator_text(row), scope)
    return scope["operator"]


# The types that an argument takes, where they are more than its own.
TAKES = {"Scalar": {"int", "float", "bool"}, "int?": {"int", "NoneType"}}


def fits(row: Row, types: list[str]) -> bool:
    fitting = [type in TAKES.get(arg.type, (arg.type,)) for type, arg in zip(types, row.args)]
    return len(types) == len(row.args) and all(fitting)


def type_of(value: Any) -> str:
    return "int[]" if isinstance(value, (tuple, list)) else type(value).__name__


def resolve(name: str, args: list[Any], typed: Any = type_of) -> tuple[Row, list[Any]]:
    """The row that takes the arguments, and its arguments, defaults filled in."""
    rows = [row for row in TABLE.values() if row.name == name]
    for row in rows:
        defaults = [arg.default for arg in row.args[len(args) :] if arg.default]
        bound = [*args, *map(ast.literal_eval, defaults)]
        if fits(row, [typed(value) for value in bound]):
            return row, bound
    expected = " or ".join(f"({', '.join(arg.type for arg in row.args)})" for row in rows)
    got = ", ".join(typed(value) for value in args)
    raise TypeError(f"{name}: expected {expected or 'a name in the table'}, got ({got})")


def call(row: Row, args: list[Any]) -> Any:
    if not fits(row, [type_of(value) for value in args]):
        raise TypeError(f"{row.key}: expected {[arg.type for arg in row.args]}, got {args}")
    return operator_of(row)(*args)


def method(name: str) -> Callable[..., Any]:
    return lambda *args: call(*resolve(name, list(args)))


for _name in {row.name for row in TABLE.values()}:
    setattr(Tensor, _name, method(_name))
for _name in ("add", "sub", "mul", "truediv", "neg", "lt", "gt", "matmul"):
    setattr(Tensor, f"__{_name}__", method(_name.removeprefix("true")))
Tensor.__radd__, Tensor.__rmul__ = Tensor.add, Tensor.mul
Tensor.__rsub__ = lambda self, other: -self + other

__test__["6 operators"] = r"""
>>> print(operator_text(TABLE["tanh"]), end="")
class TanhBackward0(Node):
    def apply(node, grad):
        result = node.unpack('result')
        return [grad * (1 - result * result) if node.edges[0] else None]
<BLANKLINE>
def operator(self):
    result = run(one_step(row), [self], [])
    if needs_graph(self):
        node = TanhBackward0(self)
        node.made(result)
        node.save('result', result)
    return result
>>> x = tensor([[1.0, 2.0], [3.0, 4.0]])
>>> 2 * x - x.transpose(0, 1), (x > 2).sum(), x @ tensor([[1.0], [1.0]])
(tensor([[1.0, 1.0], [4.0, 4.0]], float32), tensor(2, int64), tensor([[3.0], [7.0]], float32))
>>> x.matmul("3")
Traceback (most recent call last):
TypeError: matmul: expected (Tensor, Tensor), got (Tensor, str)
"""

# ==== 7. The engine ===================================================================
# `backward` sends a gradient from a root down the edges. A node must run when all gradients of its
# result have arrived, so the engine first counts how many will come. Of the nodes that are ready
# the one with the largest sequence number runs first: backward is forward, reversed. This order is
# part of the result, as sums of floats depend on it.
#
# On the way a gradient takes the shape of the result it belongs to: what was broadcast is summed.
#
# Grad mode is off meanwhile. With `create_graph` it is on: formulas are operators and are recorded
# as any others, so second derivatives need nothing more.


def fit(grad: Tensor, node: Node) -> Tensor:
    """The gradient as the result of `node` wants it."""
    new = len(grad.shape) - len(node.shape)
    for dim in reversed(range(len(grad.shape))):
        if dim < new or (node.shape[dim - new] == 1 and grad.shape[dim] != 1):
            grad = grad.sum(dim) if dim < new else grad.sum(dim).unsqueeze(dim)
    if grad.dtype != node.dtype:
        raise RuntimeError(f"backward: expected gradients of {node.dtype}, got {grad.dtype}")
    return grad


def count_gradients(root: Node) -> dict[Node, int]:
    """How many gradients each node will get."""
    waiting, queue = {root: 1}, [root]
    for node in queue:
        for target in filter(None, node.edges):
            if target not in waiting:
                queue.append(target)
            waiting[target] = waiting.get(target, 0) + 1
    return waiting


def backward(root: Tensor, grad: Tensor | None = None, create_graph: bool = False) -> None:
    """Adds the gradients of `root` to the `.grad` of the leaves it was made from."""
    if root.autograd is None or (grad is None and math.prod(root.shape) != 1):
        raise RuntimeError(f"backward: expected one element with a history, got {root}")
    waiting = count_gradients(root.autograd.node)
    arrived: dict[Node, Tensor] = {}
    ready: list[tuple[int, Node]] = []

    def deliver(node: Node, grad: Tensor) -> None:
        grad = fit(grad, node)
        arrived[node] = arrived[node] + grad if node in arrived else grad
        waiting[node] -= 1
        if waiting[node] == 0:
            heapq.heappush(ready, (-node.sequence, node))

    with grad_mode(create_graph):
        deliver(root.autograd.node, grad or tensor(1.0, root.dtype).expand(root.shape))
        while ready:
            _, node = heapq.heappop(ready)
            for target, each in zip(node.edges, node.apply(arrived.pop(node))):
                if target:
                    deliver(target, each)
            if not create_graph:
                node.saved = None


Tensor.backward = backward
Tensor.grad = property(lambda self: self.autograd and self.autograd.grad)

__test__["7 the engine"] = r"""
>>> x = tensor([[0.0, 2.0], [3.0, 10.0]])                    # the first screen of the README
>>> w = tensor([[1.0], [1.0]], requires_grad=True)
>>> y = x @ w
>>> loss = (y * y).mean()
>>> loss.backward()
>>> loss, w.grad
(tensor(86.5, float32), tensor([[39.0], [134.0]], float32))
>>> a = tensor(3.0, requires_grad=True)                      # a ** 3, twice
>>> (a * a * a).backward(create_graph=True)
>>> first, a.autograd.grad = a.grad, None
>>> first.backward()
>>> first, a.grad
(tensor(27.0, float32), tensor(18.0, float32))
"""

# ==== 8. The graph ====================================================================
# `script` turns a typed function into a graph: typed SSA with structured control flow. A value is
# made once, by a node or as a parameter of a block, and may be used behind that and in the blocks
# nested there. `verify` checks this. `prim::If` has two blocks. `prim::Loop` has one: its inputs
# are the number of trips, a first condition and the carried values; its block takes the trip and
# those, and returns a condition and the next ones. docs/jit_ir.md has the grammar of the text.
#
# (In weft a node of a graph is a `Node` too; here it is a `GraphNode`.)


@dataclasses.dataclass(eq=False)
class Value:
    type: str
    constant: Any = None  # the number that it always is; None where that is not known


@dataclasses.dataclass(eq=False)
class Block:
    params: list[Value] = dataclasses.field(default_factory=list)
    nodes: list[GraphNode] = dataclasses.field(default_factory=list)
    returns: list[Value] = dataclasses.field(default_factory=list)

    def used(self) -> set[Value]:
        """What it returns, and what its nodes and those nested in them read."""
        return {*self.returns}.union(*(node.used() for node in self.nodes))

    def __str__(self) -> str:
        names: dict[Value, str] = {}
        lines = [f"graph({listed(self.params, names, ' : ')}):", *lines_of(self, names, "  ")]
        return "\n".join([*lines, f"  return ({listed(self.returns, names)})"])


Graph = Block  # the outermost one


@dataclasses.dataclass(eq=False)
class GraphNode:
    kind: str
    inputs: list[Value]
    outputs: list[Value]
    blocks: list[Block] = dataclasses.field(default_factory=list)

    @property
    def row(self) -> Row | None:
        return TABLE.get(self.kind.removeprefix("aten::"))

    def used(self) -> set[Value]:
        return {*self.inputs}.union(*(block.used() for block in self.blocks))


def constant_node(value: Any) -> GraphNode:
    return GraphNode("prim::Constant", [], [Value(type_of(value), value)])


def listed(values: list[Value], names: dict[Value, str], type: str = "") -> str:
    named = [(names.setdefault(value, f"%{len(names)}"), value.type) for value in values]
    return ", ".join(f"{name}{type}{of if type else ''}" for name, of in named)


def lines_of(block: Block, names: dict[Value, str], indent: str) -> Iterator[str]:
    for node in block.nodes:
        inputs, outputs = listed(node.inputs, names), listed(node.outputs, names, " : ")
        value = f"[value={node.outputs[0].constant}]" * (node.kind == "prim::Constant")
        yield f"{indent}{outputs}{' = ' * bool(outputs)}{node.kind}{value}({inputs})"
        for i, inner in enumerate(node.blocks):
            yield f"{indent}  block{i}({listed(inner.params, names, ' : ')}):"
            yield from lines_of(inner, names, indent + "    ")
            yield f"{indent}    -> ({listed(inner.returns, names)})"


def verify(block: Block, outer: Iterable[Value] = ()) -> None:
    """Raises ValueError where a value is used before it is made, or types do not fit."""
    known = {*outer, *block.params}
    for node in block.nodes:
        given = [inner.returns[node.kind == "prim::Loop" :] for inner in node.blocks]
        right = all([v.type for v in each] == [v.type for v in node.outputs] for each in given)
        right &= node.row is None or fits(node.row, [value.type for value in node.inputs])
        if not right or not known.issuperset(node.inputs):
            raise ValueError(f"verify: expected known values of types that fit, got {node.kind}")
        for inner in node.blocks:
            verify(inner, known)
        known.update(node.outputs)
    if not known.issuperset(block.returns):
        raise ValueError("verify: expected known values, got others in a return")


__test__["8 the graph"] = """
>>> x, y = Value("Tensor"), Value("Tensor")
>>> half = constant_node(0.5)
>>> product = GraphNode("aten::mul.Scalar", [x, *half.outputs], [y])
>>> graph = Graph([x], [half, product], [y])
>>> verify(graph)
>>> print(graph)
graph(%0 : Tensor):
  %1 : float = prim::Constant[value=0.5]()
  %2 : Tensor = aten::mul.Scalar(%0, %1)
  return (%2)
>>> verify(Graph([x], [product, half], [y]))
Traceback (most recent call last):
ValueError: verify: expected known values of types that fit, got aten::mul.Scalar
"""

# ==== 9. The frontend =================================================================
# The compiler walks Python's syntax tree once. An environment maps names to values, and an
# assignment changes the environment, never a value: that is how SSA arises. What the blocks of an
# `If` or a `Loop` assign to names that were known before becomes its outputs.
#
# Every expression has a type. An operator on numbers is a row too (`add.int`), and a call picks its
# row by types, as an eager call does by values. What the language lacks is refused, with its place.

SYNTAX = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.MatMult: "matmul"}
SYNTAX |= {ast.USub: "neg", ast.Lt: "lt", ast.Gt: "gt"}
for _name, _body in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul)):
    for _type in ("int", "float"):
        op(f"{_name}.{_type}({_type} a, {_type} b) -> {_type}", scalar=_body)
for _name, _body in (("lt", operator.lt), ("gt", operator.gt)):
    op(f"{_name}.int(int a, int b) -> bool", scalar=_body)


class Compiler:
    """Compiles one function."""

    def function(self, tree: ast.FunctionDef) -> Graph:
        self.names: dict[str, Value] = {}
        for arg in tree.args.args:
            self.names[arg.arg] = Value(ast.unparse(arg.annotation) if arg.annotation else "Tensor")
        graph = self.block = Graph(list(self.names.values()))
        *body, last = tree.body
        if not isinstance(last, ast.Return) or last.value is None:
            self.refuse(last, "a last statement that returns a value")
        self.statements(body)
        graph.returns = [self.expr(last.value)]
        return graph

    def refuse(self, tree: Any, expected: str) -> NoReturn:
        got = ast.unparse(tree).splitlines()[0]
        raise SyntaxError(f"script: line {tree.lineno}: expected {expected}, got {got}")

    def emit(self, node: GraphNode) -> Value:
        self.block.nodes.append(node)
        return node.outputs[0]

    def statements(self, body: list[ast.stmt]) -> None:
        for tree in body:
            match tree:
                case ast.Assign([ast.Name(name)], value):
                    self.names[name] = self.expr(value)
                case ast.If(test, then, otherwise):
                    condition = self.expr(test)
                    if condition.type != "bool":
                        self.refuse(test, "a bool")
                    self.nested(tree, GraphNode("prim::If", [condition], []), then, otherwise)
                case ast.For(ast.Name(name), ast.Call(ast.Name("range"), [limit]), body):
                    if name in self.names:
                        self.refuse(tree, "a name for the loop that is new")
                    inputs = [self.expr(limit), self.emit(constant_node(True))]
                    self.nested(tree, GraphNode("prim::Loop", inputs, []), body)
                case _:
                    self.refuse(tree, "an assignment to a name, if, or for over range(n)")

    def nested(self, tree: Any, node: GraphNode, *bodies: list[ast.stmt]) -> None:
        """The blocks of an If or a Loop, and what they assign."""
        stored = [n.id for body in bodies for statement in body for n in ast.walk(statement)
                  if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]  # fmt: skip
        before, outer = dict(self.names), self.block
        known = {name: before[name] for name in stored if name in before}
        for body in bodies:
            self.names, self.block = dict(before), Block()
            if node.kind == "prim::Loop":
                inner = {tree.target.id: Value("int")}
                inner |= {name: Value(value.type) for name, value in known.items()}
                self.names |= inner
                self.block = Block(list(inner.values()), returns=node.inputs[1:])
            node.blocks.append(self.block)
            self.statements(body)
            self.block.returns += [self.names[name] for name in known]
            for name, value in known.items():
                if self.names[name].type != value.type:
                    self.refuse(tree, f"'{name}' to stay {value.type}, not {self.names[name].type}")
        if node.kind == "prim::Loop":
            node.inputs = [*node.inputs, *known.values()]
        node.outputs = [Value(value.type) for value in known.values()]
        self.block, self.names = outer, before | dict(zip(known, node.outputs))
        self.block.nodes.append(node)

    def expr(self, tree: ast.expr) -> Value:
        match tree:
            case ast.Constant(bool() | int() | float()):
                return self.emit(constant_node(tree.value))
            case ast.Name(name) if name in self.names:
                return self.names[name]
            case ast.BinOp(a, sign, b) | ast.Compare(a, [sign], [b]) if type(sign) in SYNTAX:
                return self.call(tree, SYNTAX[type(sign)], a, b)
            case ast.UnaryOp(ast.USub(), a):
                return self.call(tree, "neg", a)
            case ast.Call(ast.Name(name) | ast.Attribute(ast.Name("weft"), name), args, []):
                return self.call(tree, name, *args)
            case ast.Call(ast.Attribute(value, name), args, []):
                return self.call(tree, name, value, *args)
        self.refuse(tree, "a known name, a number, arithmetic or a call")

    def call(self, tree: ast.expr, name: str, *args: ast.expr) -> Value:
        values = [self.expr(arg) for arg in args]
        try:
            row, bound = resolve(name, values, lambda v: getattr(v, "type", type_of(v)))
        except TypeError as error:
            self.refuse(tree, f"other types ({error})")
        inputs = [v if isinstance(v, Value) else self.emit(constant_node(v)) for v in bound]
        return self.emit(GraphNode(f"aten::{row.key}", inputs, [Value(row.returns)]))


def script(source: str) -> Graph:
    """The graph of the function in a text."""
    graph = Compiler().function(ast.parse(source).body[0])
    verify(graph)
    return graph


__test__["9 the frontend"] = r"""
>>> print(script("def f(x, n: int):\n    if n > 0:\n        x = x * n\n    return x"))
graph(%0 : Tensor, %1 : int):
  %2 : int = prim::Constant[value=0]()
  %3 : bool = aten::gt.int(%1, %2)
  %4 : Tensor = prim::If(%3)
    block0():
      %5 : Tensor = aten::mul.Scalar(%0, %1)
      -> (%5)
    block1():
      -> (%0)
  return (%4)
>>> script("def f(x, n: int):\n    if n > 0:\n        x = n\n    return x")
Traceback (most recent call last):
SyntaxError: script: line 2: expected 'x' to stay Tensor, not int, got if n > 0:
"""

# ==== 10. Passes ======================================================================
# A pass changes a graph in place and says whether it found anything to do. The pipeline is one
# ordered list, run until nothing changes; fusion comes last, as it must see the final graph.
#
# Most passes are a rule for one node: these nodes may stand in its place, and those values for its
# outputs. What may raise an error is never removed.
#
# Fusion puts pointwise operators that feed each other into a `weft::Fused` node, which runs as one
# tile program. Bits stay the same, as the kernels are the same.

Replacement = tuple[list[GraphNode], list[Value]]


def rewrite(block: Block, rule: Callable[..., Replacement | None], became: Any = None) -> bool:
    """Applies a rule to all nodes in order, nested ones first. `became`: what values became."""
    became = {} if became is None else became
    changed, nodes = False, []
    for node in block.nodes:
        node.inputs = [became.get(value, value) for value in node.inputs]
        for inner in node.blocks:
            changed |= rewrite(inner, rule, became)
        replaced = rule(node, block)
        changed |= replaced is not None
        instead, values = replaced or ([node], node.outputs)
        nodes += instead
        became.update(zip(node.outputs, values))
    block.nodes, block.returns = nodes, [became.get(value, value) for value in block.returns]
    return changed


def copy_nodes(block: Block, values: dict[Value, Value]) -> Replacement:
    """The nodes and returns of a block once more; `values`: what becomes of values before it."""
    nodes = []
    for node in block.nodes:
        copies = [Value(value.type, value.constant) for value in node.outputs]
        nodes.append(GraphNode(node.kind, [values.get(v, v) for v in node.inputs], copies))
        for inner in node.blocks:
            params = [Value(value.type) for value in inner.params]
            inside = copy_nodes(inner, values | dict(zip(inner.params, params)))
            nodes[-1].blocks.append(Block(params, *inside))
        values = values | dict(zip(node.outputs, copies))
    return nodes, [values.get(v, v) for v in block.returns]


def constant_propagation(graph: Graph) -> bool:
    """Operators on numbers that are known, and branches whose condition is."""

    def rule(node: GraphNode, block: Block) -> Replacement | None:
        known = [value.constant for value in node.inputs]
        if not known or None in known:
            return None
        if node.kind == "prim::If":
            chosen = node.blocks[0 if known[0] else 1]
            return chosen.nodes, chosen.returns
        if node.row and node.row.kind == "scalar":
            made = constant_node(node.row.body(*known))
            return [made], made.outputs
        return None

    return rewrite(graph, rule)


def loop_unrolling(graph: Graph, most: int = 4) -> bool:
    def rule(node: GraphNode, block: Block) -> Replacement | None:
        trips = node.inputs[0].constant if node.kind == "prim::Loop" else None
        if trips is None or trips > most:
            return None
        nodes, carried = [], node.inputs[2:]
        for i in range(trips):
            trip = constant_node(i)
            values = dict(zip(node.blocks[0].params, [*trip.outputs, *carried]))
            copies, (_, *carried) = copy_nodes(node.blocks[0], values)
            nodes += [trip, *copies]
        return nodes, carried

    return rewrite(graph, rule)


def cse(graph: Graph) -> bool:
    """Of two nodes of a block that compute the same the second goes."""
    seen: dict[Any, GraphNode] = {}

    def rule(node: GraphNode, block: Block) -> Replacement | None:
        of_constant = [repr(value.constant) for value in node.outputs]  # 0.0 is not -0.0
        first = seen.setdefault((block, node.kind, *node.inputs, *of_constant), node)
        return None if first is node or node.blocks else ([], first.outputs)

    return rewrite(graph, rule)


def may_raise(node: GraphNode) -> bool:
    """Shapes may not fit, and dimensions may not exist."""
    if node.row:
        return node.row.kind not in ("scalar", "pointwise") or node.row.key.endswith(".Tensor")
    return any(may_raise(inner) for block in node.blocks for inner in block.nodes)


def dce(graph: Graph) -> bool:
    """What nobody uses, and whose absence nobody notices, goes."""
    used = graph.used()

    def rule(node: GraphNode, block: Block) -> Replacement | None:
        return None if may_raise(node) or used.intersection(node.outputs) else ([], node.outputs)

    return rewrite(graph, rule)


def fusion(block: Block) -> None:
    """An operator joins the group of its readers, where they all are in one."""
    readers: dict[Value, list[GraphNode | None]] = {value: [None] for value in block.returns}
    for node in block.nodes:
        for value in node.used():
            readers.setdefault(value, []).append(node)
        for inner in node.blocks:
            fusion(inner)
    last_of: dict[GraphNode | None, GraphNode] = {}  # the last node of a node's group
    for node in reversed(block.nodes):
        if node.row and node.row.kind == "pointwise" and node.row.result == "compute":
            lasts = {last_of.get(reader) for reader in readers.get(node.outputs[0], [])}
            last_of[node] = (lasts.pop() or node) if len(lasts) == 1 else node
    nodes = []
    for node in block.nodes:
        group = [n for n in block.nodes if n in last_of and last_of[n] is last_of.get(node)]
        if len(group) < 2:
            nodes.append(node)
        elif node is group[-1]:
            nodes.append(fused(group))
    block.nodes = nodes


def fused(group: list[GraphNode]) -> GraphNode:
    """The weft::Fused of some nodes. Its inputs are tensors, then numbers."""
    made = {node.outputs[0] for node in group}
    inputs = dict.fromkeys(value for node in group for value in node.inputs if value not in made)
    ordered = sorted(inputs, key=lambda value: value.type != "Tensor")
    outputs, group[-1].outputs = group[-1].outputs, [Value("Tensor")]
    return GraphNode("weft::Fused", ordered, outputs, [Block([], group, group[-1].outputs)])


PASSES = (constant_propagation, loop_unrolling, cse, dce)


def optimize(graph: Graph) -> Graph:
    """The same graph, better."""
    while any([run_pass(graph) for run_pass in PASSES]):  # noqa: C419
        verify(graph)
    fusion(graph)
    return graph


UPDATE = """
def update(state: Tensor, x: Tensor, steps: int):
    for i in range(steps):
        keep = weft.sigmoid(state * (2.0 * 0.25))
        new = weft.tanh(x - state)
        state = new + keep * (state - new)
    return state
"""

__test__["10 passes"] = r"""
>>> print(optimize(script(UPDATE)))
graph(%0 : Tensor, %1 : Tensor, %2 : int):
  %3 : bool = prim::Constant[value=True]()
  %4 : Tensor = prim::Loop(%2, %3, %0)
    block0(%5 : int, %6 : Tensor):
      %7 : float = prim::Constant[value=0.5]()
      %8 : Tensor = weft::Fused(%6, %1, %7)
        block0():
          %9 : Tensor = aten::mul.Scalar(%6, %7)
          %10 : Tensor = aten::sigmoid(%9)
          %11 : Tensor = aten::sub.Tensor(%1, %6)
          %12 : Tensor = aten::tanh(%11)
          %13 : Tensor = aten::sub.Tensor(%6, %12)
          %14 : Tensor = aten::mul.Tensor(%10, %13)
          %15 : Tensor = aten::add.Tensor(%12, %14)
          -> (%15)
      -> (%3, %8)
  return (%4)
>>> power = "def f(x):\n    for i in range(2):\n        y = -x\n        x = x @ x\n    return x"
>>> print(optimize(script(power)))
graph(%0 : Tensor):
  %1 : Tensor = aten::matmul(%0, %0)
  %2 : Tensor = aten::matmul(%1, %1)
  return (%2)
"""

# ==== 11. The program and its interpreter =============================================
# A program is data: instructions over numbered registers. Each value has a register; control flow
# becomes jumps. What an `If` or a `Loop` gives has its registers from the start, and each way moves
# its values there.
#
# `run_group` looks at its operands. If no gradient is recorded and all tensors have one floating
# dtype, its steps run as one tile program. Otherwise they run as operators, one by one, and are
# recorded as in eager mode. So autograd knows nothing of programs.

INSTRUCTIONS = {  # operands: r register, c constant, o operator, s steps, j jump; and what repeats
    "load_constant": ("rc", ""),
    "call_operator": ("ro", "r"),  # r = operator(registers)
    "run_group": ("rs", "r"),  # r = the result of the last step
    "move": ("", "rr"),  # all at once
    "jump": ("j", ""),
    "jump_unless": ("rj", ""),
    "loop_start": ("rrj", ""),  # r = 0; jump if that is no trip
    "loop_next": ("rrj", ""),  # r += 1; jump if there is another trip
    "return": ("r", ""),
}


class Lowering:
    """From a graph to a program."""

    def __init__(self, graph: Graph) -> None:
        self.registers: dict[Value, int] = {value: i for i, value in enumerate(graph.params)}
        self.code: list[list[Any]] = []
        self.block(graph)
        self.emit("return", *graph.returns)
        types = [value.type for value in graph.params]
        self.program = Program(types, len(self.registers), self.code)

    def register(self, value: Any) -> Any:
        known = self.registers
        return known.setdefault(value, len(known)) if isinstance(value, Value) else value

    def emit(self, *words: Any) -> list[Any]:
        """An instruction; the target of a jump forwards is appended when it is known."""
        self.code.append([self.register(word) for word in words])
        return self.code[-1]

    def move(self, targets: list[Value], sources: list[Value]) -> None:
        self.emit("move", *itertools.chain(*zip(targets, sources)))

    def block(self, block: Block) -> None:
        for node in block.nodes:
            match node.kind, node.blocks:
                case "prim::Constant", _:
                    self.emit("load_constant", *node.outputs, node.outputs[0].constant)
                case "prim::If", [then, otherwise]:
                    branch = self.emit("jump_unless", *node.inputs)
                    self.block(then)
                    self.move(node.outputs, then.returns)
                    end = self.emit("jump")
                    branch.append(len(self.code))
                    self.block(otherwise)
                    self.move(node.outputs, otherwise.returns)
                    end.append(len(self.code))
                case "prim::Loop", [body]:
                    trips, _, *carried = node.inputs
                    trip, *params = body.params
                    self.move(params, carried)
                    start, begin = self.emit("loop_start", trip, trips), len(self.code)
                    self.block(body)
                    self.move(params, body.returns[1:])
                    self.emit("loop_next", trip, trips, begin)
                    start.append(len(self.code))
                    self.move(node.outputs, params)
                case "weft::Fused", [body]:
                    self.emit("run_group", *node.outputs, steps_of(node, body), *node.inputs)
                case _:
                    self.emit("call_operator", *node.outputs, node.row.key, *node.inputs)


def steps_of(node: GraphNode, body: Block) -> list[Any]:
    """The tile program of a group: for each step its row, its slots, its numbers."""
    tensors = [value for value in node.inputs if value.type == "Tensor"]
    slots, numbers = tensors + [n.outputs[0] for n in body.nodes], node.inputs[len(tensors) :]
    return [
        [n.row.key, *([of.index(v) for v in n.inputs if v in of] for of in (slots, numbers))]
        for n in body.nodes
    ]


class Program(NamedTuple):
    params: list[str]  # types; the arguments come in the first registers
    registers: int
    code: list[list[Any]]  # name of the instruction, operands

    def __call__(self, *args: Any) -> Any:
        if [type_of(arg) for arg in args] != self.params:
            raise TypeError(f"program: expected {self.params}, got {[type_of(a) for a in args]}")
        r: list[Any] = [*args, *[None] * (self.registers - len(args))]
        at = 0
        while True:
            name, *x = self.code[at]
            at += 1
            match name:
                case "load_constant":
                    r[x[0]] = x[1]
                case "call_operator":
                    r[x[0]] = call(TABLE[x[1]], [r[i] for i in x[2:]])
                case "run_group":
                    r[x[0]] = run_group(x[1], [r[i] for i in x[2:]])
                case "move":
                    for target, value in zip(x[::2], [r[i] for i in x[1::2]]):
                        r[target] = value
                case "jump":
                    at = x[0]
                case "jump_unless":
                    at = at if r[x[0]] else x[1]
                case "loop_start":
                    r[x[0]] = 0
                    at = at if r[x[1]] > 0 else x[2]
                case "loop_next":
                    r[x[0]] += 1
                    at = x[2] if r[x[0]] < r[x[1]] else at
                case "return":
                    return r[x[0]]


def run_group(steps: list[Any], values: list[Any]) -> Tensor:
    slots = [value for value in values if isinstance(value, Tensor)]
    numbers, dtypes = values[len(slots) :], {tensor.dtype for tensor in slots}
    if len(dtypes) == 1 and dtypes.pop().category == 2 and not needs_graph(*slots):
        return run(tuple(Step(TABLE[key], *rest) for key, *rest in steps), slots, numbers)
    for key, of_slots, of_numbers in steps:
        operands = [slots[i] for i in of_slots] + [numbers[i] for i in of_numbers]
        slots.append(call(TABLE[key], operands))
    return slots[-1]


__test__["11 the program and its interpreter"] = r"""
>>> double = script("def f(x, n: int):\n    for i in range(n):\n        x = x + x\n    return x")
>>> double = Lowering(double).program
>>> for at, (name, *operands) in enumerate(double.code):
...     print(at, name, *operands)
0 load_constant 2 True
1 move 3 0
2 loop_start 4 1 6
3 call_operator 5 add.Tensor 3 3
4 move 3 5
5 loop_next 4 1 3
6 move 6 3
7 return 6
>>> update = Lowering(optimize(script(UPDATE))).program      # docs/torchscript.md prints the same:
>>> state, x = tensor([0.0, 0.0, 0.0], requires_grad=True), tensor([0.5, -1.0, 2.0])
>>> result = update(state, x, 3)
>>> result.sum().backward()
>>> [[round(value, 4) for value in each.tolist()] for each in (result, state.grad)]
[[0.2472, -0.4786, 0.7529], [0.0004, 0.0005, 0.0677]]
>>> with grad_mode(False):                                   # as one tile program: the same bits
...     update(state, x, 3).tolist() == result.tolist()
True
"""

# ==== 12. Saving a program ============================================================
# A program knows nothing of Python, so it can be written as bytes and run elsewhere. The bytes may
# come from a stranger. Reading them builds numbers, strings and lists and nothing else, and `check`
# looks at every operand before anything runs. (JSON is short; weft has a format of its own.)

MAGIC = b"weft tour 1\n"


def save(program: Program) -> bytes:
    return MAGIC + json.dumps(program).encode()


def load(data: bytes) -> Program:
    """Raises ValueError for bytes that are no program."""
    try:
        program = Program(*json.loads(data.removeprefix(MAGIC)))
        wrong = next(check(program), "other bytes" if not data.startswith(MAGIC) else None)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        wrong = str(error)
    if wrong:
        raise ValueError(f"load: expected a program, got {wrong}")
    return program


def is_index(x: Any, count: int = 1 << 16) -> bool:
    return type(x) is int and 0 <= x < count


def is_step(key: str, slots: list[int], numbers: list[int]) -> bool:
    return TABLE[key].kind == "pointwise" and all(is_index(i) for i in [*slots, *numbers])


IS_OPERAND: dict[str, Callable[[Any, Program], bool]] = {
    "r": lambda x, program: is_index(x, program.registers),
    "j": lambda x, program: is_index(x, len(program.code)),
    "c": lambda x, program: x is None or type(x) in (bool, int, float),
    "o": lambda x, program: x in TABLE,
    "s": lambda x, program: len(x) > 0 and all(is_step(*step) for step in x),
}


def check(program: Program) -> Iterator[str]:
    """What is wrong with a program."""
    params, registers, code = program
    if not (is_index(registers) and {*params} <= {"Tensor", "int", "float", "bool"}):
        yield f"{registers} registers, parameters {params}"
    if len(params) > registers or code[-1:] == [] or code[-1][0] != "return":
        yield "code without a return at its end"
    for name, *operands in code:
        fixed, repeated = INSTRUCTIONS.get(name, ("", ""))
        kinds = fixed + repeated * ((len(operands) - len(fixed)) // max(len(repeated), 1))
        right = [IS_OPERAND[kind](x, program) for kind, x in zip(kinds, operands)]
        if name not in INSTRUCTIONS or len(kinds) != len(operands) or not all(right):
            yield f"{name} {operands}"


__test__["12 saving a program"] = r"""
>>> data = save(Lowering(optimize(script(UPDATE))).program)
>>> load(data)(tensor([0.0]), tensor([0.5]), 3)
tensor([0.2472497522830963], float32)
>>> load(data.replace(b'["return", 8]', b'["return", 90]'))
Traceback (most recent call last):
ValueError: load: expected a program, got return [90]
"""

# ==== 13. What the real library adds ==================================================
# The files to read first, by section, and what they add to it:
#
#  1 csrc/core/{storage,layout,tensor}.h  memory of other owners (NumPy, files, processes), threads
#  2 csrc/core/dtype.h                    15 dtypes, complex numbers among them
#  3 src/weft/_ops/{table,unary}.py       600 operators; kernels by LLVM for three instruction sets
#  4 csrc/ops/tile.h                      threads, programs of several passes (softmax)
#  5 csrc/autograd/node.h                 writes in place, operators with several results
#  6 tools/gen.py                         in-place and out= forms, bindings, stubs
#  7 csrc/autograd/engine.cpp             hooks, gradients of chosen inputs, anomaly mode
#  8 src/weft/jit/ir/graph.py             lists of uses, classes, containers, ranges, a parser
#  9 src/weft/jit/frontend                while, early returns, calls, classes, modules, containers
# 10 src/weft/jit/pipeline.py             more passes (first jit/passes/dce.py), gradients of groups
# 11 src/weft/jit/codegen/lower.py        registers used again, numbers apart from objects
#    csrc/runtime/interpreter.cpp         the interpreter in C++, and groups as machine code
# 12 csrc/runtime/program_reader.cpp      the bytes of programs
#
# docs/architecture.md follows one addition, one backward and one scripted call through these files.

if __name__ == "__main__":
    failed, attempted = doctest.testmod()
    print(f"{len(__test__)} sessions, {attempted} examples, {failed} failed")
    raise SystemExit(failed > 0)

"""Random typed programs, as graphs: numbers, tensors, lists, tuples, branches, loops, writes in place.

`graphs()` is a hypothesis strategy. Programs may raise; whatever a program does, every pass must keep
it. `outcome` runs one and gives all that can be seen of the run, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

import weft
from jit.evaluate import Evaluator, ScriptError
from jit.groups import assert_same_sums
from weft.jit import ir, schemas
from weft.jit.ir import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    TENSOR,
    Block,
    Graph,
    ShapeInfo,
    TupleType,
    Type,
    Value,
)

INTS, TENSORS = ir.ListType(INT), ir.ListType(TENSOR)
MAYBE = ir.optional_of(INT)
PAIR = TupleType((INT, TENSOR))
DICT = ir.DictType(STR, TENSOR)
INPUTS: list[tuple[str, Type]] = [
    ("x", TENSOR),
    ("y", TENSOR),
    ("n", INT),
    ("f", FLOAT),
    ("b", BOOL),
    ("xs", TENSORS),
]
RETURNED = (INT, FLOAT, BOOL, TENSOR, INTS, TENSORS, PAIR, MAYBE)


class Writer:
    """Writes one program. `scope` holds the values that can be used, innermost block last."""

    def __init__(self, draw: Callable[..., Any], size: int, prints: bool) -> None:
        self.draw = draw
        self.prints = prints
        self.graph = Graph()
        self.scope: list[Value] = []
        self.left = size
        self.emitted: list[ir.Node] = []
        # What is likely: tensors of 3 x 3, and tensors that are no leaves nor views of leaves.
        self.square: set[Value] = set()
        self.own: set[Value] = set()

    def choose(self, items: Any) -> Any:
        return self.draw(st.sampled_from(items))

    def whole(self, shapes: bool) -> Graph:
        for name, type_ in INPUTS:
            value = self.graph.add_input(type_, name)
            if shapes and type_ == TENSOR:
                value.shape = ShapeInfo(weft.float32, ("k", 3) if name == "x" else (3, 3))
            self.scope.append(value)
            if type_ == TENSOR:
                self.square.add(value)
        self.sum = None
        if self.draw(st.integers(0, 3)):
            nothing = self.constant(None, ir.optional_of(ir.DTYPE))
            start = self.graph.emit("aten::sum", [self.scope[0], nothing], [TENSOR]).output
            self.sum = self.graph.emit(
                "aten::mul.Scalar", [start, self.constant(0.0)], [TENSOR]
            ).output
        self.statements(self.graph.block, depth=0)
        with self.graph.inserting(at_end=self.graph.block):
            results = [
                self.any(t)
                for t in self.draw(st.lists(st.sampled_from(RETURNED), min_size=1, max_size=4))
            ]
            results.append(self.sum or self.any(TENSOR))
            results += [v for v in self.scope if v.type in (INT, FLOAT, BOOL) and not v.has_uses]
            whole = self.emit(
                "prim::TupleConstruct", results, TupleType(tuple(v.type for v in results))
            )
        self.graph.block.set_returns([whole])
        return self.graph

    def gather(self, before: int) -> None:
        """What nobody has used of a block's values goes into one sum, or is printed: so that values
        and gradients are seen though they are not returned themselves."""
        if self.sum is None:
            return
        nothing = self.constant(None, ir.optional_of(ir.DTYPE))
        for value in [v for v in self.scope[before:] if not v.has_uses]:
            if value.type == TENSOR:
                part = self.graph.emit("aten::mul.Tensor", [value, value], [TENSOR]).output
                part = self.graph.emit("aten::sum", [part, nothing], [TENSOR]).output
                self.graph.emit("aten::add_.Tensor", [self.sum, part, self.constant(1)], [TENSOR])
            elif value.type in (INT, FLOAT, BOOL) and before and self.prints:
                self.graph.emit("prim::Print", [value])

    def statements(self, block: Block, depth: int) -> None:
        before = len(self.scope) if depth else 0
        with self.graph.inserting(at_end=block):
            for _ in range(self.draw(st.integers(1, 6 if depth else 12))):
                self.left -= 1
                if self.left >= 0:
                    self.statement(depth)
            self.gather(before)

    def emit(
        self, kind: str, inputs: list[Value], *types: Type, attrs: dict[str, Any] | None = None
    ) -> Any:
        node = self.graph.emit(kind, inputs, types, attrs)
        if not attrs and types:
            self.emitted.append(node)
        self.scope.extend(node.outputs)
        if len(types) == 1:
            return node.output
        return node

    def constant(self, value: Any, type_: Type | None = None) -> Value:
        return self.graph.constant(value, type_)

    def any(self, type_: Type) -> Value:
        """A value of the type: one in scope, or a new constant or container."""
        known = [v for v in self.scope if v.type == type_]
        square = [v for v in known if v in self.square]
        if square and self.draw(st.integers(0, 7)):
            known = square
        if known and self.draw(st.integers(0, 9)) > 0:
            return self.choose(known[-8:])
        if type_ == INT:
            return self.constant(self.draw(st.integers(-2, 4)))
        if type_ == FLOAT:
            return self.constant(self.choose([0.0, -0.0, 1.0, 1.5, -2.0]))
        if type_ == BOOL:
            return self.constant(self.draw(st.booleans()))
        if type_ == STR:
            return self.constant(self.choose(["a", "b"]))
        if type_ == MAYBE:
            return self.constant(self.choose([None, 3]), MAYBE)
        if type_ == INTS:
            return self.emit(
                "prim::ListConstruct",
                [self.any(INT) for _ in range(self.draw(st.integers(0, 3)))],
                INTS,
            )
        if type_ == TENSORS:
            return self.emit(
                "prim::ListConstruct",
                [self.any(TENSOR) for _ in range(self.draw(st.integers(0, 3)))],
                TENSORS,
            )
        if type_ == PAIR:
            return self.emit("prim::TupleConstruct", [self.any(INT), self.any(TENSOR)], PAIR)
        if type_ == DICT:
            return self.emit("prim::DictConstruct", [self.any(STR), self.any(TENSOR)], DICT)
        return self.choose([v for v in self.scope if v.type == type_])

    def statement(self, depth: int) -> None:
        options = [
            "idiom",
            "idiom",
            "numbers",
            "tensor",
            "tensor",
            "tensor",
            "view",
            "view",
            "query",
            "list",
            "tuple",
            "write",
            "again",
            "maybe",
        ]
        if depth < 3:
            options += ["branch", "loop", "branch", "loop"]
        options += ["effect", "cast", "dict"]
        getattr(self, self.choose(options))(depth)

    def idiom(self, depth: int) -> None:
        """Something that a pass might take for another thing."""
        name = self.choose(["undone", "twice", "filled", "identity"])
        if name == "undone":  # two views that undo each other, then a use, a write, or nothing
            value = result = self.any(TENSOR)
            kind, *rest = self.choose(INVOLUTIONS)
            for _ in range(2):
                inputs = [result, *(self.argument(part) for part in rest)]
                result = self.emit(kind, inputs, TENSOR)
                self.viewed(result)
            self.follow(result, value)
        elif name == "twice":
            self.twice(depth)
        elif name == "filled":  # a list that is written between its making and its use
            items = self.emit("prim::ListConstruct", [self.any(INT), self.any(INT)], INTS)
            if self.draw(st.booleans()):
                self.emit("aten::append.t", [items, self.any(INT)], INTS)
            if self.draw(st.booleans()):
                self.emit("aten::_set_item.t", [items, self.constant(0), self.any(INT)], INTS)
            self.emit("aten::__getitem__.t", [items, self.constant(0)], INT)
            self.emit("aten::len.t", [items], INT)
        else:
            kind, *rest = self.choose(IDENTITIES)
            result = self.emit(kind, [self.argument(part) for part in rest], rest[0])
            if rest[0] == TENSOR:
                self.own.add(result)
                self.mark(result, True)

    def twice(self, depth: int) -> None:
        """The same twice, perhaps with a write in between."""
        value, results = self.any(TENSOR), []
        kind, *rest = self.choose(
            [("aten::sin",), ("aten::neg",), ("aten::mul.Scalar", 0.3), ("aten::t",)]
        )
        for _ in range(2):
            result = self.emit(kind, [value, *(self.argument(part) for part in rest)], TENSOR)
            results.append(result)
            self.viewed(result)
            if kind != "aten::t":
                self.own.add(result)
                self.mark(result, True)
            if len(results) == 1 and value in self.own and self.draw(st.booleans()):
                self.emit("aten::mul_.Scalar", [value, self.constant(3.0)], TENSOR)
        self.follow(results[1], results[0])

    def follow(self, value: Value, other: Value) -> None:
        """What somebody does with a value that may be another one."""
        what = self.choose(["use", "use", "use both", "use both", "write", "nothing", "keep"])
        if what == "use":
            self.own.add(self.emit("aten::sin", [value], TENSOR))
        elif what == "use both":
            for one, factor in ((value, 0.1), (other, 0.3), (other, 0.7), (value, 1.1)):
                result = self.emit("aten::mul.Scalar", [one, self.constant(factor)], TENSOR)
                self.own.add(result)
                self.mark(result, True)
        elif what == "write" and value in self.own:
            self.emit("aten::mul_.Scalar", [value, self.constant(3.0)], TENSOR)
        elif what == "keep":
            self.emit("prim::ListConstruct", [value, other], TENSORS)

    def numbers(self, depth: int) -> None:
        kind, *types = self.choose(NUMBER_KINDS)
        *taken, given = types
        self.emit(kind, [self.argument(t) for t in taken], given)

    def tensor(self, depth: int) -> None:
        kind, *rest = self.choose(TENSOR_KINDS)
        inputs = [self.argument(part) for part in rest]
        if kind == "aten::where.self":
            inputs[0] = self.emit("aten::gt.Scalar", [inputs[0], self.any(FLOAT)], TENSOR)
            self.square |= {inputs[0]} if inputs[0].node.inputs[0] in self.square else set()
        result = self.emit(kind, inputs, TENSOR)
        self.own.add(result)
        self.mark(result, kind not in SHRINKING)

    def mark(self, result: Value, keeps: bool) -> None:
        """Whether a result is 3 x 3, as its inputs are."""
        tensors = [v for v in result.node.inputs if v.type == TENSOR]
        if keeps and tensors and all(v in self.square for v in tensors):
            self.square.add(result)

    def view(self, depth: int) -> None:
        kind, *rest = self.choose(VIEW_KINDS)
        value = self.emit(kind, [self.argument(part) for part in rest], TENSOR)
        self.viewed(value)
        if self.draw(st.booleans()):  # views often undo each other
            inputs = [
                value if part == TENSOR else old for part, old in zip(rest, value.node.inputs)
            ]
            self.viewed(self.emit(kind, inputs, TENSOR))

    def viewed(self, value: Value) -> None:
        self.mark(value, value.node.kind in KEEPING)
        if value.node.inputs[0] in self.own:
            self.own.add(value)

    def argument(self, part: Any) -> Value:
        """A type: any value of it. A list: a list of these ints. Anything else: that constant."""
        if isinstance(part, Type):
            return self.any(part)
        if isinstance(part, list):
            return self.graph.emit(
                "prim::ListConstruct", [self.constant(i) for i in part], [INTS]
            ).output
        if isinstance(part, tuple):
            return self.constant(*part)
        return self.constant(part)

    def query(self, depth: int) -> None:
        kind, given, *rest = self.choose(QUERY_KINDS)
        self.emit(kind, [self.argument(part) for part in rest], given)

    def write(self, depth: int) -> None:
        kind, *rest = self.choose(WRITE_KINDS)
        own = [v for v in self.scope if v in self.own]
        if own:
            target = self.choose(own[-6:])
        else:
            target = self.emit("aten::neg", [self.any(TENSOR)], TENSOR)
            self.own.add(target)
        result = self.emit(kind, [target, *(self.argument(part) for part in rest[1:])], TENSOR)
        self.own.add(result)
        self.mark(result, True)

    def list(self, depth: int) -> None:
        kind, given, *rest = self.choose(LIST_KINDS)
        self.emit(kind, [self.argument(part) for part in rest], *([given] if given else []))

    def dict(self, depth: int) -> None:
        table = self.any(DICT)
        key = self.any(STR)
        self.emit("aten::_set_item.str", [table, key, self.any(TENSOR)])
        self.emit("aten::__getitem__.Dict_str", [table, key], TENSOR)

    def tuple(self, depth: int) -> None:
        pair = self.any(PAIR)
        if self.draw(st.booleans()):
            self.emit("prim::TupleIndex", [pair], TENSOR, attrs={"index": 1})
        else:
            self.emit("prim::TupleUnpack", [pair], INT, TENSOR)

    def again(self, depth: int) -> None:
        """Something that has been computed before."""
        visible = set(self.scope)
        known = [n for n in self.emitted if set(n.inputs) <= visible]
        if known:
            node = self.choose(known[-10:])
            self.emit(node.kind, list(node.inputs), *(v.type for v in node.outputs))
            if node.outputs[0] in self.square:
                self.square.add(self.scope[-1])

    def maybe(self, depth: int) -> None:
        """`if m is None: a else: m + 1`, with the cast that the frontend writes."""
        value = self.any(MAYBE)
        known = self.emit("aten::__is__", [value, self.constant(None, NONE)], BOOL)
        node = self.graph.emit("prim::If", [known])
        empty, full = node.add_block(), node.add_block()
        before = len(self.scope)
        with self.graph.inserting(at_end=empty):
            empty.set_returns([self.any(INT)])
        del self.scope[before:]
        with self.graph.inserting(at_end=full):
            number = self.graph.emit("prim::unchecked_cast", [value], [INT]).output
            full.set_returns(
                [self.graph.emit("aten::add.int", [number, self.constant(1)], [INT]).output]
            )
        self.scope.append(node.add_output(INT))

    def cast(self, depth: int) -> None:
        dtype = self.choose([weft.float32, weft.float64, weft.int64])
        false, none = self.constant(False), self.constant(None, ir.optional_of(ir.MEMORY_FORMAT))
        self.emit(
            "aten::to.dtype", [self.any(TENSOR), self.constant(dtype), false, false, none], TENSOR
        )

    def effect(self, depth: int) -> None:
        if self.draw(st.integers(0, 5)) or depth < 2:
            if self.prints:
                self.graph.emit("prim::Print", [self.any(INT), self.any(BOOL)])
        else:
            self.graph.emit(
                "prim::RaiseException", [self.any(STR)], (), {"exception": "ValueError"}
            )

    def branch(self, depth: int) -> None:
        node = self.graph.emit("prim::If", [self.any(BOOL)])
        types = self.draw(st.lists(st.sampled_from(RETURNED), max_size=3))
        for _ in range(2):
            block, before = node.add_block(), len(self.scope)
            self.statements(block, depth + 1)
            with self.graph.inserting(at_end=block):
                block.set_returns([self.any(t) for t in types])
            del self.scope[before:]
        self.joined(node, [block.returns for block in node.blocks], types)

    def joined(self, node: ir.Node, returned: list[Any], types: list[Type]) -> None:
        """Outputs of an If or a loop: likely what all their sources are."""
        for index, type_ in enumerate(types):
            output = node.add_output(type_)
            self.scope.append(output)
            for likely in (self.square, self.own):
                if type_ == TENSOR and all(values[index] in likely for values in returned):
                    likely.add(output)

    def loop(self, depth: int) -> None:
        types = self.draw(st.lists(st.sampled_from(RETURNED), max_size=3))
        trips = (
            self.constant(self.draw(st.integers(-1, 4)))
            if self.draw(st.booleans())
            else self.any(INT)
        )
        start = self.constant(True) if self.draw(st.booleans()) else self.any(BOOL)
        node = self.graph.emit("prim::Loop", [trips, start, *(self.any(t) for t in types)])
        body, before = node.add_block(), len(self.scope)
        self.scope.append(body.add_param(INT, "i"))
        params = [body.add_param(t) for t in types]
        self.scope.extend(params)
        for value, param in zip(node.inputs[2:], params):
            for likely in (self.square, self.own):
                if value in likely:
                    likely.add(param)
        self.statements(body, depth + 1)
        with self.graph.inserting(at_end=body):
            again = self.constant(True) if self.draw(st.integers(0, 2)) else self.any(BOOL)
            body.set_returns([again, *(self.any(t) for t in types)])
        del self.scope[before:]
        self.joined(node, [node.inputs[2:], body.returns[1:]], types)


INVOLUTIONS = [
    ("aten::t",),
    ("aten::transpose.int", 0, 1),
    ("aten::permute", [1, 0]),
    ("aten::neg",),
]
IDENTITIES = [
    ("aten::add.Scalar", TENSOR, 0, 1), ("aten::mul.Scalar", TENSOR, 1), ("aten::mul.Scalar", TENSOR, 1.0), ("aten::div.Scalar", TENSOR, 1),
    ("aten::add.float", FLOAT, 0.0), ("aten::mul.float", FLOAT, 0.0), ("aten::sub.float", FLOAT, 0.0), ("aten::add.float", FLOAT, -0.0),
    ("aten::add.int", INT, 0), ("aten::mul.int", INT, 0), ("aten::eq.bool", BOOL, True), ("aten::relu", TENSOR),
]  # fmt: skip
ONE, MEMORY = 1, (None, ir.optional_of(ir.MEMORY_FORMAT))
NUMBER_KINDS = [
    ("aten::add.int", INT, INT, INT), ("aten::sub.int", INT, INT, INT), ("aten::mul.int", INT, INT, INT),
    ("aten::floordiv.int", INT, INT, INT), ("aten::neg.int", INT, INT), ("prim::min.int", INT, INT, INT),
    ("aten::add.float", FLOAT, FLOAT, FLOAT), ("aten::mul.float", FLOAT, FLOAT, FLOAT), ("aten::sub.float", FLOAT, FLOAT, FLOAT),
    ("aten::div.float", FLOAT, 2.0, FLOAT), ("aten::neg.float", FLOAT, FLOAT), ("aten::Float.int", INT, FLOAT),
    ("aten::lt.int", INT, INT, BOOL), ("aten::eq.int", INT, INT, BOOL), ("aten::ge.float", FLOAT, FLOAT, BOOL),
    ("aten::__not__", BOOL, BOOL), ("aten::__and__.bool", BOOL, BOOL, BOOL), ("aten::__or__.bool", BOOL, BOOL, BOOL),
    ("aten::eq.bool", BOOL, BOOL, BOOL), ("aten::ne.int", INT, INT, BOOL),
]  # fmt: skip
TENSOR_KINDS = [
    ("aten::add.Tensor", TENSOR, TENSOR, ONE), ("aten::sub.Tensor", TENSOR, TENSOR, ONE), ("aten::mul.Tensor", TENSOR, TENSOR),
    ("aten::add.Scalar", TENSOR, INT, ONE), ("aten::mul.Scalar", TENSOR, FLOAT), ("aten::neg", TENSOR), ("aten::relu", TENSOR),
    ("aten::sin", TENSOR), ("aten::tanh", TENSOR), ("aten::matmul", TENSOR, TENSOR), ("aten::gt.Scalar", TENSOR, FLOAT),
    ("aten::sum", TENSOR, (None, ir.optional_of(ir.DTYPE))), ("aten::sum.dim_IntList", TENSOR, [0], True, (None, ir.optional_of(ir.DTYPE))),
    ("aten::clone", TENSOR, MEMORY), ("aten::cat", TENSORS, 0), ("aten::stack", TENSORS, 0), ("aten::softmax.int", TENSOR, 0, (None, ir.optional_of(ir.DTYPE))),
    ("aten::softmax.int", TENSOR, -1, (None, ir.optional_of(ir.DTYPE))), ("aten::log_softmax.int", TENSOR, 1, (None, ir.optional_of(ir.DTYPE))),
    ("aten::sum.dim_IntList", TENSOR, [-1], True, (None, ir.optional_of(ir.DTYPE))), ("aten::mean.dim", TENSOR, [1], True, (None, ir.optional_of(ir.DTYPE))),
    ("aten::amax", TENSOR, [-1], True), ("aten::mean", TENSOR, (None, ir.optional_of(ir.DTYPE))), ("aten::sum.dim_IntList", TENSOR, [-1], False, (None, ir.optional_of(ir.DTYPE))),
    ("aten::layer_norm", TENSOR, [3], (None, ir.optional_of(TENSOR)), (None, ir.optional_of(TENSOR)), 1e-5, False),
    ("aten::where.self", TENSOR, TENSOR, TENSOR), ("aten::maximum", TENSOR, TENSOR),
]  # fmt: skip
VIEW_KINDS = [
    ("aten::t", TENSOR), ("aten::transpose.int", TENSOR, 0, 1), ("aten::transpose.int", TENSOR, 0, -1), ("aten::permute", TENSOR, [1, 0]),
    ("aten::unsqueeze", TENSOR, 0), ("aten::squeeze.dim", TENSOR, 0), ("aten::reshape", TENSOR, [3, 3]), ("aten::flatten.using_ints", TENSOR, 0, -1),
    ("aten::reshape", TENSOR, [-1, 3]), ("aten::select.int", TENSOR, 0, INT), ("aten::expand", TENSOR, [3, 3], False),
    ("aten::detach", TENSOR), ("aten::contiguous", TENSOR, weft.contiguous_format), ("aten::slice.Tensor", TENSOR, 0, (0, MAYBE), (2, MAYBE), 1),
]  # fmt: skip
SHRINKING = {
    "aten::sum",
    "aten::sum.dim_IntList",
    "aten::mean",
    "aten::mean.dim",
    "aten::amax",
    "aten::cat",
    "aten::stack",
}
KEEPING = {
    "aten::t",
    "aten::transpose.int",
    "aten::permute",
    "aten::reshape",
    "aten::expand",
    "aten::detach",
    "aten::contiguous",
}
QUERY_KINDS = [
    ("aten::size.int", INT, TENSOR, 0), ("aten::size.int", INT, TENSOR, -1), ("aten::dim", INT, TENSOR), ("aten::numel", INT, TENSOR),
    ("aten::is_floating_point", BOOL, TENSOR), ("aten::size", INTS, TENSOR), ("prim::requires_grad", BOOL, TENSOR),
]  # fmt: skip
WRITE_KINDS = [
    ("aten::add_.Tensor", TENSOR, TENSOR, ONE), ("aten::mul_.Scalar", TENSOR, FLOAT), ("aten::relu_", TENSOR), ("aten::neg_", TENSOR),
    ("aten::t_", TENSOR), ("aten::zero_", TENSOR), ("aten::copy_", TENSOR, TENSOR, False),
]  # fmt: skip
LIST_KINDS = [
    ("aten::append.t", TENSORS, TENSORS, TENSOR), ("aten::append.t", INTS, INTS, INT), ("aten::len.t", INT, TENSORS), ("aten::len.t", INT, INTS),
    ("aten::__getitem__.t", TENSOR, TENSORS, INT), ("aten::__getitem__.t", TENSOR, TENSORS, 0), ("aten::__getitem__.t", INT, INTS, 0),
    ("aten::_set_item.t", INTS, INTS, 0, INT), ("aten::_set_item.t", TENSORS, TENSORS, 0, TENSOR), ("aten::add.t", TENSORS, TENSORS, TENSORS),
    ("aten::slice.t", TENSORS, TENSORS, (0, MAYBE), (1, MAYBE), 1), ("aten::reverse.t", None, TENSORS),
]  # fmt: skip


@st.composite
def graphs(draw: Callable[..., Any], size: int = 40, prints: bool = True) -> Graph:
    """A program of about `size` statements at most. Verified."""
    graph = Writer(draw, size, prints).whole(shapes=draw(st.booleans()))
    ir.verify(graph, schemas.of)
    return graph


# ---- running ----


def arguments(seed: int) -> list[Any]:
    """Arguments for the inputs of every program. x and y take gradients."""
    weft.manual_seed(seed)
    x, y = weft.randn(3, 3), weft.randn(3, 3)
    x.requires_grad_()
    y.requires_grad_()
    xs = [weft.randn(3, 3), x.detach()]  # shares memory with x, but no gradients
    return [x, y, seed % 4, [0.5, -0.0, 2.0][seed % 3], seed % 2 == 0, xs]


class Copies(dict):
    """Numbers of memory for runs that copy lists on their way in and out: lists have no identity."""


def outcome(
    graph: Graph, seed: int, runner: Any = None, gradients: bool = True, copies: bool = False
) -> Any:
    """All that can be seen of a run: results or error, what was printed, what became of the
    arguments, which results share memory, gradients. Equal for equal runs, to the last bit.

    `runner` has `run(graph, args) -> (result,)` and `printed`; `copies` says that it copies lists,
    so that what became of list arguments, and which lists are the same, does not count.
    """
    args = arguments(seed)
    runner = runner or Evaluator()
    seen: dict[int, int] = Copies() if copies else {}
    shown_args = [a for a in args if not (copies and isinstance(a, list))]
    with weft.set_grad_enabled(gradients):
        try:
            (result,) = runner.run(graph, args)
        except TimeoutError:
            raise
        except Exception as error:
            kind = error.kind if isinstance(error, ScriptError) else type(error).__name__
            return ("raises", kind, runner.printed, picture(shown_args, seen))
        shown = picture([*shown_args, result], seen)
        return ("returns", runner.printed, shown, backward(result, args) if gradients else None)


def picture(value: Any, seen: dict[int, int]) -> Any:
    """A value to the last bit. Tensors and lists are numbered by memory, in order of appearance."""
    if isinstance(value, weft.Tensor):
        memory = -1
        if value.numel():
            memory = seen.setdefault(value.untyped_storage().data_ptr(), len(seen))
        strides = value.stride() if value.numel() > 1 else ()
        flags = (value.requires_grad, value.is_leaf, value.storage_offset(), strides)
        return (memory, str(value.dtype), tuple(value.shape), flags, _bits(value))
    if isinstance(value, list):
        number = 0 if isinstance(seen, Copies) else seen.setdefault(id(value), len(seen))
        return [number, *(picture(item, seen) for item in value)]
    if isinstance(value, (tuple, set)):
        return tuple(picture(item, seen) for item in value)
    if isinstance(value, dict):
        return {key: picture(item, seen) for key, item in value.items()}
    return (type(value).__name__, repr(value))


def _bits(tensor: Any) -> bytes:
    """The elements to the last bit, all kinds of NaN made one."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype.is_floating_point and bool((tensor != tensor).any()):
        mask = (tensor != tensor).contiguous().numpy().tobytes()
        return mask + tensor.nan_to_num(0.0).contiguous().numpy().tobytes()
    return tensor.numpy().tobytes()


def tensors_of(value: Any) -> list[Any]:
    if isinstance(value, weft.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors_of(item)]
    return []


def backward(result: Any, args: list[Any]) -> Any:
    """Gradients of the arguments, of a sum of everything that has gradients, in order."""
    outputs = [t for t in tensors_of(result) if t.requires_grad and t.dtype.is_floating_point]
    leaves = [a for a in args[:2] if a.requires_grad]
    if not outputs:
        return None
    weights = [
        weft.linspace(0.5, 1.5, max(t.numel(), 1), dtype=t.dtype)[: t.numel()].reshape(t.shape)
        for t in outputs
    ]
    try:
        grads = weft.autograd.grad(outputs, leaves, weights, allow_unused=True)
    except RuntimeError as error:
        return ("raises", str(error)[:40])
    # Not their strides: a group of fused operators may lay out a gradient in another order.
    return Sums(grads)


class Sums:
    """Gradients: equal up to the order of addition."""

    def __init__(self, grads: Any) -> None:
        self.grads = list(grads)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sums):
            return NotImplemented
        try:
            for got, wanted in zip(self.grads, other.grads, strict=True):
                assert_same_sums(got, wanted)
        except (AssertionError, ValueError):
            return False
        return True

    def __repr__(self) -> str:
        return repr(self.grads)

"""Random graphs run by the interpreter and by the oracle: the same results, bit for bit.

The graphs are made to be hard on registers: values carried by loops in changed order, branches that hand
on values from outside, values used once, twice, never.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
from jit.evaluate import evaluate
from weft.jit.codegen import compile_program
from weft.jit.ir import Function, Graph, Value, verify
from weft.jit.ir import types as ty

MOST_INT = 1 << 20


class Maker:
    """Makes one graph from a seed. Values in scope are lists by type."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.graph = Graph()
        self.budget = self.random.randint(5, 60)
        self.scope: dict[Any, list[Value]] = {
            t: [self.graph.add_input(t, name) for name in names]
            for t, names in ((ty.TENSOR, "xy"), (ty.INT, "mn"), (ty.FLOAT, "f"), (ty.BOOL, "b"))
        }
        self.scope[ty.OptionalType(ty.TENSOR)] = []
        self.scope[ty.ListType(ty.INT)] = []

    def make(self) -> Graph:
        self.statements(0)
        types = [ty.TENSOR, ty.INT, ty.INT, ty.FLOAT, ty.BOOL, ty.ListType(ty.INT)]
        values = [self.value(t) for t in types]
        t = ty.TupleType(tuple(types))
        result = self.emit("prim::TupleConstruct", values, t)
        self.graph.block.set_returns([result])
        return self.graph

    def emit(self, kind: str, inputs: list[Value], t: Any) -> Value:
        return self.graph.emit(kind, inputs, [t]).output

    def constant(self, value: Any) -> Value:
        return self.graph.constant(value)

    def value(self, t: Any) -> Value:
        """One in scope, or a constant."""
        pick = self.random
        if t == ty.ListType(ty.INT) and (not self.scope[t] or pick.random() < 0.2):
            items = [self.value(ty.INT) for _ in range(pick.randint(1, 3))]
            return self.emit("prim::ListConstruct", items, t)
        if t == ty.OptionalType(ty.TENSOR) and not self.scope[t]:
            return self.value(ty.TENSOR) if pick.random() < 0.5 else self.constant(None)
        plain = t in (ty.INT, ty.FLOAT, ty.BOOL)
        if self.scope[t] and (not plain or pick.random() < 0.8):
            # Late values more often: they make chains.
            values = self.scope[t]
            return values[-1] if pick.random() < 0.4 else pick.choice(values)
        return self.constant(
            {ty.INT: pick.randint(-3, 9), ty.FLOAT: pick.choice([0.5, -1.25, 3.0]),
             ty.BOOL: pick.random() < 0.5}[t]
        )  # fmt: skip

    def statements(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 7)):
            self.budget -= 1
            if self.budget < 0:
                return
            choices = [self.number, self.number, self.comparison, self.tensor, self.list]
            if depth < 3:
                choices += [self.branch, self.branch, self.loop, self.optional]
            self.random.choice(choices)(depth)

    def add(self, value: Value) -> None:
        self.scope[value.type].append(value)

    def number(self, depth: int) -> None:
        pick = self.random
        if pick.random() < 0.6:
            kind = pick.choice(["aten::add.int", "aten::sub.int", "prim::min.int", "prim::max.int"])
            value = self.emit(kind, [self.value(ty.INT), self.value(ty.INT)], ty.INT)
            # Small, so that nothing overflows.
            bound = self.constant(MOST_INT)
            self.add(self.emit("aten::remainder.int", [value, bound], ty.INT))
        elif pick.random() < 0.7:
            kind = pick.choice(["aten::add.float", "aten::sub.float", "aten::mul.float"])
            self.add(self.emit(kind, [self.value(ty.FLOAT), self.value(ty.FLOAT)], ty.FLOAT))
        else:
            self.add(self.emit("aten::neg.int", [self.value(ty.INT)], ty.INT))

    def comparison(self, depth: int) -> None:
        pick = self.random
        name = pick.choice(["lt", "le", "gt", "ge", "eq", "ne"])
        t = pick.choice([ty.INT, ty.FLOAT])
        value = self.emit(f"aten::{name}.{t}", [self.value(t), self.value(t)], ty.BOOL)
        if pick.random() < 0.3:
            value = self.emit("aten::__not__", [value], ty.BOOL)
        self.add(value)

    def tensor(self, depth: int) -> None:
        pick, one = self.random, self.constant(1)
        if pick.random() < 0.4:
            inputs = [self.value(ty.TENSOR), self.value(ty.TENSOR), one]
            self.add(self.emit("aten::add.Tensor", inputs, ty.TENSOR))
        elif pick.random() < 0.5:
            inputs = [self.value(ty.TENSOR), self.value(pick.choice([ty.INT, ty.FLOAT])), one]
            self.add(self.emit("aten::sub.Scalar", inputs, ty.TENSOR))
        else:
            self.add(self.emit("aten::tanh", [self.value(ty.TENSOR)], ty.TENSOR))

    def list(self, depth: int) -> None:
        value = self.value(ty.ListType(ty.INT))
        if self.random.random() < 0.5:
            self.add(self.emit("aten::len.t", [value], ty.INT))
        else:
            self.add(self.emit("aten::__getitem__.t", [value, self.constant(0)], ty.INT))
        if value not in self.scope[value.type]:
            self.add(value)

    def condition(self) -> Value:
        if self.random.random() < 0.5:
            self.comparison(0)
            return self.scope[ty.BOOL][-1]
        return self.value(ty.BOOL)

    def inside(self, block: Any, depth: int, types: list[Any]) -> list[Value]:
        """Statements in a block, and values of the types to return."""
        saved = {t: list(values) for t, values in self.scope.items()}
        with self.graph.inserting(at_end=block):
            for param in block.params:
                self.add(param)
            self.statements(depth + 1)
            values = [self.value(t) for t in types]
        self.scope = saved
        return values

    def types(self) -> list[Any]:
        every = [ty.TENSOR, ty.INT, ty.FLOAT, ty.BOOL, ty.ListType(ty.INT)]
        return [self.random.choice(every) for _ in range(self.random.randint(0, 3))]

    def branch(self, depth: int) -> None:
        types = self.types()
        node = self.graph.emit("prim::If", [self.condition()], types)
        for _ in range(2):
            block = node.add_block()
            block.set_returns(self.inside(block, depth, types))
        for value in node.outputs:
            self.add(value)

    def loop(self, depth: int) -> None:
        types = self.types()
        endless = self.random.random() < 0.4
        trips = self.constant((1 << 63) - 1 if endless else self.random.randint(0, 4))
        start = self.constant(True) if self.random.random() < 0.7 else self.condition()
        initial = [self.value(t) for t in types]
        if endless:
            types, initial = [ty.INT, *types], [self.constant(0), *initial]
        node = self.graph.emit("prim::Loop", [trips, start, *initial], types)
        block = node.add_block()
        block.add_param(ty.INT, "i")
        for t in types:
            block.add_param(t)
        values = self.inside(block, depth, types)
        with self.graph.inserting(at_end=block):
            if endless:
                # A counter of its own, which nothing else changes, ends it.
                values[0] = self.emit("aten::add.int", [block.params[1], self.constant(1)], ty.INT)
                limit = self.constant(self.random.randint(1, 4))
                again = self.emit("aten::lt.int", [values[0], limit], ty.BOOL)
            else:
                again = self.constant(True) if self.random.random() < 0.6 else self.constant(False)
        block.set_returns([again, *values])
        for value in node.outputs:
            self.add(value)

    def optional(self, depth: int) -> None:
        """A branch that gives a tensor or None, and one that asks which."""
        t = ty.OptionalType(ty.TENSOR)
        node = self.graph.emit("prim::If", [self.condition()], [t])
        for give in (True, False):
            block = node.add_block()
            with self.graph.inserting(at_end=block):
                block.set_returns([self.value(ty.TENSOR) if give else self.constant(None)])
        self.add(node.output)
        value = self.value(t)
        kind = self.random.choice(["aten::__is__", "aten::__isnot__"])
        test = self.emit(kind, [value, self.constant(None)], ty.BOOL)
        known = self.graph.emit("prim::If", [test], [ty.TENSOR])
        for is_none in (kind == "aten::__is__", kind != "aten::__is__"):
            block = known.add_block()
            with self.graph.inserting(at_end=block):
                plain = (
                    self.value(ty.TENSOR) if is_none or value.is_constant
                    else self.emit("prim::unchecked_cast", [value], ty.TENSOR)
                )  # fmt: skip
                block.set_returns([plain])
        self.add(known.output)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, weft.Tensor):
        return a.dtype == b.dtype and weft.equal(weft.nan_to_num(a), weft.nan_to_num(b))
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or a != a)


def check(seed: int) -> None:
    graph = Maker(seed).make()
    verify(graph)
    program = compile_program([Function("f", graph, [v.name for v in graph.inputs])])
    function = program.function("f")
    for m, n, b in ((0, 3, True), (2, -1, False)):
        x, y = weft.tensor([1.5, -2.0, 0.25]), weft.tensor([4.0, 0.5, 1.0])
        wanted = evaluate(graph, x, y, m, n, 0.75, b)
        got = function(x, y, m, n, 0.75, b)
        assert same(got, wanted), f"{graph}\n{got}\n{wanted}"


@pytest.mark.parametrize("block", range(8))
def test_seeds(block: int) -> None:
    for seed in range(block * 25, block * 25 + 25):
        check(seed)


@examples(100)
@given(st.integers(min_value=1000))
def test_random(seed: int) -> None:
    check(seed)

"""map, filter, reduce, prod, chain, product: builtins that take functions or iterables."""

from __future__ import annotations

import builtins as python
import functools
import itertools
import math

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.iteration import Chain, Counted, Gathered, Mapped
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import builtin
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import Call, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty


@builtin(python.map, takes=(2, 64))
def _map(c: Compiler, call: Call) -> Sugared:
    return Mapped(c, call.args[0].value, [arg.value for arg in call.args[1:]])


@builtin(python.filter, takes=2)
def _filter(c: Compiler, call: Call) -> Sugared:
    test, items = call.args[0].value, c.as_list(call.args[1].value, call.range)
    if isinstance(test, Simple) and test.v.type is ty.NONE:
        passed = c.call(prelude.true_items, call.range, items)
    else:
        passed = c.call(prelude.items_that, call.range, test, items)
    return Gathered(c, "a filter", passed)


@builtin(functools.reduce, takes=(2, 3))
def _reduce(c: Compiler, call: Call) -> Sugared:
    items = c.as_list(call.args[1].value, call.range)
    if len(call.args) == 3:
        return c.call(prelude.fold, call.range, call.args[0].value, items, call.args[2].value)
    return c.call(prelude.fold_all, call.range, call.args[0].value, items)


@builtin(math.prod, takes=1, keywords=("start",))
def _prod(c: Compiler, call: Call) -> Sugared:
    items = c.as_list(call.args[0].value, call.range)
    if "start" in call.kwargs:
        return c.call(prelude.product, call.range, items, call.kwargs["start"].value)
    type = items.v.type if isinstance(items, Simple) else None
    is_float = isinstance(type, ty.ListType) and type.elem is ty.FLOAT
    return c.call(prelude.product, call.range, items, Simple(c.constant(1.0 if is_float else 1)))


@builtin(itertools.chain)
def _chain(c: Compiler, call: Call) -> Sugared:
    call.expect_no_keywords("chain")
    return Chain(c, [arg.value for arg in call.args])


@builtin(itertools.product, takes=2)
def _product(c: Compiler, call: Call) -> Sugared:
    left, right = (c.iterate(arg.value, call.range) for arg in call.args)
    if not isinstance(left, Counted) and not isinstance(right, Counted):
        known = TupleLiteral([TupleLiteral([x, y]) for x in left for y in right])
        return Gathered(c, "a product", known)
    lists = [c.as_list(arg.value, call.range) for arg in call.args]
    return Gathered(c, "a product", c.call(prelude.pairs, call.range, *lists))


for _name in ("permutations", "combinations", "groupby", "islice", "repeat", "count", "cycle",
              "accumulate", "starmap", "takewhile", "dropwhile", "zip_longest"):  # fmt: skip

    def _refused(c: Compiler, call: Call, name: str = _name) -> Sugared:
        fail(
            f"itertools.{name}: expected a function of the language, got itertools.{name}",
            call.range,
            "a loop that builds a list",
        )

    builtin(getattr(itertools, _name))(_refused)

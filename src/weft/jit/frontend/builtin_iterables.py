"""map, filter, reduce, prod, chain, product: builtins that take functions or iterables."""

from __future__ import annotations

import builtins as python
import functools
import itertools
import math

from weft.jit.frontend import written
from weft.jit.frontend.builtins import as_list, handles
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.iteration import Chain, Counted, Gathered, Mapped, iterate
from weft.jit.frontend.sugared import Call, Simple, Sugared, TupleLiteral
from weft.jit.frontend.written import call_written
from weft.jit.ir import types as ty


@handles(python.map)
def _map(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("map")
    call.expect_count("map", 2, 64)
    return Mapped(e, call.args[0].value, [arg.value for arg in call.args[1:]])


@handles(python.filter)
def _filter(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("filter")
    call.expect_count("filter", 2, 2)
    test, items = call.args[0].value, as_list(e, call.args[1].value, call.range)
    if isinstance(test, Simple) and test.v.type is ty.NONE:
        passed = call_written(e, written.true_items, call.range, items)
    else:
        passed = call_written(e, written.items_that, call.range, test, items)
    return Gathered(e, "a filter", passed)


@handles(functools.reduce)
def _reduce(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("reduce")
    call.expect_count("reduce", 2, 3)
    items = as_list(e, call.args[1].value, call.range)
    if len(call.args) == 3:
        return call_written(
            e, written.fold, call.range, call.args[0].value, items, call.args[2].value
        )
    return call_written(e, written.fold_all, call.range, call.args[0].value, items)


@handles(math.prod)
def _prod(e: Emitter, call: Call) -> Sugared:
    call.expect_count("prod", 1, 1)
    call.expect_no_keywords("prod", "start")
    items = as_list(e, call.args[0].value, call.range)
    if "start" in call.kwargs:
        return call_written(e, written.product, call.range, items, call.kwargs["start"].value)
    type = items.v.type if isinstance(items, Simple) else None
    is_float = isinstance(type, ty.ListType) and type.elem is ty.FLOAT
    return call_written(
        e, written.product, call.range, items, Simple(e.constant(1.0 if is_float else 1))
    )


@handles(itertools.chain)
def _chain(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("chain")
    return Chain(e, [arg.value for arg in call.args])


@handles(itertools.product)
def _product(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("product")
    call.expect_count("product", 2, 2)
    left, right = (iterate(e, arg.value, call.range) for arg in call.args)
    if not isinstance(left, Counted) and not isinstance(right, Counted):
        known = TupleLiteral([TupleLiteral([x, y]) for x in left for y in right])
        return Gathered(e, "a product", known)
    lists = [as_list(e, arg.value, call.range) for arg in call.args]
    return Gathered(e, "a product", call_written(e, written.pairs, call.range, *lists))


for _name in ("permutations", "combinations", "groupby", "islice", "repeat", "count", "cycle",
              "accumulate", "starmap", "takewhile", "dropwhile", "zip_longest"):  # fmt: skip

    def _refused(e: Emitter, call: Call, name: str = _name) -> Sugared:
        fail(
            f"itertools.{name}: expected a function of the language, got itertools.{name}",
            call.range,
            "a loop that builds a list",
        )

    handles(getattr(itertools, _name))(_refused)

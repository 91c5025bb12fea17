"""map, filter, reduce, prod, chain, product: builtins that take functions or iterables."""

from __future__ import annotations

import builtins as python
import functools
import itertools
import math
from typing import Any

from weft.jit.frontend import written
from weft.jit.frontend.builtins import as_list, count, handles, no_keywords
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.iteration import Chain, Counted, Filtered, Mapped, iterate
from weft.jit.frontend.sugared import Simple, Sugared, TupleLiteral
from weft.jit.frontend.written import call_written
from weft.jit.ir import types as ty
from weft.jit.ir.source import SourceRange


@handles(python.map)
def _map(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    no_keywords("map", range, kwargs)
    count("map", range, args, 2, 64)
    return Mapped(args[0].value, [arg.value for arg in args[1:]])


@handles(python.filter)
def _filter(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    no_keywords("filter", range, kwargs)
    count("filter", range, args, 2, 2)
    test, items = args[0].value, as_list(e, args[1].value, range)
    if isinstance(test, Simple) and test.v.type is ty.NONE:
        return Filtered(call_written(e, written.true_items, range, items))
    return Filtered(call_written(e, written.items_that, range, test, items))


@handles(functools.reduce)
def _reduce(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    no_keywords("reduce", range, kwargs)
    count("reduce", range, args, 2, 3)
    items = as_list(e, args[1].value, range)
    if len(args) == 3:
        return call_written(e, written.fold, range, args[0].value, items, args[2].value)
    return call_written(e, written.fold_all, range, args[0].value, items)


@handles(math.prod)
def _prod(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    count("prod", range, args, 1, 1)
    no_keywords("prod", range, {k: v for k, v in kwargs.items() if k != "start"})
    items = as_list(e, args[0].value, range)
    if "start" in kwargs:
        return call_written(e, written.product, range, items, kwargs["start"].value)
    type = items.v.type if isinstance(items, Simple) else None
    is_float = isinstance(type, ty.ListType) and type.elem is ty.FLOAT
    return call_written(
        e, written.product, range, items, Simple(e.constant(1.0 if is_float else 1))
    )


@handles(itertools.chain)
def _chain(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    no_keywords("chain", range, kwargs)
    return Chain([arg.value for arg in args])


@handles(itertools.product)
def _product(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    no_keywords("product", range, kwargs)
    count("product", range, args, 2, 2)
    left, right = (iterate(e, arg.value, range) for arg in args)
    if not isinstance(left, Counted) and not isinstance(right, Counted):
        return TupleLiteral([TupleLiteral([x, y]) for x in left for y in right])
    lists = [as_list(e, arg.value, range) for arg in args]
    return call_written(e, written.pairs, range, *lists)


for _name in ("permutations", "combinations", "groupby", "islice", "repeat", "count", "cycle",
              "accumulate", "starmap", "takewhile", "dropwhile", "zip_longest"):  # fmt: skip

    def _refused(
        e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any, name: str = _name
    ) -> Sugared:
        fail(
            f"itertools.{name}: expected a function of the language, got itertools.{name}",
            range,
            "a loop that builds a list",
        )

    handles(getattr(itertools, _name))(_refused)

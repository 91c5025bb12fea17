"""Lists. Indices and slices follow Python: from the end when negative, IndexError outside."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from weft._ops.builtins.reference import int64
from weft._ops.builtins.rows import builtin as _builtin

builtin = partial(_builtin, family="lists")


def _then(action: Callable[..., Any]) -> Callable[..., Any]:
    """The action on the first argument, which is the result."""

    def call(first: Any, *rest: Any) -> Any:
        action(first, *rest)
        return first

    return call


builtin("len.t(t[] a) -> int", "list_len(a)", len, "How many items.", ("total", "length"))
builtin("len.any(Any[] a) -> int", "list_len(a)", len, "How many items.", ("total", "length"))
builtin(
    "append.t(t[](a!) self, t(c -> *) el) -> t[](a!)", "list_append_item", _then(list.append),
    "Adds an item at the end.", ("append",),
)  # fmt: skip
builtin(
    "extend.t(t[](a!) self, t[] other) -> ()", "list_extend", list.extend,
    "Adds the items of another list at the end.",
)  # fmt: skip
builtin(
    "insert.t(t[](a!) self, int idx, t(b -> *) el) -> ()", "list_insert", list.insert,
    "Adds an item before the one at `idx`.",
)  # fmt: skip
builtin("pop.t(t[](a!) self, int idx=-1) -> t(*)", "list_pop", list.pop, "Takes an item out.")
builtin("clear.t(t[](a!) self) -> ()", "list_clear", list.clear, "Takes every item out.")
builtin("reverse.t(t[](a!) self) -> ()", "list_reverse", list.reverse, "Last item first.")
builtin(
    "copy.t(t[](a) self) -> t[]", "list_copy", list, "A new list of the same items.", ("total",)
)
builtin("list.t(t[] l) -> t[]", "list_copy", list, "A new list of the same items.", ("total",))
builtin("list(str t) -> str[]", "str_characters", list, "The characters of a string.", ("total",))
builtin(
    "__getitem__.t(t[](a) list, int idx) -> t(*)", "list_get(a, b)", operator.getitem,
    "The item at `idx`.", ("item",),
)  # fmt: skip
builtin(
    "select.t(t[](a) list, int idx) -> t(*)", "list_get(a, b)", operator.getitem,
    "The item at `idx`.", ("item",),
)  # fmt: skip
builtin(
    "_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)", "list_set_item",
    _then(operator.setitem), "Puts another item at `idx`.",
)  # fmt: skip
builtin(
    "Delete.t(t[](a!) self, int idx) -> ()", "list_delete", operator.delitem,
    "Takes the item at `idx` out.",
)  # fmt: skip
builtin(
    "slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]", "list_slice",
    lambda items, start=None, end=None, step=1: items[start:end:step],
    "l[start:end:step], a new list.",
)  # fmt: skip
builtin("add.t(t[] a, t[] b) -> t[]", "list_add", operator.add, "A list of the items of both.")
builtin(
    "add_.t(t[](a!) self, t[] b) -> t[]", "list_add_", _then(list.extend),
    "Adds the items of b at the end.",
)  # fmt: skip
builtin("mul.left_t(t[] l, int n) -> t[]", "list_mul", operator.mul, "The items n times over.")
builtin(
    "mul.right_(int n, t[] l) -> t[]", "list_mul(b, a)", operator.mul, "The items n times over."
)
builtin(
    "mul_.t(t[](a!) l, int n) -> t[](a!)", "list_mul_", operator.imul, "The items n times over."
)
builtin("Size(int[] sizes) -> int[]", "list_copy", list, "A new list of the same sizes.")
builtin("prim::rangelist(int n) -> int[]", "range_list", lambda n: list(range(n)), "0 to n - 1.")


# TorchScript has a row for each type of elements; `t` covers the rest.
_TYPED = ("int", "float", "bool", "str", "Tensor", "t")
for _type in _TYPED:
    builtin(
        f"remove.{_type}({_type}[](a!) self, {_type} el) -> ()", "list_remove", list.remove,
        "Takes the first equal item out; ValueError where there is none.",
    )  # fmt: skip
    _prefix = "" if _type in ("Tensor", "t") else "list_"
    builtin(
        f"index.{'list_Tensor' if _type == 'Tensor' else _prefix + _type}"
        f"({_type}[] self, {_type} el) -> int", "list_index", list.index,
        "The place of the first equal item; ValueError where there is none.",
    )  # fmt: skip
    builtin(
        f"count.{_type}({_type}[] self, {_type} el) -> int", "list_count", list.count,
        "How many items are equal.",
    )  # fmt: skip
    _any = "any" if _type == "t" else _type
    builtin(
        f"sort.{_any}({_type}[](a!) self, bool reverse=False) -> ()", "list_sort",
        lambda self, reverse=False: self.sort(reverse=reverse), "Smallest first; stable.",
    )  # fmt: skip
    if _type != "Tensor":
        builtin(
            f"sorted.{_any}({_type}[](a) {'self' if _type == 't' else 'input'}) -> {_type}[]",
            "list_sorted", sorted, "A new list, smallest first; stable.",
        )  # fmt: skip
    if _type not in ("t", "bool"):
        builtin(
            f"__contains__.{_type}_list({_type}[] l, {_type} item) -> bool", "list_contains",
            operator.contains, "Whether an item is equal.",
        )  # fmt: skip
builtin(
    "__contains__.t(t[] l, t item) -> bool", "list_contains", operator.contains,
    "Whether an item is equal.",
)  # fmt: skip

for _type in ("int", "float", "bool"):
    for _name, _function in (("min", min), ("max", max)):
        builtin(
            f"prim::{_name}.{_type}_list({_type}[] l, {_type}[] r) -> {_type}[]",
            f"list_{_name}_of", _function, f"The {_name}imum in the order of lists.",
        )  # fmt: skip
        builtin(
            f"prim::{_name}.self_{_type}({_type}[] self) -> {_type}",
            f"list_{_name}(a).to_{'double' if _type == 'float' else _type}()", _function,
            f"The {_name}imum of the items; ValueError where there is none.",
        )  # fmt: skip


def _sum(items: list[Any], start: Any) -> Any:
    """From left to right, without the compensation of later Pythons."""
    for item in items:
        start = start + item
    return start


_SUMS = (("int", "int", 0), ("float", "float", 0.0), ("complex", "complex", 0j), ("bool", "int", 0))
for _type, _result, _zero in _SUMS:
    builtin(
        f"sum.{_type}({_type}[] self) -> {_result}", f"list_sum_{_type}",
        int64(lambda self: _sum(self, 0)) if _result == "int"
        else lambda self, zero=_zero: _sum(self, zero),
        "The sum of the items, from left to right.",
    )  # fmt: skip
for _type in ("int", "float", "bool"):
    builtin(f"all.{_type}({_type}[] self) -> bool", "list_all", all, "Whether none is zero.")
    builtin(f"any.{_type}({_type}[] self) -> bool", "list_any", any, "Whether one is not zero.")
builtin("any.str(str[] self) -> bool", "list_any", any, "Whether one is not empty.")
builtin("all.str(str[] self) -> bool", "list_all", all, "Whether none is empty.")

builtin(
    "prim::TupleIndex(Any tup, int i) -> Any", "tuple_get", operator.getitem,
    "The item of a tuple whose items have one type.",
)  # fmt: skip
builtin("len.tuple(Any tup) -> int", "tuple_len", len, "How many items a tuple has.")

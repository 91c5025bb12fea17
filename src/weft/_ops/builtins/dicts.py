"""Dicts, in order of insertion. A key that is missing raises KeyError."""

from __future__ import annotations

import operator
from functools import partial

from weft._ops.builtins.rows import builtin as _builtin

# What a list of keys is stored as (csrc/runtime/list.h). Other keys (members of enumerations,
# tuples, devices) come last: theirs are tried where none of the others fits.
_KEY_LISTS = {
    "str": "List", "int": "IntList", "bool": "BoolList", "float": "DoubleList", "complex": "List",
    "Tensor": "TensorList", "k": "List",
}  # fmt: skip


builtin = partial(_builtin, family="dicts")


builtin("dict() -> Dict(str, Tensor)", "make_dict()", dict, "An empty dict.")
for _key, _list in _KEY_LISTS.items():
    _dict = f"Dict({_key}, t)"
    _written = f"{_dict}(a!) self"
    builtin(f"keys.{_key}({_dict} self) -> {_key}[](*)", f"dict_keys(a, ValueTag::{_list})",
            lambda self: list(self.keys()), "The keys, a new list.", ("total",))  # fmt: skip
    builtin(f"values.{_key}({_dict} self) -> t[](*)", "dict_values",
            lambda self: list(self.values()), "The values, a new list.", ("total",))  # fmt: skip
    builtin(f"items.{_key}({_dict} self) -> (({_key}, t)[])", "dict_items",
            lambda self: list(self.items()), "Pairs of key and value, a new list.",
            ("total",))  # fmt: skip
    builtin(f"len.Dict_{_key}({_dict} self) -> int", "dict_len", len, "How many keys.",
            ("total",))  # fmt: skip
    builtin(f"__getitem__.Dict_{_key}({_dict} self, {_key} key) -> t(*)", "dict_getitem",
            operator.getitem, "The value of a key.")  # fmt: skip
    builtin(f"get.{_key}({_dict} self, {_key} key) -> t(*)?", "dict_get", dict.get,
            "The value of a key; None where it is missing.")  # fmt: skip
    builtin(f"get.default_{_key}({_dict} self, {_key} key, t default_value) -> t(*)",
            "dict_get_default", dict.get,
            "The value of a key; the default where it is missing.")  # fmt: skip
    builtin(
        f"setdefault.{_key}({_written}, {_key}(b -> *) key, t(c -> *) default_value) -> t(*)",
        "dict_setdefault", dict.setdefault,
        "The value of a key, which becomes the default where it is missing.",
    )  # fmt: skip
    builtin(f"_set_item.{_key}({_dict}(a!) l, {_key}(b -> *) idx, t(c -> *) v) -> ()",
            "dict_set_item", operator.setitem, "Gives a key a value.")  # fmt: skip
    builtin(f"Delete.Dict_{_key}({_written}, {_key} key) -> ()", "dict_delete", operator.delitem,
            "Takes a key out.")  # fmt: skip
    builtin(f"pop.Dict_{_key}({_written}, {_key} key) -> t(*)", "dict_pop", dict.pop,
            "Takes a key out and gives its value.")  # fmt: skip
    builtin(f"pop.Dict_default_{_key}({_written}, {_key} key, t default_value) -> t(*)",
            "dict_pop_default", dict.pop,
            "Takes a key out; the default where it is missing.")  # fmt: skip
    builtin(f"popitem.{_key}({_written}) -> (({_key}, t))", "dict_popitem", dict.popitem,
            "Takes the last key out and gives it with its value.")  # fmt: skip
    builtin(f"clear.{_key}({_written}) -> ()", "dict_clear", dict.clear,
            "Takes every key out.")  # fmt: skip
    builtin(f"update.{_key}({_written}, {_dict} to_add) -> ()", "dict_update", dict.update,
            "Gives keys the values of another dict.")  # fmt: skip
    builtin(f"__contains__.{_key}({_dict} dict, {_key} key) -> bool", "dict_contains",
            operator.contains, "Whether there is such a key.",
            ("total",) if _key == "str" else ())  # fmt: skip
    builtin(f"copy.Dict_{_key}({_dict}(a) self) -> {_dict}", "dict_copy", dict.copy,
            "A new dict of the same keys and values.", ("total",))  # fmt: skip
    builtin(f"dict.Dict_{_key}({_dict}(a) self) -> {_dict}", "dict_copy", dict,
            "A new dict of the same keys and values.")  # fmt: skip
    builtin(f"dict.{_key}(({_key}, t)[] inputs) -> Dict({_key}, t)", "dict_from_items", dict,
            "A dict of pairs.")  # fmt: skip
    builtin(f"eq.Dict_{_key}({_dict} a, {_dict} b) -> bool", "equal(a, b)", operator.eq,
            "Whether keys and values are equal.")  # fmt: skip
    builtin(f"ne.Dict_{_key}({_dict} a, {_dict} b) -> bool", "!equal(a, b)", operator.ne,
            "Whether a key or a value differs.")  # fmt: skip

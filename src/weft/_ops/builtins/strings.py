"""Strings: UTF-8, counted in characters. Case and classes are those of ASCII letters."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from weft._ops.builtins.rows import builtin as _builtin

builtin = partial(_builtin, family="strings")


builtin("len.str(str s) -> int", "str_len", len, "How many characters.", ("total",))
builtin("__getitem__.str(str s, int index) -> str", "str_get", operator.getitem, "A character.")
builtin(
    "prim::StringIndex(str string, int index) -> str", "str_get", operator.getitem, "A character."
)
builtin(
    "slice.str(str string, int? start=None, int? end=None, int step=1) -> str", "str_slice",
    lambda s, start=None, end=None, step=1: s[start:end:step], "string[start:end:step].",
)  # fmt: skip
builtin("add.str(str a, str b) -> str", "a + b", operator.add, "One after the other.")
builtin("mul.str(str a, int b) -> str", "str_mul", operator.mul, "The string b times over.")
builtin("__contains__.str_in(str self, str substr) -> bool", "str_contains", operator.contains,
        "Whether it has such a part.")  # fmt: skip

# An end of -1 is TorchScript's way to say "to the end" in these.
_WHOLE = -1


def _ranged(name: str, result: str) -> None:
    function = getattr(str, name)

    def call(self: str, substr: str, start: int = 0, end: int = _WHOLE) -> Any:
        return function(self, substr, start, len(self) if end == _WHOLE else end)

    builtin(
        f"{name}(str self, str substr, int start=0, int end=-1) -> {result}", f"str_{name}", call,
        f"str.{name}; an end of -1 is the end of the string.",
    )  # fmt: skip


for _name in ("find", "rfind", "rindex", "count"):
    _ranged(_name, "int")
for _name in ("startswith", "endswith"):
    _ranged(_name, "bool")


def _index(self: str, substr: str, start: int = 0, end: int = _WHOLE) -> int:
    return self.index(substr, start, len(self) if end == _WHOLE else end)


builtin(
    "index.str(str self, str substr, int start=0, int end=-1) -> int", "str_index", _index,
    "str.index; an end of -1 is the end of the string.",
)  # fmt: skip

for _name in (
    "isspace", "isalpha", "isdigit", "isdecimal", "isnumeric", "isalnum", "islower", "isupper",
    "istitle", "isprintable", "isidentifier",
):  # fmt: skip
    builtin(f"{_name}(str self) -> bool", f"str_{_name}", getattr(str, _name), f"str.{_name}.")
for _name in ("lower", "upper", "swapcase", "capitalize", "title"):
    builtin(f"{_name}(str self) -> str", f"str_{_name}", getattr(str, _name), f"str.{_name}.")


def _stripping(name: str) -> Callable[..., str]:
    function = getattr(str, name)
    return lambda self, chars=" \n\t\f\v\r": function(self, chars)


for _name in ("strip", "lstrip", "rstrip"):
    builtin(
        f'{_name}(str self, str chars=" \\n\\t\\f\\v\\r") -> str', f"str_{_name}",
        _stripping(_name), f"str.{_name}.",
    )  # fmt: skip
for _name in ("center", "ljust", "rjust"):
    builtin(
        f'{_name}(str self, int width, str fillchar=" ") -> str', f"str_{_name}",
        getattr(str, _name), f"str.{_name}.",
    )  # fmt: skip
builtin("zfill(str self, int width) -> str", "str_zfill", str.zfill, "str.zfill.")
builtin("expandtabs(str self, int tabsize=8) -> str", "str_expandtabs", str.expandtabs,
        "str.expandtabs.")  # fmt: skip
builtin("join(str self, str[] values) -> str", "str_join", str.join, "str.join.")
builtin(
    "split.str(str self, str? separator=None, int max=-1) -> str[]", "str_split", str.split,
    "str.split.",
)  # fmt: skip
builtin(
    "rsplit(str self, str? separator=None, int max=-1) -> str[]", "str_rsplit", str.rsplit,
    "str.rsplit.",
)  # fmt: skip
builtin(
    "splitlines(str self, bool keepends=False) -> str[]", "str_splitlines",
    lambda self, keepends=False: self.splitlines(keepends), "str.splitlines.",
)  # fmt: skip
builtin("partition(str self, str separator) -> (str, str, str)", "str_partition", str.partition,
        "str.partition.")  # fmt: skip
builtin("rpartition(str self, str separator) -> (str, str, str)", "str_rpartition", str.rpartition,
        "str.rpartition.")  # fmt: skip
builtin(
    "replace(str self, str old, str new, int max=-1) -> str", "str_replace", str.replace,
    "str.replace.",
)  # fmt: skip
for _name in ("removeprefix", "removesuffix"):
    builtin(f"{_name}(str self, str part) -> str", f"str_{_name}", getattr(str, _name),
            f"str.{_name}.")  # fmt: skip

builtin(
    "format(str self, ...) -> str", "str_format", str.format,
    "str.format: '{}', '{0}', '{!r}' and the format specifications of Python.",
)  # fmt: skip
builtin(
    "percentFormat(str self, ...) -> str", "str_percent_format",
    lambda self, *args: self % args, "self % args.",
)  # fmt: skip
builtin(
    "format_spec(t self, str spec) -> str", "format_value", format,
    "format(self, spec): what f-strings do.",
)  # fmt: skip

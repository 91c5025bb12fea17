"""The schema of an operator that a program defines: its text, and how a call is bound to it."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft._ops.schema import Arg, base_of, is_list, is_optional, parse
from weft._ops.schema import Schema as Parsed
from weft.jit.schema_parts import type_of_text

_KINDS: dict[str, Any] = {
    "Tensor": Tensor,
    "int": int,
    "float": (int, float),
    "bool": bool,
    "str": str,
    "Scalar": (int, float, complex),
    "ScalarType": _C.dtype,
    "Device": (_C.device, str),
}


class Argument:
    """A parameter or a result, by PyTorch's names."""

    def __init__(self, name: str, type_: str, arg: Arg | None = None, alias: str = "") -> None:
        self.name = name
        self.type = self.real_type = type_of_text(type_)
        self.kwarg_only = arg is not None and arg.kwarg_only
        self.default_value = arg.default if arg is not None and arg.has_default else None
        self.is_write = "!" in alias
        self._has_default = arg is not None and arg.has_default

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self._has_default

    def __repr__(self) -> str:
        return f"Argument({self.name}: {self.type})"


class Schema:
    """A schema by PyTorch's names. `text` is that of PyTorch, where `SymInt` is an int.

    >>> schema = weft.ops.aten.relu.default._schema
    >>> schema.name, [each.name for each in schema.arguments]
    ('aten::relu', ['self'])
    """

    def __init__(self, qualname: str, text: str) -> None:
        """text: "f.overload(Tensor x) -> Tensor", without the namespace."""
        self.name = qualname
        parsed = parse(text)
        self.parsed: Parsed = parsed._replace(args=tuple(map(_with_objects, parsed.args)))
        self.overload_name = self.parsed.overload
        self._text = f"{qualname.partition('::')[0]}::{text.strip()}"

    @property
    def arguments(self) -> list[Argument]:
        """The parameters in order."""
        return [Argument(a.name, a.type, a, a.alias) for a in self.parsed.args]

    @property
    def returns(self) -> list[Argument]:
        """The results in order."""
        return [Argument(r.name, r.type, None, r.alias) for r in self.parsed.returns]

    @property
    def is_mutable(self) -> bool:
        """Whether it writes to an argument."""
        return any(arg.is_written for arg in self.parsed.args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def default(self, arg: Arg) -> Any:
        """The value of an argument that a call leaves out."""
        return list(arg.default) if isinstance(arg.default, tuple) else _spread(arg, arg.default)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments of a call in the order of the schema. RuntimeError where they do not fit
        in number or name."""
        positional = [arg for arg in self.parsed.args if not arg.kwarg_only]
        if len(args) > len(positional):
            self._refuse(f"at most {len(positional)} positional arguments", len(args))
        given = {arg.name: value for arg, value in zip(positional, args)}
        for name, value in kwargs.items():
            if name in given:
                self._refuse(f"argument '{name}' once", "it by position and by keyword")
            given[name] = value
        bound = []
        for arg in self.parsed.args:
            if arg.name not in given and not arg.has_default:
                self._refuse(f"a value for argument '{arg.name}'", "none")
            is_given = arg.name in given
            bound.append(_spread(arg, given.pop(arg.name)) if is_given else self.default(arg))
        if given:
            self._refuse(f"names of arguments, of {self}", sorted(given))
        return bound

    def check(self, given: list[Any]) -> None:
        """Raises RuntimeError where the value of an argument is not of its type."""
        for arg, value in zip(self.parsed.args, given):
            if not _fits(value, arg):
                got = f"{value!r} of type {type(value).__name__}"
                self._refuse(f"argument '{arg.name}' of type {arg.type}", got)

    def calling(self, given: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Bound arguments as a function of the signature takes them."""
        by_name = {a.name: v for a, v in zip(self.parsed.args, given) if a.kwarg_only}
        return given[: len(given) - len(by_name)], by_name

    def _refuse(self, expected: str, got: object) -> None:
        raise RuntimeError(f"{self.name}: expected {expected}, got {got}; it is {self}")


def _with_objects(arg: Arg) -> Arg:
    """The default as the object that calls pass: dtypes stand in texts by number or by name."""
    value = arg.default
    if arg.base == "ScalarType" and isinstance(value, int):
        value = next(dtype for dtype in _C._dtypes if dtype._number == value)
    elif arg.base == "MemoryFormat" and isinstance(value, int):
        value = _C._memory_formats[value]
    elif arg.base in ("ScalarType", "Device") and isinstance(value, str):
        value = _C.device(value) if arg.base == "Device" else getattr(_C, value, None)
    return arg._replace(default=value)


def _spread(arg: Arg, value: Any) -> Any:
    """A number stands for all those of a list of a given length: int[2]."""
    length = arg.type.rstrip("?").rpartition("[")[2].rstrip("]")
    is_number = isinstance(value, (int, float)) and length.isdigit()
    return [value] * int(length) if is_number else value


def _fits(value: Any, arg: Arg) -> bool:
    if value is None:
        return is_optional(arg.type) or (arg.base == "Device" and not is_list(arg.type))
    kind = _KINDS.get(arg.base)
    if kind is None:
        return True
    if is_list(arg.type):
        none_too = arg.type.startswith(f"{base_of(arg.type)}?")
        return isinstance(value, (list, tuple)) and all(
            _is(item, kind) or (item is None and none_too) for item in value
        )
    return _is(value, kind)


def _is(value: Any, kind: Any) -> bool:
    if isinstance(value, kind):
        return True
    is_number = kind in (int, (int, float), (int, float, complex), bool)
    if isinstance(value, Tensor):  # of one element, as a number
        return is_number and value.dim() == 0
    return is_number and kind is not bool and hasattr(value, "__index__")

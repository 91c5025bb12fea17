"""What names in the code of an archive mean."""

from __future__ import annotations

import builtins
import math
import types as python_types
import typing
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft import _C
from weft._C import Tensor
from weft.autograd._run import backward
from weft.jit.archive import quantized
from weft.jit.archive.operators import Operator
from weft.jit.archive.operators import is_known as is_known_operator
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.strings import percent_of
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import UNKNOWN, Arg, Call, Known, Simple, Sugared, TupleLiteral
from weft.jit.futures import Future, fork
from weft.jit.ir import types as ty
from weft.jit.ir.source import SourceRange
from weft.jit.ir.value import Value
from weft.jit.markers import annotate


class Namespace(python_types.ModuleType):
    """Names that are made when they are first read."""

    def __init__(self, name: str, make: Callable[[str], Any]) -> None:
        super().__init__(name)
        self.__dict__["_make"] = make

    def __getattr__(self, name: str) -> Any:
        found = None if name in _OF_PYTHON else self._make(name)
        if found is None:
            raise AttributeError(f"{self.__name__}: expected a name it has, got {name!r}")
        setattr(self, name, found)
        return found


_OF_PYTHON = frozenset(("__weft_jit__", "__weft_length__", "__wrapped__", "__path__", "__file__"))


class Archive(NamedTuple):
    """What the names in an archive's code depend on."""

    definition: Callable[[str], Any]  # the class or function of a qualified name, or None
    has_prefix: Callable[[str], bool]  # whether qualified names begin so
    constants: Sequence[Any]
    version: int
    missing: Callable[[str], str]  # the text of the error for an operator that weft has not
    located: Callable[[str], str]  # where map_location puts a device

    def operators(self, space: str) -> Namespace:
        """The operators of a namespace; a name that is none counts where it is called."""

        def make(name: str) -> Any:
            kind = f"{space}::{name}"
            found = Operator(kind, self.version, self.missing)
            if kind in _DEVICES:
                return _Device(found, self.located)
            return _SPECIAL.get(kind) or found

        return Namespace(f"ops.{space}", make)


def is_known(kind: str) -> bool:
    """Whether the code of archives may call an operator."""
    return kind in _DEVICES or kind in _SPECIAL or is_known_operator(kind)


class _Raise(Sugared):
    """ops.prim.RaiseException(message, "builtins.ValueError")."""

    def call(self, c: Compiler, call: Call) -> Sugared:
        if not 1 <= len(call.args) <= 2 or call.kwargs:
            fail("RaiseException: expected a message and the name of a class", call.range)
        message = call.args[0].value.value(c, call.range)
        name = call.args[1].value.static(c) if len(call.args) == 2 else "RuntimeError"
        found = getattr(builtins, str(name).removeprefix("builtins."), None)
        if isinstance(found, type) and issubclass(found, Exception):
            c.raise_error(found, message, call.range)
        else:  # raised as itself where the process knows it
            c.node("prim::RaiseException", (message,), (), {"exception": str(name)}, call.range)
        return c.none()


class _Percent(Sugared):
    """torch.percentFormat(text, values...): text % values; several may stand in a tuple."""

    def call(self, c: Compiler, call: Call) -> Sugared:
        call.expect_no_keywords("percentFormat")
        if not call.args:
            fail("percentFormat: expected a text, got nothing", call.range)
        text, *values = (arg.value for arg in call.args)
        given = values[0] if len(values) == 1 else TupleLiteral(values)
        return percent_of(c, text, given, call.range)


_DEVICES = ("aten::device", "aten::cuda")


class _Device(Sugared):
    """torch.device("cuda:0") and torch.cuda(x): the device where map_location puts it."""

    def __init__(self, operator: Operator, located: Callable[[str], str]) -> None:
        self.operator, self.located = operator, located

    def call(self, c: Compiler, call: Call) -> Sugared:
        if self.operator.kind == "aten::cuda":
            device = Arg(Simple(c.constant(_C.device(self.located("cuda")))), call.range)
            to = Operator("aten::to", self.operator.version, self.operator.missing)
            return to.call(c, call._replace(args=[*call.args, device]))
        known = [arg.value.static(c) for arg in call.args]
        if not known or UNKNOWN in known or call.kwargs:
            return self.operator.call(c, call)
        try:
            made = self.constant_of(*known)
        except RuntimeError as error:
            fail(str(error), call.range)
        return Simple(c.constant(made))

    def constant_of(self, *parts: Any) -> _C.device:
        """The device that literals name."""
        return _C.device(self.located(":".join(map(str, parts))))


_AUTOGRAD = {
    # PyTorch's programs have allow_unused as the sixth argument, its Python only_inputs.
    "grad": Known("grad", lambda c, call: c.call_operator("aten::grad", call)),
    "backward": backward,
}
_SPECIAL: dict[str, Any] = {
    "prim::RaiseException": _Raise(),
    "aten::autograd": Namespace("torch.autograd", _AUTOGRAD.get),
    "aten::percentFormat": _Percent(),
}


class _Packed(Sugared):
    """An object of a quantised network among the constants of an archive: made where it is read."""

    def __init__(self, held: Any) -> None:
        self.held, self.what = held, type(held).__name__

    def value(self, c: Compiler, range: SourceRange) -> Value:
        made = c.sugar(type(self.held), range, self.what)
        parts = [
            _Packed(each) if quantized.is_packed(each) else c.sugar(each, range, name)
            for name, each in vars(self.held).items()
        ]
        return made.call(c, Call(range, [Arg(each, range) for each in parts])).value(c, range)


class _Typed:
    """A function that takes a type: the frontend handles its calls by the mark."""

    def __init__(self, mark: str) -> None:
        self.__weft_jit__ = mark


def globals_of(archive: Archive) -> dict[str, Any]:
    """The names of the code of an archive."""

    def qualified(prefix: str) -> Namespace:
        def make(name: str) -> Any:
            full = f"{prefix}.{name}"
            found = archive.definition(full)
            return qualified(full) if found is None and archive.has_prefix(full) else found

        return Namespace(prefix, make)

    def constant(name: str) -> Any:
        number = name.removeprefix("c")
        inside = number.isdecimal() and int(number) < len(archive.constants)
        held = archive.constants[int(number)] if inside else None
        return _Packed(held) if quantized.is_packed(held) else held

    return {
        "torch": archive.operators("aten"),
        "ops": Namespace("ops", archive.operators),
        "CONSTANTS": Namespace("CONSTANTS", constant),
        "__torch__": qualified("__torch__"),
        **_PLAIN,
    }


# What code of archives may use of Python's own names.
_ALLOWED = (
    "bool", "complex", "dict", "float", "getattr", "int", "isinstance", "list", "print", "range",
    "sorted", "str", "tuple",
)  # fmt: skip
BUILTINS = {name: getattr(builtins, name) for name in _ALLOWED}
_PLAIN: dict[str, Any] = {
    "__builtins__": BUILTINS,
    "annotate": annotate,
    "unchecked_cast": _Typed("cast"),
    "uninitialized": _Typed("uninitialized"),
    "fork": fork,
    "Future": Future,
    "inf": math.inf,
    "nan": math.nan,
    "Tensor": Tensor,
    "Device": _C.device,
    "NoneType": type(None),
    "number": ty.NUMBER,
    **{
        name: getattr(typing, name)
        for name in ("List", "Dict", "Tuple", "Optional", "Union", "Any")
    },
}

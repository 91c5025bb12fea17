"""Python objects that a program meets while it is compiled: modules, and what has no type of the
language."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import UNKNOWN, Call, Known, Simple, Sugared
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

if TYPE_CHECKING:
    from weft.jit.frontend.compiler import Compiler


class PythonModule(Sugared):
    """A Python module: `weft`, `math`, or one of the user's."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def describe(self) -> str:
        return f"the Python module {self.module.__name__}"

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        try:
            found = getattr(self.module, name)
        except Exception:
            fail(f"{self.module.__name__}: expected a name it has, got {name!r}", range)
        return c.sugar(found, range, f"{self.module.__name__}.{name}")

    def has_attr(self, c: Compiler, name: str) -> bool:
        return hasattr(self.module, name)

    def key(self) -> Any:
        return self.module


class PythonObject(Sugared):
    """A Python object that is known while compiling, and has no type of the language: a dict of
    functions, say. Its items and attributes can be read."""

    def __init__(self, obj: Any, what: str = "") -> None:
        self.obj = obj
        self.what = what

    def describe(self) -> str:
        name = f"{self.what}, " if self.what else ""
        return f"{name}a Python object of type {type(self.obj).__name__}"

    def value(self, c: Compiler, range: SourceRange) -> Value:
        fail(
            f"expected a value of the language, got {self.describe()}",
            range,
            "a constant, a function, a module or a class marked @weft.jit.script; or put the code "
            "that needs it into a function marked @weft.jit.ignore",
        )

    def static(self, c: Compiler) -> Any:
        return self.obj if isinstance(self.obj, tuple | str | int) else UNKNOWN

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        if name in ("keys", "values", "items") and isinstance(self.obj, dict):
            return static_method(lambda: tuple(getattr(self.obj, name)()), f"{name}()")
        try:
            found = getattr(self.obj, name)
        except Exception:
            fail(
                f"expected an attribute of {self.describe()}, got {name!r}, which it has not", range
            )
        return c.sugar(found, range, f"{self.what}.{name}")

    def has_attr(self, c: Compiler, name: str) -> bool:
        try:
            return hasattr(self.obj, name)
        except Exception:
            return False

    def call(self, c: Compiler, call: Call) -> Sugared:
        if not callable(self.obj):
            return super().call(c, call)
        fail(
            f"expected a function of the language, got a call of {self.describe()}",
            call.range,
            "operators and functions of the language, or a function marked @weft.jit.ignore that "
            "makes this call",
        )

    def item(self, c: Compiler, range: SourceRange, index: Sugared) -> Sugared:
        at = index.static(c)
        if at is UNKNOWN:
            fail(
                f"{self.describe()}: expected an index known while compiling, got one that is not",
                range,
            )
        try:
            found = self.obj[at]
        except Exception:
            fail(f"{self.describe()}: expected an index it has, got {at!r}", range)
        return c.sugar(found, range, f"{self.what}[{at!r}]")

    def unrolled(self, c: Compiler, range: SourceRange) -> list[Sugared] | None:
        if not isinstance(self.obj, list | tuple | dict):
            return None
        return [c.sugar(item, range, f"an item of {self.what}") for item in self.obj]

    def contains(self, c: Compiler, range: SourceRange, item: Sugared) -> Sugared:
        wanted = item.static(c)
        if wanted is UNKNOWN or not isinstance(self.obj, list | tuple | dict):
            return super().contains(c, range, item)
        return Simple(c.constant(wanted in self.obj))

    def key(self) -> Any:
        return ("object", id(self.obj))


def static_method(run: Callable[[], Any], what: str) -> Sugared:
    """A method without arguments whose result is known while compiling."""

    def of(c: Compiler, call: Call) -> Sugared:
        call.expect_nothing(what)
        return c.sugar(run(), call.range, what)

    return Known(f"the method {what}", of)

"""Python objects that a program meets while it is compiled: modules, and what has no type of the
language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.jit.frontend.errors import fail
from weft.jit.frontend.sugared import UNKNOWN, Call, Simple, Sugared
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

if TYPE_CHECKING:
    from weft.jit.frontend.emitter import Emitter


class PythonModule(Sugared):
    """A Python module: `weft`, `math`, or one of the user's."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def describe(self) -> str:
        return f"the Python module {self.module.__name__}"

    def attr(self, e: Emitter, range: SourceRange, name: str) -> Sugared:
        from weft.jit.frontend.objects import sugar

        try:
            found = getattr(self.module, name)
        except Exception:
            fail(f"{self.module.__name__}: expected a name it has, got {name!r}", range)
        return sugar(e, found, range, f"{self.module.__name__}.{name}")

    def has_attr(self, e: Emitter, name: str) -> bool:
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

    def value(self, e: Emitter, range: SourceRange) -> Value:
        fail(
            f"expected a value of the language, got {self.describe()}",
            range,
            "a constant, a function, a module or a class marked @weft.jit.script; or put the code "
            "that needs it into a function marked @weft.jit.ignore",
        )

    def static(self, e: Emitter) -> Any:
        return self.obj if isinstance(self.obj, tuple | str | int) else UNKNOWN

    def attr(self, e: Emitter, range: SourceRange, name: str) -> Sugared:
        from weft.jit.frontend.objects import sugar

        if name in ("keys", "values", "items") and isinstance(self.obj, dict):
            return StaticMethod(lambda: tuple(getattr(self.obj, name)()), f"{name}()")
        try:
            found = getattr(self.obj, name)
        except Exception:
            fail(
                f"expected an attribute of {self.describe()}, got {name!r}, which it has not", range
            )
        return sugar(e, found, range, f"{self.what}.{name}")

    def has_attr(self, e: Emitter, name: str) -> bool:
        try:
            return hasattr(self.obj, name)
        except Exception:
            return False

    def call(self, e: Emitter, call: Call) -> Sugared:
        if not callable(self.obj):
            return super().call(e, call)
        fail(
            f"expected a function of the language, got a call of {self.describe()}",
            call.range,
            "operators and functions of the language, or a function marked @weft.jit.ignore that "
            "makes this call",
        )

    def item(self, e: Emitter, range: SourceRange, index: Sugared) -> Sugared:
        from weft.jit.frontend.objects import sugar

        at = index.static(e)
        if at is UNKNOWN:
            fail(
                f"{self.describe()}: expected an index known while compiling, got one that is not",
                range,
            )
        try:
            found = self.obj[at]
        except Exception:
            fail(f"{self.describe()}: expected an index it has, got {at!r}", range)
        return sugar(e, found, range, f"{self.what}[{at!r}]")

    def unrolled(self, e: Emitter, range: SourceRange) -> list[Sugared] | None:
        from weft.jit.frontend.objects import sugar

        if not isinstance(self.obj, list | tuple | dict):
            return None
        return [sugar(e, item, range, f"an item of {self.what}") for item in self.obj]

    def contains(self, e: Emitter, range: SourceRange, item: Sugared) -> Sugared:
        wanted = item.static(e)
        if wanted is UNKNOWN or not isinstance(self.obj, list | tuple | dict):
            return super().contains(e, range, item)
        return Simple(e.constant(wanted in self.obj))

    def key(self) -> Any:
        return ("object", id(self.obj))


class StaticMethod(Sugared):
    """A method of a Python object that is called while compiling."""

    def __init__(self, run: Any, what: str) -> None:
        self.run = run
        self.what = what

    def describe(self) -> str:
        return f"the method {self.what}"

    def call(self, e: Emitter, call: Call) -> Sugared:
        from weft.jit.frontend.objects import sugar

        call.expect_nothing(self.what)
        return sugar(e, self.run(), call.range, self.what)

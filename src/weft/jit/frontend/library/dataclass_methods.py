"""The methods that @dataclass writes: they have no source, so programs get the same from here."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from weft.jit.frontend.registry import builtin
from weft.jit.frontend.source.code import Code
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.source.search import find_lines
from weft.jit.frontend.types.classes import dataclass_fields, is_dataclass, python_class_of
from weft.jit.frontend.values import Arg

if TYPE_CHECKING:
    from weft.jit.frontend.compiler import Compiler
    from weft.jit.frontend.values import Call

# How two objects compare that are equal in all fields.
_OF_EQUALS = {"__lt__": False, "__le__": True, "__gt__": False, "__ge__": True}
_SYMBOLS = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


def written_method(cls: type, function: Any) -> tuple[ast.FunctionDef, Code] | None:
    """What @dataclass made for a class, as source; None for other functions."""
    name = getattr(function, "__name__", "")
    if not is_dataclass(cls) or not _written_by_dataclass(function):
        return None
    if name == "__repr__":
        shown = ", ".join(f"{f.name}={{self.{f.name}!r}}" for f in dataclass_fields(cls) if f.repr)
        return _parsed(
            cls, f"def __repr__(self) -> str:\n    return f'{cls.__qualname__}({shown})'\n"
        )
    fields = [each.name for each in dataclass_fields(cls) if each.compare]
    if name == "__eq__":
        lines = [
            f"    if not self.{field} == other.{field}:\n        return False" for field in fields
        ]
        lines.append("    return True")
    elif name in _SYMBOLS:
        lines = [
            f"    if not self.{field} == other.{field}:\n"
            f"        return self.{field} {_SYMBOLS[name]} other.{field}"
            for field in fields
        ]
        lines.append(f"    return {_OF_EQUALS[name]}")
    else:
        return None
    text = f"def {name}(self, other: {cls.__name__}) -> bool:\n" + "\n".join(lines) + "\n"
    return _parsed(cls, text)


def _written_by_dataclass(function: Any) -> bool:
    """Methods of `python -c` and exec are of <string> as well, but their source is somewhere."""
    made = getattr(function, "__wrapped__", function)  # __repr__ has a guard against recursion
    return made.__code__.co_filename == "<string>" and find_lines(made) is None


@builtin(("dataclasses", "replace"), name="replace")
def replaced(c: Compiler, call: Call) -> Any:
    """dataclasses.replace(object, field=value): a new object, made by its class."""
    owner: Any = call.args[0].value if len(call.args) == 1 else c.none()
    cls = python_class_of(owner.value(c, call.range).type)
    if cls is None or not is_dataclass(cls):
        fail("replace: expected an object of a dataclass and the fields by name", call.range)
    names = [field.name for field in dataclass_fields(cls) if field.init]
    kept = {n: Arg(owner.attr(c, call.range, n), call.range) for n in names if n not in call.kwargs}
    return c.sugar(cls, call.range, cls.__name__).call(
        c, call._replace(args=(), kwargs={**kept, **call.kwargs})
    )


def _parsed(cls: type, text: str) -> tuple[ast.FunctionDef, Code]:
    code = Code(text, f"<dataclass {cls.__qualname__}>", 1)
    node = code.tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    return node, code

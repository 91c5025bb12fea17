"""The syntax that the compiler refuses, as a table that the documentation prints."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NoReturn

from weft.jit.frontend.source.errors import NotSupportedError
from weft.jit.ir.record import NamedTuple

if TYPE_CHECKING:
    from weft.jit.frontend.source.code import Code


class Refusal(NamedTuple):
    """One kind of syntax: its name, an example, and what to write instead."""

    what: str
    example: str
    instead: str


REFUSED: dict[type[ast.AST], Refusal] = {
    ast.AsyncFunctionDef: Refusal(
        "async functions", "async def f(): ...", "weft.jit.fork and weft.jit.wait"
    ),
    ast.AsyncFor: Refusal("async for", "async for x in xs: ...", "for x in xs"),
    ast.AsyncWith: Refusal("async with", "async with c: ...", "with c"),
    ast.Await: Refusal("await", "await x", "weft.jit.wait(x)"),
    ast.ClassDef: Refusal(
        "classes defined inside a function",
        "def f():\n    class A: ...",
        "the class at module level",
    ),
    ast.Try: Refusal(
        "try",
        "try: ...\nexcept ValueError: ...",
        "an if that tests for the case, or a function marked @weft.jit.ignore",
    ),
    ast.Global: Refusal(
        "global", "global n", "an argument and a result, or an attribute of a module"
    ),
    ast.Nonlocal: Refusal("nonlocal", "nonlocal n", "an argument and a result"),
    ast.Import: Refusal("import inside a function", "import math", "the import at module level"),
    ast.ImportFrom: Refusal(
        "import inside a function", "from math import pi", "the import at module level"
    ),
    ast.Yield: Refusal("yield", "yield x", "a list to which the values are appended"),
    ast.YieldFrom: Refusal("yield from", "yield from xs", "a list that is extended"),
    ast.SetComp: Refusal("set comprehensions", "{x for x in xs}", "a dict with True as values"),
    ast.Set: Refusal("sets", "{1, 2}", "a dict with True as values, or a list"),
}
for _name, _refusal in {
    "Match": Refusal("match", "match x:\n    case 1: ...", "if and elif"),
    "TryStar": Refusal("try", "try: ...\nexcept* ValueError: ...", "an if that tests for the case"),
    "TypeAlias": Refusal("type statements", "type A = int", "the alias at module level"),
    "TemplateStr": Refusal("t-strings", 't"{x}"', "an f-string"),
    "Interpolation": Refusal("t-strings", 't"{x}"', "an f-string"),
}.items():
    if hasattr(ast, _name):
        REFUSED[getattr(ast, _name)] = _refusal

# Refused inside syntax that is otherwise understood; the compiler raises these by name.
REFUSED_FORMS: dict[str, Refusal] = {
    "varargs": Refusal("*args in a definition", "def f(*args): ...", "one list argument"),
    "kwargs": Refusal("**kwargs in a definition", "def f(**kwargs): ...", "one dict argument"),
    "double star": Refusal("** in a call", "len(**options)", "the keyword arguments one by one"),
    "delete": Refusal(
        "del of anything but a name or an item of a list or dict", "del x.y", "x.y = None"
    ),
    "from": Refusal("raise from", "raise A() from e", "raise A()"),
    "generic function": Refusal("type parameters", "def f[T](x: T): ...", "a concrete type"),
    "ascii conversion": Refusal("!a in f-strings", 'f"{x!a}"', 'f"{x!r}"'),
    "generator": Refusal(
        "a generator outside a call or an unpacking", "g = (x for x in xs)", "[x for x in xs]"
    ),
    "recursion": Refusal(
        "recursion without a return annotation",
        "def f(n: int): return f(n - 1)",
        "def f(n: int) -> int: ...",
    ),
}


def refuse(code: Code, node: ast.AST) -> NoReturn:
    """NotSupportedError for syntax that is not part of the language."""
    refusal = REFUSED.get(type(node))
    what = refusal.what if refusal else f"{type(node).__name__} syntax"
    raise NotSupportedError(
        f"expected syntax of the language, got {what}",
        code.range(node),
        refusal.instead if refusal else None,
    )


def refuse_form(code: Code, node: ast.AST, name: str) -> NoReturn:
    """NotSupportedError for one of REFUSED_FORMS."""
    refusal = REFUSED_FORMS[name]
    raise NotSupportedError(
        f"expected syntax of the language, got {refusal.what}", code.range(node), refusal.instead
    )

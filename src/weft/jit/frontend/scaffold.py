"""Dispatch over the syntax tree: handlers register themselves; what has none is refused.

Modules whose syntax a first program may well do without are imported when it is met (`_LATER`).
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from weft.jit.frontend.errors import NotSupportedError
from weft.jit.frontend.source import Code
from weft.jit.ir.fresh_stack import on_fresh_stack

F = TypeVar("F", bound=Callable[..., Any])

EXPRESSIONS: dict[type[ast.AST], Callable[..., Any]] = {}
STATEMENTS: dict[type[ast.AST], Callable[..., Any]] = {}


_LATER: dict[type[ast.AST], str] = {
    ast.Compare: "comparison",
    ast.Tuple: "displays",
    ast.List: "displays",
    ast.Dict: "displays",
    ast.Starred: "displays",
    ast.ListComp: "comprehensions",
    ast.DictComp: "comprehensions",
    ast.JoinedStr: "strings",
    ast.Subscript: "subscripts",
    ast.Slice: "subscripts",
}


def expression(*kinds: type[ast.AST]) -> Callable[[F], F]:
    """Registers the handler of kinds of expression: handler(e, node, hint) -> Sugared."""

    def register(handler: F) -> F:
        EXPRESSIONS.update(dict.fromkeys(kinds, handler))
        return handler

    return register


def statement(*kinds: type[ast.AST]) -> Callable[[F], F]:
    """Registers the handler of kinds of statement: handler(e, node) -> ways."""

    def register(handler: F) -> F:
        STATEMENTS.update(dict.fromkeys(kinds, handler))
        return handler

    return register


def handler_of_expression(code: Code, node: ast.expr) -> Callable[..., Any]:
    """The handler of an expression. NotSupportedError for syntax that has none."""
    kind = type(node)
    if kind not in EXPRESSIONS:
        if kind not in _LATER:
            refuse(code, node)
        on_fresh_stack(importlib.import_module, f"weft.jit.frontend.{_LATER[kind]}")
    return EXPRESSIONS[kind]


def refuse(code: Code, node: ast.AST) -> NoReturn:
    """NotSupportedError for syntax that is not part of the language."""
    from weft.jit.frontend.refused import REFUSED

    refusal = REFUSED.get(type(node))
    what = refusal.what if refusal else f"{type(node).__name__} syntax"
    raise NotSupportedError(
        f"expected syntax of the language, got {what}",
        code.range(node),
        refusal.instead if refusal else None,
    )


def refuse_form(code: Code, node: ast.AST, name: str) -> NoReturn:
    """NotSupportedError for one of REFUSED_FORMS."""
    from weft.jit.frontend.refused import REFUSED_FORMS

    refusal = REFUSED_FORMS[name]
    raise NotSupportedError(
        f"expected syntax of the language, got {refusal.what}", code.range(node), refusal.instead
    )

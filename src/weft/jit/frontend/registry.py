"""Which function compiles what. A rule registers itself under what it compiles; the compiler looks
it up, and imports the file of a rule that is met for the first time. So files of the frontend need
not import each other, and a first program waits only for those that it uses.
"""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from weft.jit.ir import types as ty
from weft.jit.ir.fresh_stack import on_fresh_stack

F = TypeVar("F", bound=Callable[..., Any])


class Rules(dict[Any, Callable[..., Any]]):
    """Rules by what they compile. `files` tells where a rule stands that is not imported yet."""

    def __init__(self, files: Mapping[Any, str]) -> None:
        super().__init__()
        self.files = files

    def __missing__(self, kind: Any) -> Callable[..., Any]:
        load(self.files[kind])
        return self[kind]

    def __call__(self, *kinds: Any) -> Callable[[F], F]:
        """Registers a rule."""

        def register(rule: F) -> F:
            self.update(dict.fromkeys(kinds, rule))
            return rule

        return register

    def find(self, kind: Any) -> Callable[..., Any] | None:
        """The rule of a kind, or None."""
        return self[kind] if kind in self or kind in self.files else None


def load(file: str) -> None:
    """Imports a file of the frontend, or one beside it."""
    on_fresh_stack(importlib.import_module, f".{file}", __package__)


def _by_kind(files: Mapping[str, tuple[Any, ...]]) -> dict[Any, str]:
    return {kind: file for file, kinds in files.items() for kind in kinds}


expression = Rules(
    _by_kind(
        {
            "language.expressions": (
                *(ast.Name, ast.Constant, ast.Attribute, ast.NamedExpr, ast.IfExp, ast.BoolOp),
                *(ast.Call, ast.GeneratorExp),
            ),
            "language.local_functions": (ast.Lambda,),
            "language.operators": (ast.BinOp, ast.UnaryOp),
            "language.comparison": (ast.Compare,),
            "language.displays": (ast.Tuple, ast.List, ast.Dict, ast.Starred),
            "language.comprehensions": (ast.ListComp, ast.DictComp),
            "language.strings": (ast.JoinedStr,),
            "language.subscripts": (ast.Subscript, ast.Slice),
        }
    )
)
"""rule(c, node, hint) -> Sugared, by the class of an expression."""

statement = Rules(
    _by_kind(
        {
            "language.statements": (*(ast.Expr, ast.Pass, ast.Return, ast.Break, ast.Continue),),
            "language.for_while": (ast.While, ast.For),
            "language.assignment": (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete),
            "language.exceptions": (ast.Raise, ast.Assert),
            "language.context_managers": (ast.With,),
            "language.local_functions": (ast.FunctionDef,),
        }
    )
)
"""rule(c, node) -> exits, by the class of a statement. An `if` has none: what follows it may belong
to one of its branches (statements.py)."""

verb = Rules(
    {
        "statements": "language.statements",
        "assign": "language.assignment",
        ("assign", ast.Subscript): "language.item_assignment",
        ("augment", ast.Subscript): "language.item_assignment",
        ("delete", ast.Subscript): "language.item_assignment",
        "condition": "language.conditions",
        "truth": "language.conditions",
        "convert": "language.conversions",
        "sugar": "language.objects",
        "callable": "language.callables",
        "class_value": "types.class_values",
        "closed_over": "types.modules",
        "exception_class": "language.exceptions",
        "decorated_mode": "language.context_managers",
        "enter_decorated": "language.context_managers",
        "call": "language.generic",
        "call_operator": "language.calls",
        "special_call": "library.special_calls",
        "super_of": "types.class_attributes",
        "fork": "library.fork",
        "sort_list": "library.sorting",
        "percent": "language.strings",
        "binary": "language.operators",
        "compare": "language.comparison",
        "get_item": "language.subscripts",
        "set_item": "language.item_assignment",
        "static_dict": "language.comprehensions",
        "iterate": "language.iteration",
        "as_list": "language.iteration",
        "make_list": "language.displays",
        "get_attr": "language.attributes",
        "has_attr": "language.attributes",
        "set_attr": "language.attributes",
        ("get_attr", ty.TupleType): "types.tuples",
        ("has_attr", ty.TupleType): "types.tuples",
        ("get_attr", ty.InterfaceType): "types.interfaces",
        ("has_attr", ty.InterfaceType): "types.interfaces",
        ("get_attr", ty.ClassType): "types.class_attributes",
        ("has_attr", ty.ClassType): "types.class_attributes",
        ("set_attr", ty.ClassType): "types.class_attributes",
        ("get_item", ty.ClassType): "types.class_attributes",
        ("items", ty.ClassType): "types.containers",
        "type_of_class": "types.classes",
        "compile_method": "types.class_methods",
        "register_class": ".script_class",
    }
)
"""What the compiler does by a rule, by the name of its method, or by that and the class of the type
of the value that it is done to."""

CONVERSIONS = (
    *("bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "double", "float", "half", "int"),
    *("long", "short", "type"),
)
_METHODS: dict[Any, tuple[str, ...]] = {
    ty.TENSOR: (*CONVERSIONS, "new_tensor", "nonzero", "norm", "to", "tolist"),
    ty.STR: ("endswith", "format", "join", "startswith"),
    ty.ListType: ("append", "count", "extend", "index", "insert", "remove", "sort"),
    ty.DictType: ("update",),
}
method = Rules({(kind, n): "library.methods" for kind, names in _METHODS.items() for n in names})
"""rule(c, v, call) -> Sugared or None, by a type and the name of its method: those that are more
than the operator of their name. None: this call is not."""

# What is called by its Python object: len, print, math.prod.
LIBRARY = (
    "library.containers",
    "library.iterables",
    "library.math",
    "library.numbers",
    "library.objects",
    "language.context_managers",
    "library.limits",
)
_builtins: dict[Any, tuple[str, Callable[..., Any]]] = {}


def builtin(
    *objects: Any,
    name: str = "",
    takes: int | tuple[int, int] | None = None,
    keywords: tuple[str, ...] = (),
) -> Callable[[F], F]:
    """Registers the rule of Python objects: rule(c, call) -> Sugared. `takes` is how many arguments
    by position there may be, and then of others only `keywords`; None: the rule looks itself."""

    def register(rule: F) -> F:
        for obj in objects:
            known = name or getattr(obj, "__name__", str(obj))
            checked = rule if takes is None else _checked(rule, known, takes, keywords)
            _builtins[obj] = (known, checked)
        return rule

    return register


def _checked(
    rule: Callable[..., Any], name: str, takes: int | tuple[int, int], keywords: tuple[str, ...]
) -> Callable[..., Any]:
    low, high = takes if isinstance(takes, tuple) else (takes, takes)

    def run(c: Any, call: Any) -> Any:
        call.expect_no_keywords(name, *keywords)
        call.expect_count(name, low, high)
        return rule(c, call)

    return run


def find_builtin(obj: Any) -> tuple[str, Callable[..., Any]] | None:
    """The name and the rule of a Python object, or None."""
    _load_library()
    if getattr(obj, "__module__", None) == "dataclasses":  # which is slow to import
        obj = ("dataclasses", getattr(obj, "__name__", ""))
        load("library.dataclass_methods")
    try:
        return _builtins.get(obj)
    except TypeError:
        return None


@functools.cache
def _load_library() -> None:
    for file in LIBRARY:
        load(file)


@functools.cache
def load_everything() -> None:
    """Imports all files. Far down in a long function Python 3.11 may refuse to compile a module
    that it has not compiled before (see fresh_stack)."""
    _load_library()
    for rules in (expression, statement, verb, method):
        for file in set(rules.files.values()):
            load(file)

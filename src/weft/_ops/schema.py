"""Operator schemas in TorchScript's own notation; those of builtins, whose types are more, too.

    add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)
    max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)

`parse` turns the text into a `Schema`; `str(schema)` gives it back in one canonical spelling.
`parse_builtin` reads a schema of any types, tuples and type variables among them:

    pop.t(t[](a!) self, int idx=-1) -> t(*)
    items.str(Dict(str, t) self) -> ((str, t)[])
    prim::Print(...) -> ()
"""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple, NoReturn

BASE_TYPES = frozenset(
    [
        "Tensor",
        "Scalar",
        "int",
        "SymInt",  # PyTorch's, an int
        "float",
        "bool",
        "str",
        "ScalarType",
        "Device",
        "Layout",
        "MemoryFormat",
        "Generator",
    ]
)
# Types of builtins that have parameters in brackets.
GENERIC_TYPES = frozenset(("Dict", "Future"))


class SchemaError(ValueError):
    """A schema text that does not follow the grammar; the message points at the place."""


class _Missing:
    """The default of an argument that has none."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


def base_of(type_: str) -> str:
    """The type without list and optional marks: "int[2]?" gives "int"."""
    return re.split(r"[\[?]", type_, maxsplit=1)[0]


def is_list(type_: str) -> bool:
    """Whether the type is a list, optional or not: "int[2]?", "Tensor?[]"."""
    return "[" in type_


def is_optional(type_: str) -> bool:
    """Whether None is a value of the type: "int?", "int[1]?", but not "Tensor?[]"."""
    return type_.endswith("?")


def plain(type_: str) -> str:
    """The type without list lengths: "int[2]?" gives "int[]?"."""
    return re.sub(r"\[\d+\]", "[]", type_)


class Arg(NamedTuple):
    """One argument: `type` as written ("int[2]?"), `alias` the text in brackets ("a!")."""

    name: str
    type: str
    default: Any = MISSING
    kwarg_only: bool = False
    alias: str = ""

    @property
    def base(self) -> str:
        """The type without list and optional marks."""
        return base_of(self.type)

    @property
    def is_tensor(self) -> bool:
        """Tensor or Tensor?, not a list."""
        return self.base == "Tensor" and not is_list(self.type)

    @property
    def is_tensor_list(self) -> bool:
        """Tensor[] or Tensor?[]."""
        return self.base == "Tensor" and is_list(self.type)

    @property
    def is_written(self) -> bool:
        """Whether the operator writes to it: `Tensor(a!)`."""
        return "!" in self.alias

    @property
    def has_default(self) -> bool:
        """Whether a call may leave it out."""
        return self.default is not MISSING

    def __str__(self) -> str:
        text = f"{_with_alias(self.type, self.alias)} {self.name}"
        return f"{text}={_show_default(self.default)}" if self.has_default else text


class Return(NamedTuple):
    """One result; `name` is empty where the schema gives none."""

    type: str
    name: str = ""
    alias: str = ""

    def __str__(self) -> str:
        return f"{_with_alias(self.type, self.alias)} {self.name}".rstrip()


class Schema(NamedTuple):
    """A parsed schema. `tuple_return` tells `-> (Tensor, Tensor)` from `-> Tensor`."""

    name: str
    overload: str
    args: tuple[Arg, ...]
    returns: tuple[Return, ...]
    varargs: bool = False  # any number of arguments follows: `...`

    @property
    def key(self) -> str:
        """ "add.Tensor", or "exp" where the overload has no name."""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    def arg(self, name: str) -> Arg:
        """The argument of that name; KeyError when there is none."""
        for arg in self.args:
            if arg.name == name:
                return arg
        raise KeyError(f"{self.key}: expected an argument name, got {name!r}")

    def parts(self) -> list[Any]:
        """[arguments, results, whether there are any number more], in plain values: [name, type,
        has_default, default, kwarg_only, alias] each, [name, type, alias] each."""
        args = [
            [a.name, a.type, a.has_default, a.default if a.has_default else None, *a[3:]]
            for a in self.args
        ]
        return [args, [[r.name, r.type, r.alias] for r in self.returns], self.varargs]

    @classmethod
    def of_parts(cls, key: str, parts: list[Any]) -> Schema:
        """The schema whose `parts` these are, lists for tuples too."""
        args, returns, varargs = parts
        made = [
            Arg(name, type_, _tuples(default) if has_default else MISSING, *rest)
            for name, type_, has_default, default, *rest in args
        ]
        results = tuple(Return(type_, name, alias) for name, type_, alias in returns)
        name, _, overload = key.partition(".")
        return cls(name, overload, tuple(made), results, varargs)

    def __str__(self) -> str:
        parts: list[str] = []
        for arg in self.args:
            if arg.kwarg_only and "*" not in parts:
                parts.append("*")
            parts.append(str(arg))
        returns = ", ".join(map(str, self.returns))
        if len(self.returns) != 1:
            returns = f"({returns})"
        return f"{self.key}({', '.join(parts)}) -> {returns}"


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _with_alias(type_: str, alias: str) -> str:
    base = base_of(type_)
    return f"{base}({alias}){type_[len(base) :]}" if alias else type_


def _show_default(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_show_default, value)) + "]"
    return repr(value)


_TOKEN = re.compile(
    r"\s*(?:(?P<arrow>->)|(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|-?inf\b)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<string>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<mark>[()\[\],*?=.!|:]))"
)


class _Parser:
    """Recursive descent over the tokens of one schema."""

    def __init__(self, text: str, builtin: bool = False) -> None:
        self.text = text
        self.builtin = builtin
        self.tokens: list[tuple[str, str, int]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                self.fail("a schema token", at, text[at])
            kind = match.lastgroup or ""
            self.tokens.append((kind, match.group(kind), match.start(kind)))
            at = match.end()
        self.tokens.append(("end", "end of text", len(text)))
        self.next = 0

    def fail(self, expected: str, at: int, got: str) -> NoReturn:
        raise SchemaError(f"schema: expected {expected}, got {got!r}\n  {self.text}\n  {' ' * at}^")

    def peek(self, ahead: int = 0) -> tuple[str, str, int]:
        return self.tokens[min(self.next + ahead, len(self.tokens) - 1)]

    def at(self, text: str) -> bool:
        kind, found, _ = self.peek()
        return found == text and kind != "string"

    def accept(self, text: str) -> bool:
        kind, found, _ = self.peek()
        if found != text or kind == "string":
            return False
        self.next += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            _, got, at = self.peek()
            self.fail(repr(text), at, got)

    def name(self, what: str) -> str:
        kind, text, at = self.peek()
        if kind != "name":
            self.fail(what, at, text)
        self.next += 1
        return text

    def schema(self) -> Schema:
        name = self.name("an operator name")
        if self.builtin and self.accept(":"):
            self.expect(":")
            name = f"{name}::{self.name('an operator name')}"
        overload = self.name("an overload name") if self.accept(".") else ""
        args, varargs = self.args()
        self.expect("->")
        returns = self.returns()
        kind, text, at = self.peek()
        if kind != "end":
            self.fail("end of text", at, text)
        return Schema(name, overload, args, returns, varargs)

    def args(self) -> tuple[tuple[Arg, ...], bool]:
        self.expect("(")
        args: list[Arg] = []
        kwarg_only = varargs = False
        while not self.accept(")"):
            if args or kwarg_only:
                self.expect(",")
            if self.builtin and self.accept("."):
                self.expect(".")
                self.expect(".")
                varargs = True
                continue
            if self.accept("*"):
                if kwarg_only:
                    self.fail("one '*'", self.peek(-1)[2], "*")
                kwarg_only = True
                continue
            args.append(self.arg(kwarg_only, {arg.name for arg in args}))
        return tuple(args), varargs

    def arg(self, kwarg_only: bool, taken: set[str]) -> Arg:
        type_, alias = self.type()
        at = self.peek()[2]
        name = self.name("an argument name")
        if name in taken:
            self.fail("distinct argument names", at, name)
        default = self.default(type_) if self.accept("=") else MISSING
        return Arg(name, type_, default, kwarg_only, alias)

    def type(self) -> tuple[str, str]:
        """A type, and the alias mark somewhere in it."""
        text, alias = self.base_type(), ""
        while True:
            if self.at("(") and not alias:
                alias = self.alias()
            elif self.accept("?"):
                text += "?"
            elif self.accept("["):
                kind, length, at = self.peek()
                if kind == "number":
                    self.next += 1
                    if not length.isdigit():
                        self.fail("a list length", at, length)
                    text += f"[{length}]"
                else:
                    text += "[]"
                self.expect("]")
            else:
                return text, alias

    def base_type(self) -> str:
        if self.builtin and self.at("("):
            return self.type_list()
        kind, base, at = self.peek()
        if kind != "name" or not (self.builtin or base in BASE_TYPES):
            self.fail("a type", at, base)
        self.next += 1
        base = "int" if base == "SymInt" else base
        return base + self.type_list() if base in GENERIC_TYPES else base

    def type_list(self) -> str:
        self.expect("(")
        types: list[str] = []
        while not self.accept(")"):
            if types:
                self.expect(",")
            types.append(self.type()[0])
        return f"({', '.join(types)})"

    def alias(self) -> str:
        self.expect("(")
        if self.builtin and self.accept("*"):
            self.expect(")")
            return "*"
        alias = self.name("an alias name")
        if self.builtin and self.accept("|"):
            alias += f"|{self.name('an alias name')}"
        if self.accept("!"):
            alias += "!"
        if self.accept("->"):
            self.expect("*")
            alias += " -> *"
        self.expect(")")
        return alias

    def default(self, type_: str) -> Any:
        kind, text, at = self.peek()
        self.next += 1
        value: Any
        if text == "[" and kind == "mark":
            items: list[Any] = []
            while not self.accept("]"):
                if items:
                    self.expect(",")
                items.append(self.default(base_of(type_)))
            value = tuple(items)
        elif kind == "number":
            value = float(text) if re.search(r"[.eEn]", text) else int(text)
        elif kind == "string" or text in ("None", "True", "False"):
            value = ast.literal_eval(text)
        elif text == "inf":
            value = float("inf")
        elif kind == "name" and base_of(type_) == "ScalarType":
            value = text
        else:
            self.fail(f"a default of type {type_}", at, text)
        if not self.builtin and not _fits(value, type_):
            self.fail(f"a default of type {type_}", at, text)
        return value

    def returns(self) -> tuple[Return, ...]:
        start = self.next
        if not self.accept("("):
            return (self.result(),)
        returns: list[Return] = []
        while not self.accept(")"):
            if returns:
                self.expect(",")
            returns.append(self.result())
        if self.builtin and self.peek()[0] != "end":  # it was a tuple's type: (int, t)[]
            self.next = start
            return (self.result(),)
        return tuple(returns)

    def result(self) -> Return:
        type_, alias = self.type()
        name = self.name("a result name") if self.peek()[0] == "name" else ""
        return Return(type_, name, alias)


def _fits(value: Any, type_: str) -> bool:
    if value is None:
        return is_optional(type_)
    base = base_of(type_)
    if isinstance(value, tuple):
        return is_list(type_)
    if isinstance(value, str):  # dtypes and devices by name: in schemas of programs
        return base in ("str", "Device", "ScalarType")
    if isinstance(value, bool):
        return base in ("bool", "Scalar")
    if isinstance(value, int):
        # One number stands for a whole list; dtypes and memory formats are TorchScript's numbers.
        return base in ("int", "Scalar", "float", "ScalarType", "Layout", "MemoryFormat")
    return base in ("float", "Scalar")


def parse(text: str) -> Schema:
    """Parses one schema; SchemaError names what was expected and points at the place."""
    return _Parser(text).schema()


def parse_builtin(text: str) -> Schema:
    """Parses the schema of a builtin."""
    return _Parser(text, builtin=True).schema()

"""Operators as the table's facts describe them: arguments by name, and bodies of composed ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

from weft import _C
from weft._C import Tensor
from weft.jit import operator_facts

_DIMENSIONS = frozenset(
    ("dim", "dims", "dim0", "dim1", "dim2", "axis", "axis0", "axis1", "start_dim", "end_dim")
    + ("source", "destination", "dimension")
)
_NUMBERED = ("ScalarType", "ScalarType?", "MemoryFormat", "MemoryFormat?", "Layout")
_SIZES = frozenset(("size", "sizes", "shape"))


class Argument(NamedTuple):
    """One argument of a schema."""

    name: str
    type: str
    has_default: bool
    default: Any
    kwarg_only: bool
    alias: str

    @property
    def is_dimension(self) -> bool:
        """Whether it is a dimension, or a list of them."""
        return self.name in _DIMENSIONS and self.type.startswith("int")

    @property
    def is_size(self) -> bool:
        """Whether it lists the sizes of the result."""
        return self.name in _SIZES and self.type.startswith("int[")

    def value(self, given: Any) -> Any:
        """What was given, or the default; that of a dtype or a format stays Ellipsis, because
        schemas number those. An int stands for a list of them."""
        if given is Ellipsis and (self.type not in _NUMBERED or self.default is None):
            given = self.default
        if isinstance(given, int) and self.type.startswith("int["):
            return [given] * int(self.type[4 : self.type.index("]")] or 1)
        return given

    @property
    def is_written(self) -> bool:
        """Whether the operator writes to it."""
        return self.alias.endswith("!")


class Operator:
    """The parts of a schema, and the facts of the row that it is a form of."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.name = key.partition(".")[0]
        data = dict(operator_facts.entries(f"aten::{self.name}"))[f"aten::{self.key}"]
        facts = operator_facts.facts_of(data)
        arguments, self.returns, _ = facts["schema"]
        self.arguments = [Argument(*each) for each in arguments]
        self.row = operator_facts.row(facts.get("row", self.key))
        self.writes_out = bool(facts.get("out"))

    @property
    def kind(self) -> str:
        """The kind of the row's body; empty for builtins."""
        return self.row.kind if self.row is not None else ""

    @property
    def in_place(self) -> bool:
        """Whether it writes to its first argument."""
        return bool(self.arguments) and self.arguments[0].is_written

    @cached_property
    def body_writes(self) -> bool:
        """Whether a composed row is made of operators that write in place."""
        body = self.row.body if self.row is not None else None
        return any(key.partition(".")[0].endswith("_") for key in _keys_in(body or []))

    @property
    def gives_tensors(self) -> bool:
        """Whether every result is a tensor or a list of them."""
        return all(each[1].startswith("Tensor") for each in self.returns)

    def index(self, name: str) -> int:
        """The place of an argument."""
        return [each.name for each in self.arguments].index(name)

    def value(self, given: Sequence[Any], name: str) -> Any:
        """What was given for an argument, or its default."""
        place = self.index(name)
        return self.arguments[place].value(given[place])

    def call(self, given: Sequence[Any]) -> Any:
        """Asks for the operator; Ellipsis stands for a default."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for place, (argument, value) in enumerate(zip(self.arguments, given)):
            if value is Ellipsis or (argument.type in _NUMBERED and value == argument.default):
                continue  # a body has the default's number
            if argument.type == "MemoryFormat?" and isinstance(value, int):
                value = _C.contiguous_format  # the one format that bodies ask for
            if argument.kwarg_only or len(args) < place:
                kwargs[argument.name] = value
            else:
                args.append(value)
        return getattr(_C._aten, self.name)(*args, **kwargs)


@cache
def operator(schema: str) -> Operator:
    """The operator with a schema of the table."""
    return operator_of_key(schema.partition("(")[0])


@cache
def operator_of_key(key: str) -> Operator:
    """The operator with a key of the table, "add.Tensor"."""
    return Operator(key)


# Composed rows ------------------------------------------------------------------------------------


def _keys_in(tree: Any) -> Iterator[str]:
    """The operators that a body names."""
    if isinstance(tree, list):
        if len(tree) == 4 and tree[0] == "op":
            yield tree[2]
        for each in tree:
            yield from _keys_in(each)


class CannotEvaluate(Exception):
    """A body says what Python cannot, or decides by elements."""


class _Returned(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


def run_body(op: Operator, given: Sequence[Any]) -> Any:
    """What a composed row does, by the operators that it is made of. CannotEvaluate."""
    return Body().run(op, given)


class Body:
    """The meaning of a composed row's body. `call` runs an operator, `check` is told conditions
    that the row asks for: those who run bodies on other things than tensors override them."""

    def call(self, key: str, args: Sequence[Any]) -> Any:
        """What an operator of the table gives; Ellipsis stands for a default."""
        op = operator_of_key(key)
        if not op.gives_tensors:
            raise CannotEvaluate
        return op.call(args)

    def check(self, holds: Any) -> None:
        """CannotEvaluate where a condition does not hold: the operator itself raises better."""
        if not holds:
            raise CannotEvaluate

    def run(self, op: Operator, given: Sequence[Any]) -> Any:
        """What the row gives for these arguments. CannotEvaluate."""
        assert op.row is not None
        names = {a.name: a.value(v) for a, v in zip(op.arguments, given)}
        try:
            self._run(op.row.body or [], names)
        except _Returned as end:
            return end.value
        raise CannotEvaluate

    def _run(self, block: list[Any], names: dict[str, Any]) -> None:
        for kind, target, tree, then, otherwise in block:
            value = None if tree is None else self._value(tree, names)
            if kind == "return":
                raise _Returned(value)
            if kind == "if":
                self._run(then if value else otherwise, names)
            elif kind == "check":
                self.check(value)
            elif kind in ("assign", "reassign"):
                several = isinstance(target, (list, tuple))
                names.update(zip(target, value or ()) if several else [(target, value)])

    def _value(self, tree: list[Any], names: dict[str, Any]) -> Any:
        kind, type_, value, args = tree
        if kind == "const":
            if type_ == "ScalarType":
                return getattr(_C, value)
            return float(value) if type_ == "float" else value
        if kind == "name":
            return names[value]
        if kind == "if":
            return self._value(args[1] if self._value(args[0], names) else args[2], names)
        if kind == "builtin" and value in ("and", "or"):
            first = self._value(args[0], names)
            return self._value(args[1], names) if bool(first) == (value == "and") else first
        items = [self._value(each, names) for each in args]
        if kind in ("list", "tuple"):
            return items
        if kind == "convert":
            is_known = isinstance(items[0], (bool, int, float))
            return float(items[0]) if type_ == "float" and is_known else items[0]
        if kind == "index":
            return items[0][value]
        if kind == "op":
            return self.call(value, items)
        if value not in _BUILTINS:
            raise CannotEvaluate
        return _BUILTINS[value](*items)


def _decided(value: Any) -> bool:
    if isinstance(value, Tensor):
        raise CannotEvaluate
    return bool(value)


def _dtype(value: Any) -> Any:
    if not isinstance(value, (int, float, complex)):
        return value.dtype
    raise CannotEvaluate


def _kept_sizes(sizes: Sequence[int], dim: Sequence[int] | None) -> list[int]:
    dims = {each % len(sizes) for each in dim} if dim and sizes else set(range(len(sizes)))
    return [1 if i in dims else n for i, n in enumerate(sizes)]


def _reduced_count(sizes: Sequence[int], dim: Sequence[int] | None) -> int:
    kept = _kept_sizes(sizes, dim)
    return math.prod(before for before, after in zip(sizes, kept) if after == 1)


_BUILTINS: dict[str, Any] = {
    "shape": lambda x: list(x.shape),
    "dtype": _dtype,
    "device": lambda x: x.device,
    "dim": lambda x: x.dim(),
    "numel": lambda x: x.numel(),
    "size": lambda x, dim: x.size(dim),
    "is_complex": lambda x: x.is_complex if isinstance(x, _C.dtype) else x.is_complex(),
    "is_floating_point": lambda x: (
        x.is_floating_point if isinstance(x, _C.dtype) else x.is_floating_point()
    ),
    "shapes_match": lambda a, b: list(a) == list(b),
    "len": len,
    "product": math.prod,
    "slice_of": lambda items, start, stop: list(items)[start:stop],
    "concat": lambda a, b: [*a, *b],
    "at": lambda items, i: items[i],
    "wrap_dim": lambda dim, rank: dim % max(rank, 1),
    "kept_sizes": _kept_sizes,
    "reduced_count": _reduced_count,
    "last_dims": lambda count: list(range(-count, 0)),
    "list_or_empty": lambda items: list(items or ()),
    "int": int,
    "float": float,
    "bool": _decided,
    "neg": lambda x: -x,
    "not": lambda x: not x,
    "is_none": lambda x: x is None,
    "is_integral": lambda x: isinstance(x, int),
    "promote": _C.promote_types,
    "max": max,
    "min": min,
    "default_dtype": lambda: _C.get_default_dtype(),
    "grad_enabled": lambda: True,  # the bodies that ask know a faster way without a graph
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}

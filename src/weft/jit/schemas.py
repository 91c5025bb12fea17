"""Operators by name: those of the table (`weft._ops`) and the builtins (`weft._ops.builtins`).
Neither is imported: what is asked of them is in the extension (`operator_facts.py`).

    candidates("aten::add")      every overload, in the order in which they are tried
    of("aten::add.Tensor")       one of them; KeyError where there is none

Nothing is parsed before it is asked for: looking a name up costs a few schemas, not a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from typing import Any

from weft import _C
from weft.jit import operator_facts
from weft.jit.ir import types as ty
from weft.jit.schema_parts import Arg, Return, Schema, parse, type_of_text

__all__ = ["Operator", "all_kinds", "candidates", "find", "method_candidates", "of"]

_VALUES = {ty.INT, ty.FLOAT, ty.BOOL, ty.COMPLEX, ty.STR, ty.DTYPE, ty.DEVICE, ty.NONE}


def _plain_parts(parts: Iterable[Any]) -> list[ty.Type | None]:
    """The types of arguments or results, of their items where they are lists of values; None for
    other containers."""
    types = [ty.non_none(part.type) for part in parts]
    items = [each.elem if isinstance(each, ty.ListType) else each for each in types]
    return [
        item if item in _VALUES or (item is each and isinstance(each, ty.BaseType)) else None
        for item, each in zip(items, types)
    ]


class Operator:
    """One overload. `facts` is what tools/gen/facts.py wrote of it."""

    def __init__(self, kind: str, facts: bytes) -> None:
        self.kind = kind
        self._facts = facts

    def __repr__(self) -> str:
        return f"<operator {self.kind}>"

    @property
    def name(self) -> str:
        """The kind without the overload: "aten::add"."""
        return self.kind.partition(".")[0]

    @property
    def overload(self) -> str:
        """The overload's name, often empty."""
        return self.kind.partition(".")[2]

    @cached_property
    def schema(self) -> Schema:
        """Its schema, made at the first use."""
        return parse(self.kind, self.facts["schema"])

    @cached_property
    def text(self) -> str:
        """Its schema as a text."""
        return operator_facts.text_of(self.kind, self.facts)

    @property
    def args(self) -> tuple[Arg, ...]:
        """The arguments of the schema."""
        return self.schema.args

    @property
    def returns(self) -> tuple[Return, ...]:
        """The results of the schema."""
        return self.schema.returns

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What is known of it besides its schema."""
        return operator_facts.facts_of(self._facts)

    @cached_property
    def is_builtin(self) -> bool:
        """Whether it is a builtin, not a row of the operator table or a form of one."""
        return "row" not in self.facts and "kind" not in self.facts

    @cached_property
    def row(self) -> operator_facts.RowFacts | None:
        """Its row in the operator table; None for builtins."""
        if self.is_builtin:
            return None
        return operator_facts.row(self.facts.get("row") or self.kind.removeprefix("aten::"))

    @cached_property
    def writes_self(self) -> bool:
        """Whether it is a row, or a form of one, that changes its first argument."""
        if self.is_builtin or "out" in self.facts:
            return False
        return bool(self.args) and self.args[0].is_written

    @cached_property
    def tags(self) -> frozenset[str]:
        """The tags of its row."""
        return frozenset(self.facts.get("tags", ())) if self.row is None else self.row.tags

    @cached_property
    def writes(self) -> bool:
        """Whether it changes an argument."""
        return any(arg.is_written for arg in self.args)

    @cached_property
    def aliases(self) -> bool:
        """Whether a result may share memory with an argument: views, items of lists."""
        return any(result.alias for result in self.returns)

    @cached_property
    def is_separate(self) -> bool:
        """Whether its results share nothing with its arguments, and it puts none into another:
        tensors and plain values come and go, or what it gives are plain values."""
        if self.aliases or self.may_give_input:
            return False
        returns, given = map(_plain_parts, (self.returns, self.args))
        if all(given) and all(returns) and not self.schema.varargs:
            return True
        return not self.writes and _VALUES.issuperset(returns)

    @cached_property
    def may_give_input(self) -> bool:
        """Whether a result may be the first argument itself though the schema does not say so."""
        return "may_give_input" in self.tags

    @cached_property
    def nondeterministic(self) -> bool:
        """Whether the same arguments may give another result: random numbers, modes, clocks."""
        if self.is_builtin:
            return "reads_state" in self.tags
        return "random" in self.tags or any(
            ty.GENERATOR in (arg.type, *arg.type.children) for arg in self.args
        )

    @cached_property
    def has_side_effect(self) -> bool:
        """Whether it changes what no argument shows: a seed, a mode, the screen."""
        return self.is_builtin and "side_effect" in self.tags

    @cached_property
    def pure(self) -> bool:
        """Whether a call whose results nobody uses may be left out."""
        return not (self.writes or self.has_side_effect or self.nondeterministic)

    @cached_property
    def keeps_shapes(self) -> bool:
        """Whether the dtype and the sizes of its results follow from those of tensors alone."""
        row = self.row
        names = {arg.name for arg in self.args}
        return row is not None and row.kind == "pointwise" and "dtype" not in names

    @cached_property
    def commutative(self) -> bool:
        """Whether its first two arguments may change places."""
        return "commutative" in self.tags

    @cached_property
    def python(self) -> Callable[..., Any] | None:
        """The same on Python values, given every argument in order; None: not to be folded."""
        if not self.pure:
            return None
        return self._row_python if self.is_builtin else self.evaluate

    @cached_property
    def folds(self) -> bool:
        """Whether there is a `python`; unlike that, asking loads nothing."""
        return self.pure and (not self.is_builtin or "folds" in self.facts)

    @cached_property
    def _row_python(self) -> Callable[..., Any] | None:
        if "folds" not in self.facts:
            return None
        return operator_facts.python_of(self.kind, self.facts["family"])

    @cached_property
    def evaluate(self) -> Callable[..., Any] | None:
        """Like `python`, also where the result must be made anew by each call: a fresh tensor, a
        changed argument. What tests compare programs with."""
        if self.is_builtin:
            return self._row_python or _from_data(self.name)
        function = getattr(_C._aten, self.name[6:])
        names = [arg.name for arg in self.args if arg.kwarg_only]
        split = len(self.args) - len(names)

        def call(*args: Any) -> Any:
            return function(*args[:split], **dict(zip(names, args[split:])))

        return call


def _from_data(name: str) -> Callable[..., Any] | None:
    """The functions of `weft` behind builtins that make tensors; rows cannot name them."""

    def make(t: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
        return _C.tensor(t, dtype=dtype, device=device, requires_grad=requires_grad)

    def convert(t: Any, dtype: Any = None, device: Any = None) -> Any:
        return _C.as_tensor(t, dtype=dtype, device=device)

    return {"aten::tensor": make, "aten::as_tensor": convert, "prim::NumToTensor": make}.get(name)


# ---- the index ----


_found: dict[str, tuple[Operator, ...]] = {}
_by_kind: dict[str, Operator] = {}


def candidates(name: str) -> tuple[Operator, ...]:
    """The overloads of a name such as "aten::add", in the order in which they are tried: operators
    of the table first, operators that take anything last. Empty where there is none."""
    known = _found.get(name)
    if known is None:
        every = [Operator(kind, facts) for kind, facts in operator_facts.entries(name)]
        table = [operator for operator in every if not operator.is_builtin]
        rows = [operator for operator in every if operator.is_builtin]
        known = tuple(sorted(table, key=_tensors_first) + sorted(rows, key=_anything_last))
        _found[name] = known
    return known


# Of the many overloads of a name few are tried, so they are put in order by parts of schemas that
# are not made yet (see schema_parts.parse).


def _tensors_first(operator: Operator) -> tuple[bool, int]:
    """A number must not win over a 0-d tensor, whose gradient it would lose; out= forms last."""
    args, _, _ = operator.facts["schema"]
    has_out = any(kwarg_only and "!" in alias for *_, kwarg_only, alias in args)
    return has_out, -sum(type_of_text(type_) is ty.TENSOR for _, type_, *_ in args)


def _anything_last(operator: Operator) -> int:
    """Exact types, then Scalar, then types left open, then Any."""
    args, _, varargs = operator.facts["schema"]
    ranks: dict[ty.Type, int] = {ty.NUMBER: 1, ty.ANY: 3}
    types = [type_of_text(type_) for _, type_, *_ in args] + [ty.ANY] * varargs
    return max((2 if isinstance(t, ty.TypeVar) else ranks.get(t, 0) for t in types), default=0)


def of(kind: str) -> Operator:
    """The operator of a kind such as "aten::add.Tensor"; KeyError where there is none."""
    found = _by_kind.get(kind)
    if found is None:
        for operator in candidates(kind.partition(".")[0]):
            _by_kind.setdefault(operator.kind, operator)
        found = _by_kind.get(kind)
    if found is None:
        raise KeyError(f"schemas: expected the name of an operator, got {kind!r}")
    return found


@cache
def tags_of(kind: str) -> frozenset[str]:
    """The tags of the operator of a kind; none for the IR's own nodes."""
    operator = find(kind)
    return frozenset() if operator is None else operator.tags


def find(kind: str) -> Operator | None:
    """As `of`, but None where there is none."""
    try:
        return of(kind)
    except KeyError:
        return None


def all_kinds() -> Iterator[str]:
    """The kind of every operator: of the table, then of the builtins."""
    every = [operator for name in operator_facts.names() for operator in candidates(name)]
    yield from (operator.kind for operator in every if not operator.is_builtin)
    yield from (operator.kind for operator in every if operator.is_builtin)


# ---- methods of Python ----

# Methods and properties whose operator has another name.
_METHODS = {
    "__setitem__": "aten::_set_item", "__delitem__": "aten::Delete", "__len__": "aten::len",
    "__str__": "aten::str", "__repr__": "aten::repr", "__iadd__": "aten::add_",
    "__imul__": "aten::mul_", "tolist": "prim::tolist", "nelement": "aten::numel",
    "get_device": "aten::get_device", "ndimension": "aten::dim", "data_ptr": "",
}  # fmt: skip
_NO_METHODS = frozenset(("tensor", "as_tensor", "device", "dict", "list", "warn"))


def method_candidates(name: str, receiver: ty.Type | None = None) -> tuple[Operator, ...]:
    """The operators behind a method of a Tensor, str, list, dict, tuple or number; only those whose
    first argument is of the receiver's sort, where one is given. Attributes such as `shape` are
    here too ("prim::shape")."""
    if name in _NO_METHODS:
        return ()
    full = _METHODS.get(name, f"aten::{name}")
    found = candidates(full) or candidates(f"prim::{name}")
    if receiver is None:
        return tuple(operator for operator in found if operator.args)
    return tuple(
        operator
        for operator in found
        if operator.args and _accepts(operator.args[0].type, receiver)
    )


def _accepts(formal: ty.Type, receiver: ty.Type) -> bool:
    if isinstance(formal, ty.TypeVar) or formal is ty.ANY:
        return True
    if isinstance(formal, ty.OptionalType):
        return _accepts(formal.elem, receiver)
    if formal.children:
        return type(formal) is type(receiver) and all(
            _accepts(f, r) for f, r in zip(formal.children, receiver.children)
        )
    if formal is ty.NUMBER:
        return receiver in (ty.INT, ty.FLOAT, ty.BOOL, ty.COMPLEX, ty.NUMBER)
    return formal == receiver

"""Operators by name: those of the table (`weft._ops`) and the builtins (`weft._ops.builtins`).
Neither is imported: what is asked of them is in the extension (`operator_facts.py`).

    candidates("aten::add")      every overload, in the order in which they are tried
    of("aten::add.Tensor")       one of them; KeyError where there is none

Nothing is parsed before it is asked for: looking a name up costs a few schemas, not a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any

from weft import _C
from weft.jit import operator_facts
from weft.jit.ir import parse_type
from weft.jit.ir import types as ty
from weft.jit.ir.fresh_stack import literal_eval
from weft.jit.ir.record import record

__all__ = [
    "Arg",
    "Operator",
    "Return",
    "Schema",
    "all_kinds",
    "candidates",
    "function_kind",
    "method_candidates",
    "of",
]

# Types that only schemas know. The frontend knows better than they which enums and classes fit.
_SCHEMA_TYPES = {"AnyEnumType": ty.ANY, "AnyClassType": ty.ANY, "AnyClassType?": ty.ANY}
# The numbers by which schemas name dtypes in defaults.
_DTYPE_NUMBERS = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32",
    7: "float64", 9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16",
}  # fmt: skip
_WORDS = {"False": False, "True": True}  # defaults that mean what they say


@record(frozen=True)
class Arg:
    """An argument. `length` is the 2 of `int[2]`: one number may stand for the list."""

    name: str
    type: ty.Type
    default: Any
    has_default: bool
    kwarg_only: bool
    length: int | None
    alias: str  # "a!", "a", "a -> *", or empty

    @property
    def is_written(self) -> bool:
        """Whether the operator changes it."""
        return "!" in self.alias

    @property
    def alias_set(self) -> str:
        """The name of the memory it shares with results of the same set; empty: with none."""
        return self.alias.rstrip("!").split(" ")[0]


@record(frozen=True)
class Return:
    """A result; `alias` as for arguments, "*" where it may share memory with any item of one."""

    name: str
    type: ty.Type
    alias: str


@record(frozen=True)
class Schema:
    """A parsed schema. With `varargs` the last argument is a tuple of all further ones."""

    kind: str
    args: tuple[Arg, ...]
    returns: tuple[Return, ...]
    varargs: bool

    def arg(self, name: str) -> Arg:
        """The argument of that name; KeyError where there is none."""
        for arg in self.args:
            if arg.name == name:
                return arg
        raise KeyError(f"{self.kind}: expected the name of an argument, got {name!r}")


class Operator:
    """One overload. `text` is its schema, `facts` what tools/gen/facts.py wrote of it."""

    def __init__(self, kind: str, text: str, facts: bytes) -> None:
        self.kind = kind
        self.text = text
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
        return _parse(self.kind, self.facts["schema"])

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
        tensors and plain values come and go."""
        parts: list[Any] = [*self.args, *self.returns]
        plain = all(isinstance(ty.non_none(part.type), ty.BaseType) for part in parts)
        return (
            plain and not self.schema.varargs and not any(result.alias for result in self.returns)
        )

    @cached_property
    def nondeterministic(self) -> bool:
        """Whether the same arguments may give another result: random numbers, modes, clocks."""
        if self.is_builtin:
            return "reads_state" in self.tags
        return "random" in self.tags or any(
            arg.type is ty.GENERATOR or _is_generator(arg.type) for arg in self.args
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
    import weft

    def make(t: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
        return weft.tensor(t, dtype=dtype, device=device, requires_grad=requires_grad)

    def convert(t: Any, dtype: Any = None, device: Any = None) -> Any:
        return weft.as_tensor(t, dtype=dtype, device=device)

    return {"aten::tensor": make, "aten::as_tensor": convert, "prim::NumToTensor": make}.get(name)


def _is_generator(type_: ty.Type) -> bool:
    return ty.GENERATOR in type_.children


# ---- parsing ----


def _parse(kind: str, parts: list[Any]) -> Schema:
    """A schema of the parts that tools/gen/facts.py took it apart into."""
    args, returns, varargs = parts
    parsed = [_arg(*each) for each in args]
    if varargs:
        parsed.append(Arg("args", ty.ANY, None, False, False, None, ""))
    results = tuple(Return(name, _type(type_), alias) for name, type_, alias in returns)
    return Schema(kind, tuple(parsed), results, varargs)


def _arg(name: str, type_: str, default: str | None, kwarg_only: bool, alias: str) -> Arg:
    length = type_.removesuffix("?").removesuffix("]").rpartition("[")[2]
    parsed = _type(type_)
    return Arg(
        name,
        parsed,
        _default(default, parsed),
        default is not None,
        kwarg_only,
        int(length) if length.isdecimal() else None,
        alias,
    )


@cache
def _type(text: str) -> ty.Type:
    return _SCHEMA_TYPES.get(text) or parse_type(text)


def _default(text: str | None, type_: ty.Type) -> Any:
    if text is None or text == "None":
        return None
    if text in _WORDS:
        return _WORDS[text]
    value = literal_eval(text.replace("inf", "1e999"))
    if type_ is ty.DTYPE or ty.DTYPE in type_.children:
        return getattr(_C, _DTYPE_NUMBERS[value])
    return float(value) if type_ is ty.FLOAT else value


# ---- the index ----


_found: dict[str, tuple[Operator, ...]] = {}
_by_kind: dict[str, Operator] = {}


def candidates(name: str) -> tuple[Operator, ...]:
    """The overloads of a name such as "aten::add", in the order in which they are tried: operators
    of the table first, operators that take anything last. Empty where there is none."""
    known = _found.get(name)
    if known is None:
        every = [
            Operator(_kind_of(text), text, facts) for text, facts in operator_facts.texts(name)
        ]
        table = [operator for operator in every if not operator.is_builtin]
        rows = [operator for operator in every if operator.is_builtin]
        known = tuple(sorted(table, key=_tensors_first) + sorted(rows, key=_anything_last))
        _found[name] = known
    return known


def _kind_of(text: str) -> str:
    kind = text[: text.index("(")]
    return kind if "::" in kind else f"aten::{kind}"


# Of the many overloads of a name few are tried, so they are put in order by parts of schemas that
# are not made yet (see _parse).


def _tensors_first(operator: Operator) -> tuple[bool, int]:
    """A number must not win over a 0-d tensor, whose gradient it would lose; out= forms last."""
    args, _, _ = operator.facts["schema"]
    has_out = any(kwarg_only and "!" in alias for _, _, _, kwarg_only, alias in args)
    return has_out, -sum(_type(type_) is ty.TENSOR for _, type_, _, _, _ in args)


def _anything_last(operator: Operator) -> int:
    """Exact types, then Scalar, then types left open, then Any."""
    args, _, varargs = operator.facts["schema"]
    ranks: dict[ty.Type, int] = {ty.NUMBER: 1, ty.ANY: 3}
    types = [_type(type_) for _, type_, _, _, _ in args] + [ty.ANY] * varargs
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


def all_kinds() -> Iterator[str]:
    """The kind of every operator: of the table, then of the builtins."""
    every = [operator for name in operator_facts.names() for operator in candidates(name)]
    yield from (operator.kind for operator in every if not operator.is_builtin)
    yield from (operator.kind for operator in every if operator.is_builtin)


# ---- methods and functions of Python ----

# Methods and properties whose operator has another name.
_METHODS = {
    "__setitem__": "aten::_set_item", "__delitem__": "aten::Delete", "__len__": "aten::len",
    "__str__": "aten::str", "__repr__": "aten::repr", "__iadd__": "aten::add_",
    "__imul__": "aten::mul_", "tolist": "prim::tolist", "nelement": "aten::numel",
    "get_device": "aten::get_device", "ndimension": "aten::dim", "data_ptr": "",
}  # fmt: skip
_NO_METHODS = frozenset(("tensor", "as_tensor", "manual_seed", "device", "dict", "list", "warn"))


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


@cache
def _functions() -> dict[int, tuple[Any, str]]:
    """Kinds by the identity of Python's own functions; the function is kept so that it stays."""
    import cmath
    import math
    import operator
    import time

    table: list[tuple[Any, str]] = []
    for module in (math, cmath):
        for name, function in vars(module).items():
            if name in _OF_TENSORS or not callable(function):
                continue
            if operator_facts.exists(f"aten::{name}"):
                table.append((function, f"aten::{name}"))
    for name, function in vars(operator).items():
        if not callable(function) or name.startswith("_"):
            continue
        kind = _OPERATORS.get(name, f"aten::{name}")
        if name in _OPERATORS or (name in _SAME_OPERATORS and operator_facts.exists(kind)):
            table.append((function, kind))
    table += [
        (math.remainder, "aten::mathremainder"), (math.fmod, "aten::fmod"),
        (math.pow, "aten::pow"), (cmath.phase, "aten::angle"), (cmath.rect, "aten::polar"),
        (len, "aten::len"), (abs, "prim::abs"), (min, "prim::min"), (max, "prim::max"),
        (sum, "aten::sum"), (all, "aten::all"), (any, "aten::any"), (sorted, "aten::sorted"),
        (round, "aten::round"), (divmod, "aten::divmod"), (pow, "aten::pow"), (str, "aten::str"),
        (int, "aten::Int"), (float, "aten::Float"), (bool, "aten::Bool"),
        (complex, "aten::Complex"), (repr, "aten::repr"), (format, "aten::format_spec"),
        (chr, "aten::chr"), (ord, "aten::ord"), (hex, "aten::hex"), (oct, "aten::oct"),
        (bin, "aten::bin"), (hash, "aten::hash"), (list, "aten::list"), (dict, "aten::dict"),
        (print, "prim::Print"), (time.time, "aten::time"),
        (time.perf_counter, "aten::perf_counter"),
    ]  # fmt: skip
    return {id(function): (function, kind) for function, kind in table}


_OF_TENSORS = frozenset(("dist", "exp2", "nextafter", "prod"))  # not of numbers, as those of math
_SAME_OPERATORS = frozenset(
    ("add", "sub", "mul", "neg", "floordiv", "pow", "eq", "ne", "lt", "le", "gt", "ge", "matmul")
)
_OPERATORS = {
    "truediv": "aten::div", "mod": "aten::remainder", "and_": "aten::__and__",
    "or_": "aten::__or__", "xor": "aten::__xor__", "lshift": "aten::__lshift__",
    "rshift": "aten::__rshift__", "not_": "aten::__not__", "is_": "aten::__is__",
    "is_not": "aten::__isnot__", "invert": "aten::bitwise_not", "inv": "aten::bitwise_not",
    "abs": "prim::abs", "getitem": "aten::__getitem__", "concat": "aten::add",
    "iadd": "aten::add_", "imul": "aten::mul_",
}  # fmt: skip


def function_kind(function: Any) -> str | None:
    """The name of the operators that a Python callable stands for, or None.

    >>> import math, weft
    >>> function_kind(weft.relu), function_kind(math.sqrt), function_kind(weft.Tensor.add_)
    ('aten::relu', 'aten::sqrt', 'aten::add_')
    """
    if type(function) in (_C._OpFunction, _C._OpMethod):
        return f"aten::{function.__name__}"
    known = _functions().get(id(function))
    if known is not None:
        return known[1]
    return _by_name().get(id(function), (None, None))[1]


@cache
def _by_name() -> dict[int, tuple[Any, str]]:
    """Functions of `weft` written in Python for which there is a builtin."""
    import weft

    names = (
        "tensor", "as_tensor", "manual_seed", "is_grad_enabled", "get_default_dtype",
        "promote_types", "can_cast", "is_floating_point", "is_complex", "numel", "device",
        "broadcast_shapes",
    )  # fmt: skip
    table = [(getattr(weft, name, None), f"aten::{name}") for name in names]
    found = {id(function): (function, kind) for function, kind in table if function is not None}
    for name in ("dim", "numel", "size", "stride", "is_contiguous", "is_floating_point",
                 "is_complex", "element_size", "storage_offset", "get_device", "requires_grad_",
                 "cpu", "type_as"):  # fmt: skip
        method = getattr(weft.Tensor, name, None)
        if method is not None:
            found[id(method)] = (method, f"aten::{name}")
    return found

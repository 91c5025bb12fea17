"""The language of gradient formulas and compose bodies: a small part of Python, as a typed tree.

What may be written: names of schema arguments, `grad` or `grads[i]`, `result` or `result0`...;
numbers, strings, lists, None; operators; comparisons; `a if c else b`; operators of the table as
functions or methods; the accessors and helpers in BUILTINS. Compose functions add assignments,
`if`, `return`, calls for their effect (`x.copy_(y)`) and `check(condition, "text", value, ...)`.

The tree names operators of the table with all arguments in place, so that a printer (C++ here, IR
in the compiler) only walks it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft._ops.schema import Schema, is_list, is_optional, plain


class FormulaError(ValueError):
    """A formula that does not parse or type; the message names the row and the text."""


@dataclass(frozen=True)
class Expr:
    """One node: `kind` is const, name, op, builtin, list, index, if, or convert."""

    kind: str
    type: str
    value: Any = None
    args: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Statement:
    """One step of a body: assign, if, return, do or check (with an error class in `value`)."""

    kind: str
    value: Any = None
    expr: Expr | None = None
    then: tuple[Statement, ...] = ()
    other: tuple[Statement, ...] = ()
    parts: tuple[Expr, ...] = ()


_ORDERED = ("int", "float", "Scalar")
_COMPARABLE = (*_ORDERED, "str", "bool", "ScalarType", "Device")


def _pair(type_: str, result: str = "") -> tuple[tuple[str, ...], str]:
    """Two arguments of one type; the result has it too, unless said otherwise."""
    return (type_, type_), result or type_


# name: one or more (argument types, result type).
BUILTINS: Mapping[str, Sequence[tuple[tuple[str, ...], str]]] = {
    # what a tensor looks like
    "shape": [(("Tensor",), "int[]")],
    "dtype": [(("Tensor",), "ScalarType"), (("Scalar",), "ScalarType")],
    "device": [(("Tensor",), "Device")],
    "dim": [(("Tensor",), "int")],
    "numel": [(("Tensor",), "int")],
    "size": [(("Tensor", "int"), "int")],
    "stride": [(("Tensor",), "int[]")],
    "storage_offset": [(("Tensor",), "int")],
    "is_complex": [(("Tensor",), "bool"), (("ScalarType",), "bool")],
    "is_floating_point": [(("Tensor",), "bool"), (("ScalarType",), "bool")],
    "is_float8": [(("ScalarType",), "bool")],
    "is_contiguous": [(("Tensor",), "bool")],
    "same": [(("Tensor", "Tensor"), "bool")],
    "sizes": [(("Tensor[]", "int"), "int[]")],
    "shapes_match": [(("int[]", "int[]"), "bool")],
    # lists
    "len": [(("int[]",), "int"), (("Tensor[]",), "int")],
    "product": [(("int[]",), "int")],
    "slice_of": [(("int[]", "int?", "int?"), "int[]")],
    "concat": [(("int[]", "int[]"), "int[]")],
    "at": [(("int[]", "int"), "int"), (("Tensor[]", "int"), "Tensor")],
    "wrap_dim": [(("int", "int"), "int")],
    "kept_sizes": [(("int[]", "int[]?"), "int[]")],
    "reduced_count": [(("int[]", "int[]?"), "int")],
    "negated": [(("int[]",), "int[]")],
    "inverse_permutation": [(("int[]",), "int[]")],
    "moved_dims": [(("int", "int[]", "int[]"), "int[]")],
    "last_dims": [(("int",), "int[]")],
    "list_or_empty": [(("int[]?",), "int[]")],
    "broadcast_sizes": [(("int[]", "int[]"), "int[]")],
    # numbers
    "int": [(("Scalar",), "int"), (("bool",), "int")],
    "float": [(("Scalar",), "float"), (("int",), "float")],
    "bool": [(("Scalar",), "bool"), (("Tensor",), "bool")],
    "is_integral": [(("Scalar",), "bool")],
    "conj": [(("Scalar",), "Scalar")],
    "neg": [(("int",), "int"), (("float",), "float"), (("Scalar",), "Scalar")],
    "not": [(("bool",), "bool")],
    "and": [(("bool", "bool"), "bool")],
    "or": [(("bool", "bool"), "bool")],
    "is_none": [(("Tensor?",), "bool"), (("any?",), "bool")],
    "promote": [(("ScalarType", "ScalarType"), "ScalarType")],
    "max": [(("int", "int"), "int"), (("float", "float"), "float")],
    "min": [(("int", "int"), "int")],
    "default_dtype": [((), "ScalarType")],
    "grad_enabled": [((), "bool")],
    "add": [_pair("int"), _pair("float"), _pair("Scalar")],
    "sub": [_pair("int"), _pair("float"), _pair("Scalar")],
    "mul": [_pair("int"), _pair("float"), _pair("Scalar")],
    "div": [_pair("float"), _pair("Scalar")],
    "floordiv": [_pair("int")],
    "mod": [_pair("int")],
    "lt": [_pair(type_, "bool") for type_ in _ORDERED],
    "le": [_pair(type_, "bool") for type_ in _ORDERED],
    "gt": [_pair(type_, "bool") for type_ in _ORDERED],
    "ge": [_pair(type_, "bool") for type_ in _ORDERED],
    "eq": [_pair(type_, "bool") for type_ in _COMPARABLE],
    "ne": [_pair(type_, "bool") for type_ in _COMPARABLE],
}

# Accessors that need no values: a formula that uses only these saves no tensor.
META = frozenset(
    "shape dtype device dim numel size sizes stride storage_offset is_complex "  # noqa: SIM905
    "is_floating_point is_float8".split()
)


def tuple_types(type_: str) -> list[str]:
    """The element types of a tuple type "(Tensor, Tensor)"."""
    return [part for part in type_[1:-1].split(", ") if part]


def return_type(schema: Schema) -> str:
    """The type of a call: one type, or "(Tensor, Tensor)"."""
    types = [plain(ret.type) for ret in schema.returns]
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


def conversion_cost(got: str, wanted: str) -> int | None:
    """How far `got` is from `wanted`: 0 for the same type, None where it cannot be passed."""
    if got == wanted:
        return 0
    if wanted == "any?":
        return 1 if is_optional(got) else None
    if got == "None":
        return 1 if is_optional(wanted) else None
    if got == "[]":
        return 1 if is_list(wanted) else None
    if is_optional(wanted):
        inner = conversion_cost(got, wanted[:-1])
        return None if inner is None else inner + 1
    if is_optional(got):
        return 5 if got[:-1] == wanted else None
    if (got, wanted) in (("MemoryFormat", "int"), ("int", "MemoryFormat"), ("Layout", "int")):
        return 1
    if (got, wanted) in (("Tensor[]", "Tensor?[]"), ("Tensor?[]", "Tensor[]")):
        return 1
    chain = ("bool", "int", "float", "Scalar")
    if got in chain and wanted in chain and chain.index(got) < chain.index(wanted):
        return 2 * (chain.index(wanted) - chain.index(got)) + (8 if got == "bool" else 0)
    return None


def argument_types(schema: Schema) -> dict[str, str]:
    """Name to type of every argument, list lengths dropped."""
    return {arg.name: plain(arg.type) for arg in schema.args}


def gradient_names(schema: Schema) -> dict[str, str]:
    """What a gradient formula may name: arguments, gradients and results."""
    names = argument_types(schema)
    count = len(schema.returns)
    names["grad"] = plain(schema.returns[0].type)
    names["result"] = plain(schema.returns[0].type)
    for i in range(count):
        names[f"grads[{i}]"] = "Tensor"
        names[f"result{i}"] = "Tensor"
    return names


@dataclass(frozen=True)
class Saved:
    """What a formula needs of the forward call."""

    tensors: frozenset[str]  # arguments used as values
    results: frozenset[str]  # "result", "result1"
    meta: frozenset[tuple[str, str]]  # (argument, accessor)
    others: frozenset[str]  # numbers, lists, strings
    grads: frozenset[int]  # which gradients it reads


def is_gradient_or_result(name: str) -> bool:
    """Whether a gradient formula means a gradient or a result by a name."""
    return re.fullmatch(r"grad|grads\[\d+\]|result\d*", name) is not None


def saved_by(expr: Expr) -> Saved:
    """Finds what must be kept so that the formula can be evaluated later."""
    tensors: set[str] = set()
    results: set[str] = set()
    meta: set[tuple[str, str]] = set()
    others: set[str] = set()
    grads: set[int] = set()

    def visit(node: Expr) -> None:
        if node.kind == "builtin" and node.value in META and node.args:
            base = node.args[0]
            while base.kind == "convert":
                base = base.args[0]
            is_argument = base.kind == "name" and not is_gradient_or_result(str(base.value))
            if is_argument and base.type.startswith("Tensor"):
                meta.add((base.value, node.value))
                for arg in node.args[1:]:
                    visit(arg)
                return
        if node.kind == "name":
            name = str(node.value)
            if name == "grad":
                grads.add(0)
            elif name.startswith("grads["):
                grads.add(int(name[6:-1]))
            elif is_gradient_or_result(name):
                results.add(name)
            elif node.type.startswith("Tensor"):
                tensors.add(name)
            else:
                others.add(name)
        for arg in node.args:
            visit(arg)

    visit(expr)
    return Saved(
        frozenset(tensors), frozenset(results), frozenset(meta), frozenset(others), frozenset(grads)
    )

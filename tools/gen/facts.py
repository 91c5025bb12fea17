"""operator_facts.cpp: what compilers of programs must know of every operator.

One entry a form or builtin: its kind, "aten::add.Tensor", and facts, the parts of its schema among
them, as Python's marshal writes them (`src/weft/jit/operator_facts.py` reads them). So a program is
compiled without the table itself, whose thousand rows take long to make. Rows that may become steps
of a fusion group carry their bodies and gradient formulas as the trees that `weft._ops.formulas`
describes.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gen.cpp import quote
from weft._ops.builtins.rows import SCALARS, Builtin
from weft._ops.forms import OUT, PLAIN, Form
from weft._ops.formulas import Expr, Statement, argument_types, gradient_names, return_type
from weft._ops.schema import Schema
from weft._ops.table import Row
from weft._ops.translate import Translator

Schemas = Mapping[str, Sequence[Schema]]
NUMBERS = ("Scalar", "float", "int", "bool")
_MARSHAL = 2  # read by every Python 3, and the same bytes for the same facts
ALONG_ROWS = ("reduce", "rowwise")


def file(forms: Sequence[Form], schemas: Schemas, builtins: Sequence[Builtin]) -> str:
    """operator_facts.cpp."""
    lines = ['#include "runtime/operator_facts.h"', "", "namespace weft {", "namespace {"]
    lines.append("constexpr OperatorFacts kFacts[] = {")
    for kind, text, schema, facts in _entries(forms, schemas, builtins):
        facts["schema"] = schema.parts()
        plain = json.loads(json.dumps(facts))  # lists, texts, numbers: nothing else
        if str(Schema.of_parts(kind.removeprefix("aten::"), plain["schema"])) != text:
            plain["text"] = text  # of some builtins, which have marks within types
        data = marshal.dumps(plain, _MARSHAL)
        lines.append(f"    {{{quote(kind)}, {{{_bytes(data)}, {len(data)}}}}},")
    lines += ["};", "}  // namespace", ""]
    lines += ["std::span<const OperatorFacts> operator_facts() { return kFacts; }", ""]
    return "\n".join([*lines, "}  // namespace weft", ""])


def _bytes(data: bytes) -> str:
    """A literal of C++ for any bytes."""
    plain = (each for each in range(32, 127) if chr(each) not in '"\\?')
    shown = {each: chr(each) for each in plain}
    return '"' + "".join(shown.get(each, f"\\{each:03o}") for each in data) + '"'


def _entries(
    forms: Sequence[Form], schemas: Schemas, builtins: Sequence[Builtin]
) -> Iterator[tuple[str, str, Schema, dict[str, Any]]]:
    for form in forms:
        facts = row_facts(form.row, schemas) if form.kind == PLAIN else {"row": form.row.key}
        if form.kind == OUT:
            facts["out"] = True
        yield f"aten::{form.schema.key}", str(form.schema), form.schema, facts
    for builtin in builtins:
        yield builtin.kind, builtin.text, builtin.schema, builtin_facts(builtin)


def builtin_facts(row: Builtin) -> dict[str, Any]:
    """`scalar`: the instruction on unboxed numbers, and the types of its result and operands."""
    facts: dict[str, Any] = {"family": row.family}
    if row.tags:
        facts["tags"] = sorted(row.tags)
    if row.python is not None:
        facts["folds"] = True
    if row.is_scalar:
        parts = (row.returns[0], *row.args)
        facts["scalar"] = [row.id, *(SCALARS[part.type] for part in parts)]
    return facts


def row_facts(row: Row, schemas: Schemas) -> dict[str, Any]:
    """What the compiler asks of a row; what is empty is left out."""
    facts: dict[str, Any] = {
        "kind": row.kind,
        "family": row.family,
        "tags": sorted(row.tags),
        "validate": row.validate is not None,
        "masks": bool(row.int_inputs or row.bool_inputs),
        "differentiable": row.differentiable,
        "has_gradient": bool(row.grad),
        "shape": row.shape,
        "dtypes": _told_dtypes(row),
        "mask": row.result[:1] in (("bool",), ("truth",)),
    }
    if is_elementwise(row) or _is_composed(row) or row.kind in ALONG_ROWS:
        facts["operands"] = [_operand(arg.type) for arg in row.schema.args]
        facts["gradient"] = _gradient(row, schemas)
    if is_elementwise(row):
        facts["elementwise"] = True
    elif _is_composed(row):
        translator = Translator(row.key, schemas)
        body = translator.body(row.body, argument_types(row.schema), return_type(row.schema))
        facts["body"] = list(map(statement, body))
    elif row.kind in ALONG_ROWS:
        facts["attributes"] = row.attributes
        facts["results"] = len(row.schema.returns)
        facts["per_row"] = row.per_row
    return {key: value for key, value in facts.items() if value not in (False, [], (), None, "")}


def _told_dtypes(row: Row) -> Sequence[str]:
    """The dtypes of the results as words, where no kernel decides them."""
    if row.kind == "view" and "view_dtype" not in row.tags:
        return [row.operands[0]]
    return () if row.is_program or set(row.result) <= {"compute"} else row.result


def is_elementwise(row: Row) -> bool:
    """Whether a row is one kernel over elements, with tensors and numbers as arguments.

    Rows that check integers first (`validate`) are: a group computes in floats.
    """
    fit = all(arg.type == "Tensor" or arg.type in NUMBERS for arg in row.schema.args)
    plain = row.kind == "pointwise" and not row.writes
    return plain and fit and len(row.schema.returns) == 1 and not row.int_inputs


def _is_composed(row: Row) -> bool:
    """Whether a row may turn out to be arithmetic on elements, for some of its arguments."""
    if row.kind != "compose" or row.writes or len(row.schema.returns) != 1:
        return False
    takes = any(arg.type == "Tensor" for arg in row.schema.args)
    return takes and row.schema.returns[0].type == "Tensor"


def _operand(type_: str) -> str:
    return type_ if type_ == "Tensor" else "number" if type_ in NUMBERS else ""


def _gradient(row: Row, schemas: Schemas) -> list[Any] | None:
    """[argument, formula] in the order of the node's edges; None: only one formula for several."""
    formulas = {names[0]: text for names, text in row.grad.items() if len(names) == 1}
    if any(name not in formulas for name in row.differentiable):
        return None
    known, translator = gradient_names(row.schema), Translator(row.key, schemas)
    return [
        [name, expression(translator.formula(formulas[name], known))] for name in row.differentiable
    ]


def expression(tree: Expr) -> list[Any]:
    """[kind, type, value, arguments]; the value of an `op` is the operator's key."""
    value = tree.value.key if tree.kind == "op" else tree.value
    return [tree.kind, tree.type, value, list(map(expression, tree.args))]


def statement(one: Statement) -> list[Any]:
    """[kind, value, expression, then, otherwise]."""
    made = None if one.expr is None else expression(one.expr)
    return [one.kind, one.value, made, list(map(statement, one.then)),
            list(map(statement, one.other))]  # fmt: skip

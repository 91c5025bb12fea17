"""What a row of the operator table must fulfil; asked when weft is built."""

from __future__ import annotations

import inspect
from collections.abc import Container, Sequence

from weft._ops.formulas import is_gradient_or_result
from weft._ops.schema import Schema
from weft._ops.table import TAGS, VARIANTS, Row, fail

#: Tensors of these names are places or truth values: none has a gradient.
CONSTANTS = (
    "index", "indices", "mask", "permutation", "pivots", "inverse", "offsets", "batch_sizes",
)  # fmt: skip


def check(row: Row, known: Container[str]) -> None:
    """Raises TableError for a row that contradicts itself, or has one of the known keys."""
    schema = row.schema
    if row.key in known:
        fail(schema, "one row per schema", "a second one")
    if not row.doc:
        fail(schema, "a doc line", "none")
    _one_of(schema, "promotion", row.promotion, ("common", "floating", "sum"))
    _one_of(schema, "variants", row.variants, VARIANTS)
    for result in row.result:
        allowed = () if row.is_program else tuple(arg.name for arg in schema.args)
        _one_of(schema, "result", result, ("compute", "bool", "int64", "real", "truth", *allowed))
    for tag in row.tags:
        _one_of(schema, "tags", tag, sorted(TAGS))
    if len(row.result) != len(schema.returns):
        fail(schema, f"{len(schema.returns)} result dtypes", row.result)
    names = {arg.name for arg in schema.args}
    for field in ("bool_inputs", "int_inputs", "weak", "constants", "differentiable"):
        for name in getattr(row, field):
            _one_of(schema, field, name, sorted(names))
    results = [f"result{i}" for i in range(len(schema.returns))]
    for name in row.per_row:
        _one_of(schema, "per_row", name, [*sorted(names), *results])
    for key in (*row.grad, *row.inplace_grad):
        for name in key:
            _one_of(schema, "grad", name, sorted(names))
    hidden = [name for name in names if is_gradient_or_result(name)]
    if row.grad and hidden:
        fail(schema, "arguments whose names mean nothing else in its gradients", hidden)
    _check_body(row)
    _check_gradient(row)


def _one_of(schema: Schema, what: str, got: object, allowed: Sequence[object]) -> None:
    if got not in allowed:
        fail(schema, f"{what} among {', '.join(map(str, allowed))}", repr(got))


def _check_body(row: Row) -> None:
    if not callable(row.body):
        if not isinstance(row.body, str) or row.is_program:
            fail(row.schema, "a body", repr(row.body))
        return
    got = tuple(inspect.signature(row.body).parameters)
    if row.is_program:
        wanted = tuple(a.name for a in row.schema.args if a.name in row.operands + row.attributes)
        wanted = wanted if row.kind == "pointwise" else ("row", *wanted)
    else:
        wanted = tuple(arg.name for arg in row.schema.args)
    if got != wanted:
        fail(row.schema, f"a body with parameters {wanted}", got)


def _check_gradient(row: Row) -> None:
    """Every row says how gradients pass: formulas, a compose body, or that none does."""
    says = [
        bool(row.grad),
        row.kind == "compose" and not row.grad and "nondifferentiable" not in row.tags,
        "nondifferentiable" in row.tags,
        "composite" in row.tags,
    ]
    if says.count(True) != 1:
        fail(
            row.schema,
            "either gradient formulas, a compose body, or the tag nondifferentiable or composite",
            "none" if not any(says) else "several",
        )
    if row.grad:
        silent = [
            arg.name
            for arg in row.schema.args
            if arg.base == "Tensor"
            and arg.name not in row.differentiable + row.constants + row.bool_inputs
            and arg.name not in row.int_inputs + CONSTANTS
        ]
        if silent:
            fail(row.schema, "a gradient formula (or constants=) for every tensor", silent)

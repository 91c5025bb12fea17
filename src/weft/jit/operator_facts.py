"""What the extension knows of operators for compilers: facts of the table's rows and of builtins.

tools/gen/facts.py writes them when weft is built, so that compiling a program imports neither the
operator table nor the builtins; only folding constants (`python_of`) does, one family at a time.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from functools import cache
from typing import Any

from weft import _C
from weft._runtime import lazy

builtins = lazy.module("weft._ops.builtins")
schema = lazy.module("weft._ops.schema")

# Trees of bodies and formulas (weft._ops.formulas): [kind, type, value, arguments].
Expression = list[Any]


class RowFacts:
    """A row of the operator table. Of rows that may become steps of a group: `operands`, by
    argument "Tensor", "number" or empty; `gradient`, ([argument, formula]...), None where one
    formula gives several; of composed ones the `body`; of those along rows of elements the
    `attributes`, the arguments that are numbers of the kernel, how many `results` there are, and
    `per_row`, operands and results ("result1") of one element a row. `shape` is the
    formula of the results' sizes; `dtypes` names, of rows without kernels, the arguments that have
    the results' dtypes, or the dtypes."""

    def __init__(self, key: str, facts: dict[str, Any]) -> None:
        self.key = key
        self.id = key.replace(".", "_")
        self.kind: str = facts["kind"]
        self.family: str = facts["family"]
        self.tags = frozenset(facts.get("tags", ()))
        self.has_validation: bool = facts.get("validate", False)
        self.has_masks: bool = facts.get("masks", False)  # takes masks or indices
        self.differentiable: tuple[str, ...] = tuple(facts.get("differentiable", ()))
        self.has_gradient: bool = facts.get("has_gradient", False)
        self.is_elementwise: bool = facts.get("elementwise", False)
        self.operands: tuple[str, ...] = tuple(facts.get("operands", ()))
        self.gradient: list[tuple[str, Expression]] | None = facts.get("gradient", [])
        self.body: list[Any] | None = facts.get("body")
        self.attributes: tuple[str, ...] = tuple(facts.get("attributes", ()))
        self.results: int = facts.get("results", 1)
        self.per_row: tuple[str, ...] = tuple(facts.get("per_row", ()))
        self.shape: str = facts.get("shape", "")
        self.dtypes: tuple[str, ...] = tuple(facts.get("dtypes", ()))
        self.gives_mask: bool = facts.get("mask", False)
        if self.has_gradient and not self.gradient:
            self.gradient = None

    def __repr__(self) -> str:
        return f"<row {self.key}>"

    @property
    def is_fusible(self) -> bool:
        """Whether it is, or is made of, row operators that groups have as steps."""
        return bool(self.tags & {"fusible", "fusible_rows"})

    @property
    def is_row_step(self) -> bool:
        """Whether it is one such step, or one that gives values of rows other sizes."""
        along_rows = self.kind in ("reduce", "rowwise")
        return (along_rows and self.is_fusible) or bool(self.tags & {"spreads", "reshapes"})


def entries(name: str) -> list[tuple[str, bytes]]:
    """(kind, facts, still to be read) of the operators of a name such as "aten::add"."""
    return _C._operators(name)


def exists(name: str) -> bool:
    """Whether there is an operator of that name."""
    return _C._operator_exists(name)


def names() -> list[str]:
    """Every name, those of the table first."""
    return list(dict.fromkeys(_C._operator_names()))


@cache
def facts_of(data: bytes) -> dict[str, Any]:
    """The facts of one operator, read."""
    return marshal.loads(data)


@cache
def row(key: str) -> RowFacts | None:
    """The row of the table with the key "add.Tensor"; None where there is none."""
    data = dict(entries(f"aten::{key.partition('.')[0]}")).get(f"aten::{key}")
    facts = {} if data is None else facts_of(data)
    return RowFacts(key, facts) if "kind" in facts else None


@cache
def row_of_id(id: str) -> RowFacts:
    """The row with the identifier "add_Tensor", by which steps of groups are called."""
    parts = id.split("_")
    splits = ("_".join(parts[:n]) + "." + "_".join(parts[n:]) for n in range(len(parts), 0, -1))
    return next(found for key in splits if (found := row(key.removesuffix("."))) is not None)


def python_of(kind: str, family: str) -> Callable[..., Any] | None:
    """What computes a builtin from Python values: of its row. Imports the family of rows."""
    return builtins.load_family(family)[kind].python


def text_of(kind: str, facts: dict[str, Any]) -> str:
    """The schema as a text: "exp(Tensor self) -> Tensor"."""
    made = schema.Schema.of_parts(kind.removeprefix("aten::"), facts["schema"])
    return facts.get("text") or str(made)

"""Rows of the builtins: operators on numbers, strings, lists, dicts and tuples.

    builtin("add.int(int a, int b) -> int", cpp="checked_add(a, b)", python=operator.add)

Names, overloads, argument names and defaults are TorchScript's. `cpp` is an expression over the
arguments, called a, b, c, d by position, or the name of a function in `weft::builtins`
(csrc/runtime). `python` computes the same from Python values: it folds constants and is what tests
compare with. A row without one cannot be folded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from weft._ops.schema import Arg, Return, Schema, parse_builtin

TABLE: dict[str, Builtin] = {}
NAMES: dict[str, list[Builtin]] = {}
# What a row may be besides a function of its arguments.
TAGS = frozenset(
    (
        "side_effect",  # changes what no argument shows: a seed, a mode, the screen
        "reads_state",  # its result depends on more than its arguments
        "commutative",
        "total",  # cannot raise; given for Scalar arguments: for ints, floats and bools
        "compares_identity",
        "starts_gradients",  # gradients may be recorded behind it, whatever its arguments are
        "metadata",  # of a tensor: its sizes, dtype or device, which no element decides
        "never",  # is false, whatever its arguments are
        "length",  # of a list
        "item",  # of a list, by its index
        "append",  # of an item to a list
        "size",  # of a tensor, by its dimension
        "negation",  # true where another operator, or its argument, is false
        "of_data",  # makes a tensor of a number or of nested lists
        "seeds",  # the default generator
        "relayout",  # changes the sizes of its first argument
    )
)
# The types the interpreter keeps unboxed.
SCALARS = {"int": "Int", "float": "Float", "bool": "Bool"}
# Families whose rows are worth an instruction of their own.
SCALAR_FAMILIES = ("arithmetic", "comparison", "conversion", "mathematics")
PARAMETERS = "abcdefgh"


@dataclass(frozen=True, eq=False)
class Builtin:
    """One row; `kind` is its full name: "aten::add.int"."""

    text: str
    cpp: str
    python: Callable[..., Any] | None
    doc: str
    tags: frozenset[str]
    family: str

    @property
    def kind(self) -> str:
        """The name programs use: "aten::add.int"."""
        name = self.text[: self.text.index("(")]
        return name if "::" in name else f"aten::{name}"

    @property
    def name(self) -> str:
        """The kind without the overload: "aten::add"."""
        return self.kind.partition(".")[0]

    @property
    def overload(self) -> str:
        """The overload's name, often empty."""
        return self.kind.partition(".")[2]

    @property
    def id(self) -> str:
        """A C identifier, distinct for every row: "add_int", "prim_min_int"."""
        namespace, _, name = self.kind.partition("::")
        name, _, overload = name.partition(".")
        # Identifiers may not hold two underscores in a row; "not" and "and" are words of C++.
        if name.startswith("__"):
            name = name.strip("_") if overload else name.strip("_") + "_"
        elif name.endswith("_"):
            name = f"{name[:-1]}_in_place"
        kind = f"{name}_{overload}" if overload else name
        return kind if namespace == "aten" else f"{namespace}_{kind}"

    @cached_property
    def schema(self) -> Schema:
        """Its text, parsed. Any number of further arguments comes to the body as one tuple."""
        return parse_builtin(self.text)

    @property
    def args(self) -> tuple[Arg, ...]:
        """The arguments, without the `...` of a row that takes any number."""
        return self.schema.args

    @property
    def returns(self) -> tuple[Return, ...]:
        """The results."""
        return self.schema.returns

    @property
    def is_expression(self) -> bool:
        """Whether `cpp` is an expression rather than the name of a function."""
        return not self.cpp.isidentifier()

    @property
    def is_scalar(self) -> bool:
        """Whether the interpreter can run it on unboxed numbers."""
        return (
            self.is_expression
            and self.family in SCALAR_FAMILIES
            and not self.tags - {"commutative", "total", "negation"}
            and len(self.args) in (1, 2)
            and len(self.returns) == 1
            and all(arg.type in SCALARS for arg in self.args)
            and self.returns[0].type in SCALARS
        )


def builtin(
    text: str,
    cpp: str,
    python: Callable[..., Any] | None = None,
    doc: str = "",
    tags: tuple[str, ...] = (),
    family: str = "",
) -> None:
    """Adds a row to the table."""
    row = Builtin(text, cpp, python, doc, frozenset(tags), family)
    if row.kind in TABLE:
        raise ValueError(f"{row.kind}: expected one row per kind, got a second one")
    if row.tags - TAGS:
        raise ValueError(f"{row.kind}: expected tags among {sorted(TAGS)}, got {sorted(row.tags)}")
    TABLE[row.kind] = row
    NAMES.setdefault(row.name, []).append(row)

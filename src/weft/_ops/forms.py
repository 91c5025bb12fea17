"""The forms of a row: as written, and the derived in-place and `out=` ones.

add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
cummax.out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices)
    -> (Tensor(a!) values, Tensor(b!) indices)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weft._ops.schema import Arg, Return, Schema
from weft._ops.table import Row

PLAIN, INPLACE, OUT = "plain", "inplace", "out"
_VARIANT_BITS = {"f": 1, "m": 2, "fm": 3, "nn": 4, "": 8}


@dataclass(frozen=True, eq=False)
class Form:
    """One callable operator: a row in one of its forms."""

    row: Row
    kind: str
    schema: Schema
    variants: str

    @property
    def id(self) -> str:
        """A C identifier, distinct for every form: `add_Tensor`, `add_in_place_Tensor`."""
        name = self.schema.name
        name = f"{name[:-1]}_in_place" if name.endswith("_") else name
        return f"{name}_{self.schema.overload}" if self.schema.overload else name

    @property
    def cpp_name(self) -> str:
        """The function in weft::ops: `add`, `add_`, `add_out`."""
        return f"{self.schema.name}_out" if self.kind == OUT else self.schema.name

    @property
    def variant_bits(self) -> int:
        """Bit 0: module function, bit 1: method, bit 2: nn.functional, bit 3: internal; bit 4: the
        function takes a number first, bit 5: or two numbers; bit 6: numbers between tensors."""
        first = 16 if self.takes_number_first else 0
        both = 32 if self.kind == PLAIN and "two_numbers" in self.row.tags else 0
        between = 64 if "numbers_between" in self.row.tags else 0
        return _VARIANT_BITS[self.variants] | first | both | between

    @property
    def takes_number_first(self) -> bool:
        """Whether its function takes a number for its first tensor."""
        return self.kind == PLAIN and "number_first" in self.row.tags

    @property
    def outs(self) -> tuple[str, ...]:
        """The arguments that an `out=` form writes to."""
        return tuple(arg.name for arg in self.schema.args[len(self.row.schema.args) :])

    @property
    def writes_self(self) -> bool:
        """Whether it changes its first argument."""
        return self.kind != OUT and bool(self.schema.args) and self.schema.args[0].is_written


def forms(row: Row) -> list[Form]:
    """The row itself first, then what is derived from it."""
    result = [Form(row, PLAIN, row.schema, row.variants)]
    if row.inplace is not None:
        result.append(Form(row, INPLACE, _inplace_schema(row), row.inplace_variants))
    if row.out is not None:
        variants = row.variants if row.variants in ("nn", "") else "f"
        result.append(Form(row, OUT, _out_schema(row), variants))
    return result


def all_forms(rows: Iterable[Row]) -> list[Form]:
    """Every callable operator, in table order."""
    return [form for row in rows for form in forms(row)]


def _inplace_schema(row: Row) -> Schema:
    first, *rest = row.schema.args
    args = (first._replace(alias="a!"), *rest)
    return Schema(f"{row.name}_", row.inplace or "", args, (Return("Tensor", alias="a!"),))


def _out_schema(row: Row) -> Schema:
    """One `out` for one result; for several, arguments that are named as the results are."""
    names = (
        [result.name for result in row.schema.returns] if len(row.schema.returns) > 1 else ["out"]
    )
    marks = [f"{letter}!" for letter in "abcd"]
    outs = [Arg(n, "Tensor", kwarg_only=True, alias=mark) for n, mark in zip(names, marks)]
    returns = [r._replace(alias=mark) for r, mark in zip(row.schema.returns, marks)]
    args = [_dtype_of_out(arg) if "factory" in row.tags else arg for arg in row.schema.args]
    return Schema(row.name, row.out or "", (*args, *outs), tuple(returns))


def _dtype_of_out(arg: Arg) -> Arg:
    """Factories take the dtype of `out` where none is given."""
    return arg._replace(default=None) if arg.name == "dtype" else arg

"""In-place forms of operators whose bodies make a result of their own: it is copied back.

Under grad mode the operator reads a copy, so that its gradient may save what is overwritten.
"""

from __future__ import annotations

from typing import Any

from weft._ops.schema import parse
from weft._ops.table import body_of, op, ops


@body_of("_write_back(Tensor(a!) self, Tensor result, str name) -> Tensor(a!)")
def _write_back(self: Any, result: Any, name: Any) -> Any:
    """Copies the result of the in-place operator `name` into self."""
    ops.check(
        result.dtype == self.dtype and result.shape == self.shape,
        name, ": expected a result of dtype ", self.dtype, " and shape ", self.shape,
        ", got ", result.dtype, " and ", result.shape,
    )  # fmt: skip
    return self.copy_(result)


def _in_place(arguments: str, variants: str = "m", call: str = "") -> None:
    """The row `name_` of an operator `name`.

    arguments: the row's name and its arguments after self. call: the operator's name and arguments,
    self among them, where their order is another.
    """
    name, _, rest = arguments.partition("(")
    base = name.split(".")[0]
    schema = f"{name.replace(base, base + '_', 1)}(Tensor(a!) self, {rest}".replace(", )", ")")
    names = [arg.name for arg in parse(f"{schema} -> Tensor(a!)").args]
    result = call or f"{base}({', '.join(names)})"
    read = result.replace("self", "self.clone() if grad_enabled() else self", 1)
    op(
        f"{schema} -> Tensor(a!)",
        doc=f"In-place {base}. RuntimeError where the result has another dtype or shape.",
        compose=f"_write_back(self, {read}, '{base}_')",
        variants=variants,
    )


_in_place("tril(int diagonal=0)")
_in_place("triu(int diagonal=0)")
_in_place("put(Tensor index, Tensor source, bool accumulate=False)")
_in_place("renorm(Scalar p, int dim, Scalar maxnorm)")
for _name in ("cumsum", "cumprod"):  # whose results are int64 for integers by default
    _in_place(
        f"{_name}(int dim, *, ScalarType? dtype=None)",
        call=f"{_name}(self, dim, dtype=self.dtype if dtype is None else dtype)",
    )
_in_place("igamma(Tensor other)")
_in_place("igammac(Tensor other)")
_in_place("polygamma(int n)", call="polygamma(n, self)")
_in_place("mvlgamma(int p)")
_in_place("float_power.Tensor(Tensor exponent)")
_in_place("float_power.Scalar(Scalar exponent)")
op(
    "swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)",
    doc="In-place swapaxes.",
    compose="self.transpose_(axis0, axis1)",
)

"""Operators on the elements of sparse tensors."""

from __future__ import annotations

import numbers
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.sparse._convert import coalesce, elements_at, elements_of, to_dense
from weft.sparse._pattern import Coo
from weft.sparse._tensor import (
    RULES,
    SparseTensor,
    is_sparse,
    like,
    make,
    on_values,
    plainly,
    rule,
    tensor_member,
    values_of,
)


def _on_elements(name: str) -> Any:
    """A rule for a function that is 0 at 0; it needs the sum of each place."""
    rule = on_values(tensor_member(name))

    def run(self: Any, *args: Any, **options: Any) -> SparseTensor:
        if not is_sparse(self):
            raise NotImplementedError(f"{name}: expected a sparse tensor, got {_described(self)}")
        return rule(merged(self), *args, **options)

    return run


#: functions that are 0 at 0
_ZERO_AT_ZERO = (
    "abs absolute asin arcsin asinh arcsinh atan arctan atanh arctanh ceil deg2rad erf erfinv "
    "expm1 floor frac isinf isnan log1p rad2deg relu round sgn sign signbit sin sinh sqrt "
    "square tan tanh trunc fix pow __pow__ conj neg negative positive __neg__ __abs__ __pos__ "
    "angle conj_physical isneginf isposinf nan_to_num"
)
for _name in _ZERO_AT_ZERO.split():
    RULES[_name] = _on_elements(_name)


def merged(self: SparseTensor) -> SparseTensor:
    """The tensor with each place named once."""
    return coalesce(self) if isinstance(self._pattern, Coo) else self


def _is_number(value: Any) -> bool:
    if isinstance(value, Tensor):
        return not is_sparse(value) and value.dim() == 0
    return isinstance(value, numbers.Number)


@rule("mul", "multiply", "__mul__", "__rmul__")
def _mul(self: Any, other: Any) -> SparseTensor:
    if not is_sparse(self):
        self, other = other, self
    if _is_number(other):
        return like(self, values_of(self) * other)
    left = merged(self)
    if is_sparse(other):
        return _product(left, merged(other))
    pattern = left._pattern.coo()
    return like(left, values_of(left) * elements_at(other.expand(self.shape), pattern))


def _product(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """At the places that both have."""
    _check_sizes("mul", a, b)
    if type(a._pattern) is type(b._pattern) and a._pattern.same_places(b._pattern):  # type: ignore[attr-defined]
        return like(a, values_of(a) * values_of(b))
    if not isinstance(a._pattern, Coo) or not isinstance(b._pattern, Coo):
        joined = _product(a.to_sparse_coo(), b.to_sparse_coo())
        return joined.to_sparse(layout=a.layout)
    hits = _C.isin(a._pattern.keys(), b._pattern.keys())
    pattern = Coo(a._pattern.indices[:, hits], a._pattern.size, True)
    return make(pattern, values_of(a)[hits] * elements_of(b, pattern))


@rule("div", "divide", "true_divide", "__truediv__")
def _div(self: Any, other: Any, *, rounding_mode: str | None = None) -> SparseTensor:
    if not is_sparse(self) or not _is_number(other):
        raise RuntimeError(
            f"div: expected a sparse tensor divided by a number, got {_described(self)} divided by "
            f"{_described(other)}"
        )
    ordered = merged(self) if rounding_mode else self
    return like(ordered, values_of(ordered).div(other, rounding_mode=rounding_mode))


rule("floor_divide", "__floordiv__")(lambda self, other: _div(self, other, rounding_mode="floor"))


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return repr(value)
    return f"layout {value.layout} and shape {tuple(value.shape)}"


def _check_sizes(name: str, a: Tensor, b: Tensor) -> None:
    if a.shape != b.shape:
        raise RuntimeError(
            f"{name}: expected equal sizes, got {tuple(a.shape)} and {tuple(b.shape)}"
        )


@rule("add", "__add__", "__radd__")
def _add(self: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    if not isinstance(self, Tensor) or not isinstance(other, Tensor):
        raise RuntimeError(
            f"add: expected two tensors, got {_described(self)} and {_described(other)}"
        )
    if not isinstance(self, SparseTensor):
        _check_sizes("add", self, other)
        return self.add(to_dense(other), alpha=alpha)
    if not isinstance(other, SparseTensor):
        if isinstance(self._pattern, Coo):
            raise RuntimeError("add: expected add(dense, sparse), got add(sparse, dense)")
        _check_sizes("add", self, other)
        return to_dense(self).add(other, alpha=alpha)
    return _sum(self, other, alpha)


def _sum(a: SparseTensor, b: SparseTensor, alpha: Any) -> SparseTensor:
    _check_sizes("add", a, b)
    own, others = a._pattern, b._pattern
    if type(own) is type(others) and own.same_places(others):  # type: ignore[attr-defined]
        return like(a, values_of(a).add(values_of(b), alpha=alpha))
    if not isinstance(own, Coo) or not isinstance(others, Coo):
        joined = _sum(a.to_sparse_coo(), b.to_sparse_coo(), alpha)
        return joined.to_sparse(layout=a.layout)
    if own.sparse_dim != others.sparse_dim:
        raise RuntimeError(
            f"add: expected equal numbers of sparse dimensions, got {own.sparse_dim} and "
            f"{others.sparse_dim}"
        )
    indices = _C.cat([own.indices, others.indices], 1)
    kind = _C.promote_types(a.dtype, b.dtype)  # -1 does not fit every dtype of b
    scaled = (
        values_of(b) if isinstance(alpha, int) and alpha == 1 else values_of(b).to(kind) * alpha
    )
    joined = make(Coo(indices, own.size, False), _C.cat([values_of(a), scaled]))
    return coalesce(joined) if own.coalesced and others.coalesced else joined


rule("sub", "subtract", "__sub__")(lambda self, other, *, alpha=1: _add(self, other, alpha=-alpha))
rule("rsub", "__rsub__")(lambda self, other, *, alpha=1: _add(other, self, alpha=-alpha))


# ---- in place ----


def _become(name: str, self: SparseTensor, made: Any, other: Any) -> SparseTensor:
    """self with the places and values of `made`."""
    if not isinstance(made, SparseTensor) or made.layout != self.layout or made.requires_grad:
        raise RuntimeError(
            f"{name}: expected sparse tensors of one layout without gradient, got "
            f"{_described(self)} and {_described(other)}"
        )
    if not _C.can_cast(made.dtype, self.dtype):
        raise RuntimeError(f"{name}: expected a result that fits {self.dtype}, got {made.dtype}")
    plainly(tensor_member("data").__set__)(self, values_of(made).to(self.dtype))
    self._pattern = made._pattern
    return self


@rule("copy_")
def _copy_into(self: Any, src: Any, non_blocking: bool = False) -> SparseTensor:
    if is_sparse(self) and is_sparse(src):
        _check_sizes("copy_", self, src)
        src = like(src, values_of(src).to(self.dtype, copy=True))
    return _become("copy_", self, src, src)


@rule("mul_", "__imul__")
def _multiply_into(self: Any, other: Any) -> Any:
    if is_sparse(self) and _is_number(other):
        values_of(self).mul_(other)
        return self
    if not is_sparse(self):
        return self.mul_(to_dense(other))
    return _become("mul_", self, _mul(self, other), other)


@rule("add_", "__iadd__")
def _add_into(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Into a dense tensor, at the places; a sparse one gets those of both."""
    if is_sparse(self):
        return _become("add_", self, _add(self, other, alpha=alpha), other)
    _check_sizes("add_", self, other)
    if not _C.can_cast(other.dtype, self.dtype):
        raise RuntimeError(
            f"add_: expected a dtype that {self.dtype} can hold, got {other.dtype} beside it"
        )
    pattern = other._pattern.coo()
    rows = tuple(pattern.indices)
    if rows:
        values = (values_of(other).to(self.dtype) * alpha).to(self.dtype)
        return self.index_put_(rows, values, accumulate=True)
    return self.add_(to_dense(other), alpha=alpha)


rule("sub_", "__isub__")(lambda self, other, *, alpha=1: _add_into(self, other, alpha=-alpha))


@rule("div_")
def _divide_into(self: SparseTensor, *args: Any) -> SparseTensor:
    if not is_sparse(self) or not all(map(_is_number, args)):
        raise NotImplementedError("div_: expected numbers beside a sparse tensor, got more")
    values_of(self).div_(*args)
    return self


def _elements_in_place(name: str) -> Any:
    """A function that is 0 at 0, written to what it is of."""

    def run(self: SparseTensor, *args: Any, **options: Any) -> SparseTensor:
        return _become(f"{name}_", self, RULES[name](self, *args, **options), self)

    return run


for _name in _ZERO_AT_ZERO.split():
    if hasattr(Tensor, f"{_name}_"):
        RULES[f"{_name}_"] = _elements_in_place(_name)
rule("zero_")(lambda self: _become("zero_", self, RULES["zeros_like"](self), self))

"""Searching sorted values, counting, and what is there once."""

from __future__ import annotations

from typing import Any

from weft._ops.table import op

_SEARCH = "bool out_int32=False, bool right=False"


def _count(schema: str, doc: str, **rest: Any) -> None:
    tags = () if "no_gradient" in rest else ("nondifferentiable",)
    op(schema, doc=doc, tags=tags, **rest)


_count(
    f"searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, {_SEARCH}, str? side=None, "
    "Tensor? sorter=None) -> Tensor",
    "The index at which each value of self keeps the rows sorted (right: behind equal entries).",
    out=True,
    shape="self",
)
_count(
    f"searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, {_SEARCH}, str? side=None, "
    "Tensor? sorter=None) -> Tensor",
    "The index at which a number keeps a vector sorted.",
    out=True,
    shape="[]",
)
_count(
    f"bucketize.Tensor(Tensor self, Tensor boundaries, *, {_SEARCH}) -> Tensor",
    "The index of the interval between sorted boundaries that holds each value.",
    variants="f",
    out=True,
    shape="self",
)
_count(
    f"bucketize.Scalar(Scalar self, Tensor boundaries, *, {_SEARCH}) -> Tensor",
    "The index of the interval between sorted boundaries that holds a number.",
    native="searchsorted(boundaries, self, out_int32, right, {}, {})",
    variants="f",
    out=True,
    shape="[]",
)
_count(
    "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
    "How often each of 0, 1, ... occurs in a vector; with weights, the sums of those.",
    no_gradient=("self", "weights"),
    shape="[unknown]",
)
_count(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    "Counts of the elements in equal bins from min to max (both 0: of the elements).",
    out=True,
    shape="[bins]",
    result="self",
)
_UNIQUE = "bool return_inverse=False, bool return_counts=False"
_VALUES: dict[str, Any] = {"no_gradient": ("self",), "result": ("self", "int64", "int64")}
_count(
    f"_unique2(Tensor self, bool sorted=True, {_UNIQUE}) -> (Tensor, Tensor, Tensor)",
    "The distinct elements in order, where each element went, and how often each is there.",
    **_VALUES,
)
_count(
    f"unique_dim(Tensor self, int dim, bool sorted=True, {_UNIQUE}) -> (Tensor, Tensor, Tensor)",
    "The distinct slices along `dim` in order, where each went, and how often each is there.",
    **_VALUES,
    variants="",
)
_count(
    f"unique_consecutive(Tensor self, {_UNIQUE}, int? dim=None) -> (Tensor, Tensor, Tensor)",
    "self with runs of equal elements (or slices along `dim`) made one.",
    **_VALUES,
    variants="",
)
_ISIN = "bool assume_unique=False, bool invert=False"
_count(
    f"isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, {_ISIN}) -> Tensor",
    "Whether each element is one of test_elements.",
    out=True,
    shape="elements",
    result="bool",
)
_count(
    f"isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, {_ISIN}) -> Tensor",
    "Whether each element equals a number.",
    out=True,
    shape="elements",
    result="bool",
)
_count(
    f"isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, {_ISIN}) -> Tensor",
    "Whether a number is one of test_elements.",
    out=True,
    shape="[]",
    result="bool",
)

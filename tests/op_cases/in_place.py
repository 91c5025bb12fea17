"""Cases of in-place forms that copy a result back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft

from .spec import case

_X = np.array([[1.5, 2.0, 3.0], [2.5, 1.0, 4.0]])


def _changes(expected: Any, *args: Any, dtype: Any = weft.float64, **kwargs: Any) -> Any:
    """A check that a call changes _X so, and reaches the gradients of what is overwritten."""

    def check(function: Any) -> None:
        x = weft.tensor(_X, dtype=dtype)
        assert function(x, *args, **kwargs) is x
        np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)
        leaf = weft.tensor(_X, requires_grad=True)
        assert weft.autograd.gradcheck(lambda t: function(t * 1, *args, **kwargs).sin(), [leaf])

    return check


def _refuses_retyping(function: Any) -> None:
    x = weft.tensor(_X)
    assert function(x, weft.zeros(2, 3, dtype=weft.float64), "name_") is x and not x.any()
    for result in (weft.zeros(2, 3), weft.zeros(4, 2, 3, dtype=weft.float64)):
        with pytest.raises(RuntimeError, match=r"^name_: expected a result of dtype float64"):
            function(x, result, "name_")


case("_write_back", check=_refuses_retyping, grad=False)
for _name, _expected, _args in (
    ("cumsum_", _X.cumsum(1), (1,)),
    ("cumprod_", _X.cumprod(0), (0,)),
    ("polygamma_", [[0.93480220, 0.64493407, 0.39493407], [0.49035776, 1.64493407, 0.28382296]], (1,)),
    ("mvlgamma_", [[-0.12078224, 0, 0.69314718], [0.28468287, 0, 1.79175947]], (1,)),
    ("float_power_.Scalar", _X**2, (2,)),
    ("float_power_.Tensor", _X**[1, 2, 3], (weft.tensor([1, 2, 3]),)),
    ("swapaxes_", _X.T, (0, 1)),
):  # fmt: skip
    case(_name, check=_changes(_expected, *_args), grad=False)


def _changes_order(expected: Any) -> Any:
    """A check of a function that has a gradient for its second argument alone."""

    def check(function: Any) -> None:
        x, at = weft.tensor(_X), weft.tensor(1.0, dtype=weft.float64, requires_grad=True)
        assert function(x, at.detach()) is x
        np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)
        assert weft.autograd.gradcheck(lambda at: function(weft.tensor(_X), at), [at])

    return check


_LOWER = np.array([[0.42759330, 0.26424112, 0.08030140], [0.15085495, 0.63212056, 0.01898816]])  # igamma(_X, 1)
case("igamma_", check=_changes_order(_LOWER), grad=False)
case("igammac_", check=_changes_order(1 - _LOWER), grad=False)

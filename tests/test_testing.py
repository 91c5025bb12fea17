"""weft.testing: when assert_close raises, with what message; the numbers of make_tensor."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.testing import assert_allclose, assert_close, make_tensor

nan = float("nan")
# (actual, expected, options): lists are tensors of both libraries, members of "raw" as they are.
PAIRS: list[tuple[Any, Any, dict[str, Any]]] = [
    ([1.0, 2.0], [1.0, 2.0], {}),
    ([1.0, 2.0], [1.0, 2.000001], {}),
    ([1.0, 2.0], [1.0, 2.5], {}),
    ([1.0, 2.0], [1.0, 2.5], {"rtol": 0.0, "atol": 0.5}),
    ([1, 2], [1, 3], {}),
    ([1, 2], [1.0, 2.0], {}),
    ([1, 2], [1.0, 2.0], {"check_dtype": False}),
    ([[1.0, nan]], [[1.0, nan]], {}),
    ([[1.0, nan]], [[1.0, nan]], {"equal_nan": True}),
    ([1.0], [1.0, 2.0], {}),
    ([1 + 1j], [1 + 1.5j], {}),
    ([True], [False], {}),
    ([], [], {}),
    (1.0, 1.1, {}),
    (1.0, 1.0 + 1e-9, {}),
    (1, 1, {}),
    (None, 1.0, {}),
    (None, None, {}),
    ("a", "a", {}),
    ([1.0, 2.0], 1.0, {}),
    ([1.0], [2.0], {"msg": "because"}),
    ([1.0], [2.0], {"msg": lambda text: text + "!"}),
    (1.0, 2.0, {"rtol": 1.0}),
]


def outcome(lib: Any, actual: Any, expected: Any, options: Any) -> Any:
    pair = [lib.tensor(v) if isinstance(v, list) else v for v in (actual, expected)]
    for wrap in (lambda v: v, lambda v: [v], lambda v: {"a": v}):
        try:
            lib.testing.assert_close(wrap(pair[0]), wrap(pair[1]), **options)
        except Exception as error:
            return type(error), wrap
    return None


@pytest.mark.parity
@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_assert_close_equals_torch(pair: Any) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = outcome(weft, *pair), outcome(torch, *pair)
    assert (ours is None) == (theirs is None) and (ours is None or ours[0] == theirs[0])


@pytest.mark.parity
@pytest.mark.parametrize("place", [2, 4, 9, 13])
def test_messages_say_what_torch_says(place: int) -> None:
    torch = pytest.importorskip("torch")
    texts = []
    for lib in (weft, torch):
        pair = [lib.tensor(v) if isinstance(v, list) else v for v in PAIRS[place][:2]]
        with pytest.raises(AssertionError) as caught:
            lib.testing.assert_close(*pair)
        words = str(caught.value).replace("torch.Size([1])", "(1,)").split()
        texts.append([w.replace("torch.Size([2])", "(2,)")[:6] for w in words])
    assert texts[0][:12] == texts[1][:12]


def test_containers_say_where() -> None:
    with pytest.raises(AssertionError, match=r"failure occurred for item \['a'\]\[1\]"):
        assert_close({"a": [weft.ones(1), weft.ones(1)]}, {"a": [weft.ones(1), weft.zeros(1)]})
    with pytest.raises(AssertionError, match="length of the sequences mismatch: 1 != 2"):
        assert_close([1], [1, 2])
    with pytest.raises(AssertionError, match=r"Missing keys in the actual mapping: \['b'\]"):
        assert_close({"a": 1}, {"b": 1})
    with pytest.raises(AssertionError, match=r"attribute 'stride\(\)' do not match"):
        assert_close(weft.ones(2, 2).t(), weft.ones(2, 2)[:, :2].clone().t().t(), check_stride=True)
    assert_allclose([1.0, nan], weft.tensor([1.0, nan], dtype=weft.float64))


@pytest.mark.parity
@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32", "complex64"]
)
def test_made_tensors_equal_torch(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    for options in ({}, {"low": -1, "high": 2}, {"noncontiguous": True}, {"exclude_zero": True}):
        results = []
        for lib in (weft, torch):
            lib.manual_seed(0)
            x = lib.testing.make_tensor((2, 3), dtype=getattr(lib, dtype), device="cpu", **options)
            results.append((x.tolist(), x.stride()))
        assert results[0] == results[1]


def test_made_tensors_refuse() -> None:
    with pytest.raises(ValueError, match="make_tensor: expected low below high, got 2 and 1"):
        make_tensor(2, dtype=weft.int64, low=2, high=1)
    with pytest.raises(ValueError, match="expected a dtype with gradients"):
        make_tensor(2, dtype=weft.int64, requires_grad=True)
    assert make_tensor(2, dtype=weft.float32, requires_grad=True).requires_grad

"""weft.vmap: every operator on a batch against a loop over its samples, and beside PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from op_cases import CASES
from op_cases.calling import ROWS, function_of
from op_cases.realise import realise, to_library, to_numpy

import weft
from weft.func import _level
from weft.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

BATCH = 3
DRAWS = {key for key, row in ROWS.items() if "random" in row.tags}
# Operators that vmap refuses, whatever the arguments: sizes or decisions by elements, storages.
REFUSED = {
    "argwhere", "as_strided", "as_strided_copy", "bincount", "masked_select", "nonzero", "equal",
    "allclose", "item", "as_strided_scatter", "unique_dim", "unique_consecutive", "where",
}  # fmt: skip


class Batch:
    """A call of an operator for each of BATCH samples, some of whose tensors differ."""

    def __init__(
        self, key: str, leaves: list[list[Any]], spec: Any, which: tuple[int, ...]
    ) -> None:
        self.function = function_of(key)
        self.spec, self.which = spec, which
        self.samples = [
            [own if i in which else first for i, (own, first) in enumerate(zip(each, leaves[0]))]
            for each in leaves
        ]

    def one(self, leaves: list[Any]) -> Any:
        args, kwargs = tree_unflatten(leaves, self.spec)
        return self.function(*args, **kwargs)

    def of(self, *tensors: Any) -> Any:
        """The call with these for the tensors that differ."""
        leaves = list(self.samples[0])
        for place, tensor in zip(self.which, tensors):
            leaves[place] = tensor
        return self.one(leaves)

    def tensors(self) -> list[Any]:
        return [weft.stack([each[i] for each in self.samples]) for i in self.which]


def batches(key: str) -> Iterator[Batch]:
    """The samples of a case, with the first tensor, the last one, and all of the batch."""
    case = CASES[key]
    dtype = "float64" if "float64" in case.dtypes else case.dtypes[0]
    for index, sample in enumerate(case.samples):
        made = [
            to_library(realise(sample, case, dtype, index + 100 * i), weft, dtype)
            for i in range(BATCH)
        ]
        flat = [tree_flatten((list(each.args), each.kwargs)) for each in made]
        leaves = [each for each, _ in flat]
        places = [i for i, value in enumerate(leaves[0]) if isinstance(value, weft.Tensor)]
        if places:
            for which in dict.fromkeys(((places[0],), (places[-1],), tuple(places))):
                yield Batch(key, leaves, flat[0][1], which)


def stacked(results: list[Any]) -> Any:
    if isinstance(results[0], (list, tuple)):
        return [stacked(list(each)) for each in zip(*results)]
    return weft.stack(results)


def assert_close(ours: Any, expected: Any, tolerance: float = 1e-8) -> None:
    if isinstance(expected, (list, tuple)):
        assert len(ours) == len(expected)
        for one, other in zip(ours, expected):
            assert_close(one, other, tolerance)
        return
    assert ours.dtype == expected.dtype
    assert ours.shape == expected.shape
    np.testing.assert_allclose(to_numpy(ours), to_numpy(expected), tolerance, tolerance)


KEYS = [key for key in CASES if key in ROWS and key not in DRAWS | REFUSED]


@pytest.mark.parametrize("key", KEYS)
def test_a_batch_is_its_samples(key: str) -> None:
    for batch in batches(key):
        try:
            expected = stacked([batch.one(each) for each in batch.samples])
        except (RuntimeError, IndexError, TypeError):
            continue  # samples of other sizes, or arguments that are refused
        assert_close(weft.vmap(batch.of)(*batch.tensors()), expected)


def floats(value: Any) -> list[Any]:
    return [
        each
        for each in tree_leaves(value)
        if isinstance(each, weft.Tensor) and each.is_floating_point()
    ]


def weighted(result: Any) -> Any:
    """A number that depends on each element of a result differently."""
    total = weft.zeros((), dtype=weft.float64)
    for each in floats(result):
        weights = (weft.arange(each.numel(), dtype=each.dtype) + 1).sin().reshape(each.shape)
        total = total + (each * weights).sum()
    return total


HAS_GRADIENT = [key for key in KEYS if CASES[key].grad and "float64" in CASES[key].dtypes]


@pytest.mark.parametrize("key", HAS_GRADIENT)
def test_gradients_of_samples(key: str) -> None:
    """vmap(grad(f)) is grad(f) of each sample, and grad of vmap the gradients of the loop."""
    for batch in list(batches(key))[:6]:
        tensors = batch.tensors()
        if not all(each.dtype == weft.float64 for each in tensors):
            continue
        places = tuple(range(len(tensors)))
        gradient = weft.func.grad(lambda *own, batch=batch: weighted(batch.of(*own)), places)
        try:
            rows = [gradient(*(each[i] for each in tensors)) for i in range(BATCH)]
        except RuntimeError:
            continue  # no gradient, or not for these arguments
        expected = stacked(rows)
        assert_close(list(weft.vmap(gradient)(*tensors)), expected)
        whole = weft.func.grad(
            lambda *own, batch=batch: weft.vmap(lambda *one: weighted(batch.of(*one)))(*own).sum(),
            places,
        )
        assert_close(list(whole(*tensors)), expected)


def way(key: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """How an operator runs: by rule, sample by sample, or both, by the arguments."""
    looped: list[str] = []
    whole = _level.Level.one_by_one

    def one_by_one(self: Any, name: str, *rest: Any) -> Any:
        looped.append(name)
        return whole(self, name, *rest)

    monkeypatch.setattr(_level.Level, "one_by_one", one_by_one)
    ways = set()
    for batch in batches(key):
        looped.clear()
        try:
            weft.vmap(batch.of)(*batch.tensors())
        except (RuntimeError, IndexError, TypeError, ValueError):
            continue
        ways.add("loop" if looped else "rule")
    return "both" if len(ways) == 2 else "".join(ways)


def test_most_operators_have_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a program uses most must not be a loop."""
    found = {key: way(key, monkeypatch) for key in KEYS}
    looped = sorted(key for key, each in found.items() if each == "loop")
    ruled = sum(each in ("rule", "both") for each in found.values())
    print(f"{ruled} of {ruled + len(looped)} by rule; sample by sample: {', '.join(looped)}")
    assert len(looped) <= MOST_LOOPED
    common = ("add.Tensor", "sum", "matmul", "linear", "conv2d", "softmax.int", "embedding", "cat",
              "view", "index.Tensor", "layer_norm", "batch_norm", "gather", "sort")  # fmt: skip
    assert not {key for key in common if found[key] not in ("rule", "both")}


MOST_LOOPED = 46  # lower it when a rule is added

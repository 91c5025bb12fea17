"""Copies of generators draw what the copied ones draw next, and go on by themselves."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from libraries import both

COPIES: dict[str, Callable[[Any], Any]] = {
    "clone_state": lambda generator: generator.clone_state(),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda generator: pickle.loads(pickle.dumps(generator)),
}


@both
@pytest.mark.parametrize("name", COPIES)
def test_copies(lib: Any, name: str) -> None:
    one = lib.Generator().manual_seed(5)
    lib.randn(3, generator=one)  # keeps a number for the next call
    other = COPIES[name](one)
    assert type(other) is type(one) and other.initial_seed() == 5
    expected = [lib.randn(3, generator=one).tolist() for _ in range(2)]
    assert [lib.randn(3, generator=other).tolist() for _ in range(2)] == expected


@both
def test_a_sampler_is_copied_with_its_generator(lib: Any) -> None:
    data = lib.utils.data
    sampler = data.RandomSampler(range(9), generator=lib.Generator().manual_seed(1))
    again = copy.deepcopy(sampler)
    assert list(again) == list(sampler)

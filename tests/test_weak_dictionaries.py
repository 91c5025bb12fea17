"""Dictionaries by identity: beside a dict of ids, and beside PyTorch's."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import weft
from weft.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary


def test_entries_are_of_the_object_and_go_with_it() -> None:
    tensors = [weft.ones(2) for _ in range(4)]
    found: Any = WeakTensorKeyDictionary(dict=[(each, i) for i, each in enumerate(tensors[:3])])
    assert [found[each] for each in tensors[:3]] == [0, 1, 2]
    assert tensors[3] not in found and 3 not in found and found.get(tensors[3], -1) == -1
    found[tensors[0]] = 7
    assert len(found) == 3 and found[tensors[0]] == 7
    copied = found.copy()
    del found[tensors[1]]
    with pytest.raises(KeyError):
        found[tensors[1]]
    assert len(copied) == 3 and {id(each) for each in found} == {id(tensors[0]), id(tensors[2])}
    tensors.pop(0)
    gc.collect()
    assert len(found) == 1 and list(found.values()) == [2]
    assert [ref() is tensors[1] for ref in found.keyrefs()] == [True]


def test_a_dictionary_that_died_is_not_kept_by_its_keys() -> None:
    x = weft.ones(1)
    made = WeakIdKeyDictionary({x: 1})
    watched = weakref.ref(made)
    del made
    gc.collect()
    assert watched() is None


def test_references_compare_what_they_refer_to() -> None:
    x, y = weft.ones(1), weft.ones(1)
    assert WeakIdRef(x) == WeakIdRef(x) and WeakIdRef(x) != WeakIdRef(y)
    assert hash(WeakIdRef(x)) == hash(WeakIdRef(x))
    ref, other = WeakIdRef(x), WeakIdRef(y)
    weak = TensorWeakRef(x)
    assert weak() is x
    del x, y
    gc.collect()
    assert ref() is None and weak() is None
    assert ref == ref and ref != other
    with pytest.raises(TypeError, match="TensorWeakRef: expected a Tensor, got int"):
        TensorWeakRef(3)  # type: ignore[arg-type]

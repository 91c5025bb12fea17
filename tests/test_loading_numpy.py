"""Arrays, numbers and dtypes of NumPy in files of save: with weights_only=False they are read."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest

import weft
from weft.serialization.errors import LoadError
from weft.serialization.globals import find_own_global, set_state
from weft.serialization.unpickle import Unpickler

VALUES = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.arange(6, dtype=np.int16).reshape(2, 3).T,
    np.arange(3, dtype=">i4"),
    np.array(2.5),
    np.empty((0, 4), dtype=np.uint8),
    np.array([True, False]),
    np.array([1 + 2j], dtype=np.complex64),
    np.array(["ab", "c"]),
    np.array([b"ab", b"c"]),
    np.array([["ab", None, 1], [2.5, (1, 2), {}]], dtype=object),
    np.array([["ab", None], [2.5, 3]], dtype=object).T,
    np.empty((0, 2), dtype=object),
    np.float64(0.5),
    np.int32(3),
    np.bool_(True),
    np.float16(1.5),
]


def saved(value: Any, lib: Any = weft) -> io.BytesIO:
    file = io.BytesIO()
    lib.save(value, file)
    file.seek(0)
    return file


def assert_same(got: Any, wanted: Any) -> None:
    native = wanted.dtype.newbyteorder("=")  # as NumPy itself reads arrays of the other order
    assert type(got) is type(wanted) and got.dtype == native and got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)
    if isinstance(wanted, np.ndarray):
        assert got.flags.f_contiguous == wanted.flags.f_contiguous and got.flags.writeable


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back(value: Any) -> None:
    assert_same(weft.load(saved(value), weights_only=False), value)


def test_checkpoints_with_numbers_of_numpy() -> None:
    history = np.zeros(3)
    checkpoint = {"best": np.float64(0.25), "a": history, "b": history, "kind": np.dtype("int8")}
    got = weft.load(saved({**checkpoint, "w": weft.ones(2)}), weights_only=False)
    assert got["best"] == 0.25 and got["kind"] == np.int8 and got["a"] is got["b"]
    assert weft.equal(got["w"], weft.ones(2))


def test_by_default_they_are_refused() -> None:
    with pytest.raises(LoadError, match=r"got the global numpy\S*scalar"):
        weft.load(saved(np.float64(1)))


def read(data: bytes) -> Any:
    return Unpickler(data, find_own_global, lambda id: None, set_state).load()


def refused(value: Any, change: tuple[bytes, bytes] = (b"", b"")) -> None:
    data = pickle.dumps(value, protocol=2)
    assert change[0] in data
    with pytest.raises(LoadError):
        read(data.replace(*change, 1) if change[0] else data)


def test_other_dtypes_and_damaged_states_are_refused() -> None:
    objects = np.array([3, 4], dtype=object)
    refused(objects, (b"K\x02\x85", b"K\x03\x85"))  # a shape of more objects than there are
    refused(objects, (b"O8", b"i8"))
    refused(objects, (b"]", b")"))  # not a list
    refused(np.zeros(1, dtype=[("a", "i4")]))
    refused(np.array(["2020-01-01"], dtype="M8[D]"))
    array = np.arange(4, dtype=np.uint8)
    assert read(pickle.dumps(array, protocol=2)).tolist() == [0, 1, 2, 3]
    refused(array, (b"K\x04\x85", b"K\x05\x85"))  # a shape of more elements than there are bytes
    refused(np.zeros(2, np.float32), (b"f4", b"f8"))
    refused(np.float32(1), (b"f4", b"O8"))


@pytest.mark.parity
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_files_go_both_ways(value: Any) -> None:
    torch: Any = pytest.importorskip("torch")
    assert_same(weft.load(saved(value, torch), weights_only=False), value)
    assert_same(torch.load(saved(value), weights_only=False), value)

"""Values of Python's standard library in files that are loaded with weights_only=False."""

from __future__ import annotations

import argparse
import datetime
import decimal
import fractions
import io
import pathlib
import types
import uuid
import zipfile
from collections import Counter, defaultdict, deque
from typing import Any

import pytest
from libraries import both

import weft
from weft.serialization.errors import LoadError

_UTC = datetime.timezone.utc
VALUES = {
    "deque": deque([1, [2]], 5),
    "plain deque": deque("ab"),
    "frozenset": frozenset({1, "a"}),
    "range": range(3, 9, 2),
    "slice": slice(None, 3),
    "date": datetime.date(2024, 2, 29),
    "time": datetime.time(3, 4, 5, 6),
    "datetime": datetime.datetime(2024, 2, 29, 3, 4, tzinfo=_UTC),
    "timedelta": datetime.timedelta(3, 4, 5),
    "Decimal": decimal.Decimal("-1.50"),
    "Fraction": fractions.Fraction(-1, 3),
    "path": pathlib.PurePosixPath("/a/b c"),
    "windows": pathlib.PureWindowsPath("a\\b"),
    "namespace": types.SimpleNamespace(a=1, b=[2]),
    "arguments": argparse.Namespace(lr=0.1, name="x", deep=argparse.Namespace(a=None)),
    "uuid": uuid.UUID(int=1 << 100),
    "sets": defaultdict(set, {"a": {1}}),
    "twice": [Counter("aab"), deque([deque([1])])],
}


def test_a_path_that_python_313_wrote() -> None:
    find = weft.serialization.globals.find_own_global
    for name in ("PosixPath", "PurePosixPath", "PureWindowsPath"):
        assert find("pathlib._local", name) is find("pathlib", name)


@both
@pytest.mark.parametrize("name", VALUES)
def test_values_of_the_standard_library(name: str, lib: Any) -> None:
    file = io.BytesIO()
    lib.save({"value": [VALUES[name]] * 2, "tensor": lib.ones(2)}, file)
    file.seek(0)
    loaded = weft.load(file, weights_only=False)["value"]
    assert loaded[0] == VALUES[name] and type(loaded[0]) is type(VALUES[name])
    assert loaded[0] is loaded[1]
    assert getattr(loaded[0], "maxlen", None) == getattr(VALUES[name], "maxlen", None)
    file.seek(0)
    if name not in ("sets",):
        with pytest.raises(LoadError, match="expected only tensors and plain containers"):
            weft.load(file)


@both
def test_a_namespace_holds_tensors(lib: Any) -> None:
    file = io.BytesIO()
    lib.save(argparse.Namespace(weight=lib.arange(3), history=deque([lib.ones(1)])), file)
    file.seek(0)
    loaded = weft.load(file, weights_only=False)
    assert loaded.weight.tolist() == [0, 1, 2] and loaded.history[0].tolist() == [1]


class _Call:
    """An object whose pickle is a call."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call[0], self.call[1:], *([{"int": -1}] if self.call[0] is uuid.UUID else [])


@pytest.mark.parametrize("call", [
    (deque, [1, 2]),
    (fractions.Fraction, "1e999"),
    (decimal.Decimal, 3),
    (range, "a"),
    (datetime.timedelta, 1.5),
    (datetime.datetime, 2024, 1, 1),
    (pathlib.PurePosixPath, 3),
    (frozenset, "ab"),
    (uuid.UUID, "12345678123456781234567812345678"),
])  # fmt: skip
def test_what_the_classes_do_not_write_is_refused(call: Any) -> None:
    file = io.BytesIO()
    weft.save({"value": _Call(*call)}, file)
    file.seek(0)
    with pytest.raises(LoadError, match="load: expected"):
        weft.load(file, weights_only=False)


@both
@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("utf-8", "é"), ("latin1", "Ã©"), ("bytes", b"\xc3\xa9"), ("ascii", UnicodeDecodeError)],
)
def test_text_of_python_2(lib: Any, encoding: str, expected: Any) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02U\x02\xc3\xa9.")
        archive.writestr("archive/version", b"3\n")
    file.seek(0)
    if isinstance(expected, str | bytes):
        assert lib.load(file, weights_only=False, encoding=encoding) == expected
        return
    with pytest.raises(Exception) as raised:
        lib.load(file, weights_only=False, encoding=encoding)
    assert "codec can't decode byte 0xc3" in str(raised.value)


def test_unknown_encoding() -> None:
    with pytest.raises(LookupError, match="nothing"):
        weft.load(io.BytesIO(b"PK"), encoding="nothing")


def test_the_environment_says_whether_only_weights_are_loaded(monkeypatch):
    """Programs set the variables before they load other people's files."""
    file = io.BytesIO()
    weft.save(slice(1, 3), file)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    assert weft.load(io.BytesIO(file.getvalue())) == slice(1, 3)
    with pytest.raises(weft.serialization.LoadError, match=r"builtins\.slice"):
        weft.load(io.BytesIO(file.getvalue()), weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "yes")
    with pytest.raises(RuntimeError, match="got both"):
        weft.load(io.BytesIO(file.getvalue()))
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(weft.serialization.LoadError, match=r"builtins\.slice"):
        weft.load(io.BytesIO(file.getvalue()), weights_only=False)

"""Files of tensors in both libraries: what stands behind one another, flushed files, Python 2."""

from __future__ import annotations

import io
import mmap
from pathlib import Path
from typing import Any

import pytest
from libraries import both


@both
def test_objects_of_the_old_format_one_after_another(lib: Any) -> None:
    file = io.BytesIO()
    for value in ([lib.ones(3), 1], {"a": lib.zeros(2)}, 3):
        lib.save(value, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    first, second, third = (lib.load(file) for _ in range(3))
    assert first[0].tolist() == [1, 1, 1] and second["a"].tolist() == [0, 0] and third == 3


@both
@pytest.mark.parametrize("as_zip", [True, False])
def test_a_saved_file_can_be_read_before_it_is_closed(
    lib: Any, as_zip: bool, tmp_path: Path
) -> None:
    with open(tmp_path / "a.pt", "wb") as file:
        lib.save([lib.ones(2)], file, _use_new_zipfile_serialization=as_zip)
        assert lib.load(tmp_path / "a.pt")[0].tolist() == [1, 1]


PYTHON_2 = (
    b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}(U\x10protocol_version"
    b"M\xe9\x03U\rlittle_endian\x88u.\x80\x02](U\x02\xc3\xa9ctorch._utils\n_rebuild_tensor_v2\n("
    b"(U\x07storagectorch\nFloatStorage\nU\x01kU\x03cpuK\x01NtQK\x00K\x01\x85K\x01\x85\x89NtRe."
    b"\x80\x02]U\x01ka.\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80?"
)


@both
@pytest.mark.filterwarnings("ignore:pickle_load_args")
@pytest.mark.parametrize(
    ("encoding", "text"), [("utf-8", "\xe9"), ("latin1", "\xc3\xa9"), ("bytes", b"\xc3\xa9")]
)
def test_texts_of_python_2(lib: Any, encoding: str, text: Any) -> None:
    found, tensor = lib.load(io.BytesIO(PYTHON_2), encoding=encoding)
    assert found == text and tensor.tolist() == [1]


@both
def test_options_of_files(lib: Any) -> None:
    files = lib.serialization
    assert files.get_default_load_endianness() is None and files.get_crc32_options() is True
    for order in (files.LoadEndianness.BIG, None):
        files.set_default_load_endianness(order)
        assert files.get_default_load_endianness() is order
    with pytest.raises(TypeError):
        files.set_default_load_endianness("big")
    files.set_crc32_options(False)
    assert files.get_crc32_options() is False
    files.set_crc32_options(True)
    with files.set_default_mmap_options(mmap.MAP_SHARED):
        assert files.get_default_mmap_options() == mmap.MAP_SHARED
    assert files.get_default_mmap_options() == mmap.MAP_PRIVATE
    with pytest.raises(ValueError):
        files.set_default_mmap_options(mmap.MAP_ANONYMOUS)

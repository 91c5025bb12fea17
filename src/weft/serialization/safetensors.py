"""The safetensors format: a JSON header with dtypes, shapes and places, then the bytes.

save_file(model.state_dict(), "model.safetensors")
model.load_state_dict(load_file("model.safetensors"))
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.serialization.atomic import replaced_file
from weft.serialization.errors import LoadError, shown
from weft.serialization.source import Source, open_source

_MAX_HEADER = 100_000_000
_DTYPES = {dtype._safetensors: dtype for dtype in _C._dtypes if dtype._safetensors}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

# Name, dtype, shape, begin and end of a tensor's bytes in the file.
_Place = tuple[str, Any, list[int], int, int]


# ---- writing ----


def save_file(
    tensors: Mapping[str, Tensor],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes named tensors to a file, at once: the old file stays whole until the new one is.

    Tensors are written contiguous, each with bytes of its own also where they share memory.
    ValueError for a dtype the format has not (complex128), TypeError for what is no tensor.
    """
    parts = _parts(tensors, metadata)
    with replaced_file(filename) as file:
        for part in parts:
            file.write(part)


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes that `save_file` writes.

    >>> import weft
    >>> load(save({"x": weft.arange(3)}))
    {'x': tensor([0, 1, 2])}
    """
    return b"".join(_parts(tensors, metadata))


def _parts(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> Iterable[Any]:
    """The header, then the tensors, those with larger elements first: so all are aligned."""
    for name, tensor in tensors.items():
        if type(name) is not str or not isinstance(tensor, Tensor):
            raise TypeError(
                f"save_file: expected tensors by their names, got {type(tensor).__name__}"
            )
        if tensor.dtype not in _NAMES:
            raise ValueError(f"save_file: expected a dtype of safetensors, got {tensor.dtype}")
    header: dict[str, Any] = {}
    if metadata is not None:
        if any(type(text) is not str for pair in metadata.items() for text in pair):
            raise TypeError("save_file: expected metadata of strings")
        header["__metadata__"] = dict(metadata)
    order = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    at = 0
    for name in order:
        tensor = tensors[name]
        end = at + tensor.numel() * tensor.itemsize
        shape = list(tensor.shape)
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _MAX_HEADER:
        raise ValueError(f"save_file: expected a header of at most {_MAX_HEADER} bytes")
    return _stream(len(text).to_bytes(8, "little") + text, [tensors[name] for name in order])


def _stream(header: bytes, tensors: list[Tensor]) -> Iterable[Any]:
    yield header
    for tensor in tensors:
        if tensor.numel():
            whole = tensor.detach().contiguous()
            size, begin = whole.numel() * whole.itemsize, whole.storage_offset() * whole.itemsize
            flat = _C._from_storage(whole, _C.uint8, (size,), (1,), begin)
            yield memoryview(flat)


# ---- reading ----


def load_file(
    filename: str | os.PathLike[str] | Any, device: Any = "cpu", *, mmap: bool = False
) -> dict[str, Tensor]:
    """The tensors of a file by their names. LoadError for what is not of the format.

    With `mmap=True` they are made over the mapped file, each page read when it is first used;
    writing to them never reaches the file.
    """
    if str(device) != "cpu":
        raise RuntimeError(f"load_file: expected device 'cpu', got '{device}'")
    with open_source(filename, "load_file", mapped=mmap) as source:
        return _tensors(source)


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors of a file's bytes."""
    return load_file(io.BytesIO(data))


def load_metadata(filename: str | os.PathLike[str] | Any) -> dict[str, str]:
    """The texts that were saved with the tensors; empty if there are none."""
    with open_source(filename, "load_metadata") as source:
        return _read_header(source)[0]


def _tensors(source: Source) -> dict[str, Tensor]:
    result = {}
    for name, dtype, shape, begin, end in _read_header(source)[1]:
        data = source.tensor(begin, end - begin)
        if data.data_ptr() % min(dtype.itemsize, 8):
            data = data.clone()  # mapped where elements cannot be
        count = data.numel() // dtype.itemsize
        result[name] = _C._from_storage(data, dtype, (count,), (1,), 0).view(shape)
    return result


def _read_header(source: Source) -> tuple[dict[str, str], list[_Place]]:
    """Metadata, and the tensors in the order of the header."""
    size = int.from_bytes(source.read(0, 8), "little")
    if size > min(_MAX_HEADER, source.size - 8):
        raise LoadError(f"load_file: expected a header inside the file, got one of {size} bytes")
    try:
        header = json.loads(source.read(8, size).decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        reason = shown(str(error))
        raise LoadError(f"load_file: expected a header in JSON; {reason}") from None
    if type(header) is not dict:
        raise LoadError("load_file: expected a JSON object as header")
    metadata = header.pop("__metadata__", {})
    if type(metadata) is not dict or any(type(text) is not str for text in metadata.values()):
        raise LoadError("load_file: expected metadata of strings")
    extents = [_place(name, entry, 8 + size) for name, entry in header.items()]
    # The tensors cover the file: no gap, no overlap.
    at = 8 + size
    for name, _, _, begin, end in sorted(extents, key=lambda place: place[3:]):
        if begin != at:
            raise LoadError(f"load_file: expected '{shown(name)}' to begin at {at}, got {begin}")
        at = end
    if at != source.size:
        raise LoadError(f"load_file: expected a file of {at} bytes, got {source.size}")
    return metadata, extents


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name is there twice")
    return made


def _place(name: str, entry: Any, start: int) -> _Place:
    """A tensor's entry of the header, checked. `start` is where the header ends."""
    if type(entry) is not dict or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise LoadError(f"load_file: expected dtype, shape and data_offsets of '{shown(name)}'")
    dtype = _DTYPES.get(entry["dtype"]) if type(entry["dtype"]) is str else None
    if dtype is None:
        raise LoadError(
            f"load_file: expected a dtype that weft has, got {shown(str(entry['dtype']))}"
        )
    shape, offsets = entry["shape"], entry["data_offsets"]
    for numbers in (shape, offsets):
        if type(numbers) is not list or any(
            type(number) is not int or not 0 <= number < 1 << 62 for number in numbers
        ):
            raise LoadError(f"load_file: expected sizes and offsets of '{shown(name)}' as ints")
    if len(shape) > 64 or len(offsets) != 2:
        raise LoadError(f"load_file: expected at most 64 sizes and 2 offsets of '{shown(name)}'")
    begin, end = offsets
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise LoadError(
            f"load_file: expected {math.prod(shape) * dtype.itemsize} bytes of '{shown(name)}', "
            f"got {end - begin}"
        )
    return name, dtype, shape, start + begin, start + end

"""Writes TorchScript archives byte by byte, from the facts of the format."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from typing import Any, NamedTuple

import weft

_STORAGES = {
    weft.float32: "torch.FloatStorage",
    weft.float64: "torch.DoubleStorage",
    weft.int64: "torch.LongStorage",
}


class Object(NamedTuple):
    """An object of a class of the archive's code."""

    name: str  # "__torch__.Net"
    state: dict[str, Any]


class Member(NamedTuple):
    """A member of an enum of the archive's code."""

    name: str
    value: Any


class Called(NamedTuple):
    """The result of a function that pickles may name."""

    name: str
    arguments: tuple[Any, ...]


def archive(code: dict[str, str], root: Any, constants: Any = (), **records: Any) -> io.BytesIO:
    """An archive of files of code by module ("__torch__"), the object of data.pkl, tensors, and
    further records; None leaves a record out."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for module, text in code.items():
            out.writestr(f"net/code/{module.replace('.', '/')}.py", text)
        for name, value in (("data", root), ("constants", tuple(constants))):
            writer = _Pickle()
            writer.value(value)
            out.writestr(f"net/{name}.pkl", b"\x80\x02" + bytes(writer.data) + b".")
            for key, tensor in enumerate(writer.tensors):
                stored = tensor.numpy().tobytes()
                out.writestr(zipfile.ZipInfo(f"net/{name}/{key}"), stored)  # uncompressed
        for name, data in {"version": b"3\n", "byteorder": b"little", **records}.items():
            if data is None:
                continue
            out.writestr(f"net/{name}", data)
    file.seek(0)
    return file


def legacy(module: Any, tensors: Any, attributes: Any, **records: Any) -> io.BytesIO:
    """An archive of PyTorch 1.0 to 1.3: the tree of model.json from its main module on, rows of
    tensors (dtype, record, offset, dims, strides, requires_grad), attributes.pkl, other records."""
    rows = [
        {
            "dataType": dtype, "data": {"key": key}, "offset": str(offset), "requiresGrad": requires,
            "dims": [str(size) for size in dims], "strides": [str(each) for each in strides],
            "device": "cpu",
        }
        for dtype, key, offset, dims, strides, requires in tensors
    ]  # fmt: skip
    tree = {"protoVersion": "4", "mainModule": module, "producerName": "pytorch", "tensors": rows}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("net/version", "1\n")
        out.writestr("net/model.json", json.dumps(tree))
        out.writestr("net/attributes.pkl", pickled(attributes))
        for name, data in records.items():
            out.writestr(f"net/{name}", data)
    file.seek(0)
    return file


def pickled(value: Any) -> bytes:
    """A pickle of plain values."""
    writer = _Pickle()
    writer.value(value)
    return b"\x80\x02" + bytes(writer.data) + b"."


class _Pickle:
    def __init__(self) -> None:
        self.data = bytearray()
        self.tensors: list[weft.Tensor] = []

    def name(self, qualified: str) -> None:
        module, _, short = qualified.rpartition(".")
        self.data += f"c{module}\n{short}\n".encode()

    def text(self, text: str) -> None:
        self.data += b"X" + struct.pack("<I", len(text.encode())) + text.encode()

    def value(self, value: Any) -> None:
        if value is None or isinstance(value, bool):
            self.data += {None: b"N", True: b"\x88", False: b"\x89"}[value]
        elif isinstance(value, int):
            self.data += b"J" + struct.pack("<i", value)
        elif isinstance(value, float):
            self.data += b"G" + struct.pack(">d", value)
        elif isinstance(value, str):
            self.text(value)
        elif isinstance(value, Object):
            self.name(value.name)
            self.data += b")\x81"
            self.value(value.state)
            self.data += b"b"
        elif isinstance(value, Called):
            self.call(value.name, *value.arguments)
        elif isinstance(value, Member):
            self.name(value.name)
            self.value(value.value)
            self.data += b"R"
        elif isinstance(value, weft.Tensor):
            self.tensor(value)
        elif isinstance(value, tuple):
            self.data += b"("
            for item in value:
                self.value(item)
            self.data += b"t"
        elif isinstance(value, list):
            self.data += b"](" + b""
            for item in value:
                self.value(item)
            self.data += b"e"
        else:
            self.data += b"}("
            for key, item in value.items():
                self.value(key)
                self.value(item)
            self.data += b"u"

    def call(self, name: str, *args: Any) -> None:
        self.name(name)
        self.value(args)
        self.data += b"R"

    def tensor(self, tensor: weft.Tensor) -> None:
        self.name("torch._utils._rebuild_tensor_v2")
        self.data += b"(("
        self.text("storage")
        self.name(_STORAGES[tensor.dtype])
        self.text(str(len(self.tensors)))
        self.text("cpu")
        self.value(tensor.numel())
        self.data += b"tQ"
        for part in (0, tuple(tensor.shape), tensor.stride(), tensor.requires_grad):
            self.value(part)
        self.call("collections.OrderedDict")
        self.data += b"tR"
        self.tensors.append(tensor.detach())


# A module of one method, and its object.
ROOT = Object("__torch__.M", {"training": True})


def forward(text: str, returns: str = "Tensor") -> dict[str, str]:
    """The code of a module M whose forward(x) returns what the text says."""
    body = f"  def forward(self, x: Tensor) -> {returns}:\n    return {text}\n"
    return {"__torch__": f"class M(Module):\n  training : bool\n{body}"}

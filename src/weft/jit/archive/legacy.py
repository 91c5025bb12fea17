"""Archives of PyTorch 1.0 to 1.3: a tree of modules in `model.json`, their methods in files of
functions, tensors in a table, other attributes in `attributes.pkl`.

The tree is turned into what later archives have, a class for each module and its object.
"""

from __future__ import annotations

import json
import keyword
import re
from typing import Any

from weft import _C
from weft.jit.archive.classes import Definitions
from weft.jit.archive.code import MAX_CODE
from weft.jit.archive.objects import build, new_module, tensor_of
from weft.serialization.errors import LoadError, shown
from weft.serialization.globals import StorageType
from weft.serialization.storages import Storages
from weft.serialization.unpickle import Arguments
from weft.serialization.zip_reader import ZipReader

TREE = "model.json"
LIBRARIES = "libs/"  # where the classes and functions of such an archive are
_MAX_DEPTH = 100  # of modules
_DTYPES = {
    "FLOAT": _C.float32,
    "DOUBLE": _C.float64,
    "FLOAT16": _C.float16,
    "INT64": _C.int64,
    "INT32": _C.int32,
    "INT16": _C.int16,
    "INT8": _C.int8,
    "UINT8": _C.uint8,
    "BYTE": _C.uint8,
    "BOOL": _C.bool,
}


def read_tree(archive: ZipReader) -> Any:
    """model.json. Its fields are checked where they are read: get()."""
    try:
        return json.loads(archive.read(TREE, MAX_CODE))
    except (ValueError, RecursionError) as error:
        raise LoadError(f"load: expected JSON in {TREE}, got {shown(str(error))}") from None


def get(fields: Any, name: str, kind: type, default: Any = None) -> Any:
    """A field of an object of the tree. Numbers of 64 bits stand there as texts."""
    value = fields.get(name, default) if isinstance(fields, dict) else None
    if kind is int and isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value):
        value = int(value)
    if type(value) is not kind:
        raise LoadError(
            f"load: expected {name!r} as {kind.__name__} in {TREE}, got {type(value).__name__}"
        )
    return value


def read_tensors(tree: Any, archive: ZipReader, map_location: Any) -> list[Any]:
    """The table of tensors; those with the same record share memory."""
    storages = Storages(lambda key, size, dtype: archive.tensor(key), map_location)
    return [_tensor(each, archive, storages) for each in get(tree, "tensors", list, [])]


def _tensor(fields: Any, archive: ZipReader, storages: Storages) -> Any:
    kind = get(fields, "dataType", str)
    if kind not in _DTYPES or fields.get("isQuantized"):
        kind = "a quantised tensor" if kind in _DTYPES else shown(kind)
        raise LoadError(f"load: expected a tensor of a dtype that weft has, got {kind}")
    dtype, key = _DTYPES[kind], get(get(fields, "data", dict), "key", str)
    count = archive.size(key) // dtype.itemsize
    device = get(fields, "device", str, "cpu")
    identity = Arguments(("storage", StorageType(dtype), key, device, count))
    dims, strides = (_ints(fields, name) for name in ("dims", "strides"))
    requires_grad = get(fields, "requiresGrad", bool, False)
    offset = get(fields, "offset", int, 0)
    return tensor_of(storages.persistent(identity), offset, dims, strides, requires_grad, None)


def _ints(fields: Any, name: str) -> tuple[int, ...]:
    items = get(fields, name, list, [])
    return tuple(get({name: item}, name, int) for item in items)


class LegacyModules:
    """Makes the modules of a tree; `values` are those of attributes.pkl."""

    def __init__(
        self, archive: ZipReader, definitions: Definitions, tensors: list[Any], values: Any
    ) -> None:
        self._archive, self._definitions = archive, definitions
        self._tensors, self._values = tensors, values
        self._count = 0

    def make(self, fields: Any, depth: int = 0) -> Any:
        """The module of an object of the tree."""
        if depth > _MAX_DEPTH:
            raise LoadError(f"load: expected modules nested at most {_MAX_DEPTH} deep, got more")
        children = {
            get(each, "name", str): self.make(each, depth + 1)
            for each in get(fields, "submodules", list, [])
        }
        parameters = get(fields, "parameters", list, [])
        attributes = get(fields, "attributes", list, [])
        made = new_module(self._class(fields, parameters, attributes))
        state: dict[str, Any] = dict(children)
        for each in attributes:
            number = get(each, "id", int, -1)
            if number >= 0:
                state[get(each, "name", str)] = _at(self._values, number, "attribute")
        for each in parameters:
            number = get(each, "tensorId", int, 0)
            state[get(each, "name", str)] = _at(self._tensors, number, "tensor")
        if "getStateAttributeId" in fields:
            number = get(fields, "getStateAttributeId", int)
            build(made, _at(self._values, number, "state"))
        else:
            build(made, state)
        return made

    def _class(self, fields: Any, parameters: list[Any], attributes: list[Any]) -> Any:
        """The class of a module: the functions of its file become methods where they stand."""
        name = re.sub(r"\W", "_", get(fields, "name", str, "")) or "Module"
        name = f"_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name
        arena = fields.get("torchscriptArena")
        path = get(arena, "key", str) if arena is not None else f"{TREE}/{name}"
        text = self._archive.read(path, MAX_CODE) if arena is not None else b""
        first, _, methods = text.decode("utf-8", "replace").partition("\n")
        if arena is not None and not re.fullmatch(r"op_version_set *= *\d+ *", first):
            raise LoadError(f"load: expected op_version_set in {shown(path)}, got {shown(first)}")
        lines = [f"class {name}(Module):", *(f"  {line}" for line in methods.split("\n"))]
        for which, buffers in (("__parameters__", False), ("__buffers__", True)):
            names = [
                get(each, "name", str)
                for each in parameters
                if get(each, "isBuffer", bool, False) is buffers
            ]
            lines.append(f"  {which} = {names!r}")
            lines += [f"  __annotations__[{each!r}] = Tensor" for each in names]
        for each in attributes:
            type_ = get(each, "type", str)
            lines.append(f"  __annotations__[{get(each, 'name', str)!r}] = {type_}")
        module = f"__torch__.___torch_mangle_{self._count}"
        self._count += 1
        self._definitions.add(module, path, "\n".join(lines).encode())
        found = self._definitions.find(f"{module}.{name}")
        assert isinstance(found, type)
        return found


def _at(table: Any, index: int, what: str) -> Any:
    if not isinstance(table, list | tuple) or not 0 <= index < len(table):
        raise LoadError(f"load: expected the number of a known {what} in {TREE}, got {index}")
    return table[index]

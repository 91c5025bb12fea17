"""TorchScript archives of old layouts and versions, written byte by byte."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import pytest
from tests.jit.archive_writer import Called, Object, archive, legacy

import weft
from weft import jit
from weft.serialization import LoadError

FLOATS = struct.pack("<6f", 1, 2, 3, 4, 5, 6)
INTS = struct.pack("<2q", 7, 8)
TENSORS = [
    ("FLOAT", "tensors/0", 0, [2, 2], [2, 1], True),
    ("FLOAT", "tensors/0", 1, [2], [3], False),  # shares its memory
    ("INT64", "tensors/1", 1, [1], [1], False),
]
METHODS = """op_version_set = 1
def forward(self,
    x: Tensor) -> Tensor:
  _0 = torch.add(torch.div(x, 2), self.weight)
  _1 = getattr(self, "0").forward(_0)
  box = __torch__.lib.Box(torch.len(self.xs))
  return torch.add(_1, box.size)
def failing(self,
    x: Tensor) -> Tensor:
  return torch.view(x, [7])
"""
INNER = """op_version_set = 0
def forward(self,
    x: Tensor) -> Tensor:
  return torch.mul(x, torch.add(self.scale, CONSTANTS.c2))
"""
LIBRARY = """op_version_set = 1
class Box:
  size : int
  def __init__(self: __torch__.lib.Box,
    size: int) -> NoneType:
    self.size = size
    return None
"""
INNER_MODULE = {
    "name": "0",
    "torchscriptArena": {"key": "code/inner.py"},
    "parameters": [{"isBuffer": True, "tensorId": "1", "name": "scale"}],
}
MODULE = {
    "name": "Net",
    "optimize": True,
    "torchscriptArena": {"key": "code/net.py"},
    "parameters": [{"isBuffer": False, "tensorId": "0", "name": "weight"}],
    "attributes": [
        {"type": "List[int]", "name": "xs", "id": "0"},
        {"type": "Dict[str, Tensor]", "name": "table", "id": 1},
        {"type": "Optional[int]", "name": "nothing", "id": "2"},
        {"type": "Tensor", "name": "weight", "id": "-1"},
    ],
    "submodules": [INNER_MODULE],
}
BY_NUMBER = Called("torch.jit._pickle.build_tensor_from_id", (2,))
ATTRIBUTES = (Called("torch.jit._pickle.build_intlist", ([4, 5],)), {"t": BY_NUMBER}, None)
RECORDS = {
    "tensors/0": FLOATS,
    "tensors/1": INTS,
    "code/net.py": METHODS,
    "code/inner.py": INNER,
    "libs/__torch__/lib.py": LIBRARY,
}


def old(values: Any = ATTRIBUTES, rows: Any = TENSORS, **changed: Any) -> io.BytesIO:
    """The archive with some fields of its main module changed."""
    return legacy({**MODULE, **changed}, rows, values, **RECORDS)


def test_a_tree_of_modules():
    module = jit.load(old())
    # Integers were divided to integers: 3 / 2 is 1. weight is [[1, 2], [3, 4]], scale [2, 5].
    found = module(weft.tensor([3, 3]))
    assert found.tolist() == [[22.0, 41.0], [42.0, 67.0]]
    found.sum().backward()
    assert module.weight.grad.tolist() == [[10.0, 13.0], [10.0, 13.0]]
    assert dict(module.named_buffers()).keys() == {"0.scale"} and module.original_name == "Net"
    assert module.xs == [4, 5] and module.table["t"].tolist() == [8] and module.nothing is None
    with weft.no_grad():
        module.weight[0, 1] = 50.0
    assert getattr(module, "0").scale.tolist() == [50.0, 5.0]
    with pytest.raises(RuntimeError, match=r'(?s)view: .*File "code/net.py", line 10'):
        module.failing(weft.ones(1))


def test_attributes_of_pytorch_1_1():
    """The pickle's objects are numbers of tensors, and lists of ints, in classes of __main__."""
    number = Object("__main__.TensorID", 2)
    module = jit.load(old([Object("__main__.IntList", [4]), {"t": number, "u": number}, 3]))
    assert module.xs == [4] and module.table["u"].tolist() == [8] and module.nothing == 3
    for wrong in (Object("__main__.TensorID", 3), Object("__main__.IntList", ["a"])):
        with pytest.raises(LoadError, match="load: expected"):
            jit.load(old([wrong, {}, None]))


def test_state_of_a_tree():
    text = (
        "op_version_set = 1\n"
        "def forward(self, x: Tensor) -> Tensor:\n  return torch.mul(x, self.k)\n"
        "def __setstate__(self, state: Tuple[int, int]) -> NoneType:\n"
        "  self.k = torch.mul((state)[0], (state)[1])\n  return None\n"
    )
    module = {
        "name": "M", "torchscriptArena": {"key": "code/m.py"}, "getStateAttributeId": "0",
        "attributes": [{"type": "int", "name": "k", "id": "-1"}],
    }  # fmt: skip
    file = legacy(module, [], ((3, 4),), **{"code/m.py": text})
    assert jit.load(file)(weft.ones(1)).tolist() == [12.0]


WRONG: dict[str, Any] = {
    "tensor": ({"parameters": [{"name": "w", "tensorId": "9"}]}, "the number of a known tensor"),
    "attribute": (
        {"attributes": [{"name": "a", "type": "int", "id": "7"}]}, "the number of a known attribute",
    ),
    "name": ({"parameters": [{"name": 3, "tensorId": "0"}]}, "'name' as str in model.json, got int"),
    "number": ({"parameters": [{"name": "w", "tensorId": "a"}]}, "'tensorId' as int"),
    "modules": ({"submodules": {}}, "'submodules' as list"),
    "arena": ({"torchscriptArena": {"key": "code/absent.py"}}, "code/absent.py"),
    "version": ({"torchscriptArena": {"key": "tensors/0"}}, "expected op_version_set in"),
    "type": ({"attributes": [{"name": "a", "type": "open('f')", "id": "0"}]}, "expected a type"),
    "line": ({"attributes": [{"name": "a", "type": "int\nimport os", "id": "0"}]}, "expected"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_trees_that_are_refused(name):
    changed, message = WRONG[name]
    with pytest.raises(RuntimeError, match=message):
        jit.load(old(**changed))


ROWS = {
    "dtype": (
        ("COMPLEX", "tensors/0", 0, [1], [1], False),
        "of a dtype that weft has, got COMPLEX",
    ),
    "record": (("FLOAT", "tensors/9", 0, [1], [1], False), "tensors/9"),
    "bounds": (("FLOAT", "tensors/0", 5, [2], [1], False), "load: expected"),
    "negative": (("FLOAT", "tensors/0", -1, [2], [1], False), "load: expected"),
    "size": (("FLOAT", "tensors/0", 0, [1 << 62], [1], False), "load: expected"),
    "grad": (("INT64", "tensors/1", 0, [1], [1], True), "load: expected no gradient"),
}


@pytest.mark.parametrize("name", ROWS)
def test_tensors_of_a_tree_that_are_refused(name):
    row, message = ROWS[name]
    with pytest.raises(LoadError, match=message):
        jit.load(old(rows=[row, *TENSORS[1:]]))


@pytest.mark.parametrize("text", ["", "{", "3", "[" * 100000, json.dumps({"mainModule": []})])
def test_trees_that_are_no_trees(text):
    file = archive({}, 3, **{"model.json": text.encode()})
    with pytest.raises(LoadError, match="load: expected"):
        jit.load(file)


def test_trees_that_are_too_deep():
    module: Any = {"name": "M"}
    for _ in range(200):
        module = {"name": "M", "submodules": [module]}
    with pytest.raises(LoadError, match="nested at most 100 deep"):
        jit.load(legacy(module, [], ()))


# Versions ----------------------------------------------------------------------------------------

CONTAINERS = """class M(Module):
  training : bool
  xs : List[float]
  table : Dict[str, List[int]]
  maybe : Optional[List[str]]
  pair : Tuple[List[Tensor], Dict[int, float]]
  def forward(self: __torch__.M) -> Tuple[int, int, bool]:
    _0 = torch.append(self.xs, 1.5)
    _1 = torch._set_item(self.table, "a", [1])
    none = torch.__is__(self.maybe, None)
    return (torch.len(self.xs), torch.len(self.table), none)
"""


@pytest.mark.parametrize("version", [b"1\n", b"2", None])
def test_lists_and_dicts_have_the_types_of_their_attributes(version):
    """Up to version 2 pickles tell no types; files without a version are of the first."""
    state = {"xs": [], "table": {}, "maybe": [], "pair": ([], {})}
    file = archive(
        {"__torch__": "op_version_set = 1\n" + CONTAINERS},
        Object("__torch__.M", state),
        version=version,
    )
    module = jit.load(file)
    assert module() == (1, 1, False) and module() == (2, 1, False)
    assert module.xs == [1.5, 1.5] and module.table == {"a": [1]} and module.pair == ([], {})


@pytest.mark.parametrize(
    ("start", "what"),
    [(b"8\0\0\0PTMF", "a flatbuffer"), (b"PYTORCH1\0\0", "one of PyTorch before 1.0")],
)
def test_files_of_other_kinds_are_named(start, what):
    with pytest.raises(
        LoadError, match=f"load: expected a TorchScript archive as a zip file, got {what}"
    ):
        jit.load(start + bytes(100))


def test_files_of_mobile_are_read_by_their_code():
    file = archive({"__torch__": CONTAINERS}, Object("__torch__.M", {
        "xs": [], "table": {}, "maybe": None, "pair": ([], {}),
    }), **{"bytecode.pkl": b"\x80\x02(K\x08t.", "mobile_debug_handles.pkl": b"x"})  # fmt: skip
    assert jit.load(file)() == (1, 1, True)

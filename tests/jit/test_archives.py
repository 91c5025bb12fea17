"""Reading TorchScript archives: those written here byte by byte, and PyTorch's own (parity)."""

from __future__ import annotations

import contextlib
import gc
import io
import struct
import time
import weakref
import zipfile
from typing import Any

import pytest
from tests.jit.archive_writer import ROOT, Member, Object, archive, forward, pickled

import weft
from weft import _C, jit
from weft.jit import FrontendError
from weft.serialization import LoadError

NET = """class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = ["count", ]
  weight : Tensor
  count : Tensor
  training : bool
  _is_full_backward_hook : Optional[bool]
  names : List[str]
  mode : __torch__.Mode
  box : __torch__.Box
  __annotations__["0"] = __torch__.inner.___torch_mangle_0.Inner
  size : Final[int] = 3
  def forward(self: __torch__.Net,
    x: Tensor,
    n: int=2) -> Tuple[Tensor, str, __torch__.Pair]:
    count = self.count
    _0 = torch.add_(count, 1)
    inner = getattr(self, "0")
    weight = self.weight
    y = (inner).forward(torch.mul(x, weight), n, )
    names = self.names
    _1 = torch.format("{} of {}", names[0], torch.len(names))
    box = self.box
    _2 = (box).bump(n, )
    if torch.eq(self.mode, __torch__.Mode.FAST):
      y0 = torch.add(y, CONSTANTS.c0)
    else:
      y0 = torch.unknown_operator(y, 1)
    a, b, = __torch__.helper(torch.size(y0), )
    return (y0, _1, __torch__.Pair(a, torch.to(y0, 7)))
  def other(self: __torch__.Net) -> int:
    return 7
class Pair(NamedTuple):
  first : int
  second : Tensor
class Mode(Enum):
  FAST = "fast"
  SLOW = "slow"
class Box:
  count : int
  def __init__(self: __torch__.Box,
    count: int) -> NoneType:
    self.count = count
    return None
  def bump(self: __torch__.Box,
    by: int) -> int:
    self.count = torch.add(self.count, by)
    return self.count
def helper(sizes: List[int]) -> Tuple[int, int]:
  _5 = __torch__.Box.__new__(__torch__.Box)
  _6 = (_5).__init__(torch.len(sizes), )
  _3 = uninitialized(int)
  if torch.gt(torch.len(sizes), 0):
    _4 = sizes[0]
  else:
    ops.prim.RaiseException("no sizes", "builtins.ValueError")
    _4 = _3
  return (_4, (_5).bump(0, ))
"""
INNER = """class Inner(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def forward(self: __torch__.inner.___torch_mangle_0.Inner,
    x: Tensor,
    n: int) -> Tensor:
    y = x
    _0 = 0
    _1 = torch.lt(0, n)
    while _1:
      y0 = torch.add(y, 1, alpha=2)
      _2 = torch.add(_0, 1)
      _1, y, _0 = torch.lt(_2, n), y0, _2
    out = annotate(List[Tensor], [])
    for i in range(n):
      _3 = torch.append(out, torch.zeros_like(y, dtype=6, layout=0))
    return torch.add(y, torch.sum(torch.stack(out), [0]))
"""


def net(mode: str = "fast", **records: bytes) -> io.BytesIO:
    state = {
        "weight": weft.tensor([1.0, 2.0], requires_grad=True),
        "count": weft.tensor([0]),
        "training": True,
        "_is_full_backward_hook": None,
        "names": ["a", "b"],
        "mode": Member("__torch__.Mode", mode),
        "box": Object("__torch__.Box", {"count": 5}),
        "0": Object("__torch__.inner.___torch_mangle_0.Inner", {"training": True}),
    }
    code = {"__torch__": NET, "__torch__.inner.___torch_mangle_0": INNER}
    return archive(code, Object("__torch__.Net", state), [weft.tensor([10.0, 20.0])], **records)


def test_what_was_loaded_goes_with_its_module():
    def classes_of_a_run() -> list[weakref.ref[Any]]:
        loaded = jit.load(net())
        pair = loaded(weft.ones(2))[2]
        return [weakref.ref(each) for each in (loaded, type(pair), type(loaded.mode))]

    names = set(_C._jit_types)
    classes = [ref for _ in range(3) for ref in classes_of_a_run()]
    kept = jit.load(net())
    deadline = time.monotonic() + 20
    while any(ref() for ref in classes) and time.monotonic() < deadline:
        gc.collect()  # machine code that is being made keeps its program
    assert [ref() for ref in classes] == [None] * 9
    assert type(kept(weft.ones(2))[2]).__name__ == "Pair"  # its own classes have stayed
    assert len(set(_C._jit_types) - names) <= 3


def test_an_archive_of_all_kinds_of_definitions():
    module = jit.load(net())
    y, text, pair = module(weft.ones(3, 2))
    assert y.tolist() == [[15.0, 26.0]] * 3 and text == "a of 2"
    assert pair.first == 3 and pair.second.dtype == weft.float64
    assert module(weft.ones(3, 2), 1)[0].tolist() == [[13.0, 24.0]] * 3
    assert module.count.tolist() == [2] and module.box.count == 8 and module.size == 3
    assert dict(module.named_parameters())["weight"].requires_grad and module.other() == 7
    module(weft.ones(3, 2))[0].sum().backward()
    assert module.weight.grad.tolist() == [3.0, 3.0]
    assert list(module.state_dict()) == ["weight", "count"]


def test_unknown_operators_matter_where_they_are_called():
    module = jit.load(net("slow"))
    with pytest.raises(
        NotImplementedError, match=r"aten::unknown_operator: expected an operator"
    ) as error:
        module(weft.ones(3, 2))
    assert "code/__torch__.py" in str(error.value) and "torch.unknown_operator" in str(error.value)
    assert "these operators" not in str(error.value)


# By name: what stands in the class M besides forward, its body, attributes, arguments, result.
PROGRAMS: dict[str, tuple[str, str, dict[str, Any], list[Any], Any]] = {
    "hooks": (
        """  __forward_pre_hooks__ = ["before", ]
  __forward_hooks__ = ["after", ]
  def before(self: __torch__.M, input: Tuple[int]) -> Tuple[int]:
    return (torch.mul((input)[0], 2),)
  def after(self: __torch__.M, input: Tuple[int], output: int) -> int:
    return torch.neg(output)
""", "(self, n: int) -> int:\n    return torch.add(n, 1)", {}, [3], -7,
    ),
    "hooks of a submodule": (
        "", """(self, n: int) -> int:
    _0 = __torch__.Hooked.double
    inner = self.inner
    _1, = _0(inner, (n,), )
    return (inner).forward(_1, )""", {"inner": Object("__torch__.Hooked", {})}, [3], 7,
    ),
    "__setstate__": (
        """  __parameters__ = ["weight", ]
  weight : Tensor
  table : Dict[str, int]
  box : __torch__.Box
  def __setstate__(self: __torch__.M, state: Tuple[Tensor, int]) -> NoneType:
    self.weight = torch.mul((state)[0], 2)
    self.table = {"a": (state)[1]}
    self.box = __torch__.Box.__new__(__torch__.Box)
    self.box.n = 4
    return None
""", "(self) -> Tensor:\n    return torch.add(self.weight, torch.add(self.table[\"a\"], self.box.n))",
        (weft.tensor([1.0, 2.0]), 3), [], [9.0, 11.0],
    ),
    "__setstate__ of a class": (
        "  box : __torch__.Restored\n", "(self) -> int:\n    return self.box.n",
        {"box": Object("__torch__.Restored", (3, "x"))}, [], 6,
    ),
    "items by numbers": (
        "", """(self, i: int) -> int:
    items = self.items
    item : __torch__.Item = items[i]
    return (item).forward(5, )""",
        {"items": Object("__torch__.List", {
            "0": Object("__torch__.Hooked", {}), "1": Object("__torch__.Twice", {}),
        })}, [-1], 10,
    ),
    "items by texts": (
        "", """(self, name: str) -> int:
    items = self.items
    item : __torch__.Item = items[name]
    return (item).forward(5, )""",
        {"items": Object("__torch__.List", {
            "a": Object("__torch__.Hooked", {}), "b": Object("__torch__.Twice", {}),
        })}, ["a"], 6,
    ),
    "forked closures": (
        "", """(self, n: int) -> int:
    found = annotate(List[Future[int]], [])
    for i in range(n):
      def __forked_function():
        _0 = __torch__.add
        return _0(n, i, )
      _1 = torch.append(found, fork(__forked_function))
    return torch.add(torch.wait(found[0]), torch.wait(found[2]))""", {}, [3], 8,
    ),
    "functions of modules": (
        "", """(self, n: int) -> int:
    _0 = __torch__.of_module(self.a, n, )
    return torch.add(_0, __torch__.of_module(self.a, 1, ))""",
        {"a": Object("__torch__.Twice", {})}, [3], 8,
    ),
    "objects that are called": (
        "  add : Optional[__torch__.Adds]\n", """(self, n: int) -> int:
    add = self.add
    if torch.__is__(add, None):
      _0 = n
    else:
      add0 = unchecked_cast(__torch__.Adds, add)
      _0 = (add0).__call__(n, )
    self.add = None
    return _0""", {"add": Object("__torch__.Adds", {"n": 4})}, [3], 7,
    ),
    "methods of modules": (
        """  a : __torch__.Twice
  b : __torch__.Calls
""", "(self, n: int) -> int:\n    return (self.b).forward(self.a, n, )",
        {"a": Object("__torch__.Twice", {}), "b": Object("__torch__.Calls", {})}, [3], 7,
    ),
    "overloads": (
        """  def go__0(self, x: int) -> int:
    return torch.add(x, 1)
  def go__1(self, x: str) -> str:
    return torch.add(x, "!")
""", "(self, n: int) -> Tuple[int, str]:\n    return ((self).go__0(n, ), (self).go__1(\"a\", ))",
        {}, [3], (4, "a!"),
    ),
    "constants": (
        "  text : Final[str] = CONSTANTS.c0\n", "(self) -> str:\n    return CONSTANTS.c0", {}, [],
        "long \n text",
    ),
    "% of texts": ("", "(self) -> str:\n    return torch.percentFormat(\"%s=%d\", (\"a\", 3))", {}, [], "a=3"),
    "% of texts, one by one": (
        "", "(self) -> str:\n    return torch.percentFormat(\"%s=%d %s\", \"a\", 3, \"b\")", {}, [], "a=3 b",
    ),
    "devices": (
        "", """(self, x: Tensor) -> Tensor:
    y = torch.to(x, torch.device("cpu"), 6)
    return torch.to(torch.to(y, ops.prim.device(x)), 4)""", {}, [weft.tensor([1.5])], [1],
    ),
    "names of modules": ("", "(self, x: Tensor) -> Tensor:\n    return torch.linalg_norm(x)", {},
                         [weft.tensor([3.0, 4.0])], 5.0),
}  # fmt: skip
REST = """
class Hooked(Module):
  __forward_pre_hooks__ = ["double", ]
  def double(self: __torch__.Hooked, input: Tuple[int]) -> Tuple[int]:
    return (torch.mul((input)[0], 2),)
  def forward(self: __torch__.Hooked, n: int) -> int:
    return torch.add(n, 1)
class Twice(Module):
  def forward(self: __torch__.Twice, n: int) -> int:
    return torch.mul(n, 2)
class Calls(Module):
  def forward(self: __torch__.Calls, module: __torch__.Twice, n: int) -> int:
    return torch.add((module).forward(n, ), 1)
class List(Module):
  training : bool
class Item(ModuleInterface):
  def forward(self, n: int) -> int:
    pass
class Adds:
  n : int
  def __call__(self: __torch__.Adds, n: int) -> int:
    return torch.add(n, self.n)
class Box:
  n : int
class Restored:
  n : int
  def __setstate__(self: __torch__.Restored, state: Tuple[int, str]) -> NoneType:
    self.n = torch.mul((state)[0], 2)
    return None
def of_module(module: __torch__.Twice, n: int) -> int:
  return (module).forward(n, )
def add(a: int, b: int) -> int:
  return torch.add(a, b)
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    own, forward, state, args, expected = PROGRAMS[name]
    code = f"class M(Module):\n  training : bool\n{own}  def forward{forward}\n{REST}"
    found = jit.load(archive({"__torch__": code}, Object("__torch__.M", state), ["long \n text"]))(
        *args
    )
    assert (found.tolist() if isinstance(found, weft.Tensor) else found) == expected


PACKED = """(self, x: Tensor, lengths: Tensor, hx: List[Tensor], weights: List[Tensor]) -> Tensor:
    data, sizes = torch._pack_padded_sequence(x, lengths, True)
    _0, _1, _2 = torch.lstm(data, sizes, hx, weights, True, 1, 0., False, False)
    out, counts = torch._pad_packed_sequence(_0, sizes, True, 0., 4)
    return out"""


@pytest.mark.parametrize("state", [{"a": 1}, (1, 2), (0,), (None,)])
def test_states_that_setstate_does_not_take(state):
    text = """class M(Module):
  n : int
  def __setstate__(self: __torch__.M, state: Tuple[int]) -> NoneType:
    self.n = torch.floordiv(1, (state)[0])
    return None
"""
    with pytest.raises(LoadError, match="expected a state that __setstate__ of M takes; it raised"):
        jit.load(archive({"__torch__": text}, Object("__torch__.M", state)))


def test_packed_sequences():
    layer, x = weft.nn.LSTM(2, 3, batch_first=True), weft.randn(2, 4, 2)
    file = archive(
        {"__torch__": f"class M(Module):\n  training : bool\n  def forward{PACKED}\n"}, ROOT
    )
    start, weights = [weft.zeros(1, 2, 3)] * 2, [each.detach() for each in layer.parameters()]
    found = jit.load(file)(x, weft.tensor([4, 2]), start, weights)
    assert weft.equal(found[0], layer(x)[0][0])
    # Products of one row and of two may add in different orders.
    assert weft.allclose(found[1, :2], layer(x[1:, :2])[0][0], atol=1e-6) and not found[1, 2:].any()


def test_paths_files_and_bytes(tmp_path):
    path, data = tmp_path / "net.pt", net().getvalue()
    path.write_bytes(data)
    with open(path, "rb") as file:
        for given in (path, str(path), file, data, io.BytesIO(data)):
            assert jit.load(given).other() == 7
    for wrong in (3, None, ["net.pt"]):
        with pytest.raises(TypeError, match="load: expected a path or a readable file"):
            jit.load(wrong)


def test_weft_load_gives_the_state_dict():
    state = weft.load(net())
    assert list(state) == ["weight", "count"] and state["weight"].tolist() == [1.0, 2.0]
    assert not state["weight"].requires_grad and state["count"].dtype == weft.int64
    module = jit.load(net())
    module.load_state_dict(state)


def test_extra_files():
    extra = {"notes": "", "absent": "other", "sub/more": None}
    jit.load(net(**{"extra/notes": b"a\0b", "extra/sub/more": b"c"}), _extra_files=extra)
    assert extra == {"notes": b"a\0b", "absent": b"", "sub/more": b"c"}


def test_big_endian_storages_are_swapped():
    module = jit.load(net(byteorder=b"big"))
    assert module.weight.tolist() == [struct.unpack(">f", struct.pack("<f", x))[0] for x in (1, 2)]
    with pytest.raises(LoadError, match="expected the byte order little or big"):
        jit.load(net(byteorder=b"middle"))


BODIES = {
    "import": ("import os\n", "expected definitions in"),
    "statement": ("print(1)\n", "expected definitions in"),
    "base": ("class M(dict):\n  x : int\n", "to be one of Module, NamedTuple"),
    "syntax": ("class M(Module:\n", "expected Python source"),
    "literal": ("class M(Module):\n  x : Final[int] = open('f')\n", "expected a literal"),
    "nothing": ("class N(Module):\n  training : bool\n", "expected a class of the archive"),
    "function": ("def M(x: Tensor) -> Tensor:\n  return x\n", "expected a class of the archive"),
}


@pytest.mark.parametrize("name", BODIES)
def test_code_that_is_refused(name):
    text, message = BODIES[name]
    with pytest.raises(RuntimeError, match=message):
        jit.load(archive({"__torch__": text}, ROOT))


CALLS = {
    "open": 'open("/etc/passwd")',
    "eval": 'eval("1")',
    "attribute": "torch.add.__globals__",
    "module": "ops.os.system(1)",
    "dunder": "__torch__.__class__",
    "deep": 'print.__self__.__dict__["open"]("f")',
    "method": "self.forward.__func__.__globals__",
    "operators": "torch.__class__",
    "vars": "vars(self)",
    "type": "type(x)",
    "import": '__import__("os")',
    "constant": "CONSTANTS.c7",
    "file": 'torch.from_file("/etc/passwd", False, 4)',
    "load": 'torch.load("/etc/passwd")',
    "save": 'torch.save(x, "written")',
    "threads": "torch.set_num_threads(1)",
}


@pytest.mark.parametrize("name", CALLS)
def test_code_reaches_nothing_but_the_language(name):
    text = (
        "class M(Module):\n  training : bool\n  def forward(self, x: Tensor) -> Tensor:\n"
        f"    y = {CALLS[name]}\n    return x\n"
    )
    with pytest.raises((LoadError, FrontendError, NotImplementedError), match="expected"):
        jit.load(archive({"__torch__": text}, ROOT))(weft.ones(1))


ANNOTATIONS = ("__builtins__", "__builtins__[int]", "CONSTANTS.c0", "CONSTANTS.c0[int]", "inf[int]",
               "torch.add[int]", "ops[int, int]", "Dict[__builtins__, int]")  # fmt: skip


@pytest.mark.parametrize("annotation", ANNOTATIONS)
@pytest.mark.parametrize("place", ["x: {}) -> Tensor", "x: Tensor) -> {}"])
def test_annotations_that_are_no_types(place, annotation):
    text = (
        "class M(Module):\n  training : bool\n  def forward(self, "
        f"{place.format(annotation)}:\n    return x\n"
    )
    loaded = jit.load(archive({"__torch__": text}, ROOT, [weft.ones(2)]))
    with pytest.raises((LoadError, FrontendError), match="expected"):
        loaded(weft.ones(1))


@pytest.mark.parametrize("record", ["version", ".data/version"])
@pytest.mark.parametrize("version", [b"0", b"11", b"x", b"-1", b""])
def test_versions_that_are_refused(version, record):
    code = {"__torch__": "class M(Module):\n  training : bool\n"}
    with pytest.raises(LoadError, match="expected an archive of version 1 to 10"):
        jit.load(archive(code, ROOT, **{record: version}))


def test_no_archive(tmp_path):
    file = io.BytesIO()
    weft.save({"a": weft.ones(1)}, file)
    file.seek(0)
    with pytest.raises(LoadError, match=r"constants.pkl"):
        jit.load(file)
    with pytest.raises(LoadError, match="expected a module in the archive, got int"):
        jit.load(archive({}, 3))


@pytest.mark.parametrize("step", range(0, 40))
def test_damaged_archives(step):
    """Every fortieth byte is changed: a clear error, or an archive that still loads."""
    data = bytearray(net().getvalue())
    for at in range(step, len(data), 40):
        data[at] ^= 0x15
        with contextlib.suppress(RuntimeError, NotImplementedError):
            jit.load(io.BytesIO(bytes(data)))
        data[at] ^= 0x15


@pytest.mark.parametrize("constants", [None, 3, "text", {"a": 1}])
def test_constants_that_are_no_tuple(constants):
    """Found by tools/fuzz_archives.py."""
    file = io.BytesIO()
    with zipfile.ZipFile(archive(forward("x"), ROOT)) as good, zipfile.ZipFile(file, "w") as bad:
        for name in good.namelist():
            is_it = name.endswith("constants.pkl")
            bad.writestr(name, pickled(constants) if is_it else good.read(name))
    with pytest.raises(LoadError, match="load: expected a tuple of constants"):
        jit.load(file.getvalue())


def test_constants_that_an_archive_lacks():
    """Found by tools/fuzz_archives.py."""
    code = {
        "__torch__": forward("x")["__torch__"].replace(
            "bool\n", "bool\n  k : Final[Tensor] = CONSTANTS.c7\n"
        )
    }
    with pytest.raises(LoadError, match="load: CONSTANTS: expected a name it has, got 'c7'"):
        jit.load(archive(code, ROOT))

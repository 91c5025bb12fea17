"""Reading TorchScript archives: those written here byte by byte, and PyTorch's own (parity)."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import struct
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.jit.archive_writer import Called, Member, Object, archive, pickled
from tests.jit.test_corpus import close, observe, plain

import weft
from weft import jit
from weft.jit import FrontendError
from weft.serialization import LoadError

ROOT = Object("__torch__.M", {"training": True})
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


def forward(text: str, returns: str = "Tensor") -> dict[str, str]:
    """The code of a module M whose forward(x) returns what the text says."""
    body = f"  def forward(self, x: Tensor) -> {returns}:\n    return {text}\n"
    return {"__torch__": f"class M(Module):\n  training : bool\n{body}"}


def test_unknown_operators_are_all_named_at_once():
    calls = [f"ops.mylib.op{i}(x, {i})" for i in range(30)]
    text = f"torch.add(ops.quantized.linear(x), torch.nonsense(x, [{', '.join(calls)}]))"
    with pytest.raises(NotImplementedError) as error:
        jit.load(archive(forward(text), ROOT))(weft.ones(1))
    lines = str(error.value).split("\n")
    assert lines[0] == (
        "quantized::linear: expected an operator of weft, got one it has not: weft has no quantised "
        "tensors; save the module before it is quantised"
    )
    assert lines[1] == "The archive's code names these operators that weft has not:"
    assert lines[2] == "  aten::nonsense at code/__torch__.py:4:46" and "  and 12 more" in lines[22]


def test_overloads_that_weft_has_not_matter_where_they_are_called():
    with pytest.raises(NotImplementedError, match=r"relu: expected .*at most 1 positional"):
        jit.load(archive(forward("torch.relu(x, 1, 2)"), ROOT))(weft.ones(1))


def test_registered_operators():
    code = forward("ops.testlib.scaled(ops.testlib.counted(x), 3)")

    @jit.register_operator("testlib::scaled")
    def scaled(x: weft.Tensor, by: int) -> weft.Tensor:
        return x * by

    calls = []

    @jit.ignore
    def counted(x: weft.Tensor) -> weft.Tensor:
        calls.append(x)
        return x + 1

    jit.register_operator("testlib::counted", counted)
    x = weft.ones(2, requires_grad=True)
    y = jit.load(archive(code, ROOT))(x)
    y.sum().backward()
    assert y.tolist() == [6.0, 6.0] and x.grad.tolist() == [3.0, 3.0] and len(calls) == 1
    jit.register_operator("testlib::counted", scaled)
    for name, function, error in (
        ("scaled", scaled, ValueError), ("aten::add", scaled, ValueError), ("a::b", 3, TypeError),
        ("torchvision::nms", scaled, ValueError),
    ):  # fmt: skip
        with pytest.raises(error, match="register_operator: expected"):
            jit.register_operator(name, function)


def test_quantised_weights_are_refused_by_name():
    packed = "__torch__.torch.classes.quantized.LinearPackedParamsBase"
    code = {
        "__torch__": f"class M(Module):\n  p : {packed}\n",
        "__torch__.torch.classes.quantized": "\n",
    }
    with pytest.raises(
        LoadError, match=r"PyTorch's own '?__torch__.torch.classes.quantized.Linear"
    ):
        jit.load(archive(code, Object("__torch__.M", {"p": Object(packed, {})})))
    tensor = Member("torch._utils._rebuild_qtensor", 1)
    with pytest.raises(LoadError, match="expected tensors of plain dtypes, got a quantised one"):
        jit.load(archive(code, tensor))


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
class List(Module):
  training : bool
class Item(ModuleInterface):
  def forward(self, n: int) -> int:
    pass
class Box:
  n : int
class Restored:
  n : int
  def __setstate__(self: __torch__.Restored, state: Tuple[int, str]) -> NoneType:
    self.n = torch.mul((state)[0], 2)
    return None
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


def test_packed_sequences():
    layer, x = weft.nn.LSTM(2, 3, batch_first=True), weft.randn(2, 4, 2)
    file = archive(
        {"__torch__": f"class M(Module):\n  training : bool\n  def forward{PACKED}\n"}, ROOT
    )
    start, weights = [weft.zeros(1, 2, 3)] * 2, [each.detach() for each in layer.parameters()]
    found = jit.load(file)(x, weft.tensor([4, 2]), start, weights)
    assert weft.equal(found[0], layer(x)[0][0])
    assert weft.equal(found[1, :2], layer(x[1:, :2])[0][0]) and not found[1, 2:].any()


WHERE = {
    "device": ("cpu", True),
    "object": (weft.device("cpu"), True),
    "dict": ({"cuda:1": "cpu"}, True),
    "none": (None, False),
    "others": ({"cuda:0": "cpu"}, False),
}


@pytest.mark.parametrize("name", WHERE)
def test_map_location_moves_devices_that_the_code_names(name):
    to, works = WHERE[name]
    code = forward("""torch.add(torch.to(x, torch.device("cuda:1")),
      torch.ones([1], dtype=6, device=torch.device("cuda", 1)))""")
    attribute = "  where : Device\n  def device(self) -> Device:\n    return self.where\n"
    code["__torch__"] += attribute
    saved = {"where": Called("torch.device", ("cuda:1",))}
    program = jit.load(archive(code, Object("__torch__.M", saved)), map_location=to)
    assert str(program.device()) == ("cpu" if works else "cuda:1")
    if works:
        assert program(weft.ones(1)).tolist() == [2.0]
    else:
        with pytest.raises(RuntimeError, match="expected device cpu, got cuda"):
            program(weft.ones(1))


def test_map_location_moves_calls_of_cuda():
    program = jit.load(archive(forward("torch.cuda(x)"), ROOT), map_location="cpu")
    assert program(weft.ones(1)).tolist() == [1.0]
    with pytest.raises(RuntimeError, match="expected device cpu, got cuda"):
        jit.load(archive(forward("torch.cuda(x)"), ROOT))(weft.ones(1))


ORIGINAL = "def forward(self, x):\n    é = x\n    return x.view(7)\n"
# Positions in the bytes of the code: of "torch.view", and of the lines before and behind it.
AT = forward("torch.view(x, [7])")["__torch__"].index("torch.view")
RANGE = (len(ORIGINAL.encode()) - 10, len(ORIGINAL.encode()) - 1)  # x.view(7)
ENTRIES = {
    "texts": ((0, (("", None, 0), 0, 0), ()), (AT, ((ORIGINAL, "net.py", 30), *RANGE), ())),
    "table": (
        "FORMAT_WITH_STRING_TABLE",
        ("", ORIGINAL[:22], ORIGINAL[22:], "net.py"),
        ((0, (([0], 0, 0), 0, 0), 0), (AT, (([1, 2], 3, 30), *RANGE), 0)),
    ),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_errors_show_the_lines_that_were_saved(name):
    records = {"code/__torch__.py.debug_pkl": pickled(ENTRIES[name])}
    with pytest.raises(RuntimeError) as error:
        jit.load(archive(forward("torch.view(x, [7])"), ROOT, **records))(weft.ones(1))
    text = str(error.value)
    assert (
        'File "net.py", line 32' in text
        and "    return x.view(7)\n               ~~~~~~~~~ <" in text
    )


DAMAGED = {
    "nothing": b"",
    "calls": b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.",
    "number": pickled(3),
    "texts": pickled((("a", 3),)),
    "order": pickled(
        ((AT, ((ORIGINAL, "net.py", 1), 0, 4), ()), (0, ((ORIGINAL, "x", 1), 0, 4), ()))
    ),
    "range": pickled(((AT, ((ORIGINAL, "net.py", 1), 4, 9999), ()),)),
    "string": pickled(("FORMAT_WITH_STRING_TABLE", ("",), ((AT, (([9], 9, 1), 0, 1), 0),))),
    "types": pickled(((AT, ((ORIGINAL, "net.py", "1"), None, "x"), ()),)),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_origins_leave_the_places_in_the_archive(name):
    records = {"code/__torch__.py.debug_pkl": DAMAGED[name]}
    with pytest.raises(RuntimeError, match="view: expected") as error:
        jit.load(archive(forward("torch.view(x, [7])"), ROOT, **records))(weft.ones(1))
    assert 'File "code/__torch__.py", line 4' in str(error.value)


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


@pytest.mark.parametrize("version", [b"0", b"11", b"x", b"-1", b""])
def test_versions_that_are_refused(version):
    code = {"__torch__": "class M(Module):\n  training : bool\n"}
    with pytest.raises(LoadError, match="expected an archive of version 1 to 10"):
        jit.load(archive(code, ROOT, version=version))


FORMER = {
    "torch.div(x, 2)": (3, [0, 1, -1], [0.5, 1.5, -1.5]),
    "torch.div(x, x)": (3, [1, 1, 1], [1.0, 1.0, 1.0]),
    "torch.div(x, 2.)": (3, [0.5, 1.5, -1.5], [0.5, 1.5, -1.5]),
    'torch.div(x, 2, rounding_mode="floor")': (3, [0, 1, -2], [0, 1, -2]),
    "torch.full([2], 3)": (4, [3.0, 3.0], [3, 3]),
    "torch.full([1], True, dtype=6)": (4, [1.0], [1.0]),
    "torch.size(torch.linspace(0, 1))": (7, [100], None),
    "torch.linspace(0, 1, 2, dtype=7)": (7, [0.0, 1.0], [0.0, 1.0]),
    "torch.size(torch.logspace(0, 1, None))": (8, [100], None),
    "torch.div_(x, 3)": (3, [0, 1, -1], None),
    "torch.full([1], 3, out=torch.zeros([1], dtype=4))": (4, [3], [3]),
    "torch.linspace(0, 1, 2, out=torch.zeros([2]))": (7, [0.0, 1.0], [0.0, 1.0]),
    "torch.size(torch.linspace(0, 1, None, out=torch.zeros([100])))": (7, [100], None),
    "torch.size(torch.logspace(0, 1, None, 2., out=torch.zeros([100])))": (8, [100], None),
    "torch.gelu(torch.mul(x, 0.))": (9, [0.0, 0.0, -0.0], [0.0, 0.0, -0.0]),
}


def _former(text: str, version: int) -> io.BytesIO:
    returns = "List[int]" if "torch.size" in text else "Tensor"
    code = forward(text, returns)["__torch__"].replace("self,", "self: __torch__.M,")
    code = code.replace("M(Module):", "M(Module):\n  __parameters__ = []\n  __buffers__ = []")
    return archive({"__torch__": code}, ROOT, version=str(version).encode())


@pytest.mark.parametrize("text", FORMER)
def test_operators_mean_what_they_meant(text):
    last, before, behind = FORMER[text]
    for version, expected in ((last, before), (last + 1, behind)):
        program = jit.load(_former(text, version))
        if expected is None:
            with pytest.raises(RuntimeError):
                program(weft.tensor([1, 3, -3]))
            continue
        found = program(weft.tensor([1, 3, -3]))
        found = found if isinstance(found, list) else found.tolist()
        assert found == expected and list(map(type, found)) == list(map(type, expected))


@pytest.mark.parity
@pytest.mark.parametrize("text", FORMER)
def test_operators_mean_what_they_meant_to_pytorch(text):
    torch = pytest.importorskip("torch")
    last, before, behind = FORMER[text]
    for version, expected in ((last, before), (last + 1, behind)):
        if expected is None:
            with pytest.raises(RuntimeError):
                torch.jit.load(_former(text, version))(torch.tensor([1, 3, -3]))
        else:
            found = torch.jit.load(_former(text, version))(torch.tensor([1, 3, -3]))
            assert (found if isinstance(found, list) else found.tolist()) == expected


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


# PyTorch's own archives -------------------------------------------------------------------------


def _modules() -> dict[str, Any]:
    """(module, arguments) by name, made with PyTorch."""
    import torch
    from torch import nn

    class Loop(nn.Module):
        def forward(self, x, n: int):
            out = x
            for i in range(n):
                if i == 3:
                    continue
                if i > 6:
                    break
                out = out * 2 + i
            while bool(out.sum() > 100):
                out = out / 2
                if bool(out.max() < 1):
                    return out
            return -out

    def image(channels: int = 4, size: int = 9) -> Any:
        return torch.randn(2, channels, size, size)

    flat = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    norms = (
        nn.GroupNorm(2, 4),
        nn.InstanceNorm2d(4, affine=True),
        nn.GELU(),
        nn.SiLU(),
        nn.PReLU(),
    )
    more = (nn.Hardswish(), nn.Hardtanh(), nn.Softplus(), nn.ELU(), nn.LeakyReLU(0.1), nn.Mish())
    pools = (nn.AvgPool2d(2), nn.AdaptiveMaxPool2d(2), nn.LPPool2d(2, 2))
    pads = (nn.ReflectionPad2d(1), nn.ConstantPad2d(1, 2.0), nn.PixelShuffle(2))
    sequence = torch.randn(2, 5, 8)
    return {
        "conv": (nn.Sequential(*flat, nn.Flatten(), nn.Linear(36, 5)), (image(3, 8),)),
        "conv_transpose": (nn.ConvTranspose1d(3, 4, 3, stride=2), (torch.randn(2, 3, 8),)),
        "norms": (nn.Sequential(*norms), (image(),)),
        "activations": (nn.Sequential(*more), (torch.randn(3, 4),)),
        "pools": (nn.Sequential(*pools), (image(),)),
        "pads": (nn.Sequential(*pads), (image(4, 5),)),
        "embedding": (
            nn.Sequential(nn.Embedding(9, 4), nn.LayerNorm(4)),
            (torch.tensor([[1, 8]]),),
        ),
        "bilinear": (nn.Bilinear(3, 4, 5), (torch.randn(2, 3), torch.randn(2, 4))),
        "softmax": (nn.Sequential(nn.Dropout(), nn.Softmax(-1), nn.LogSoftmax(-1)), (sequence,)),
        "attention": (nn.MultiheadAttention(8, 2, batch_first=True), (sequence,) * 3),
        "lstm": (nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True), (sequence,)),
        "gru": (nn.GRU(8, 6), (sequence,)),
        "rnn": (nn.RNN(8, 6, nonlinearity="relu", bias=False), (sequence,)),
        "loop": (Loop(), (torch.randn(3), 9)),
    }


def _archives(module: Any, args: Any) -> dict[str, Any]:
    """The ways in which PyTorch makes a program of the module."""
    import torch

    scripted = torch.jit.script(module)
    made = {"scripted": scripted, "frozen": torch.jit.freeze(scripted.eval())}
    if all(isinstance(arg, torch.Tensor) for arg in args):
        made["traced"] = torch.jit.trace(module, args, check_trace=False)
    return {way: each for way, each in made.items() if hasattr(each, "forward")}


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [item for each in value for item in _flat(each)]
    return [] if value is None else [value]


NAMES = [
    "conv",
    "conv_transpose",
    "norms",
    "activations",
    "pools",
    "pads",
    "embedding",
    "bilinear",
    "softmax",
    "attention",
    "lstm",
    "gru",
    "rnn",
    "loop",
]


@pytest.mark.parity
@pytest.mark.parametrize("name", NAMES)
def test_archives_of_torch(name):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module, args = _modules()[name]
    module.eval()
    mine = [weft.from_numpy(a.numpy()) if isinstance(a, torch.Tensor) else a for a in args]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for way, program in _archives(module, args).items():
            if name in ("lstm", "gru", "rnn") and way != "traced":
                continue  # methods with overloads have no forward
            file = io.BytesIO()
            torch.jit.save(program, file)
            file.seek(0)
            loaded = jit.load(file)
            expected = _flat(program(*args))
            found = _flat(loaded(*mine))
            assert len(found) == len(expected)
            for one, other in zip(found, expected):
                torch.testing.assert_close(torch.from_numpy(one.detach().numpy()), other.detach())
            if way == "frozen":
                continue
            program.zero_grad()
            sum(each.sum() for each in expected if each.requires_grad)
            if any(each.requires_grad for each in expected):
                sum(each.square().sum() for each in expected).backward()
                sum(each.square().sum() for each in found).backward()
                wanted = {k: p.grad for k, p in program.named_parameters() if p.grad is not None}
                for key, parameter in loaded.named_parameters():
                    if key in wanted:
                        grad = torch.from_numpy(parameter.grad.numpy())
                        torch.testing.assert_close(grad, wanted[key], rtol=1e-4, atol=1e-4)


# One archive of each kind ---------------------------------------------------------------------


def _kinds() -> list[tuple[str, str]]:
    """File and name of the cases in the folder archives, without an import of PyTorch."""
    files = ("objects", "language", "programs")
    texts = {file: (Path(__file__).parent / f"archives/{file}.py").read_text() for file in files}
    return [(f, n) for f in files for n in re.findall(r'^@case\("([^"]+)"', texts[f], re.MULTILINE)]


def _from_torch(value: Any) -> Any:
    """Arguments of PyTorch for weft."""
    if hasattr(value, "detach"):
        dtype = getattr(weft, str(value.dtype).partition(".")[2])
        return weft.tensor(value.tolist(), dtype=dtype).reshape(tuple(value.shape))
    if isinstance(value, dict):
        return {key: _from_torch(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_from_torch, value))
    return value


def _saved(program: Any) -> io.BytesIO:
    import torch

    if not isinstance(program, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        program = torch.jit.script(program)
    file = io.BytesIO()
    torch.jit.save(program, file)
    file.seek(0)
    return file


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("file", "name"), _kinds())
def test_each_kind_of_archive(file, name):
    """Results, gradients, and buffers after each call are those of PyTorch's loaded program."""
    torch = pytest.importorskip("torch")
    from tests.jit.archives import CASES

    importlib.import_module(f"tests.jit.archives.{file}")
    program, calls = CASES[name]()
    with torch.jit.optimized_execution(False):
        file = _saved(program)
        expected, loaded = torch.jit.load(file), jit.load(io.BytesIO(file.getvalue()))
        for args in calls:
            wanted = observe(expected, expected, args, True, torch, calls=1)[0]
            got = observe(loaded, loaded, _from_torch(args), True, calls=1)[0]
            for part in wanted:
                assert close(wanted[part], got[part]), (part, wanted[part], got[part])
        state = weft.load(io.BytesIO(file.getvalue()))
        before = torch.jit.load(io.BytesIO(file.getvalue())).state_dict()
        assert list(state) == list(before)
        assert all(close(plain(before[key]), plain(state[key])) for key in before)


@pytest.mark.parity
def test_errors_show_the_lines_of_pytorchs_source():
    pytest.importorskip("torch")
    from tests.jit.archives import CASES, objects

    program, _ = CASES["module interfaces, items by a number of the program"]()
    with pytest.raises(RuntimeError) as error:
        jit.load(_saved(program))(weft.ones(3, 5), 0)
    text, file = str(error.value), objects.__file__
    assert f'File "{file}", line' in text and "return layer.forward(x, 2.0)" in text
    assert "return x * self.weight * scale" in text and "code/__torch__" not in text

"""Saving and loading: what comes back, PyTorch's files both ways, and that no file can do harm."""

from __future__ import annotations

import argparse
import contextlib
import doctest
import importlib
import importlib.util
import io
import itertools
import math
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from collections import Counter, OrderedDict, deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.nn import Parameter
from weft.serialization import LoadError, safetensors
from weft.serialization.zip_writer import ZipWriter

ROOT = Path(__file__).resolve().parent.parent
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
DTYPES += ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def through(value: Any, **options: Any) -> Any:
    file = io.BytesIO()
    weft.save(value, file)
    return weft.load(io.BytesIO(file.getvalue()), **options)


def archive(
    pickled: bytes, storages: dict[str, bytes] | None = None, **records: bytes
) -> io.BytesIO:
    """A .pt file around a hand-made pickle."""
    file = io.BytesIO()
    writer = ZipWriter(file, "archive")
    writer.add("data.pkl", b"\x80\x02" + pickled + b".")
    for name, data in {
        **records,
        **{f"data/{key}": data for key, data in (storages or {}).items()},
    }.items():
        writer.add(name, data)
    writer.add("version", b"3\n")
    writer.close()
    return io.BytesIO(file.getvalue())


def same(a: Any, b: Any) -> bool:
    """Equal bit for bit, types and all; works across the two libraries."""
    if hasattr(a, "data_ptr"):
        if (repr(a.dtype), tuple(a.shape)) != (repr(b.dtype), tuple(b.shape)):
            return False
        if a.requires_grad != b.requires_grad or type(a).__name__ != type(b).__name__:
            return False
        return a.detach().tolist() == b.detach().tolist()
    if type(a).__name__.replace("StateDict", "OrderedDict") != type(b).__name__.replace(
        "StateDict", "OrderedDict"
    ):
        return False
    if isinstance(a, dict):
        return len(a) == len(b) and all(x == y and same(a[x], b[y]) for x, y in zip(a, b))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return repr(a) == repr(b)


def everything(lib: Any) -> Any:
    """All that can be saved, made with weft or with PyTorch."""
    base = lib.arange(24.0).reshape(4, 6)
    state = OrderedDict(weight=base, bias=base[1])
    state.__dict__["_metadata"] = OrderedDict(sub={"version": 2})
    return {
        "state": state,
        "views": [base, base.t(), base[1:, ::2], base[2], base[0:1].expand(3, 6)],
        "dtypes": [lib.ones(2, 3).to(getattr(lib, name)) for name in DTYPES],
        "scalar": lib.tensor(2.5),
        "empty": [lib.zeros(0, 3), lib.zeros(2, 0, dtype=lib.int64)],
        "grad": lib.ones(2, requires_grad=True),
        "parameters": [
            lib.nn.Parameter(lib.ones(2, 2)),
            lib.nn.Parameter(lib.ones(2), requires_grad=False),
        ],
        "numbers": [
            0,
            255,
            256,
            65535,
            -1,
            2**31,
            -(2**31) - 1,
            2**70,
            True,
            False,
            None,
            0.1,
            -0.0,
            math.inf,
            1 - 2j,
        ],
        "text": ["", "é", "a" * 300, b"", b"\x00\xff", bytearray(b"xy\xff")],
        "containers": [
            (),
            (1,),
            (1, 2),
            (1, 2, 3),
            (1, 2, 3, 4),
            [],
            [[]],
            {},
            {1: 2, (3, "x"): [4]},
            set(),
            {1, "a"},
        ],
        "counter": Counter("aab"),
        "kinds": [lib.float16, lib.bfloat16, lib.device("cpu"), lib.Size([1, 2]), lib.Size([])],
        "long": list(range(2500)),
        "wide": {str(i): i for i in range(1200)},
    }


# ---- what comes back ----


def test_everything_comes_back() -> None:
    value = everything(weft)
    assert same(through(value), value)


def test_sharing_identity_and_attributes_come_back() -> None:
    base = weft.arange(6.0)
    base.note = "kept"
    parameter = Parameter(weft.ones(2))
    parameter.tag = [1]
    result = through({"a": base, "b": base, "row": base[2:4], "p": parameter})
    assert result["a"] is result["b"] and result["a"].note == "kept" and result["p"].tag == [1]
    result["row"].zero_()
    assert result["a"].tolist() == [0.0, 1.0, 0.0, 0.0, 4.0, 5.0]
    loop: list[Any] = [1]
    loop.append(loop)
    result = through(loop)
    assert result[1] is result


def test_views_of_other_dtypes_and_directions() -> None:
    complex_ = weft.ones(3, dtype=weft.complex64)
    result = through([complex_, complex_.real])
    result[1].zero_()
    assert result[0].tolist() == [0, 0, 0]
    assert through(weft.from_numpy(np.arange(4.0)[::-1])).tolist() == [3.0, 2.0, 1.0, 0.0]
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    assert through(weft.from_numpy(fixed)).tolist() == [0.0, 1.0, 2.0]


def test_model_and_optimizer(tmp_path: Path) -> None:
    model = weft.nn.Sequential(weft.nn.Linear(3, 4), weft.nn.BatchNorm1d(4), weft.nn.Linear(4, 1))
    optimizer = weft.optim.AdamW(model.parameters(), lr=0.1)
    model(weft.ones(2, 3)).sum().backward()
    optimizer.step()
    weft.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "x.pt")
    saved = weft.load(str(tmp_path / "x.pt"))
    assert saved["model"]._metadata == model.state_dict()._metadata
    other = weft.nn.Sequential(weft.nn.Linear(3, 4), weft.nn.BatchNorm1d(4), weft.nn.Linear(4, 1))
    other.load_state_dict(saved["model"])
    again = weft.optim.AdamW(other.parameters())
    again.load_state_dict(saved["optimizer"])
    assert same(dict(other.state_dict()), dict(model.state_dict()))
    assert same(again.state_dict(), optimizer.state_dict())


class Trickle:
    """A stream that neither seeks nor moves more than a few bytes at a time."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = data

    def write(self, data: Any) -> int:
        self.data += bytes(data[:100])
        return min(len(data), 100)

    def read(self) -> bytes:
        return self.data


def test_files_of_all_kinds(tmp_path: Path) -> None:
    value = {"x": weft.arange(100)}
    stream = Trickle()
    weft.save(value, stream)
    assert same(weft.load(stream), value)
    with open(tmp_path / "two", "wb") as file:
        weft.save(value, file)
        middle = file.tell()
        weft.save([1], file)
    data = (tmp_path / "two").read_bytes()
    second = io.BytesIO(data)
    second.seek(middle)
    assert weft.load(second) == [1]
    with open(tmp_path / "one", "wb") as file:
        weft.save(value, file)
    with open(tmp_path / "one", "rb", buffering=0) as file:
        assert same(weft.load(file), value)
    with pytest.raises(TypeError, match="load: expected a file opened in binary mode"):
        weft.load(io.StringIO("text"))
    with pytest.raises(TypeError, match="load: expected a path or a readable file, got int"):
        weft.load(3)
    with pytest.raises(TypeError, match="save: expected a path or a writable file, got int"):
        weft.save(1, 3)
    with pytest.raises(FileNotFoundError):
        weft.load(tmp_path / "none")


def test_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "model.v1.pt"
    weft.save([weft.ones(5), weft.zeros(0), weft.ones(3)], path)
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        assert file.read("model.v1/byteorder") == b"little"
        assert file.read("model.v1/version") == b"3\n"
        assert len(file.read("model.v1/.data/serialization_id")) == 40
        for entry in file.infolist():
            start = entry.header_offset + 30
            header = path.read_bytes()[entry.header_offset : start]
            lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(
                header[28:], "little"
            )
            assert (start + lengths) % 64 == 0 and entry.compress_type == zipfile.ZIP_STORED
    first = path.read_bytes()
    weft.save([weft.ones(5), weft.zeros(0), weft.ones(3)], path)
    assert path.read_bytes() == first


class Sub(weft.Tensor):
    pass


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    weft.save([1], path)
    for value, text in [
        ({"a": [math]}, "containers and objects that can be pickled, got builtins.module: "),
        ((n for n in ()), "got builtins.generator: "),
        (lambda x: x, "a class or function at the top of a module, got .*<lambda>"),
        (Sub(weft.ones(1)), "got .*Sub: a subclass of Tensor; save the plain tensor"),
    ]:
        with pytest.raises(TypeError, match=f"save: expected .*{text}"):
            weft.save(value, path)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="save: expected containers nested less deeply"):
        weft.save(deep, path)
    assert weft.load(path) == [1] and os.listdir(tmp_path) == ["x.pt"]


# ---- mapped files ----


def test_mmap_is_private_and_lives_as_long_as_a_tensor(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    weft.save({"a": weft.arange(1000), "half": weft.arange(1000)[500:]}, path)
    before = path.read_bytes()
    loaded = weft.load(path, mmap=True)
    row = loaded.pop("a")[3:5]
    del loaded
    row.zero_()
    assert path.read_bytes() == before
    os.unlink(path)
    assert row.tolist() == [0, 0]
    with pytest.raises(ValueError, match="load: expected a path with mmap=True, got BytesIO"):
        weft.load(io.BytesIO(before), mmap=True)


def test_mmap_reads_only_what_is_used(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    weft.save(weft.zeros(1 << 22), path)
    code = (
        "import resource, sys, weft, weft.serialization\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak(); x = weft.load(sys.argv[1], mmap=True); x[5].item()\n"
        "print(peak() - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 8 << 10  # KiB, of 16 MiB


# ---- an interrupted save ----


def test_interrupted_save_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.pt"
    weft.save("old", path)

    def interrupt(self: ZipWriter) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ZipWriter, "close", interrupt)
    with pytest.raises(KeyboardInterrupt):
        weft.save("new", path)
    assert weft.load(path) == "old" and os.listdir(tmp_path) == ["x.pt"]


def test_killed_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    weft.save("old", path)
    code = (
        "import os, sys, weft\n"
        "from weft.serialization.zip_writer import ZipWriter\n"
        "ZipWriter.checksum = lambda self: os._exit(9)\n"
        "weft.save(weft.ones(100_000), sys.argv[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == 9 and weft.load(path) == "old"


def test_save_keeps_links_and_permissions(tmp_path: Path) -> None:
    path, link = tmp_path / "x.pt", tmp_path / "link.pt"
    weft.save(1, path)
    os.chmod(path, 0o640)
    link.symlink_to(path)
    weft.save(2, link)
    assert link.is_symlink() and weft.load(path) == 2
    assert path.stat().st_mode & 0o777 == 0o640


# ---- where storages go ----


def test_map_location() -> None:
    data = weft.arange(2.0)
    pickled = (
        b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
        b"X\x01\x00\x00\x000X\x06\x00\x00\x00cuda:0K\x02tQK\x00K\x02\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR"
    )

    def file() -> io.BytesIO:
        return archive(pickled, {"0": bytes(data)})

    with pytest.raises(LoadError, match="got one on 'cuda:0'; load it with map_location='cpu'"):
        weft.load(file())
    seen: list[Any] = []

    def keep(storage: Any, location: str) -> Any:
        seen.append((storage.numel(), location))
        return storage

    for to in ("cpu", weft.device("cpu"), {"cuda:0": "cpu"}, keep):
        assert same(weft.load(file(), map_location=to), data)
    assert seen == [(8, "cuda:0")]


# ---- what is refused ----

REFUSED = {
    "system": (b"cos\nsystem\n(X\x04\x00\x00\x00truetR", "containers, got the global os.system"),
    "eval": (b"c__builtin__\neval\n", "got the global builtins.eval"),
    "stack global": (b"X\x02\x00\x00\x00osX\x06\x00\x00\x00system\x93", "got the global os.system"),
    "class": (
        b"ctorch.nn.modules.linear\nLinear\n",
        "got the global torch.nn.modules.linear.Linear",
    ),
    "weft's own": (b"cweft\nload\n", "got the global weft.load"),
    "control characters": (b"ca\x1b[31m\nb\n", r"got the global a\\x1b\[31m.b"),
    "dtype": (
        b"ctorch\nfloat8_e8m0fnu\n",
        "expected a dtype that weft has, got torch.float8_e8m0fnu",
    ),
    "bare function": (b"]ccollections\nOrderedDict\na", "got the global collections.OrderedDict"),
    "bare result": (b"ctorch\nTensor\n", "got a bare TensorType"),
    "hidden in a tuple": (b"](ctorch\nTensor\nK\x01ta", "got a bare Arguments"),
    "instance": (b"ccollections\nOrderedDict\n)\x81", "expected a known class without arguments"),
    "old instance": (b"(cos\nsystem\no", "got the global os.system"),
    "INST": (b"(ios\nsystem\n", "expected a known pickle opcode, got 0x69"),
    "call of data": (b"]K\x01\x85R", "expected a call of a known function, got a value of list"),
    "length as bytes": (
        b"cbuiltins\nbytearray\n\x8a\x06\x00\x00\x00\x00\x00\x10\x85R",
        "expected bytes as Latin-1 text",
    ),
    "state over methods": (
        b"ccollections\nOrderedDict\n)R}X\x05\x00\x00\x00itemsK\x01sb",
        "expected a plain attribute, got items",
    ),
    "state of data": (b"]}b", "expected no state for list"),
    "list as key": (b"}]K\x01s", "expected a plain key of a dict or set, got a value of list"),
    "huge key": (b"}\x8a\x0a" + b"\x01" * 10 + b"K\x01s", "expected a plain key"),
    "empty": (b"", "expected an intact pickle"),
    "no memo": (b"h\x05", "expected an intact pickle"),
    "cut text": (b"X\xff\xff\xff\x7fabc", "got one cut short"),
    "text": (b"X\x01\x00\x00\x00\xff", "expected an intact pickle"),
    "nesting": (b"(" * 2000, "expected nesting of at most 1000"),
    "tuples": (b")" + b"\x85" * 2000, "expected nesting of at most 1000"),
    "protocol": (b"\x80\x07N", "expected a pickle of protocol 2 to 5, got 7"),
    "odd items": (b"}(K\x01u", "expected pairs for a dict"),
    "device": (b"ctorch\ndevice\nX\x03\x00\x00\x00xyz\x85R", "expected a known device"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    pickled, text = REFUSED[name]
    with pytest.raises(LoadError, match=text) as caught:
        weft.load(archive(pickled))
    assert isinstance(caught.value, RuntimeError) and isinstance(
        caught.value, pickle.UnpicklingError
    )
    if name != "class":  # a layer of the library, which this allows
        with pytest.raises(LoadError):
            weft.load(archive(pickled), weights_only=False)


class Plain:
    """Members only, as most classes of programs."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)


class Slotted:
    __slots__ = ("value",)


class Restored(Plain):
    def __setstate__(self, state: dict[str, Any]) -> None:
        self.value = state["value"] + 1


class Called(Plain):
    def __reduce__(self) -> Any:
        return Called, (self.value,)


def objects() -> list[tuple[Any, list[Any]]]:
    slotted = Slotted()
    slotted.value = 3
    allowed = [Plain, Slotted, Restored, Called]
    return [
        (Plain([1, {"a": 2}]), allowed),
        (slotted, allowed),
        (Restored(2), allowed),
        (Called("x"), allowed),
        (
            np.float64(2.5),
            [(np.dtype, "numpy.dtype"), type(np.dtype("float64")), np.float64(0).__reduce__()[0]],
        ),
    ]


@pytest.mark.parametrize("index", range(5))
def test_safe_globals(index: int) -> None:
    value, allowed = objects()[index]
    file = archive(pickle.dumps(value, protocol=2)[2:-1])
    with pytest.raises(
        LoadError, match=r"got the global .*; weft.serialization.add_safe_globals allows it"
    ):
        weft.load(file)
    file.seek(0)
    with weft.serialization.safe_globals(allowed):
        got = weft.load(file)
    if isinstance(value, Slotted):
        assert type(got) is Slotted and got.value == 3
    elif isinstance(value, Restored):
        assert type(got) is Restored and got.value == 3
    else:
        assert type(got) is type(value) and got == value
    assert weft.serialization.get_safe_globals() == []


class Net(weft.nn.Module):
    """A module of a program, with members of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = weft.nn.Sequential(weft.nn.Linear(3, 3), weft.nn.ReLU6())
        self.rnn = weft.nn.RNNCell(3, 2, nonlinearity="relu")
        self.register_buffer("scale", weft.full((1,), 2.0), persistent=False)
        self.act, self.options = weft.nn.functional.relu, {"a": (1, Plain("x"))}

    def forward(self, x: Any) -> Any:
        return self.act(self.rnn(self.inner(x))) * self.scale


def test_objects_come_back_where_they_are_allowed() -> None:
    net = Net()
    optimizer = weft.optim.Adam(net.parameters(), lr=0.5)
    schedule = weft.optim.lr_scheduler.StepLR(optimizer, 2)
    x = weft.randn(4, 3)
    net(x).sum().backward()
    optimizer.step()
    array = np.arange(6, dtype=">i2").reshape(2, 3)
    saved = {"net": net, "optimizer": optimizer, "schedule": schedule, "array": array}
    numpy_names = [np.ndarray, np.dtype, type(array.dtype), array.__reduce__()[0]]
    makers = [type(optimizer), type(schedule), *numpy_names]
    with weft.serialization.safe_globals([Net, Plain, *makers]):
        got = through(saved, weights_only=False)
    assert weft.equal(got["net"](x), net(x)) and got["net"].options["a"][1] == Plain("x")
    assert list(got["net"].state_dict()) == list(net.state_dict()) and got["net"].scale.item() == 2
    assert got["array"].shape == array.shape and (got["array"] == array).all()
    assert got["schedule"].optimizer is got["optimizer"]
    parameters = list(got["net"].parameters())
    assert all(map(lambda a, b: a is b, got["optimizer"].param_groups[0]["params"], parameters))
    net.zero_grad()  # files have no gradients
    for each in (net, got["net"]):
        each(x).sum().backward()
    optimizer.step()
    got["optimizer"].step()
    assert weft.equal(got["net"](x), net(x))
    with pytest.raises(LoadError, match=r"got the global .*Net; weft.serialization.add_safe"):
        through(net, weights_only=False)


def test_options_of_a_loss_are_saved_with_it() -> None:
    options = weft.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    loss = through(weft.nn.LinearCrossEntropyLoss(3, 2, options=options), weights_only=False)
    assert loss.options == options and loss.options is not options


@pytest.mark.parametrize(
    "pickled",
    [
        b"ctorch.nn.modules.linear\nLinear\nK\x02K\x03\x86R",  # a call
        b"ctorch.nn.modules.linear\nLinear\nK\x02\x85\x81",  # arguments
        b"ctorch.nn.modules.linear\nLinear\n)\x81K\x01b",  # a state that is none
        b"ctorch.nn.modules.linear\nLinear\n)\x81}(X\x0b\x00\x00\x00_parametersK\x01ub",
        b"ctorch.nn.modules.rnn\nRNNCell\n)\x81}b",  # a state that lacks what it asks for
        b"ctorch.nn.functional\nrelu\nK\x01\x85R",
        b"ctorch.nn.functional\nsave\n",
        b"ctorch.nn.modules.linear\nload\n",
        b"ctorch.optim.sgd\nannotations\n",
        b"ccollections\ndefaultdict\nK\x01\x85R",
        b"ccollections\ndefaultdict\ncbuiltins\neval\n\x85R",
    ],
)
def test_own_classes_are_only_made_and_given_state(pickled: bytes) -> None:
    with pytest.raises(LoadError):
        weft.load(archive(pickled), weights_only=False)


@pytest.mark.parametrize(
    ("pickled", "name"),
    [(b"ctorch.nn.functional\nsilu\n", "silu"), (b"ctorch._C._nn\ngelu\n", "gelu")],
)
def test_activations_of_layers_are_found_where_pytorch_names_them(
    pickled: bytes, name: str
) -> None:
    found = weft.load(archive(pickled), weights_only=False)
    assert found is getattr(weft.nn.functional, name)


def test_safe_globals_are_kept_until_they_are_cleared() -> None:
    functions = weft.serialization
    functions.add_safe_globals([Plain])
    with functions.safe_globals([(Slotted, "other.Slotted")]):
        assert functions.get_safe_globals() == [Plain, (Slotted, "other.Slotted")]
        loaded = weft.load(archive(b"cother\nSlotted\n)\x81"))
        assert type(loaded) is Slotted
    assert functions.get_safe_globals() == [Plain]
    functions.clear_safe_globals()
    assert functions.get_safe_globals() == []
    for wrong in (1, (Plain, 1), ("a", "b")):
        with pytest.raises(ValueError, match="add_safe_globals: expected"):
            functions.add_safe_globals([wrong])
    with (
        functions.safe_globals([os.getpid]),
        pytest.raises(LoadError, match="expected a known class"),
    ):
        weft.load(archive(f"c{os.getpid.__module__}\ngetpid\n".encode() + b")\x81"))


TARGETS = {
    "list": b"]", "dict": b"}", "set": b"\x8f", "OrderedDict": b"ccollections\nOrderedDict\n)R",
    "Counter": b"ccollections\nCounter\n}\x85R", "tuple": b")", "NoneType": b"N",
    "bytearray": b"\x96" + bytes(8), "bytes": b"C\x00", "str": b"U\x00", "TensorType": b"ctorch\nTensor\n",
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("change", "fits"),
    [
        (b"K\x01a", ("list",)),
        (b"(K\x01e", ("list",)),
        (b"(K\x01\x90", ("set",)),
        (b"K\x01K\x02s", ("dict", "OrderedDict", "Counter")),
        (b"(K\x01K\x02u", ("dict", "OrderedDict", "Counter")),
    ],
)
def test_items_go_into_their_own_containers(
    target: str, change: bytes, fits: tuple[str, ...]
) -> None:
    file = archive(TARGETS[target] + change)
    if target in fits:
        value = weft.load(file)
        assert type(value).__name__ == target and list(value) == [1]
        return
    with pytest.raises(LoadError, match=rf"load: expected .*(list|set|dict).*, got {target}$"):
        weft.load(file)


def tensor_pickle(
    kind: bytes, count: int, offset: int, size: int, stride: int, grad: bytes = b"\x89"
) -> bytes:
    def number(value: int) -> bytes:
        return b"\x8a\x09" + value.to_bytes(9, "little", signed=True)

    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\n" + kind + b"\n"
        b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + number(count) + b"tQ" + number(offset)
        + number(size) + b"\x85" + number(stride) + b"\x85" + grad + b"NtR"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((b"FloatStorage", 1 << 50, 0, 1, 1), "bytes in record 'data/0', got 16"),
        ((b"FloatStorage", 1 << 62, 0, 1, 1), "expected the number of elements of a storage"),
        ((b"FloatStorage", -1, 0, 1, 1), "expected the number of elements of a storage, got -1"),
        ((b"FloatStorage", 4, 0, 5, 1), "expected a tensor inside its storage"),
        ((b"FloatStorage", 4, 1, 4, 1), "expected a tensor inside its storage"),
        ((b"FloatStorage", 4, -1, 1, 1), "expected a tensor inside its storage"),
        ((b"FloatStorage", 4, 0, 2, 1 << 62), "expected a tensor inside its storage"),
        ((b"FloatStorage", 4, 0, -2, 1), "expected a tensor inside its storage"),
        ((b"FloatStorage", 4, 1 << 65, 1, 1), "expected a tensor inside its storage"),
        ((b"QInt8Storage", 4, 0, 1, 1), "the global torch.QInt8Storage"),
        ((b"LongStorage", 2, 0, 1, 1, b"\x88"), "expected no gradient for torch.int64"),
    ],
)
def test_refused_tensors(arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(LoadError, match=text):
        weft.load(archive(tensor_pickle(*arguments), {"0": bytes(16)}))
    huge = weft.load(archive(tensor_pickle(b"FloatStorage", 4, 0, 1 << 40, 0), {"0": bytes(16)}))
    assert huge.numel() == 1 << 40  # of stride 0: no memory


def test_keys_that_take_forever_to_hash() -> None:
    doubling = b"K\x01K\x01\x86" + b"q\x00h\x00\x86" * 60
    with pytest.raises(LoadError, match="expected a plain key"):
        weft.load(archive(b"}" + doubling + b"K\x01s"))
    with pytest.raises(LoadError, match="expected a plain key"):
        weft.load(archive(b"c__builtin__\nset\n](" + doubling + b"e\x85R"))


def rezipped(records: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as writer:
        for name, data in records.items():
            writer.writestr(f"top/{name}", data)
    return io.BytesIO(file.getvalue())


def test_archives_zipped_again_load() -> None:
    value = {"x": weft.arange(300)}
    file = io.BytesIO()
    weft.save(value, file)
    with zipfile.ZipFile(file) as reader:
        records = {name.partition("/")[2]: reader.read(name) for name in reader.namelist()}
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        assert same(weft.load(rezipped(records, method)), value)
    del records["data/0"]
    with pytest.raises(LoadError, match="expected a record 'data/0' in the archive, got none"):
        weft.load(rezipped(records))
    with pytest.raises(LoadError, match=r"stored or deflated record, got 'top/data\.pkl'"):
        weft.load(rezipped(records, zipfile.ZIP_LZMA))


def widened(data: bytes, wide: tuple[bool, bool, bool], before: bytes) -> bytes:
    """The archive with some numbers of its entries in zip64 fields, after other extra fields."""
    with zipfile.ZipFile(io.BytesIO(data)) as reader:
        entries, start = reader.infolist(), reader.start_dir
    directory = b""
    for entry in entries:
        numbers = (entry.file_size, entry.compress_size, entry.header_offset)
        field = b"".join(n.to_bytes(8, "little") for n, moved in zip(numbers, wide) if moved)
        extra = before + struct.pack("<2H", 1, len(field)) + field
        size, packed, header = (0xFFFFFFFF if moved else n for n, moved in zip(numbers, wide))
        name = entry.filename.encode()
        fixed = (45, 45, entry.flag_bits, entry.compress_type, 0, 0, entry.CRC, packed, size)
        lengths = (len(name), len(extra), 0, 0, 0, 0, header)
        directory += b"PK\1\2" + struct.pack("<6H3L5H2L", *fixed, *lengths) + name + extra
    count = len(entries)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(directory), start, 0)
    return data[:start] + directory + end


@pytest.mark.parametrize(
    "before",
    [b"", b"UT\5\0\1\0\x18\0\0", b"FB\0\0ux\x0b\0\1\4\0\0\0\0\4\0\0\0\0"],
    ids=["nothing", "time", "padding and owner"],
)
def test_archives_with_zip64_fields(before: bytes) -> None:
    pickled = b"\x80\x02" + tensor_pickle(b"ByteStorage", 300, 0, 300, 1) + b"."
    records = {"data.pkl": pickled, "data/0": bytes(range(100)) * 3}
    data = rezipped(records).getvalue()
    for wide in itertools.product((False, True), repeat=3):
        file = io.BytesIO(widened(data, wide, before))
        with zipfile.ZipFile(file) as reader:
            assert {name: reader.read(f"top/{name}") for name in records} == records
        file.seek(0)
        assert weft.load(file).tolist() == [*range(100)] * 3
    hidden = widened(data, (True, True, True), before + b"\2\0\xff\xff")
    with pytest.raises(LoadError, match="expected a zip64 field for a record of more than 4 GiB"):
        weft.load(io.BytesIO(hidden))


def test_archives_that_grow() -> None:
    size = 200 << 20
    bomb = rezipped(
        {
            "data.pkl": b"\x80\x02" + tensor_pickle(b"ByteStorage", size, 0, 1, 1) + b".",
            "data/0": bytes(size),
        }
    )
    with pytest.raises(LoadError, match="compressed records of at most 64 times the file"):
        weft.load(bomb)


def test_archives_whose_records_overlap() -> None:
    data = bytearray(archive(b"N", {"0": bytes(1000), "1": bytes(1000)}).getvalue())
    first, second = (data.rindex(b"archive/data/" + digit) for digit in (b"0", b"1"))
    data[second - 4 : second] = data[first - 4 : first]  # the place of the local header
    source = weft.serialization.source.Source(io.BytesIO(bytes(data)), "load")
    records = weft.serialization.zip_reader.ZipReader(source)
    with pytest.raises(LoadError, match="expected record 'archive/data/1', got 'archive/data/0'"):
        records.read("data/1", 1000)
    with pytest.raises(LoadError, match="records that do not overlap"):
        for _ in range(4):
            records.read("data/0", 1000)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "got an empty file"),
        (b"hello", "got one that begins with b'hello'"),
        (b"PK\3\4" + bytes(100), "expected a zip archive, got a file cut short"),
        (pickle.dumps({"a": 1}), "got a plain pickle"),
        (safetensors.save({"a": weft.ones(1)}), "looks like safetensors"),
    ],
)
def test_other_files(tmp_path: Path, data: bytes, text: str) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(data)
    ways = [(file, False) for file in (io.BytesIO(data), Trickle(data), path)]
    for file, mmap in (*ways, (path, True)):
        with pytest.raises(LoadError, match=text):
            weft.load(file, mmap=mmap)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((1002, {"little_endian": True}, {}, []), "expected version 1001 of the old format"),
        ((b"", {"little_endian": True}, {}, []), "expected version 1001 of the old format"),
        ((1001, {"little_endian": False}, {}, []), "got big-endian ones"),
        ((1001, {"little_endian": True}, {}, [[]]), "expected the keys of the storages"),
        ((1001, {"little_endian": True}, {}, ["0"]), "expected the keys of the storages"),
    ],
)
def test_old_files_refused(parts: tuple[Any, ...], text: str) -> None:
    data = b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, *parts))
    with pytest.raises(LoadError, match=text):
        weft.load(io.BytesIO(data))


def test_every_cut_is_noticed() -> None:
    file = io.BytesIO()
    weft.save({"x": weft.arange(3)}, file)
    data = file.getvalue()
    for end in range(len(data)):
        with pytest.raises(LoadError):
            weft.load(io.BytesIO(data[:end]))


def test_torchscript_is_an_archive_of_a_module(tmp_path: Any) -> None:
    file = archive(b"N", **{"constants.pkl": b"\x80\x02)."})
    with pytest.raises(LoadError, match="expected a module in the archive, got NoneType"):
        weft.load(file)
    path = tmp_path / "net.pt"
    path.write_bytes(file.getvalue())
    with pytest.raises(LoadError, match="mmap=True, got a TorchScript archive"):
        weft.load(path, mmap=True)


def test_big_endian_is_swapped() -> None:
    import array

    numbers = array.array("f", [1.0, 2.0, 3.0, 4.0])
    numbers.byteswap()
    file = archive(
        tensor_pickle(b"FloatStorage", 4, 0, 4, 1), {"0": numbers.tobytes()}, byteorder=b"big"
    )
    assert weft.load(file).tolist() == [1.0, 2.0, 3.0, 4.0]
    file = archive(
        tensor_pickle(b"ComplexFloatStorage", 2, 0, 2, 1),
        {"0": numbers.tobytes()},
        byteorder=b"big",
    )
    assert weft.load(file).tolist() == [1 + 2j, 3 + 4j]
    with pytest.raises(LoadError, match="expected the byte order little or big, got middle"):
        weft.load(archive(b"N", byteorder=b"middle"))


# ---- with PyTorch ----


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.parity
@pytest.mark.parametrize("mmap", [False, True])
def test_pytorch_reads_ours(torch: Any, tmp_path: Path, mmap: bool) -> None:
    value = everything(weft)
    weft.save(value, tmp_path / "x.pt")
    loaded = torch.load(tmp_path / "x.pt", weights_only=True, mmap=mmap)
    assert same(value, loaded)
    assert loaded["state"]._metadata == OrderedDict(sub={"version": 2})
    loaded["state"]["bias"].zero_()
    assert loaded["views"][0][1].tolist() == [0.0] * 6
    assert [x.stride() for x in loaded["views"]] == [x.stride() for x in value["views"]]


@pytest.mark.parity
@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("mmap", [False, True])
def test_we_read_pytorch(torch: Any, tmp_path: Path, mmap: bool, new: bool) -> None:
    value = everything(torch)
    torch.save(value, tmp_path / "x.pt", _use_new_zipfile_serialization=new)
    loaded = weft.load(tmp_path / "x.pt", mmap=mmap)
    assert same(loaded, value)
    assert loaded["state"]._metadata == OrderedDict(sub={"version": 2})
    loaded["state"]["bias"].zero_()
    assert loaded["views"][0][1].tolist() == [0.0] * 6
    assert [x.stride() for x in loaded["views"]] == [x.stride() for x in value["views"]]


@pytest.mark.parity
def test_pytorch_reads_our_old_format(torch: Any, tmp_path: Path) -> None:
    value = everything(weft)
    weft.save(value, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    for loaded in (torch.load(tmp_path / "x.pt"), weft.load(tmp_path / "x.pt")):
        assert same(loaded, value)
        assert [x.stride() for x in loaded["views"]] == [x.stride() for x in value["views"]]
    file = io.BytesIO()
    weft.save([weft.ones(2), 1], file, pickle, 4, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert same(torch.load(file), [weft.ones(2), 1])


def test_save_refuses_other_picklers() -> None:
    with pytest.raises(ValueError, match="save: expected the standard library's pickle, got <mod"):
        weft.save(1, io.BytesIO(), pickle_module=io)


@pytest.mark.parity
def test_pytorch_computes_where_our_records_are(torch: Any, tmp_path: Path) -> None:
    from torch.utils.serialization import config

    value = [weft.arange(5), weft.zeros(0), weft.ones(3, dtype=weft.uint16), weft.ones(70)]
    weft.save(value, tmp_path / "x.pt")
    config.load.calculate_storage_offsets = True
    try:
        assert same(value, torch.load(tmp_path / "x.pt", mmap=True))
    finally:
        config.load.calculate_storage_offsets = False


@pytest.mark.parity
def test_views_pytorch_resolves_lazily(torch: Any, tmp_path: Path) -> None:
    x = torch.tensor([1 + 2j, 3 - 4j])
    y = torch.tensor([1 + 2j]).conj().imag
    value = [x.conj(), x, y]
    torch.save(value, tmp_path / "x.pt")
    loaded = weft.load(tmp_path / "x.pt")
    assert [part.tolist() for part in loaded] == [part.tolist() for part in value]


@pytest.mark.parity
def test_training_goes_on_in_the_other_library(torch: Any, tmp_path: Path) -> None:
    def make(lib: Any) -> tuple[Any, Any]:
        model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Tanh(), lib.nn.Linear(4, 1))
        return model, lib.optim.AdamW(model.parameters(), lr=0.01)

    def step(lib: Any, model: Any, optimizer: Any) -> float:
        optimizer.zero_grad()
        loss = model(lib.ones(2, 3)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    for here, there in ((weft, torch), (torch, weft)):
        model, optimizer = make(here)
        step(here, model, optimizer)
        here.save({"m": model.state_dict(), "o": optimizer.state_dict()}, tmp_path / "x.pt")
        other, again = make(there)
        saved = there.load(tmp_path / "x.pt", weights_only=True)
        other.load_state_dict(saved["m"])
        again.load_state_dict(saved["o"])
        for _ in range(3):
            mine, theirs = step(here, model, optimizer), step(there, other, again)
            assert math.isclose(mine, theirs, rel_tol=1e-3, abs_tol=1e-5)


@pytest.mark.parity
def test_objects_of_pytorch_are_refused_by_name(torch: Any, tmp_path: Path) -> None:
    for value, name in [
        (torch.nn.Linear(1, 1), "torch.nn.modules.linear.Linear"),
        (Path("x"), "pathlib"),
    ]:
        torch.save(value, tmp_path / "x.pt")
        with pytest.raises(LoadError, match=f"plain containers, got the global {name}"):
            weft.load(tmp_path / "x.pt")


LAYERS = {
    "Linear": (2, 3),
    "Conv2d": (2, 4, 3),
    "ConvTranspose1d": (2, 3, 3),
    "AdaptiveAvgPool1d": (2,),
    "BatchNorm2d": (4,),
    "LSTM": (2, 3, 2),
    "RNNCell": (2, 3, True, "relu"),
    "MultiheadAttention": (4, 2),
    "TransformerEncoderLayer": (4, 2, 8),
    "Embedding": (3, 4, 0),
    "ReLU6": (),
    "Upsample": (None, 2),
    "CrossEntropyLoss": (),
}


@pytest.mark.parity
@pytest.mark.parametrize("name", LAYERS)
def test_layers_go_to_pytorch_and_back(torch: Any, name: str) -> None:
    ours, theirs = (getattr(lib.nn, name)(*LAYERS[name]) for lib in (weft, torch))
    there, back = io.BytesIO(), io.BytesIO()
    weft.save(ours, there)
    there.seek(0)
    arrived = torch.load(there, weights_only=False)
    assert type(arrived) is type(theirs) and repr(arrived) == repr(theirs)
    for a, b in zip(arrived.state_dict().values(), ours.state_dict().values(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    lacking = {attribute for attribute in vars(theirs) if not hasattr(arrived, attribute)}
    assert lacking <= {"_flat_weight_refs"}
    torch.save(arrived, back)
    back.seek(0)
    returned = weft.load(back, weights_only=False)
    assert type(returned) is type(ours) and repr(returned) == repr(ours)
    unhooked = [{n for n in vars(each) if "hook" not in n} for each in (returned, ours)]
    assert unhooked[0] == unhooked[1]
    if name == "Linear":
        x = weft.ones(1, 2)
        assert weft.equal(returned(x), ours(x)) and arrived(torch.ones(1, 2)).shape == (1, 3)


# ---- safetensors ----


def some_tensors() -> dict[str, weft.Tensor]:
    made = {
        name: weft.ones(2, 3).to(getattr(weft, name)) for name in DTYPES if name != "complex128"
    }
    made |= {
        "é\n": weft.tensor(2.5),
        "none": weft.zeros(0, 4),
        "t": weft.arange(6.0).view(2, 3).t(),
    }
    return made


@pytest.mark.parametrize("mmap", [False, True])
def test_safetensors(tmp_path: Path, mmap: bool) -> None:
    path = tmp_path / "x.safetensors"
    safetensors.save_file(some_tensors(), path, {"format": "pt"})
    loaded = safetensors.load_file(path, mmap=mmap)
    assert loaded.keys() == some_tensors().keys()
    assert all(same(loaded[name], tensor) for name, tensor in some_tensors().items())
    assert safetensors.load_metadata(path) == {"format": "pt"}
    before = path.read_bytes()
    loaded["t"].zero_()
    assert path.read_bytes() == before
    with pytest.raises(
        ValueError, match=r"save_file: expected a dtype of safetensors, got torch\.complex128"
    ):
        safetensors.save_file({"x": weft.ones(1, dtype=weft.complex128)}, path)
    with pytest.raises(TypeError, match="save_file: expected tensors by their names, got int"):
        safetensors.save_file({"x": 3}, path)
    assert path.read_bytes() == before and len(os.listdir(tmp_path)) == 1


@pytest.mark.parity
def test_safetensors_package(tmp_path: Path) -> None:
    package = pytest.importorskip("safetensors.numpy")
    names = ("bool", "uint8", "int64", "float16", "float32", "float64")
    ours = {
        name: tensor for name, tensor in some_tensors().items() if name in names or "t" not in name
    }
    ours.pop("bfloat16", None)
    safetensors.save_file(ours, tmp_path / "a", {"k": "v"})
    theirs = package.load_file(tmp_path / "a")
    assert theirs.keys() == ours.keys()
    assert all(theirs[name].tolist() == ours[name].tolist() for name in ours)
    package.save_file(theirs, tmp_path / "b", {"k": "v"})
    again = safetensors.load_file(tmp_path / "b")
    assert all(same(again[name], ours[name]) for name in ours)
    assert safetensors.load_metadata(tmp_path / "b") == {"k": "v"}


HEADERS = {
    "[]": "expected a JSON object",
    "{": "expected a header in JSON",
    "[" * 100_000: "expected a header in JSON",
    '{"a": 1}': "expected dtype, shape and data_offsets of 'a'",
    '{"a":{"dtype":"F8","shape":[],"data_offsets":[0,1]}}': "expected a dtype that weft has, got F8",
    '{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}': "sizes and offsets of 'a' as ints",
    '{"a":{"dtype":"U8","shape":[true],"data_offsets":[0,1]}}': "sizes and offsets of 'a' as ints",
    '{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,4]}}': "expected 3 bytes of 'a', got 4",
    '{"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}': "expected 'a' to begin at",
    '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}': "expected a file of",
    '{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}': "expected a file of",
    '{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}': "to begin at",
    '{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{}}': "a name is there twice",
    '{"__metadata__":{"k":1}}': "expected metadata of strings",
    '{"a":{"dtype":"U8","shape":[4611686018427387903,4],"data_offsets":[0,4]}}': "bytes of 'a', got 4",
}


@pytest.mark.parametrize("header", HEADERS)
def test_safetensors_refused(header: str) -> None:
    data = len(header).to_bytes(8, "little") + header.encode() + bytes(4)
    with pytest.raises(LoadError, match=HEADERS[header]):
        safetensors.load(data)
    with pytest.raises(LoadError, match="expected a header inside the file"):
        safetensors.load(b"\xff" * 8 + b"{}")


# ---- properties ----

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.binary(max_size=20),
    st.complex_numbers(), st.sampled_from([weft.float32, weft.bool, weft.device("cpu")]),
    st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(0, 3), max_size=3)).map(
        lambda pair: weft.ones(pair[1]).to(getattr(weft, pair[0]))
    ),
)  # fmt: skip
KEYS = st.one_of(
    st.text(max_size=5), st.integers(-(2**63), 2**63), st.booleans(), st.tuples(st.text(max_size=2))
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=5).map(tuple),
        st.dictionaries(KEYS, inner, max_size=4),
        st.dictionaries(st.text(max_size=5), inner, max_size=4).map(OrderedDict),
    ),
    max_leaves=20,
)


@examples(100)
@given(VALUES)
def test_any_value_comes_back(value: Any) -> None:
    assert same(through(value), value)


@examples(100)
@given(st.binary(max_size=200))
def test_any_bytes_as_pickle(pickled: bytes) -> None:
    with contextlib.suppress(LoadError):
        weft.load(archive(pickled))


def test_fuzzed_files() -> None:
    spec = importlib.util.spec_from_file_location("fuzz_load", ROOT / "tools" / "fuzz_load.py")
    assert spec is not None and spec.loader is not None
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    bad = [case for case in fuzz.run(0, 3000, seed=1) if case[1] not in ("read", "refused")]
    assert not bad


# ---- the house ----


def test_saving_is_imported_late() -> None:
    code = "import sys, weft; assert not [m for m in sys.modules if 'serialization' in m or m == 'pickle']"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["errors", "atomic", "_load", "_save", "safetensors"])
def test_docstrings(name: str) -> None:
    module = importlib.import_module(f"weft.serialization.{name}")
    results = doctest.testmod(module)
    assert results.attempted and not results.failed


@pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="the system does not list descriptors"
)
def test_saving_leaves_no_descriptor_open(tmp_path: Path) -> None:
    weft.save({"a": weft.ones(2)}, tmp_path / "first")
    before = len(os.listdir("/proc/self/fd"))
    for name in "abc":
        weft.save({"a": weft.ones(2)}, tmp_path / name)
        weft.load(tmp_path / name, mmap=True)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("protocol", [2, 4])
def test_names_that_load_refuses(torch: Any, protocol: int) -> None:
    """Names stand in a word of their own, or as strings, which a memo repeats."""
    file = io.BytesIO()
    spaces = [argparse.Namespace(x=1), argparse.Namespace(x=2)]
    torch.save(
        [torch.ones(2), *spaces, torch.nn.Linear(1, 1), deque()], file, pickle_protocol=protocol
    )
    found = weft.serialization.get_unsafe_globals_in_checkpoint
    names = ["argparse.Namespace", "collections.deque", "torch.nn.modules.linear.Linear"]
    file.seek(0)
    assert found(file) == names
    if protocol == 2:
        file.seek(0)
        assert set(torch.serialization.get_unsafe_globals_in_checkpoint(file)) >= {
            names[0],
            names[2],
        }
    with weft.serialization.safe_globals([argparse.Namespace]):
        file.seek(0)
        assert found(file) == names[1:]


@pytest.mark.parametrize("data", [b"", b"abc", b"PK\3\4"])
def test_names_of_what_is_no_checkpoint(data: bytes) -> None:
    with pytest.raises(ValueError, match="expected a zip archive of save"):
        weft.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))


@pytest.mark.parametrize(
    "pickle", [b"h\5\x93.", b"h\5h\6\x93\x93.", b"\x8c\1ah\5\x93.", b"\x93", b"cos\n", b"\xff."]
)
def test_names_in_a_damaged_pickle(pickle: bytes) -> None:
    """Strings that no memo has, too few of them, words that end early: names, or ValueError."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", pickle)
        archive.writestr("a/version", b"3\n")
    file.seek(0)
    try:
        found = weft.serialization.get_unsafe_globals_in_checkpoint(file)
    except ValueError:
        return
    assert all(isinstance(each, str) for each in found)

"""Annotations that are evaluated late: as texts, under `from __future__ import annotations`, or by the function that
Python 3.14 makes of them. Names that only type checkers import are nowhere when they are."""

from __future__ import annotations

import importlib.util
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import weft
from weft import jit

HEAD = """
import copy
import dataclasses
import enum
from typing import *

import weft as torch
from weft import Tensor, nn

if TYPE_CHECKING:
    from nowhere import Absent

"""
# Each ends in a call whose result is True.
PROGRAMS = {
    "script class": """
@torch.jit.script
class Node:
    x: int
    next: Optional[Node]

    def __init__(self, x: int):
        self.x = x
        self.next = None

@torch.jit.script
def f(x: int) -> int:
    node = Node(x)
    node.next = Node(x + 1)
    after = node.next
    return 0 if after is None else after.x

done = f(3) == 4 and Node(2).next is None
""",
    "dataclass": """
@dataclasses.dataclass
class Point:
    x: int
    y: Optional[float] = None
    z: List[int] = dataclasses.field(default_factory=list)

    def total(self) -> float:
        y = self.y
        return float(self.x) if y is None else self.x + y

@torch.jit.script
def f(x: int):
    return Point(x).total(), Point(x, 0.5).total(), Point(x) == Point(x), len(Point(x, None, [x]).z)

done = torch.jit.script(Point) is Point and f(3) == (3.0, 3.5, True, 1)
""",
    "local classes": """
def f(x: int) -> int:
    class Inner(NamedTuple):
        v: int
    class Outer(NamedTuple):
        a: int
        b: Optional[Inner] = None
        c: int | None = 5
    @torch.jit.script
    def f(o: Outer) -> int:
        b = o.b
        return o.a if b is None else o.a + b.v
    return f(Outer(x, Inner(4))) + f(Outer(x))

done = f(1) == 6
""",
    "named tuple": """
class Inner(NamedTuple):
    v: int

class Outer(NamedTuple):
    a: int
    b: Optional[Inner] = None
    c: int | None = 5

@torch.jit.script
def f(o: Outer) -> int:
    b, c = o.b, o.c
    assert c is not None
    return o.a + c if b is None else o.a + b.v

done = f(Outer(1, Inner(4))) + f(Outer(1)) == 11
""",
    "interface": """
@torch.jit.interface
class Step(nn.Module):
    extra: Absent
    def forward(self, x: Tensor) -> Tensor:
        pass

class Twice(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2

class Outer(nn.Module):
    inner: Step
    def __init__(self):
        super().__init__()
        self.inner = Twice()
    def forward(self, x: Tensor) -> Tensor:
        return self.inner.forward(x)

done = torch.jit.script(Outer())(torch.ones(1)).item() == 2
""",
    "module": """
class Base(nn.Module):
    only: Absent
    many: Dict[str, List[Absent]]
    a: Optional[int]

class M(Base):
    names: Dict[str, int]
    b: None | Tensor
    k: Final[int]
    maybe: Absent | None

    def __init__(self):
        super().__init__()
        self.a = None
        self.b = None
        self.names = {}
        self.k = 3
        self.maybe = None

    def forward(self, x: Tensor) -> Tensor:
        a = self.a
        self.names["called"] = 1
        return x * self.k if a is None else x + a

    @torch.jit.ignore
    def ignored(self, x: Absent) -> int:
        return 1

    def untouched(self, x: Absent) -> Absent:
        return x

made = torch.jit.script(M())
first = made(torch.ones(1)).item()
made.a = 4
made.b = torch.ones(2)
done = (first, made(torch.ones(1)).item(), made.names) == (3, 5, {"called": 1})
""",
    "annotation under a condition": """
class M(nn.Module):
    if HEAD:
        a: Optional[int]
    else:
        a: str
    def __init__(self):
        super().__init__()
        self.a = None
    def forward(self, x: Tensor) -> Tensor:
        a = self.a
        return x if a is None else x + a

HEAD = True
made = torch.jit.script(M())
made.a = 2
done = made(torch.ones(1)).item() == 3
""".replace("HEAD", "__name__"),
    "class that a program copies": """
class Held:
    x: int
    only: Absent
    def __init__(self):
        self.x = 3

try:
    torch.jit.script(Held)
    done = False
except RuntimeError as error:
    done = "unknown name 'Absent'" in str(error)
""",
    "no method but annotations": """
class Step:
    extra: int

try:
    torch.jit.interface(Step)
    done = False
except RuntimeError as error:
    done = "expected Step to have methods, got none" in str(error)
""",
    "trace": """
def f(x: Absent, y: Absent | None = None) -> Absent:
    return x + y

traced = torch.jit.trace(f, (torch.ones(1), torch.ones(1)))
done = [each.debugName() for each in traced.graph.inputs()] == ["x", "y"]
""",
    "fx": """
def f(x: Absent, y: Optional[int] = None, z: int | None = None) -> List[Absent]:
    return x + 1

made = torch.fx.symbolic_trace(f)
done = (made(torch.ones(1)).item(), copy.deepcopy(made)(torch.ones(1)).item()) == (2, 2)
""",
    "operator": """
def scale(x: Tensor, by: float | None = 2.0) -> Tensor:
    return x

def unknown(x: Tensor, by: Absent) -> Tensor:
    return x

done = torch.library.infer_schema(scale, mutates_args=()) == "(Tensor x, float? by=2.0) -> Tensor"
try:
    torch.library.infer_schema(unknown, mutates_args=())
    done = False
except ValueError as error:
    done = done and "expected annotations that can be read" in str(error)
""",
}
# A text does not tell where the names of its function are.
OF_TEXTS = [name for name in PROGRAMS if name != "local classes"]
FUTURE = "from __future__ import annotations\n"
HEADS = {"text": FUTURE, "late": ""} if sys.version_info >= (3, 14) else {"text": FUTURE}


@pytest.mark.parametrize(
    ("head", "name"), [*product(["text"], OF_TEXTS), *product(HEADS.keys() - {"text"}, PROGRAMS)]
)
def test_programs(head: str, name: str, tmp_path: Path) -> None:
    assert load(tmp_path, HEADS[head] + HEAD + PROGRAMS[name]).done is True


@pytest.mark.parametrize("head", HEADS)
def test_a_class_is_the_same_program_before_and_after_its_annotations_were_asked_for(
    head: str, tmp_path: Path, monkeypatch: Any
) -> None:
    """What Python keeps in a class for them is no part of the program that the cache keeps."""
    from weft.jit.cache.walk import Walk

    held = "class Held:\n    x: int\n    def __init__(self) -> None:\n        self.x = 3\n"
    module = load(tmp_path, f"{HEADS[head]}{HEAD}{held}class Below(Held):\n    pass\n")

    def digest() -> str:
        walk = Walk()
        walk.start(module.Below)
        return walk.digest

    first = digest()
    for cls in (module.Below, module.Held):
        assert cls.__annotations__ is not None
        assert digest() == first
    module.Held.__annotations__["x"] = float
    assert digest() != first


def test_other_annotations_are_of_the_program(tmp_path: Path) -> None:
    """All but the one that is nowhere: it does not hide the types of the others."""
    text = "class N(NamedTuple):\n    a: int\n    b: {}\n\ndef f(n: N) -> int:\n    return n.a\n"
    module = load(tmp_path, HEAD + text.format("Tensor"))
    assert jit.script(module.f)(module.N(3, weft.ones(1))) == 3
    if "late" in HEADS:
        module = load(tmp_path, HEAD + text.format("Absent"))
        with pytest.raises(RuntimeError, match="unknown name 'Absent'"):
            jit.script(module.f)


def load(folder: Path, text: str) -> Any:
    """A module of the text, whose file has a name of its own."""
    path = folder / f"program_{len(list(folder.iterdir()))}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[path.stem]
    return module

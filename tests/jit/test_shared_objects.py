"""Instances of compiled classes are one object in Python and in programs."""

# ruff: noqa: UP006, UP035, UP045

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, Callable, Dict, List, Optional

import pytest

import weft
from weft import Tensor, jit, nn


@jit.script
class Inner:
    def __init__(self, n: int):
        self.n = n


@jit.script
class Box:
    scale: float = 0.5

    def __init__(self, count: int):
        self.count = count
        self.scale = 2.0
        self.name: Optional[str] = None
        self.at = weft.ones(2)
        self.items: List[int] = [1]
        self.rows: List[List[float]] = [[float("nan")]]
        self.table: Dict[str, Tensor] = {"a": self.at}
        self.inner = Inner(1)

    def add(self, n: int):
        self.items.append(n)


@jit.script
@dataclasses.dataclass
class Point:
    x: int = 1
    y: Optional[int] = None


@jit.script
class Slotted:
    __slots__ = ("n",)

    def __init__(self, n: int):
        self.n = n


def change(b: Box) -> None:
    b.count = 5
    b.scale = 3.0
    b.name = "new"
    b.at = weft.zeros(3)
    b.items.append(2)
    b.rows[0].append(1.0)
    b.table["b"] = b.at
    b.inner.n = 7
    b.add(3)


def same(b: Box) -> Box:
    return b


def read(b: Box) -> str:
    keys = ",".join(list(b.table.keys()))
    return f"{b.count} {b.scale} {b.name} {b.items} {len(b.rows[0])} {keys} {b.inner.n}"


def python_change(b: Box) -> None:
    b.count, b.name = 8, "python"
    b.items[0] = 9
    b.rows.append([])
    b.table.pop("a", None)
    b.inner.n -= 1


CHANGES: list[Callable[[Box], Any]] = [change, jit.script(change), python_change]


@pytest.mark.parametrize("first", CHANGES)
@pytest.mark.parametrize("second", CHANGES)
@pytest.mark.parametrize("third", CHANGES)
def test_both_sides_see_every_change(first, second, third):
    box, plain = Box(1), Box(1)
    for step in (first, second, third):
        step(box)
        (python_change if step is python_change else change)(plain)
        assert read(box) == read(plain) == jit.script(read)(box)


def test_identity():
    box, items, inner = Box(1), None, None
    items, inner = box.items, box.inner
    assert jit.script(same)(box) is box is jit.script(same)(box)
    jit.script(change)(box)
    assert box.items is items and items == [1, 2, 3]
    assert box.inner is inner and inner.n == 7


def make() -> Box:
    return Box(4)


def test_instances_made_by_programs():
    box = jit.script(make)()
    assert type(box) is Box and read(box) == read(Box(4))
    box.add(2)
    jit.script(change)(box)
    assert box.items == [1, 2, 2, 3]


@pytest.mark.parametrize(
    "copier", [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))]
)
def test_copies_are_objects_of_their_own(copier):
    box = Box(1)
    jit.script(same)(box)
    other = copier(box)
    jit.script(change)(box)
    assert other.count == 1 and other.name is None
    other.count = 2
    assert jit.script(same)(other) is other and box.count == 5


def double(p: Point) -> Point:
    p.x *= 2
    return p


def test_dataclasses():
    point = Point(3)
    assert jit.script(double)(point) is point
    assert point == Point(6) and repr(point) == "Point(x=6, y=None)"
    assert dataclasses.asdict(point) == {"x": 6, "y": None}
    assert Point.x == 1 and dataclasses.replace(point, y=2) == Point(6, 2)


def test_an_attribute_keeps_its_type():
    box = Box(1)
    jit.script(same)(box)
    with pytest.raises(TypeError, match=r"Box.count: expected a value of type int, got str"):
        box.count = "one"
    with pytest.raises(AttributeError):
        del box.count
    with pytest.raises(AttributeError, match="'Box' object has no attribute 'other'"):
        box.other  # noqa: B018
    assert box.count == 1


def use_slots(s: Slotted) -> Slotted:
    s.n += 1
    return s


def test_instances_with_slots_are_copied():
    given = Slotted(1)
    assert jit.script(use_slots)(given).n == 2 and given.n == 1


class Holder(nn.Module):
    def __init__(self, box: Box):
        super().__init__()
        self.box = box

    def forward(self, x: Tensor) -> Tensor:
        self.box.count += 1
        return x + self.box.count


def test_objects_of_modules():
    box = Box(1)
    scripted = jit.script(Holder(box))
    assert scripted(weft.zeros(1)).item() == 2
    assert scripted.box is box and box.count == 2
    box.count = 10
    assert scripted(weft.zeros(1)).item() == 11


def of_list(boxes: List[Box]) -> List[Box]:
    boxes[0].count = 3
    return boxes


def test_objects_in_lists():
    boxes = [Box(1), Box(2)]
    given = jit.script(of_list)(boxes)
    assert given[0] is boxes[0] and given[1] is boxes[1] and boxes[0].count == 3


def change_list(xs: List[int], ys: List[List[Tensor]]) -> int:
    xs.append(4)
    xs[0] = 9
    ys[0].append(weft.ones(1))
    return len(xs)


def change_dict(d: Dict[str, float]) -> None:
    d["b"] = 2.5
    d.pop("a")


def test_scripted_lists_and_dicts_are_shared():
    xs, ys, d = jit.script([1, 2]), jit.script([[weft.zeros(1)]]), jit.script({"a": 1.5})
    assert jit.script(change_list)(xs, ys) == 3
    assert xs == [9, 2, 4] and len(ys[0]) == 2 and repr(xs) == "[9, 2, 4]"
    xs.insert(1, 7)
    xs[-1] = 5
    del xs[2]
    xs.extend([3])
    assert list(xs) == [9, 7, 5, 3] and 7 in xs and xs[1:] == [7, 5, 3] and xs.pop() == 3
    xs.sort()
    assert xs == [5, 7, 9] and jit.script(change_list)(xs, ys) == 4
    jit.script(change_dict)(d)
    assert d == {"b": 2.5} and list(d.items()) == [("b", 2.5)]
    d["c"] = 1.0
    del d["b"]
    jit.script(change_dict)({"a": 1.0})
    assert d == {"c": 1.0}
    xs.clear()
    assert jit.script(change_list)(jit.script([0]), ys) == 2 and len(xs) == 0


@pytest.mark.parametrize("key, value, what", [(1, 2.0, "key of str"), ("b", "c", "value of float")])
def test_scripted_dicts_keep_their_types(key, value, what):
    d = jit.script({"a": 1.5})
    with pytest.raises(TypeError, match=f"ScriptDict: expected a {what}"):
        d[key] = value
    assert d == {"a": 1.5}
    empty = jit.script({})
    empty[key] = value
    assert empty == {key: value}


def test_scripted_lists_keep_their_type():
    xs = jit.script([1])
    with pytest.raises(TypeError, match=r"expected the contents of a List\[int\], got those of a"):
        xs.append("one")
    with pytest.raises(TypeError, match=r"expected value of type Dict\[str, float\]"):
        jit.script(change_dict)(xs)
    with pytest.raises(TypeError, match="expected a list or dict of values"):
        jit.script([object()])
    assert xs == [1]

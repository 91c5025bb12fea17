"""Pictures of live tensors, and the page about memory that is written with them."""

from __future__ import annotations

import doctest
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.utils import sharing, show

PAGE = Path(__file__).resolve().parent.parent / "docs" / "memory.md"


def test_the_page_prints_what_it_says() -> None:
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    results = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert results.attempted >= 20 and results.failed == 0


def facts(tensor: weft.Tensor) -> dict[str, str]:
    return {name: value for _, rows in show(tensor).facts() for name, value in rows}


def test_facts_of_a_view() -> None:
    x = weft.arange(12.0).reshape(3, 4)
    found = facts(x.t()[1:])
    assert found["shape"] == "(3, 3)" and found["stride"] == "(1, 4) elements"
    assert found["in bytes"] == "(4, 16)" and found["offset"] == "1 element, 4 bytes"
    assert found["rule"] == "element[i0, i1] at 1 + 1*i0 + 4*i1" and found["view"] == "yes"
    assert int(found["data_ptr"], 16) == x.data_ptr() + 4
    assert int(found["address"], 16) == x.data_ptr()
    assert found["from"] == "allocator 'caching'" and found["block"] == "48 bytes asked for"


def test_facts_of_foreign_memory() -> None:
    a = np.arange(4.0)
    a.flags.writeable = False
    found = facts(weft.from_numpy(a[::-1]))
    assert found["flags"] == "read-only, foreign" and "somebody else" in found["from"]
    assert found["kind"] == "strided, with negative strides"
    assert found["rule"] == "element[i0] at 3 - 1*i0" and "block" not in found
    assert str(show(weft.from_numpy(a[::-1]))).splitlines()[-1].split() == [
        "[3]", "[2]", "[1]", "[0]",
    ]  # fmt: skip


def test_sharing_and_holds() -> None:
    x = weft.zeros(3)
    assert facts(x)["held outside"] == "0 times"
    array = x.numpy()
    assert facts(x)["held outside"] == "1 time" and array.sum() == 0
    x += 1
    assert facts(x)["version"] == "1 write so far"
    assert sharing(x, x[1:], x + 1) == "storage of 12 bytes: #0, #1\nstorage of 12 bytes: #2"


def test_cells_of_a_big_storage() -> None:
    x = weft.arange(1000).view(10, 100)
    picture = show(x[:, 3])
    assert len(picture.cells) == 64 and "and 936 more elements" in str(picture)
    assert picture.reached[3] == (0,) and picture.reached[103] == (1,)
    assert facts(x.expand(2, 10, 100))["kind"] == "strided, broadcast"


@pytest.mark.parametrize(
    "make",
    [
        lambda: weft.zeros(0, 3),
        lambda: weft.tensor(3),
        lambda: weft.zeros(2, dtype=weft.bfloat16),
        lambda: weft.zeros(2, dtype=weft.complex64),
        lambda: weft.ones(2, requires_grad=True),
        lambda: weft.empty(0).set_(),
        lambda: weft.zeros(2, 2).resize_(3, 3).fill_(1),
    ],
)
def test_any_tensor_has_a_picture(make: object) -> None:
    picture = show(make())
    assert str(picture).startswith("tensor   shape") and picture._repr_html_()


class Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.spans = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "br":
            self.open.append(tag)
        self.spans += tag == "span"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html() -> None:
    text = show(weft.arange(6.0)[::2])._repr_html_()
    parser = Balanced()
    parser.feed(text)
    assert parser.open == [] and parser.spans == 6
    assert "allocator &#x27;caching&#x27;" in text and "[2]" in text and "<script" not in text


def test_refuses_what_is_no_tensor() -> None:
    with pytest.raises(TypeError, match="show: expected a Tensor, got list"):
        show([1])

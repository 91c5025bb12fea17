"""Errors of loaded programs show the lines that were saved, as .debug_pkl tells them."""

from __future__ import annotations

import io

import pytest
from tests.jit.archive_writer import ROOT, archive, forward, pickled

import weft
from weft import Tensor, jit, nn

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
    "floats": pickled(((AT, ((ORIGINAL, "net.py", 1), 0.5, 1.5), ()),)),
    "types": pickled(((AT, ((ORIGINAL, "net.py", "1"), None, "x"), ()),)),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_origins_leave_the_places_in_the_archive(name):
    records = {"code/__torch__.py.debug_pkl": DAMAGED[name]}
    with pytest.raises(RuntimeError, match="view: expected") as error:
        jit.load(archive(forward("torch.view(x, [7])"), ROOT, **records))(weft.ones(1))
    assert 'File "code/__torch__.py", line 4' in str(error.value)


# Written ------------------------------------------------------------------------------------------


class Squares(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = x.matmul(x)
        return x


class Fails(nn.Module):
    def __init__(self):
        super().__init__()
        self.squares = Squares()

    def forward(self, x: Tensor) -> Tensor:
        é = x * 2
        return self.squares(é, 3)


def test_saved_programs_tell_their_lines():
    """So does a program that was loaded and saved again."""
    data = jit.script(Fails()).save_to_buffer()
    for saved in (data, jit.load(data).save_to_buffer()):
        with pytest.raises(RuntimeError) as error:
            jit.load(saved)(weft.ones(2, 3))
        text = str(error.value)
        assert f'File "{__file__}", line' in text and "code/__torch__" not in text
        assert "x = x.matmul(x)\n                ~~~~~~~~~~~ <" in text
        assert "return self.squares(é, 3)\n               ~~~~~~~~~~~~~~~~~~ <" in text


@pytest.mark.parity
def test_saved_programs_tell_pytorch_their_lines():
    torch = pytest.importorskip("torch")
    data = io.BytesIO(jit.script(Fails()).save_to_buffer())
    with pytest.raises(RuntimeError) as error:
        torch.jit.load(data)(torch.ones(2, 3))
    original = str(error.value).partition("original code")[2]
    lines = (Fails.forward.__code__.co_firstlineno + 2, Squares.forward.__code__.co_firstlineno + 2)
    for line in lines:
        assert f'File "{__file__}", line {line}, in forward' in original
    assert "x = x.matmul(x)\n            ~~~~~~~~" in original

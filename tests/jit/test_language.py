"""Small programs over the whole language (tests/jit/language): in a program they give what they give in Python, print
the same and raise the same class of error; PyTorch's compiler gives the same for the same text where it takes it.

A file holds programs between lines `### name`. `# call: a, b` are the arguments of a call of `f`, or of `M()`.
`# refused: text` is a part of the refusal of a program that the language does not have, `# torch: why` says why the
compiler of PyTorch gives something else.
"""

from __future__ import annotations

import contextlib
import copy
import enum
import importlib.util
import io
import re
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

import weft
from weft import jit
from weft.jit.execution import executable

HEAD = """
import dataclasses
import enum
import math
from dataclasses import dataclass
from enum import Enum
from typing import *

import weft as torch
import weft.nn.functional as F
from weft import Tensor, nn

"""


def programs() -> dict[str, str]:
    """The texts by name."""
    found = {}
    for path in sorted((Path(__file__).parent / "language").glob("*.txt")):
        parts = re.split(r"^### (.*)$", path.read_text(), flags=re.MULTILINE)
        for name, text in zip(parts[1::2], parts[2::2]):
            assert name not in found, name
            found[name] = text
    return found


PROGRAMS = programs()


def marks(text: str, kind: str) -> list[str]:
    """What the comments of a kind say."""
    return [each.strip() for each in re.findall(rf"^# {kind}:(.*)$", text, re.MULTILINE)]


def load(folder: Path, name: str, text: str, head: str = HEAD) -> types.ModuleType:
    """A program as a Python module, with a file, for the compiler reads the source."""
    path = folder / f"program_{re.sub(r'[^a-z0-9]', '_', name)}_{len(head)}.py"
    path.write_text(head + text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    made = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def subject(space: types.ModuleType, torch: Any = weft) -> Any:
    """What is called: f, or a new M."""
    torch.manual_seed(0)
    return space.f if hasattr(space, "f") else space.M()


def plain(value: Any) -> Any:
    """What is compared: values with their types, tensors as lists."""
    if hasattr(value, "requires_grad"):
        shown = [v if v == v else "nan" for v in value.detach().reshape(-1).tolist()]
        return [str(value.dtype).partition(".")[2], list(value.shape), shown]
    if isinstance(value, weft.Size):
        return list(value)  # programs have lists
    if isinstance(value, dict):
        return ["dict", [[plain(k), plain(v)] for k, v in value.items()]]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [plain(item) for item in value]]
    if isinstance(value, float) and value != value:
        return "nan"
    return str(value) if isinstance(value, enum.Enum) else value


def outcome(run: Any, space: Any, call: str) -> tuple[Any, str]:
    """The result or the class of the error, and what was printed."""
    space.torch.manual_seed(1)
    args, kwargs = eval(f"(lambda *args, **kwargs: (args, kwargs))({call})", vars(space))
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            result = run(*args, **kwargs)
    except Exception as error:
        return ["raises", type(error).__name__], ""
    return plain(result), printed.getvalue()


def calls(text: str) -> list[str]:
    """The arguments of the calls; one call without arguments where none is given."""
    return marks(text, "call") or [""]


@pytest.mark.parametrize("name", [n for n, text in PROGRAMS.items() if not marks(text, "refused")])
def test_program(name, tmp_path):
    text = PROGRAMS[name]
    space = load(tmp_path, name, text)
    python, program = subject(space), jit.script(subject(space))
    plainly = program
    if isinstance(program, jit.ScriptFunction):
        plainly = executable(program.function, level=0)
    for call in calls(text):
        expected = outcome(python, space, call)
        assert outcome(program, space, call) == expected, call
        if isinstance(program, jit.ScriptFunction):
            assert outcome(plainly, space, call) == expected, f"{call}, not optimised"


@pytest.mark.parametrize("name", [n for n, text in PROGRAMS.items() if marks(text, "refused")])
def test_refused_program(name, tmp_path):
    (expected,) = marks(PROGRAMS[name], "refused")
    space = load(tmp_path, name, PROGRAMS[name])
    with pytest.raises(jit.FrontendError) as raised:
        jit.script(subject(space))
    message = str(raised.value)
    assert expected in message
    assert f"program_{name}" in message and "<--- HERE" in message


def close(a: Any, b: Any) -> bool:
    """Equal, but for the last digits of floats."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= 2e-5 * max(1.0, abs(a))
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(close, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parity
@pytest.mark.parametrize("name", [n for n, text in PROGRAMS.items() if not marks(text, "refused")])
def test_pytorch_gives_the_same(name, tmp_path):
    torch = pytest.importorskip("torch")
    text = PROGRAMS[name]
    head = HEAD.replace("import weft as torch\n", "import torch\n").replace("weft", "torch")
    space, other = load(tmp_path, name, text), load(tmp_path, name, text, head)
    program = jit.script(subject(space))
    expected = [outcome(program, space, call)[0] for call in calls(text)]
    got: list[Any] = []
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        theirs = torch.jit.script(subject(other, torch))
        got = [outcome(theirs, other, call)[0] for call in calls(text)]
    same = len(got) == len(expected) and all(map(_agree, expected, got))
    assert same == (not marks(text, "torch")), (expected, got)


def _agree(expected: Any, got: Any) -> bool:
    """PyTorch gives every error another class."""
    raises = [isinstance(each, list) and each[:1] == ["raises"] for each in (expected, got)]
    return all(raises) if any(raises) else close(copy.copy(expected), got)


def test_classes_of_archives_may_have_the_names_made_for_others(tmp_path):
    """An archive has told its classes apart by names that a process makes too: an enum that got one
    of them was taken for the archive's, where they have the same members."""
    text = PROGRAMS["members_by_value"]
    for number in (None, "___torch_mangle_0.", None):
        space = load(tmp_path, "named_twice", text)
        for each in (space.E, space.S):  # `number`: as an archive names it
            each.__module__ = "named_twice" if number is None else f"__torch__.{number}named_twice"
        assert jit.script(space.f)(2) == space.f(2)

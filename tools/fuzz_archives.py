"""Feeds damaged and hostile TorchScript archives to weft.jit.load, compiled files to libweft, and
exported programs and packages of these to their readers.

    python tools/fuzz_archives.py [--count 20000] [--seed 0] [--kind zip,pickle,...]
    python tools/fuzz_archives.py --samples FOLDER

A case is a file with some edits: of its bytes, of the opcodes of its pickles, of the tokens of its
code; or (casts) code that lies about types, see lying_casts.py. It must load and run, or fail with
an error that a file or a program may have, within seconds, without importing, executing or opening
anything. Exits with 1 and the case's number if one does not; `--first N --count 1` repeats it.
--samples writes the compiled files that cases are made of, for weft_fuzz (csrc/testing_fuzz.cpp).
"""

from __future__ import annotations

import argparse
import enum
import io
import os
import random
import re
import signal
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import fuzz_load
import lying_casts

import weft
from weft import Tensor, nn
from weft.export._packages import aoti_compile_and_package, aoti_load_package
from weft.jit.frontend.source.errors import FrontendError
from weft.serialization import LoadError

_KINDS = "zip,pickle,code,casts,compiled,exported,package"
_SECONDS = 20  # of processor time, for one case
# Errors of archives, and of compiled files.
_LOADING = (
    (LoadError, FrontendError, NotImplementedError),
    (RuntimeError, ValueError, IndexError),
)
# What a program may raise, and what a wrong argument is.
_RUNNING = (
    ArithmeticError, AssertionError, IndexError, KeyError, NotImplementedError, RuntimeError,
    TypeError, ValueError,
)  # fmt: skip
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d+\.?\d*|\"[^\"\n]*\"|\n *|[^\sA-Za-z_0-9]")
_TOKENS = (
    "self", "torch", "ops", "__torch__", "CONSTANTS.c0", "None", "True", "0", "-1", "1 << 62",
    "inf", "[]", "{}", "()", "x", "[x]", "List[int]", "Optional[Tensor]", "Any", "annotate",
    "unchecked_cast", "uninitialized(int)", "fork", "return", "while True:", "for i in range(3):",
    "if x:", "torch.add", "torch.load", "ops.aten.save", "__builtins__", "__class__",
    'getattr(self, "weight")', "self.weight", "9223372036854775808", "lambda: x", "import os",
    "class A(Module):",
)  # fmt: skip


# The records of an archive of a module without anything, but for its code.
_PLAIN = {
    "a/data.pkl": b"\x80\x02c__torch__\nM\n)\x81}X\x08\x00\x00\x00training\x88sb.",
    "a/constants.pkl": b"\x80\x02).",
    "a/version": b"3\n",
}
_CALLS = {"casts": 3}  # of one program, which is optimised from some call on

_forbidden: list[str] = []
_watching = False
_EVENTS = ("os.", "subprocess.", "socket.", "shutil.", "pty.", "ctypes.", "code.__new__", "pickle.")
# Who makes methods of classes by text: named tuples, dataclasses, weft's records of fixed fields.
_MAKERS = ("collections/__init__.py", "dataclasses.py", "jit/ir/fresh_stack.py")
_HARMLESS = ("os.listdir", "os.scandir", "os.walk")


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Notes what neither reading nor running an archive has business with. Python's parser reports
    `compile`; what is executed is weft's own files, imported late."""
    if not _watching:
        return
    if event == "exec":
        bad = getattr(arguments[0], "co_filename", "<string>") == "<string>"
        bad = bad and not sys._getframe(1).f_code.co_filename.endswith(_MAKERS)
    elif event == "open":
        bad = set(str(arguments[1])) - set("rbtU") != set()
    else:
        bad = event.startswith(_EVENTS) and event not in _HARMLESS
    if bad:
        _forbidden.append(f"{event} {arguments!r:.200}")


class Inner(nn.Module):
    """Branches, loops, containers, texts."""

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, dict[str, list[int]]]:
        table: dict[str, list[int]] = {"a": [n]}
        for i in range(n):
            if i == 2:
                continue
            x = x * i + 1
            table[f"at {i}"] = [i, n]
        last: Tensor | None = None
        if len(table) > 2:
            last = x.sum()
        return (x if last is None else x + last), table


class Packs(nn.Module):
    """Keeps its weights packed."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(16, 16, 3, bias=False)
        self.linear = nn.Linear(36, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.conv(x.sum() * weft.ones(1, 16, 8, 8)).flatten(2))


class Sample(nn.Module):
    """The program whose archive is damaged."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.inner = Inner()
        self.table = {"a": 1}
        self.wave = 1j
        self.pair = (1, [2.5])

    def forward(self, x: Tensor) -> Tensor:
        y, found = self.inner(self.norm(self.linear(x)).relu(), 4)
        with weft.no_grad():
            y = y + weft.tensor([1.0, 2.0, 3.0, 4.0])
        return y * len(found) * self.table["a"] + self.pair[1][0]


class Colour(enum.Enum):
    """A constant of an enumeration."""

    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    """A class of its own among the types of a program."""

    first: Tensor
    second: int


class Kinds(nn.Module):
    """Types and constants that Sample's program has not, and a fused group."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(weft.ones(3))
        self.colour = Colour.RED
        self.names = {"a": (1, 2.5), "b": (3, -0.5)}

    def forward(self, x: Tensor) -> Tensor:
        pair = Pair((x * self.weight).sigmoid().mul(2).tanh(), len(self.names))
        if self.colour == Colour.BLUE:
            raise ValueError(f"expected red, got {self.colour}")
        total = pair.first.sum(-1, keepdim=True) * pair.second
        for name, (count, factor) in self.names.items():
            if name.startswith("a") and x.dim() > 1:
                total = total.to(weft.float64) + count * factor
        return total + weft.zeros(1, device=x.device)


def _sample() -> dict[str, bytes]:
    """The records of the archive."""
    data = weft.jit.script(Sample().eval()).save_to_buffer()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _zip(records: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in records.items():
            archive.writestr(name, data)
    return file.getvalue()


def _mutate_code(text: str, rng: random.Random) -> str:
    """Tokens in the places of others, lines that come twice or not at all."""
    parts = list(_TOKEN.finditer(text))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if not parts:
            break
        start, end = rng.choice(parts).span()
        other = rng.choice(parts).group() if rng.random() < 0.6 else rng.choice(_TOKENS)
        if rng.random() < 0.2:
            lines = text.split("\n")
            at = rng.randrange(len(lines))
            lines[at : at + rng.randrange(2)] = [rng.choice(lines)]
            text = "\n".join(lines)
        else:
            text = text[:start] + other + text[end:]
        parts = list(_TOKEN.finditer(text))
    return text


def _compiled(module: nn.Module, *example: Tensor) -> bytes:
    """A compiled file; with an example one that has packed weights."""
    examples, packed = ([example], True) if example else ([], False)
    with tempfile.NamedTemporaryFile(suffix=".weft") as file:
        program = weft.jit.script(module)
        weft.jit.aot_compile(program, file.name, (), examples, (), packed=packed)
        return Path(file.name).read_bytes()


def _exported(kind: str) -> dict[str, bytes]:
    """The records of an exported program, or of its package without machine code."""
    file = io.BytesIO()
    program = weft.export.export(Packs(), (weft.ones(2, 3),))
    if kind == "exported":
        weft.export.save(program, file)
    else:
        aoti_compile_and_package(program, package_path=file)
    with zipfile.ZipFile(file) as archive:
        names = [each for each in archive.namelist() if "x86-64" not in each]
        return {name: archive.read(name) for name in names}


class Samples:
    """What cases are made of."""

    def __init__(self) -> None:
        weft.manual_seed(0)
        self.records = _sample()
        self.whole = _zip(self.records)
        self.code = [name for name in self.records if name.endswith(".py")]
        self.pickles = [name for name in self.records if name.endswith(".pkl")]
        packs = _compiled(Packs(), weft.ones(2, 3))
        self.exported = {kind: _exported(kind) for kind in ("exported", "package")}
        self.compiled = [_compiled(Sample().eval()), _compiled(Kinds()), packs]

    def case(self, kind: str, rng: random.Random) -> bytes:
        """A damaged file."""
        if kind == "zip":
            return fuzz_load._mutate(self.whole, rng, rng.choice((2, 2, 7)))
        if kind == "compiled":
            return fuzz_load._mutate(rng.choice(self.compiled), rng, rng.choice((2, 2, 7)))
        if kind in self.exported:
            records = self.exported[kind]
            if rng.random() < 0.3:
                return fuzz_load._mutate(_zip(records), rng, rng.choice((2, 2, 7)))
            told = (".json", "extra/in_spec", "extra/out_spec", "extra/inputs", "extra/metadata")
            name = rng.choice([each for each in records if each.endswith(told)])
            return _zip({**records, name: fuzz_load._mutate_header(records[name], rng)})
        if kind == "casts":
            return _zip({**_PLAIN, "a/code/__torch__.py": lying_casts.program(rng).encode()})
        name = rng.choice(self.code if kind == "code" else self.pickles)
        if kind == "code":
            made = _mutate_code(self.records[name].decode(), rng).encode()
        else:
            made = fuzz_load._mutate_pickle(self.records[name], rng)
        return _zip({**self.records, name: made})


def _load_and_run(kind: str, path: str) -> tuple[str, str]:
    """How reading and running a file ends."""
    x = weft.ones(2, 3)
    try:
        program: Any
        if kind == "compiled":
            program = weft._C.CompiledModule(path)
        elif kind == "exported":
            program = weft.export.load(path).module()
        elif kind == "package":
            program = aoti_load_package(path)
        else:
            program = weft.jit.load(path)
    except _LOADING[kind in ("compiled", "package")] as error:
        return "refused", str(error)
    try:
        for _ in range(_CALLS.get(kind, 1)):
            program.call("forward", x) if kind == "compiled" else program(x)
    except _RUNNING as error:
        return "raised", str(error)
    except TimeoutError:
        if kind != "compiled" and not _has_endless_loop(path):
            raise
    return "ran", ""


def _has_endless_loop(path: str) -> bool:
    """Whether the code of an archive has a loop without an end: it may run as long as it likes."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".py")]
        return any(b"while True:" in archive.read(name) for name in names)


def run_case(samples: Samples, kind: str, number: int, seed: int) -> tuple[str, str]:
    """("ran", "raised", "refused" or what went wrong, the message)."""
    global _watching
    data = samples.case(kind, random.Random(f"{seed}/{kind}/{number}"))
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        _forbidden.clear()
        _watching = True
        try:
            outcome = _load_and_run(kind, file.name)
        except BaseException as error:
            outcome = (type(error).__name__, str(error))
        finally:
            _watching = False
    return ("executed", _forbidden[0]) if _forbidden else outcome


def _expired(signal_number: int, frame: Any) -> None:
    raise TimeoutError(f"no end within {_SECONDS} s")


def main() -> int:
    """Runs the cases, prints the figures, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", default=_KINDS)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--samples", type=Path, help="write compiled files here, and run nothing")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ["WEFT_CACHE"] = ""  # weft's own files are nobody's attack
    samples, kinds = Samples(), options.kind.split(",")
    if options.samples:
        options.samples.mkdir(parents=True, exist_ok=True)
        for i, data in enumerate(samples.compiled):
            (options.samples / f"{i}.weft").write_bytes(data)
        return 0
    for kind in kinds:
        run_case(samples, kind, 0, 0)  # imports what is imported late
    sys.addaudithook(_audit)
    signal.signal(signal.SIGPROF, _expired)
    outcomes: Counter[str] = Counter()
    start = time.monotonic()
    number = options.first
    while number < options.first + options.count and time.monotonic() - start < options.seconds:
        kind = kinds[number % len(kinds)]
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        outcome, message = run_case(samples, kind, number, options.seed)
        signal.setitimer(signal.ITIMER_PROF, 0)
        outcomes[outcome] += 1
        if outcome not in ("ran", "raised", "refused") and outcomes[outcome] <= 20:
            print(
                f"case {number} ({kind}) of seed {options.seed}: {outcome}: {message:.300}",
                flush=True,
            )
        number += 1
    text = ", ".join(f"{times:,} {outcome}" for outcome, times in outcomes.most_common())
    print(f"{number - options.first:,} cases in {time.monotonic() - start:.0f} s: {text}")
    return 0 if outcomes.keys() <= {"ran", "raised", "refused"} else 1


if __name__ == "__main__":
    sys.exit(main())

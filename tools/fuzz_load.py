"""Feeds damaged and hostile files to weft.load and to the safetensors reader.

    python tools/fuzz_load.py [--count 20000] [--seed 0]

Every case must end in a value or in LoadError, within seconds and a bounded memory, and without
importing, executing or opening anything. What a file still gives is touched: every tensor is
copied. Exits with 1 and the case's number if one does not; `--first N --count 1` repeats it.
"""

from __future__ import annotations

import argparse
import io
import pickle
import pickletools
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import weft
from weft.serialization import LoadError, safetensors
from weft.serialization.legacy import START
from weft.serialization.pickle_writer import PickleWriter
from weft.serialization.zip_writer import ZipWriter

_SECONDS = 10  # for one case
_MEMORY = 2 << 30  # on top of what the process has
_NUMBERS = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    1 << 40,
    (1 << 64) - 1,
)
_GLOBALS = (
    b"cos\nsystem\n(X\x04\x00\x00\x00true\x85R",
    b"c__builtin__\neval\nX\x03\x00\x00\x001+1\x85R",
    b"cbuiltins\nbytearray\n\x8a\x06\x00\x00\x00\x00\x00\x10\x85R",
    b"cbuiltins\ngetattr\n",
    b"ctorch\nload\n",
    b"ctorch._utils\n_rebuild_tensor_v2\n",
    b"ctorch\nfloat64\n",
    b"ctorch\nFloatStorage\n",
    b"ctorch.storage\nUntypedStorage\n",
    b"ccollections\nOrderedDict\n)R",
    b"ccollections\nCounter\n",
    b"c__builtin__\nset\n",
    b"ctorch\nSize\n",
    b"ctorch\ndevice\n",
)
_OPCODES = b"\x80\x81\x82\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8e\x8f\x90\x91\x93\x94\x95()02NJKMGXUBC"
_OPCODES += b"lta]e}susuqhjqhjcRRbbQttt\x85\x86\x87"
_JSON = (b"{", b"}", b"[", b"]", b",", b'"', b"null", b"true", b"-1", b"1e400", b"NaN", b"[" * 5000)

_forbidden: list[str] = []
_watching = False
_EXPECTED_EVENTS = ("object.__", "mmap.", "sys._get", "gc.", "builtins.id", "array.__new__")


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Notes everything Python reports while a case is read: reading has no business with it."""
    if not _watching or event.startswith(_EXPECTED_EVENTS):
        return
    if event == "open" and arguments[1] == "rb":
        return
    _forbidden.append(f"{event} {arguments!r:.200}")


def _sample(rng: random.Random) -> Any:
    """Something to save, of all that can be saved."""
    base = weft.arange(24.0).view(4, 6)
    state = OrderedDict(weight=base, bias=base[1])
    state.__dict__["_metadata"] = OrderedDict(a={"version": 1})
    parts: list[Any] = [
        state,
        {"v": base.t()[1:], "e": weft.zeros(2, 0), "n": weft.tensor(3)},
        [weft.ones(5).to(kind) for kind in (weft.bfloat16, weft.complex64, weft.uint16, weft.bool)],
        weft.nn.Parameter(weft.ones(2, 2)),
        {"set": {1, 2}, "bytes": b"ab", "c": 1j, "array": bytearray(b"xyz"), (1, "k"): None},
        (weft.float16, weft.device("cpu"), weft.Size([1, 2]), Counter("aab"), weft.strided),
        {"lr": 0.1, "betas": (0.9, 0.999), "step": 2**70, "text": "é" * 5},
    ]
    return rng.sample(parts, rng.randint(1, 4))


def _archive(pickled: bytes, storages: list[Any], order: bytes = b"little") -> bytes:
    file = io.BytesIO()
    archive = ZipWriter(file, "archive")
    archive.add("data.pkl", pickled)
    archive.add("byteorder", order)
    for key, storage in enumerate(storages):
        archive.add(f"data/{key}", memoryview(storage))
    archive.add("version", b"3\n")
    archive.close()
    return file.getvalue()


def _legacy(pickled: bytes, storages: list[Any], widths: list[int]) -> bytes:
    machine = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
    parts = [START, pickle.dumps(1001, 2), pickle.dumps(machine, 2), pickled]
    parts.append(pickle.dumps([str(key) for key in range(len(storages))], 2))
    for storage, width in zip(storages, widths):
        parts.append((storage.numel() // width).to_bytes(8, "little"))
        parts.append(bytes(memoryview(storage)))
    return b"".join(parts)


# ---- mutations ----


def _mutate(data: bytes, rng: random.Random, edits: int = 7) -> bytes:
    """A few random edits of bytes; with `edits=2` none changes the length."""
    work = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(work) + 1)
        what = rng.randrange(edits)
        if what == 0 and at < len(work):
            work[at] ^= 1 << rng.randrange(8)
        elif what == 1 and at < len(work):
            work[at] = rng.randrange(256)
        elif what == 2:
            del work[at : at + rng.choice((1, 2, 8, 100))]
        elif what == 3:
            work[at:at] = rng.randbytes(rng.choice((1, 2, 8)))
        elif what == 4:
            size = rng.choice((1, 2, 4, 8))
            number = rng.choice(_NUMBERS) & ((1 << 8 * size) - 1)
            work[at : at + size] = number.to_bytes(size, rng.choice(("little", "big")))
        elif what == 5:
            start = rng.randrange(len(work) + 1)
            work[at:at] = work[start : start + rng.choice((4, 16, 64))]
        elif rng.random() < 0.2:
            del work[at:]
    return bytes(work)


def _mutate_pickle(data: bytes, rng: random.Random) -> bytes:
    """Edits that stay closer to what an unpickler takes for a pickle."""
    work = bytearray(data)
    starts = [place for _, _, place in pickletools.genops(data)]
    # From the end to the front, so that the places stay where opcodes start.
    for at in sorted(rng.choices(starts, k=rng.choice((1, 1, 2, 4))), reverse=True):
        what = rng.randrange(6)
        if what == 0:
            work[at:at] = rng.choice(_GLOBALS)
        elif what == 1:
            work[at:at] = bytes(rng.choices(_OPCODES, k=rng.choice((1, 1, 2, 20))))
        elif what == 2 and at < len(work):
            work[at] = rng.choice(_OPCODES)
        elif what == 3:
            work[at:at] = b"h" + bytes([rng.randrange(40)])
        elif what == 4:
            start, end = sorted(rng.choices(starts, k=2))
            work[at:at] = data[start : min(end, start + 100)]
        else:
            work = bytearray(_mutate(bytes(work), rng))
    return bytes(work)


def _mutate_header(data: bytes, rng: random.Random) -> bytes:
    """Edits of JSON that often stay JSON: numbers, names, whole tokens."""
    work = bytearray(data)
    for _ in range(rng.choice((1, 1, 2))):
        places = [match.span() for match in re.finditer(rb"\d+|\"[^\"]*\"|[{}\[\],]", work)]
        if not places:
            break
        start, end = rng.choice(places)
        other = work[slice(*rng.choice(places))]
        number = str(rng.choice(_NUMBERS) + rng.choice((0, 0, 1, 4))).encode()
        work[start:end] = rng.choice((number, number, other, rng.choice(_JSON)))
    return bytes(work)


def cases(rng: random.Random) -> tuple[str, bytes]:
    """One hostile file, and which reader it is for."""
    kind = rng.choice(("zip", "pickle", "pickle", "legacy", "safetensors", "header"))
    if kind in ("safetensors", "header"):
        tensors = {"a": weft.arange(6.0).view(2, 3), "b": weft.ones(3, dtype=weft.bool)}
        data = safetensors.save(tensors, {"k": "v"} if rng.random() < 0.5 else None)
        if kind == "header":
            size = int.from_bytes(data[:8], "little")
            edit = rng.choice((_mutate, _mutate_header, _mutate_header))
            header = edit(data[8 : 8 + size], rng)
            return "safetensors", len(header).to_bytes(8, "little") + header + data[8 + size :]
        return "safetensors", _mutate(data, rng)
    writer = PickleWriter()
    pickled = writer.dump(_sample(rng))
    if kind == "zip":
        return "pt", _mutate(_archive(pickled, writer.storages), rng, rng.choice((2, 2, 7)))
    if kind == "pickle":
        order = rng.choice((b"little", b"little", b"big"))
        return "pt", _archive(_mutate_pickle(pickled, rng), writer.storages, order)
    widths = [1 if dtype is None else dtype.itemsize for dtype in writer._dtypes]
    if rng.random() < 0.5:
        return "pt", _mutate(_legacy(pickled, writer.storages, widths), rng)
    return "pt", _legacy(_mutate_pickle(pickled, rng), writer.storages, widths)


# ---- running ----


def _touch(value: Any, seen: set[int]) -> None:
    """Reads every element of what was loaded; huge views (of stride 0) only partly."""
    todo = [value]
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, weft.Tensor):
            if value.numel() <= 1 << 20:
                value.detach().clone()
        elif isinstance(value, dict):
            todo.extend(value.values())
        elif isinstance(value, (list, tuple)):
            todo.extend(value)


def _read(reader: str, data: bytes, mapped: bool) -> Any:
    load: Callable[..., Any] = weft.load if reader == "pt" else safetensors.load_file
    if not mapped:
        return load(io.BytesIO(data))
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        return load(file.name, mmap=True)


def run_case(number: int, seed: int) -> tuple[str, str]:
    """("read" or "refused" or what went wrong, the message)."""
    global _watching
    rng = random.Random(f"{seed}/{number}")
    reader, data = cases(rng)
    mapped = rng.random() < 0.02
    _forbidden.clear()
    _watching = not mapped  # making the temporary file is seen, too
    try:
        value = _read(reader, data, mapped)
        _watching = False
        _touch(value, set())
        outcome = ("read", "")
    except LoadError as error:
        outcome = ("refused", str(error))
    except BaseException as error:
        outcome = (f"{type(error).__name__}", str(error))
    finally:
        _watching = False
    return ("executed", _forbidden[0]) if _forbidden else outcome


def run(first: int, count: int, seed: int) -> Iterator[tuple[int, str, str]]:
    """The outcomes of `count` cases. Limits of time and memory hold while it runs."""

    def expired(signal_number: int, frame: Any) -> None:
        raise TimeoutError(f"no end within {_SECONDS} s")

    for number in range(first, first + count):
        before = signal.signal(signal.SIGALRM, expired)
        signal.alarm(_SECONDS)
        try:
            yield number, *run_case(number, seed)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)


def main() -> int:
    """Runs the cases, prints the figures, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--messages", action="store_true", help="print what was refused, counted")
    options = parser.parse_args()
    run_case(0, 0), run_case(1, 0)  # imports what is imported late
    sys.addaudithook(_audit)
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + _MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    outcomes: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    start = time.monotonic()
    slowest = 0.0
    last = start
    for number, outcome, message in run(options.first, options.count, options.seed):
        outcomes[outcome] += 1
        now = time.monotonic()
        slowest, last = max(slowest, now - last), now
        if outcome == "refused":
            messages[" ".join(message.split()[:6])] += 1
        elif outcome != "read" and outcomes[outcome] <= 20:
            print(f"case {number} of seed {options.seed}: {outcome}: {message}", flush=True)
    if options.messages:
        for text, times in messages.most_common():
            print(f"{times:8}  {text}")
    text = ", ".join(f"{times:,} {outcome}" for outcome, times in outcomes.most_common())
    print(f"{options.count:,} cases in {last - start:.0f} s (slowest {slowest:.2f} s): {text}")
    return 0 if outcomes.keys() <= {"read", "refused"} else 1


if __name__ == "__main__":
    sys.exit(main())

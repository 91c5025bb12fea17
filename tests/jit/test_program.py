"""Program data: its bytes, and what the loader says to bytes that are none."""

from __future__ import annotations

import doctest
import os
import random
import resource
import signal
import struct
from pathlib import Path
from typing import Any

import pytest
from drawing import SCALE, examples
from hypothesis import given
from hypothesis import strategies as st

import weft
from jit.groups import optimised
from jit.test_interpreter import CLASSES, FIB, MODES, STEP, function, recursive
from jit.test_interpreter_random import Maker
from weft import _C
from weft.jit.codegen import instructions, lower_program
from weft.jit.codegen.liveness import Liveness
from weft.jit.codegen.program import ProgramData, listing
from weft.jit.codegen.registers import Move, sequence
from weft.jit.codegen.rows import RowStep
from weft.jit.ir import Function


def loaded(data: ProgramData, changed: bytes | None = None) -> Any:
    bytes_ = data.encode() if changed is None else changed
    return _C.JitProgram(bytes_, data.tables.inputs, data.callables)


def corpus() -> list[ProgramData]:
    """Small programs that have every section of the format between them."""
    containers = function(
        """
    graph(%n : int, %x : Tensor, %d : Dict(str, Tensor[])):
      %name : str = prim::Constant[value="a"]()
      %one : int = prim::Constant[value=1]()
      %pair : (int, float[]) = prim::Constant[value=(1, [0.5, -1.0])]()
      %a : int, %f : float[] = prim::TupleUnpack(%pair)
      %l : Tensor[] = prim::ListConstruct(%x, %x)
      aten::_set_item.str(%d, %name, %l)
      %o : __torch__.Counter = prim::CreateObject()
      prim::SetAttr[name="n"](%o, %n)
      prim::SetAttr[name="l"](%o, %k)
      %s : int = prim::CallMethod[name="step"](%o, %x)
      %w : Future(int) = prim::fork[function=@fib](%s)
      %v : int = aten::wait(%w)
      %t : bool = prim::isinstance[types=[type(int), type(str[])]](%v)
      %r : (int, bool, Tensor[], float[]) = prim::TupleConstruct(%v, %t, %l, %f)
      return (%r)
    """.replace("%o : __torch__", "%k : int[] = prim::ListConstruct(%n)\n      %o : __torch__"),
        classes=CLASSES,
        functions={"fib": recursive(FIB, "fib")},
        n=2,
    )
    COUNTER = CLASSES["__torch__.Counter"]
    COUNTER.methods["step"] = STEP
    graphs = [Maker(seed).make() for seed in (3, 7, 2)]
    made = [Function("f", g, [v.name for v in g.inputs]) for g in graphs]
    return [lower_program([f]) for f in (containers, function(MODES), *made)]


def normalised(x: weft.Tensor, w: weft.Tensor) -> weft.Tensor:
    """A group with row operators, and the group of its gradient."""
    return (x - x.mean(-1, True)) * weft.softmax(x * 0.5, -1) * w


def program_with_rows() -> ProgramData:
    return lower_program([Function("f", optimised(normalised), ["x", "w"])])


CORPUS = [*corpus(), program_with_rows()]
ARGUMENTS = {
    "int": 2, "float": 0.5, "bool": True, "Tensor": weft.ones(3), "Tensor?": None,
    "Dict(str, Tensor[])": {"b": []}, "__torch__.Counter": None,
}  # fmt: skip


def test_corpus_runs() -> None:
    f = loaded(CORPUS[0]).function("f")
    value, is_int, tensors, floats = f(2, weft.ones(3), {})
    assert (value, is_int, len(tensors), floats) == (2, True, 2, [0.5, -1.0])
    assert f(d={}, x=weft.ones(3))[0] == 2


def test_rows_go_through_bytes() -> None:
    found = [[op.id for op, _, _ in g.steps if isinstance(op, RowStep)] for g in CORPUS[-1].groups]
    assert ["mean_dim", "softmax_int"] in found
    assert CORPUS[-1].groups[found.index(["mean_dim", "softmax_int"])].backward is not None
    x, w = weft.randn(30, 40), weft.randn(40)
    assert weft.equal(loaded(CORPUS[-1]).function("f")(x, w), normalised(x, w))


def test_equal_graphs_give_equal_bytes() -> None:
    again = [*corpus(), program_with_rows()]
    assert [d.encode() for d in again] == [d.encode() for d in CORPUS]


def test_instructions_are_known_by_name() -> None:
    """The bytes name what they use, so that numbers may change."""
    data = CORPUS[0].encode()
    name = b"call_operator"
    assert data.count(name) == 1
    with pytest.raises(ValueError, match="expected a known instruction, got 'call_oparator'"):
        loaded(CORPUS[0], data.replace(name, b"call_oparator"))


def test_versions() -> None:
    data = bytearray(CORPUS[0].encode())
    data[8] = 99
    with pytest.raises(ValueError, match="expected version 1, got 99"):
        loaded(CORPUS[0], bytes(data))
    with pytest.raises(ValueError, match="expected a program of weft"):
        loaded(CORPUS[0], b"PK" + bytes(data[2:]))


@pytest.mark.parametrize("which", range(len(CORPUS)))
def test_every_prefix_is_refused(which: int) -> None:
    data = CORPUS[which].encode()
    for size in range(0, len(data), 1 + len(data) // 300):
        with pytest.raises(ValueError, match="JitProgram: expected"):
            loaded(CORPUS[which], data[:size])
    with pytest.raises(ValueError, match="the end of the bytes"):
        loaded(CORPUS[which], data + b"\0")


# ---- hostile bytes ----

INTERESTING = (0, 1, 2, 0x7F, 0xFF, 0x100, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def mutated(data: bytes, seed: int) -> bytes:
    """The bytes with a few changes."""
    rng, out = random.Random(seed), bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(out))
        kind = rng.random()
        if kind < 0.4:
            out[at] ^= 1 << rng.randrange(8)
        elif kind < 0.6:
            out[at] = rng.randrange(256)
        elif kind < 0.9:
            at = min(at, len(out) - 4)
            value = rng.choice(INTERESTING) if rng.random() < 0.5 else rng.randrange(64)
            out[at : at + 4] = struct.pack("<I", value)
        else:
            # Words that change places: indices that exist, where they do not belong.
            at, other = (rng.randrange(len(out) - 4) for _ in range(2))
            out[at : at + 4] = out[other : other + 4]
    return bytes(out)


def run_mutated(which: int, seed: int) -> None:
    """Loads changed bytes and calls what they define: errors are fine, crashes are not."""
    try:
        program = loaded(CORPUS[which], mutated(CORPUS[which].encode(), seed))
        for function_data in CORPUS[which].functions:
            f = program.function(function_data.name)
            f(*(ARGUMENTS[str(p.type)] for p in function_data.params))
    except Exception:
        pass


def in_child(which: int, seeds: range) -> int:
    """The wait status of a child that runs some mutations. One that loops for good is stopped."""
    child = os.fork()
    if child == 0:
        try:
            # Factories of absurd sizes raise instead of eating the machine.
            resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            for seed in seeds:
                signal.setitimer(signal.ITIMER_REAL, 1.0)
                run_mutated(which, seed)
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1]


@pytest.mark.parametrize("which", range(len(CORPUS)))
def test_hostile_bytes(which: int) -> None:
    seeds = range(0, 100 * SCALE)
    while seeds:
        part = seeds[:20]  # what follows one that is stopped is lost
        status = in_child(which, part)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGALRM:
            bad = [seed for seed in part if os.WIFSIGNALED(s := in_child(which, range(seed, seed + 1)))
                   and os.WTERMSIG(s) != signal.SIGALRM]  # fmt: skip
            pytest.fail(f"program {which}: signal {os.WTERMSIG(status)} with the seeds {bad}")
        seeds = seeds[20:]


@examples(100)
@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    with pytest.raises(ValueError, match="JitProgram: expected"):
        _C.JitProgram(data)
    with pytest.raises(ValueError, match="JitProgram: expected"):
        _C.JitProgram(b"WEFTPROG\1\0\0\0" + data + b"\xff")


# ---- the parts of the code generator ----


def test_instruction_names_are_unique() -> None:
    names = [row.name for row in instructions.INSTRUCTIONS]
    assert len(names) == len(set(names))
    for row in instructions.INSTRUCTIONS:
        assert row.doc and row.x in instructions.X_KINDS and row.extra in instructions.EXTRA_KINDS
        assert (row.extra != "None") <= (row.x == "Site")


@examples(100)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=7))
def test_moves_happen_at_once(sources: list[int]) -> None:
    registers = {i: f"v{i}" for i in range(8)}
    wanted = {i: registers[source] for i, source in enumerate(sources)}

    def emit(target: int, source: int, last: bool) -> None:
        assert registers[source] is not None
        registers[target] = registers[source]
        if last:
            registers[source] = None

    counts = {source: sources.count(source) for source in sources}
    moves = [Move(i, source, counts[source] == 1) for i, source in enumerate(sources)]
    sequence(moves, lambda register: 100, emit)
    assert {i: registers[i] for i in wanted} == wanted


def test_liveness_of_a_branch() -> None:
    f = function("""
    graph(%x : Tensor, %y : Tensor, %c : bool):
      %r : Tensor = prim::If(%c)
        block0():
          %a : Tensor = aten::neg(%x)
          -> (%a)
        block1():
          -> (%y)
      return (%r)
    """)
    live = Liveness(f.graph)
    (branch,) = f.graph.block.nodes
    x, y, c = f.graph.inputs
    assert live.last_uses[branch] == [c] and live.after[branch] == [x, y]
    assert [live.dead_at[block] for block in branch.blocks] == [[y], [x]]
    assert live.ends[branch.blocks[1]] == {y}


def test_code_of_a_loop_is_tight() -> None:
    """One instruction for the condition, one for the loop: nothing moves."""
    data = lower_program([function("""
    graph(%n : int):
      %true : bool = prim::Constant[value=True]()
      %zero : int = prim::Constant[value=0]()
      %three : int = prim::Constant[value=3]()
      %r : int = prim::Loop(%n, %true, %zero)
        block0(%i : int, %y : int):
          %c : bool = aten::lt.int(%i, %three)
          %z : int = prim::If(%c)
            block0():
              %a : int = aten::add.int(%y, %i)
              -> (%a)
            block1():
              -> (%y)
          -> (%true, %z)
      return (%r)
    """)])  # fmt: skip
    assert (
        listing(data)
        == """\
f(s0 n: int) -> int
     0  load_scalar s1 k0
     1  loop_start s2 s0 -> 5
     2  jump_unless_lt_int_imm s2 #3 -> 4
     3  add_int s1 s1 s2
     4  loop_next s2 s0 -> 2
     5  return_scalar s1"""
    )


def table_of_instructions() -> str:
    """The table as docs/jit_runtime.md has it."""
    kinds = {instructions.OBJECT: "o", instructions.SCALAR: "s", instructions.NONE: ""}
    lines = ["| instruction | a | b | c | x | what it does |", "|---|---|---|---|---|---|"]
    for row in instructions.INSTRUCTIONS:
        x = "" if row.x == "None" else row.x.lower()
        if row.extra != "None":
            x += f" + {row.extra.lower()}"
        registers = " | ".join(kinds[kind] for kind in (row.a, row.b, row.c))
        lines.append(f"| `{row.name}` | {registers} | {x} | {row.doc} |")
    return "\n".join(lines) + "\n"


def test_instructions_are_documented() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "jit_runtime.md"
    assert table_of_instructions() in page.read_text()
    results = doctest.testfile(str(page), module_relative=False)
    assert results.attempted >= 8 and results.failed == 0

"""Program data: tables and functions as dataclasses, and their bytes.

The layout is read by csrc/runtime/program_reader.cpp. Integers are little-endian; tables come
before what refers to them, so that the reader can check every index where it stands. Instructions
are stored under numbers of the program's own, with their names beside: a newer weft may number them
anew.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.jit.codegen.instructions import BY_NAME
from weft.jit.codegen.rows import RowResult, RowStep
from weft.jit.codegen.tables import Tables, Writer
from weft.jit.ir import SourceRange, Type
from weft.jit.ir.record import field, record

if TYPE_CHECKING:
    from weft.jit.codegen.tiles import BackwardSpec, GroupSpec

VERSION = 1
CONSTANT_BIT = 1 << 31
LAST_USE_BIT = 1 << 30
_INSTRUCTION = struct.Struct("<HHHHq").pack
_WRAP, _HALF = 1 << 64, 1 << 63
_PLAIN_STEP = struct.Struct("<IB").pack
_COUNTS = [count.to_bytes(4, "little") for count in range(256)]  # of operands of steps
_KINDS = {"input": 0, "step": 1, "constant": 2, "length": 3}  # of operands of steps


class Site:
    """Operands (registers, or constants with CONSTANT_BIT), result registers, one more word."""

    __slots__ = ("args", "extra", "results")

    def __init__(self, args: list[int], results: list[int], extra: int = 0) -> None:
        self.args = args
        self.results = results
        self.extra = extra


class Code:
    """One instruction. `target` is the index of an instruction; a literal jump has `x` besides."""

    __slots__ = ("a", "b", "c", "name", "range", "site", "target", "x")

    def __init__(
        self,
        name: str,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        x: int = 0,
        site: Site | None = None,
        target: int | None = None,
        range: SourceRange | None = None,
    ) -> None:
        self.name = name
        self.a = a
        self.b = b
        self.c = c
        self.x = x
        self.site = site
        self.target = target
        self.range = range


@record
class Param:
    """A parameter: its register, and the constant it has when not given."""

    name: str
    type: Type
    register: int
    default: int | None = None


@record
class FunctionData:
    """A compiled function. Registers [0, objects) hold objects, the next `scalars` scalars; the
    constants `preload` are in the registers from `preload_at` on when it starts."""

    name: str
    params: list[Param]
    result: Type
    objects: int = 0
    scalars: int = 0
    preload_at: int = 0
    preload: list[int] = field(default_factory=list)
    code: list[Code] = field(default_factory=list)


@record
class ProgramData:
    """What becomes bytes: functions, methods of classes (class, name, function), and the tables."""

    tables: Tables
    functions: list[FunctionData] = field(default_factory=list)
    methods: list[tuple[int, str, int]] = field(default_factory=list)
    callables: list[Callable[..., Any]] = field(default_factory=list)
    callable_types: list[int] = field(default_factory=list)
    groups: list[GroupSpec] = field(default_factory=list)

    def encode(self) -> bytes:
        """The bytes of the program."""
        tables = self.tables
        opcodes: dict[str, int] = {}
        bodies = Writer()
        for function in self.functions:
            _write_body(bodies, function, tables, opcodes)
        headers = Writer()
        headers.u32(len(self.functions))
        for function in self.functions:
            _write_header(headers, function, tables)
        headers.u32(len(self.methods))
        for class_index, name, function_index in self.methods:
            headers.u32(class_index, tables.string(name), function_index)
        groups = Writer()
        groups.u32(len(self.groups))
        for group in self.groups:
            _write_group(groups, group, tables)
        externals = Writer()
        externals.u32(len(self.callable_types), *self.callable_types)
        names = [tables.string(name) for name in opcodes]
        body = tables.sections()
        head = Writer()
        head.bytes += b"WEFTPROG"
        head.u32(VERSION)
        tables.write_strings(head)
        head.u32(len(names), *names)
        parts = [head, body, externals, groups, headers, bodies]
        return b"".join(bytes(part.bytes) for part in parts)


def _write_header(out: Writer, function: FunctionData, tables: Tables) -> None:
    out.u32(tables.string(function.name), len(function.params))
    for param in function.params:
        default = 0 if param.default is None else param.default + 1
        out.u32(tables.string(param.name), tables.type(param.type), default, param.register)
    out.u32(tables.type(function.result), function.objects, function.scalars)
    out.u32(function.preload_at, len(function.preload), *function.preload)


def _write_body(
    out: Writer, function: FunctionData, tables: Tables, opcodes: dict[str, int]
) -> None:
    words: list[int] = []
    sites = 0
    instructions = []
    for code in function.code:
        a, b, c, x = code.a, code.b, code.c, code.x
        site, target = code.site, code.target
        if site is not None:
            words += (len(site.args), *site.args, len(site.results), *site.results, site.extra)
            x = sites
            sites += 1
        if target is not None:
            if code.name.endswith("_imm"):
                a, c = target & 0xFFFF, target >> 16
            else:
                x = target
        opcode = opcodes.setdefault(code.name, len(opcodes))
        instructions.append(_INSTRUCTION(opcode, a, b, c, x - _WRAP if x >= _HALF else x))
    out.u32(sites, *words, len(instructions))
    out.bytes += b"".join(instructions)
    out.u32(*[tables.place(code.range) for code in function.code])


def _write_group(out: Writer, group: GroupSpec, tables: Tables) -> None:
    """A group, and behind it the group of its gradient."""
    out.u8(group.input_count)
    out.u32(len(group.constants), *(tables.constant(value) for value in group.constants))
    out.u32(sum(not isinstance(op, RowResult) for op, _, _ in group.steps))
    data = out.bytes
    for op, tensors, numbers in group.steps:
        if isinstance(op, str):
            data += _PLAIN_STEP(tables.string(op), 0)
        elif isinstance(op, RowResult):  # a number that the row operator before takes up
            continue
        else:
            _write_step(out, op, tables)
        for operands in (tensors, numbers):
            data += _COUNTS[len(operands)]
            for kind, index in operands:
                data.append(_KINDS[kind])
                data.append(index)
    out.u32(len(group.outputs))
    out.u8(*group.outputs)
    out.u32(group.squeezed & 0xFFFFFFFF, group.squeezed >> 32)
    out.u8(group.backward is not None)
    if group.backward is not None:
        _write_backward(out, group.backward, tables)


def _write_step(out: Writer, op: RowStep, tables: Tables) -> None:
    """What a row operator does: the operator, and what it works over."""
    out.u32(tables.string(op.id))
    out.u8(1 if op.over == "last" else 2, op.dim & 0xFF, op.keepdim)
    out.u32(op.length)


def _write_backward(out: Writer, backward: BackwardSpec, tables: Tables) -> None:
    _write_group(out, backward.group, tables)
    out.u32(len(backward.edges))
    for target, kind, index in backward.edges:
        out.u8(target, kind == "output", index)
    out.u32(len(backward.depends))
    for inputs in backward.depends:
        out.u32(inputs & 0xFFFFFFFF, inputs >> 32)
    out.u32(len(backward.saved))
    out.u8(*backward.saved)


def listing(program: ProgramData) -> str:
    """Every function: its registers, then its instructions.

    `o0` is an object register, `s3` a scalar one, `k1` a constant; `!` marks the last use of an
    object.
    """
    return "\n\n".join(function_listing(function) for function in program.functions)


def function_listing(function: FunctionData) -> str:
    """One function."""
    params = ", ".join(
        f"{_register(function, param.register)} {param.name}: {param.type}"
        for param in function.params
    )
    lines = [f"{function.name}({params}) -> {function.result}"]
    if function.preload:
        pairs = (
            f"{_register(function, function.preload_at + i)} = k{constant}"
            for i, constant in enumerate(function.preload)
        )
        lines.append(f"        {', '.join(pairs)}")
    lines += [f"  {i:4}  {_line(function, code)}" for i, code in enumerate(function.code)]
    return "\n".join(lines)


def _register(function: FunctionData, register: int) -> str:
    return f"o{register}" if register < function.objects else f"s{register}"


def _word(function: FunctionData, word: int) -> str:
    if word & CONSTANT_BIT:
        return f"k{word & ~CONSTANT_BIT}"
    mark = "!" if word & LAST_USE_BIT else ""
    return _register(function, word & ~LAST_USE_BIT) + mark


def _line(function: FunctionData, code: Code) -> str:
    parts: list[str] = []
    row = BY_NAME.get(code.name)
    if code.site is not None:
        assert row is not None
        results = " ".join(_register(function, r) for r in code.site.results)
        args = " ".join(_word(function, word) for word in code.site.args)
        extra = f" #{code.site.extra}" if row.extra != "None" else ""
        return f"{results + ' = ' if results else ''}{code.name}{extra} {args}".rstrip()
    if row is not None:
        parts += [_register(function, code.a)] if row.a != "None" else []
        parts += [_register(function, code.b)] if row.b != "None" else []
        parts += [_register(function, code.c)] if row.c != "None" else []
        if row.x == "Constant":
            parts.append(f"k{code.x}")
        elif row.x not in ("None", "Jump"):
            parts.append(f"#{code.x}")
    else:
        # An instruction on scalars.
        jumps, literal = code.name.startswith("jump_"), code.name.endswith("_imm")
        parts += [] if jumps else [_register(function, code.a)]
        parts.append(_register(function, code.b))
        if literal:
            parts.append(f"#{code.x}")
        elif jumps or code.c:
            parts.append(_register(function, code.c))
    if code.target is not None:
        parts.append(f"-> {code.target}")
    return f"{code.name} {' '.join(parts)}".rstrip()

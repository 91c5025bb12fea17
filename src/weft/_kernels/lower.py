"""Kernels to LLVM IR, as text: a function each, of a vector, a four-lane and a scalar loop.

No IR pass runs afterwards: what is written here is what the code generator sees. So uniform nodes
(constants, attributes, row values of a horizontal kernel and what is made of them) are computed
once before the loops, and equal nodes once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import is_

from . import nodes
from .expr import Expr, Value, components, source
from .kernel import Kernel, walk
from .llvm_text import llvm_type, memory_type
from .scope import Scope
from .target import Target
from .types import BOOL, DType

SLOT_BYTES = 16


def vector_lanes(kernel: Kernel, inside: Iterable[Expr]) -> list[int]:
    """Lanes of the loops, the widest first: by the widest type that takes part."""
    types = {e.dtype for e in inside} | set(kernel.operands)
    widest = max(d.size for d in types)
    if widest >= 16:
        return [4, 1]
    return {8: [8, 4, 1], 4: [16, 4, 1]}.get(widest, [32, 4, 1])


# Nodes of a kernel that is bound by memory; bytes that it asks for its results ahead.
CHEAP, CLAIM_AHEAD = 40, 1024
# Nodes of a kernel that is bound by memory when its operands are not in the caches.
MOST_NONTEMPORAL = 150


def _size(inside: Iterable[Expr]) -> int:
    """About how many operations the nodes are."""
    return sum(nodes.SIZES.get(e.op, 1) for e in inside)


class Function:
    """Writes one kernel. `text` is the result; `declarations` and `helpers` what it needs."""

    def __init__(self, kernel: Kernel, target: Target):
        self.kernel, self.target = kernel, target
        self._nodes = walk(kernel.roots())
        self._lanes = vector_lanes(kernel, self._nodes)
        self.declarations: set[str] = set()
        self.helpers: set[str] = set()
        self._count = 0
        self._entry: list[str] = []
        self._lines: list[str] = self._entry
        self.block = "entry"
        self._streaming = False  # the loops being written store past the caches
        self._chosen: dict[int, Expr] = {}
        self._uniform: dict[int, bool] = {}
        self.alive: list[Expr] = []  # ids stay unique while the nodes live
        self._once = Scope(self, 1, None)
        self._splats: dict[tuple[str, DType, int], str] = {}
        self.text = self._write()

    # --- names and lines ---

    def emit(self, text: str) -> str:
        """Appends `%n = text`; returns its name."""
        self._count += 1
        name = f"%x{self._count}"
        self._lines.append(f"  {name} = {text}")
        return name

    def line(self, text: str) -> None:
        self._lines.append("  " + text)

    def open(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self.block = label

    def label(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def declare(self, result: str, name: str, *args: str) -> None:
        self.declarations.add(f"declare {result} @{name}({', '.join(args)}) nounwind")

    # --- uniform nodes ---

    def is_uniform(self, e: Expr) -> bool:
        known = self._uniform.get(id(e))
        if known is None:
            if e.op == "source":
                kind = e.value[0]
                known = kind == "length" or e.value[:2] in self.kernel.scalars
                known = known or (kind == "position" and not self.kernel.tile_position)
            else:  # a `cases` node differs between versions, a `rare` one needs blocks of its own
                known = e.op not in ("cases", "rare", "fmod") and all(
                    self.is_uniform(a) for a in e.args
                )
            self._uniform[id(e)] = known
        return known

    def uniform(self, e: Expr, lanes: int) -> str:
        """A uniform node, computed in the entry block, in all lanes."""
        lines, self._lines = self._lines, self._entry
        name = self._once.get(e)
        if lanes > 1:
            key = (name, e.dtype, lanes)
            if key not in self._splats:
                self._splats[key] = self.splat(name, e.dtype, lanes)
            name = self._splats[key]
        self._lines = lines
        return name

    def splat(self, name: str, d: DType, lanes: int) -> str:
        vector = llvm_type(d, lanes)
        first = self.emit(f"insertelement {vector} poison, {llvm_type(d)} {name}, i64 0")
        return self.emit(
            f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer"
        )

    def load_scalar(self, slot: int, d: DType, part: int) -> str:
        offset = slot * SLOT_BYTES + part * d.size
        at = self.emit(f"getelementptr i8, ptr %scalars, i64 {offset}")
        return self.load(at, d, 1)

    def load(self, at: str, d: DType, lanes: int) -> str:
        value = self.emit(f"load {memory_type(d, lanes)}, ptr {at}, align {d.size}")
        if d != BOOL:
            return value
        zero = "0" if lanes == 1 else "zeroinitializer"
        return self.emit(f"icmp ne {memory_type(d, lanes)} {value}, {zero}")

    def store(self, value: str, at: str, d: DType, lanes: int, stream: bool = False) -> None:
        """stream: past the caches, to an address that is a multiple of what is written."""
        if d == BOOL:
            value = self.emit(f"zext {llvm_type(d, lanes)} {value} to {memory_type(d, lanes)}")
        how = f"align {d.size}" if not stream else f"align {d.size * lanes}, !nontemporal !0"
        self.line(f"store {memory_type(d, lanes)} {value}, ptr {at}, {how}")

    # --- the function ---

    def _write(self) -> str:
        self._operands = []
        for i in range(len(self.kernel.operands)):
            at = self.emit(f"getelementptr ptr, ptr %operands, i64 {i}")
            self._operands.append(self.emit(f"load ptr, ptr {at}, align 8"))
        count = "%n"
        if self._takes_flag():
            count = "%given"
            self.line("%n = and i64 %given, 9223372036854775807")
        body: list[str] = []
        head: list[str] = []
        for condition, label in self._variants():
            self._lines = body
            self.open(label)
            (self._fold if self.kernel.fold else self._map)()
            self.line("ret void")
            following = f"not.{label}"
            head.append(
                f"  br label %{label}"
                if condition is None
                else f"  br i1 {condition}, label %{label}, label %{following}\n{following}:"
            )
        signature = (
            f"define hidden void @KERNEL(ptr %operands, i64 {count}, ptr %scalars) nounwind {{"
        )
        return "\n".join([signature, "entry:", *self._entry, *head, *body, "}"])

    def _variants(self) -> Iterator[tuple[str | None, str]]:
        """The versions of the loops: one for each case of a `cases` node, one that stores past the
        caches where that may pay, then the general one.

        Yields the condition (a name in the entry block; None for the last) and the label.
        """
        choices = [e for e in self._nodes if e.op == "cases"]
        first = next((e for e in choices if all(self.is_uniform(c) for c in e.args[1::2])), None)
        if first is not None:
            conditions = first.args[1::2]
            alike = [e for e in choices if all(map(is_, e.args[1::2], conditions))]
            for i, condition in enumerate(conditions):
                self._chosen = {id(e): e.args[2 + 2 * i] for e in alike}
                yield self.uniform(condition, 1), self.label("case")
        self._chosen = {}
        if self._takes_flag() and self._may_stream():
            self._streaming = True
            yield self._asked_to_stream(), self.label("stream")
            self._streaming = False
        yield None, self.label("general")

    def _takes_flag(self) -> bool:
        return self.kernel.streams and self.target.streams

    def _may_stream(self) -> bool:
        results = self.kernel.operands[: len(self.kernel.outputs)]
        ordinary = all(d.size >= 4 and d.kind != "complex" for d in results)
        return ordinary and _size(self._nodes) <= MOST_NONTEMPORAL

    def _asked_to_stream(self) -> str:
        lines, self._lines = self._lines, self._entry
        name = self.emit("icmp slt i64 %given, 0")
        self._lines = lines
        return name

    def chosen(self, e: Expr) -> Expr:
        return self._chosen.get(id(e), e.args[0])

    def _map(self) -> None:
        lanes = self._lanes
        if _size(self._nodes) > self.target.most_unrolled:
            lanes = lanes[-2:]
        start = "0"
        for width in lanes:
            end = f"{self.emit(f'and i64 %n, -{width}')}" if width > 1 else "%n"
            with_loop = _Loop(self, start, end, width)
            scope = Scope(self, width, with_loop.index)
            stream = self._streaming and width == lanes[0]
            if width == lanes[0] and not stream and self._is_cheap():
                self._claim_results(with_loop.index)
            values = [[scope.get(p) for p in components(v)] for v in self.kernel.outputs]
            for i, parts in enumerate(values):
                self._store_parts(parts, i, with_loop.index, width, stream)
            with_loop.close()
            start = end

    def _is_cheap(self) -> bool:
        """Whether memory, not arithmetic, will decide how long the loop takes."""
        return self.target.claims and _size(self._nodes) <= CHEAP

    def _claim_results(self, index: str) -> None:
        """Asks for the cache lines that later turns of the loop will write, to own."""
        self.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        read = set(self.kernel.inputs.values())
        for i in range(len(self.kernel.outputs)):
            if i in read:  # a state: it is in the cache already
                continue
            at = self.emit(f"getelementptr i8, ptr {self.address(i, index)}, i64 {CLAIM_AHEAD}")
            self.line(f"call void @llvm.prefetch.p0(ptr {at}, i32 1, i32 3, i32 1)")

    def _store_parts(
        self, parts: list[str], operand: int, index: str, lanes: int, stream: bool = False
    ) -> None:
        d = self.kernel.operands[operand]
        at = self.address(operand, index)
        if d.kind != "complex":
            self.store(parts[0], at, d, lanes, stream)
        elif lanes == 1:
            self.store(parts[0], at, d.real, 1)
            second = self.emit(f"getelementptr i8, ptr {at}, i64 {d.real.size}")
            self.store(parts[1], second, d.real, 1)
        else:
            vector = llvm_type(d.real, lanes)
            mask = ", ".join(f"i32 {i // 2 + (i % 2) * lanes}" for i in range(2 * lanes))
            both = self.emit(
                f"shufflevector {vector} {parts[0]}, {vector} {parts[1]}, "
                f"<{2 * lanes} x i32> <{mask}>"
            )
            self.store(both, at, d.real, 2 * lanes, stream)

    def address(self, operand: int, index: str) -> str:
        d = self.kernel.operands[operand]
        base = self._operands[operand]
        offset = index if d.size == 1 else self.emit(f"mul i64 {index}, {d.size}")
        return self.emit(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load_parts(self, operand: int, index: str, lanes: int) -> list[str]:
        d = self.kernel.operands[operand]
        at = self.address(operand, index)
        if d.kind != "complex":
            return [self.load(at, d, lanes)]
        if lanes == 1:
            second = self.emit(f"getelementptr i8, ptr {at}, i64 {d.real.size}")
            return [self.load(at, d.real, 1), self.load(second, d.real, 1)]
        both = self.load(at, d.real, 2 * lanes)
        vector = llvm_type(d.real, 2 * lanes)
        return [
            self.emit(
                f"shufflevector {vector} {both}, {vector} poison, <{lanes} x i32> "
                f"<{', '.join(f'i32 {2 * i + part}' for i in range(lanes))}>"
            )
            for part in range(2)
        ]

    # --- folds ---

    def _fold(self) -> None:
        fold = self.kernel.fold
        assert fold is not None
        self._state_types = [v.dtype for v in fold.lifted]
        self._part_types = [p.dtype for v in fold.lifted for p in components(v)]
        lanes = self._lanes
        wide = lanes[0]
        size = _size(walk(p for v in fold.lifted for p in components(v)))
        copies = self.target.accumulators if size <= 12 else 2 if size <= 40 else 1
        identity = self._identity(wide)
        start = "0"
        accumulators = [identity]
        if copies > 1:
            end = self.emit(f"and i64 %n, -{wide * copies}")
            accumulators = self._fold_loop([identity] * copies, start, end, wide)
            start = end
            while len(accumulators) > 1:
                pairs = zip(accumulators[::2], accumulators[1::2])
                accumulators = [self._merge(a, b, wide) for a, b in pairs]
        for i, width in enumerate(lanes):
            end = self.emit(f"and i64 %n, -{width}") if width > 1 else "%n"
            accumulators = self._fold_loop(accumulators, start, end, width)
            start = end
            if width > 1:
                accumulators = [self._narrow(accumulators[0], width, lanes[i + 1])]
        self._finish(accumulators[0])

    def _identity(self, lanes: int) -> list[str]:
        fold = self.kernel.fold
        assert fold is not None
        scope = Scope(self, lanes, None)
        return [scope.get(p) for v in fold.identity for p in components(v)]

    def _fold_loop(
        self, accumulators: list[list[str]], start: str, end: str, width: int
    ) -> list[list[str]]:
        """Folds elements start..end; copy u of the accumulators takes every u-th vector."""
        fold = self.kernel.fold
        assert fold is not None
        flat = [p for parts in accumulators for p in parts]
        types = [llvm_type(d, width) for _ in accumulators for d in self._part_types]
        loop = _Loop(self, start, end, width * len(accumulators), list(zip(types, flat)))
        count = len(self._part_types)
        results: list[str] = []
        for copy in range(len(accumulators)):
            index = loop.index if copy == 0 else self.emit(f"add i64 {loop.index}, {copy * width}")
            scope = Scope(self, width, index)
            element = [scope.get(p) for v in fold.lifted for p in components(v)]
            held = loop.carried[copy * count : (copy + 1) * count]
            results += self._merge(held, element, width)
        after = loop.close(results)
        return [after[i : i + count] for i in range(0, len(after), count)]

    def _merge(self, a: list[str], b: list[str], lanes: int) -> list[str]:
        """The monoid's operation on values that have names already."""
        fold = self.kernel.fold
        assert fold is not None
        scope = Scope(self, lanes, None)
        sides: list[list[Value]] = []
        for side, names in (("left", a), ("right", b)):
            at = iter(names)
            values = [source(side, i, d) for i, d in enumerate(self._state_types)]
            for v in values:
                for part in components(v):
                    scope.bind(part, next(at))
            sides.append(values)
        return [scope.get(p) for v in fold.merge(*sides) for p in components(v)]

    def _narrow(self, parts: list[str], lanes: int, to: int) -> list[str]:
        """Merges the upper half of the lanes into the lower one until `to` are left."""
        while lanes > to:
            half = lanes // 2
            halves = [
                [self._half(p, d, lanes, offset) for p, d in zip(parts, self._part_types)]
                for offset in (0, half)
            ]
            parts = self._merge(halves[0], halves[1], half)
            lanes = half
        return parts

    def _half(self, name: str, d: DType, lanes: int, offset: int) -> str:
        vector, half = llvm_type(d, lanes), lanes // 2
        if half == 1:
            return self.emit(f"extractelement {vector} {name}, i64 {offset}")
        mask = ", ".join(f"i32 {offset + i}" for i in range(half))
        return self.emit(f"shufflevector {vector} {name}, {vector} poison, <{half} x i32> <{mask}>")

    def _finish(self, parts: list[str]) -> None:
        """Merges the call's result into the state."""
        state = [p for i in range(len(self._state_types)) for p in self.load_parts(i, "0", 1)]
        at = iter(self._merge(state, parts, 1))
        for i, d in enumerate(self._state_types):
            count = 2 if d.kind == "complex" else 1
            self._store_parts([next(at) for _ in range(count)], i, "0", 1)


class _Loop:
    """A loop from start to end (both multiples of `step` apart), with carried values."""

    def __init__(
        self, f: Function, start: str, end: str, step: int, carried: Sequence[tuple[str, str]] = ()
    ):
        self._f, self._step, self._end = f, step, end
        self._types = [t for t, _ in carried]
        self._initial = [v for _, v in carried]
        self._before, self._head, self._after = f.block, f.label("loop"), f.label("done")
        entered = f.emit(f"icmp ult i64 {start}, {end}")
        f.line(f"br i1 {entered}, label %{self._head}, label %{self._after}")
        f.open(self._head)
        self.index = f.emit(f"phi i64 [ {start}, %{self._before} ], [ NEXT, %LATCH ]")
        self._phi_at = len(f._lines) - 1
        self.carried = []
        for t, v in carried:
            self.carried.append(f.emit(f"phi {t} [ {v}, %{self._before} ], [ CARRY, %LATCH ]"))

    def close(self, results: Sequence[str] = ()) -> list[str]:
        """Ends the body; returns the carried values as the code after the loop sees them."""
        f = self._f
        following = f.emit(f"add i64 {self.index}, {self._step}")
        again = f.emit(f"icmp ult i64 {following}, {self._end}")
        latch = f.block
        f.line(f"br i1 {again}, label %{self._head}, label %{self._after}")
        f._lines[self._phi_at] = (
            f._lines[self._phi_at].replace("NEXT", following).replace("LATCH", latch)
        )
        for i, r in enumerate(results):
            at = self._phi_at + 1 + i
            f._lines[at] = f._lines[at].replace("CARRY", r).replace("LATCH", latch)
        f.open(self._after)
        return [
            f.emit(f"phi {t} [ {v}, %{self._before} ], [ {r}, %{latch} ]")
            for t, v, r in zip(self._types, self._initial, results)
        ]


def module_text(functions: dict[str, Function], triple: str) -> str:
    """An LLVM module of the functions, by symbol."""
    declarations: set[str] = set()
    helpers: set[str] = set()
    for f in functions.values():
        declarations |= f.declarations
        helpers |= f.helpers
    bodies = [f.text.replace("@KERNEL(", f"@{name}(", 1) for name, f in functions.items()]
    parts = [f'target triple = "{triple}"', *sorted(declarations)]
    parts += [nodes.HELPERS[h] for h in sorted(helpers)]
    if any("!nontemporal" in body for body in bodies):
        bodies.append("!0 = !{i32 1}")
    return "\n\n".join(parts + bodies) + "\n"

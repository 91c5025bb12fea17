"""Branches and loops that depend on tensors: If and Loop. Those that do not leave no trace: the
branch is taken, the loop unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from onnx import helper

from weft._runtime.public import weft
from weft.jit.ir import Block, Node
from weft.onnx._graph import Block as Written
from weft.onnx._lists import as_sequence
from weft.onnx._memory import Ref
from weft.onnx._symbols import Symbol, Unsupported, type_of

_MOST_TRIPS = 64  # of a loop that is unrolled
_ROUNDS = 4  # until the sizes of what a loop carries are known


def branch(it: Any, node: Node, condition: Any, env: dict[Any, Any]) -> Sequence[Any]:
    """prim::If."""
    condition = it.resolve(condition)
    if isinstance(condition, Symbol) and condition.value is not None:
        condition = bool(condition.value)
    if not isinstance(condition, (Symbol, Unsupported)):
        return it.block(node.blocks[0 if condition else 1], env)
    for index in (0, 1):
        if _raises(node.blocks[index]):  # what the program checks, the model takes for granted
            return it.block(node.blocks[1 - index], env)
    sides = [_Side(it, block, env) for block in node.blocks]
    if isinstance(condition, Unsupported):
        return [Unsupported() for _ in node.outputs]
    return _If(it, condition, sides).results()


def _raises(block: Block) -> bool:
    return any(node.kind == "prim::RaiseException" for node in block)


class _Side:
    """One branch: its nodes, its results, and what it writes to."""

    def __init__(self, it: Any, block: Block, env: dict[Any, Any]) -> None:
        with it.memory.trial() as journal, it.g.block() as written:
            self.results = [_content(each) for each in it.block(block, dict(env))]
        self.journal: dict[Ref, Any] = journal
        self.written: Written = written
        self.outputs: list[Symbol] = []


class _If:
    """Puts two branches into one node. The same known value of both stays; all else becomes outputs
    of the node."""

    def __init__(self, it: Any, condition: Symbol, sides: list[_Side]) -> None:
        self.it, self.g = it, it.g
        self.condition, self.sides = condition, sides

    def results(self) -> list[Any]:
        """The results of the program's branch; writes to memory happen."""
        first, second = self.sides
        refs = list(dict.fromkeys((*first.journal, *second.journal)))
        given = [self._merge(a, b) for a, b in zip(first.results, second.results)]
        contents = [[side.journal.get(ref, ref.content) for side in self.sides] for ref in refs]
        written = [(ref, self._merge(*pair)) for ref, pair in zip(refs, contents)]
        outputs = self._node()
        for ref, build in written:
            ref.write(_bare(build(outputs)))
        return [build(outputs) for build in given]

    def _node(self) -> list[Symbol]:
        count = len(self.sides[0].outputs)
        if not count:
            return []
        graphs = [
            subgraph(f"branch_{i}", side.written, [], side.outputs)
            for i, side in enumerate(self.sides)
        ]
        made = self.g.op(
            "If",
            scalar(self.g, self.condition, weft.bool),
            outputs=count,
            then_branch=graphs[0],
            else_branch=graphs[1],
        )
        made = [made] if count == 1 else list(made)
        for symbol, a, b in zip(made, self.sides[0].outputs, self.sides[1].outputs):
            symbol.takes(a, common(a.sizes, b.sizes))
        return made

    def _merge(self, a: Any, b: Any) -> Callable[[list[Symbol]], Any]:
        """How the value is made of the node's outputs."""
        if isinstance(a, Unsupported) or isinstance(b, Unsupported):
            return lambda outputs: Unsupported()
        if a is b or (is_plain(a) and is_plain(b) and type(a) is type(b) and a == b):
            return lambda outputs: self.it.value(a)
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            parts = [self._merge(_content(x), _content(y)) for x, y in zip(a, b)]
            return lambda outputs: tuple(part(outputs) for part in parts)
        if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            items = [self._merge(_content(x), _content(y)) for x, y in zip(a, b)]
            return lambda outputs: Ref(self.it.memory, [item(outputs) for item in items])
        pair = self._symbols(a, b)
        place = len(self.sides[0].outputs)
        for side, symbol in zip(self.sides, pair):
            side.outputs.append(self._inside(side, symbol))
        return lambda outputs: self.it.value(outputs[place])

    def _inside(self, side: _Side, symbol: Symbol) -> Symbol:
        """A node of the branch that gives the value: branches give no values of blocks around."""
        made = any(symbol.name in node.output for node in side.written.nodes)
        if made and all(symbol is not each for each in side.outputs):
            return symbol
        self.g.blocks.append(side.written)
        copy = self.g.op("Identity", symbol)
        self.g.blocks.pop()
        return copy.takes(symbol)

    def _symbols(self, a: Any, b: Any) -> list[Symbol]:
        """Both values as symbols of one dtype."""
        lists = [isinstance(e, list) or (isinstance(e, Symbol) and e.is_sequence) for e in (a, b)]
        if all(lists):
            return self._sequences(a, b)
        a, b = (_placeholder(a, b), _placeholder(b, a))
        for each, other in ((a, b), (b, a)):
            if not isinstance(each, (Symbol, bool, int, float)):
                raise ValueError(
                    "If: expected branches that give tensors or numbers of one type, "
                    f"got {_shown(each)} and {_shown(other)}"
                )
        made = [each if isinstance(each, Symbol) else self.g.constant(each) for each in (a, b)]
        if made[0].dtype != made[1].dtype:
            if not (made[0].is_number and made[1].is_number):
                raise ValueError(
                    f"If: expected branches that give one dtype, got {made[0].dtype} and "
                    f"{made[1].dtype}"
                )
            made = [self.g.cast(each, weft.float32) for each in made]
        return made

    def _sequences(self, a: Any, b: Any) -> list[Symbol]:
        dtypes = [list_dtype(self.it, each) for each in (a, b)]
        made = []
        for side, each in zip(self.sides, (a, b)):
            self.g.blocks.append(side.written)
            made.append(as_sequence(self.it, each, dtypes[0] or dtypes[1]))
            self.g.blocks.pop()
        return made


def _placeholder(value: Any, other: Any) -> Any:
    """A value that nobody reads becomes one of the other's type."""
    if type(value).__name__ != "Uninitialized":
        return value
    if isinstance(other, Symbol) and other.dtype is not None:
        zeros = weft.zeros((1,) * len(other.sizes or ()), dtype=other.dtype)
        made = other.graph.constant(zeros)
        made.is_number = other.is_number
        return made
    return type(other)() if isinstance(other, (bool, int, float)) else value


def loop(it: Any, node: Node, args: list[Any], env: dict[Any, Any]) -> Sequence[Any]:
    """prim::Loop."""
    trips, condition = it.resolve(args[0]), it.resolve(args[1])
    if isinstance(trips, Unsupported) or isinstance(condition, Unsupported):
        return [Unsupported() for _ in node.outputs]
    if not isinstance(trips, Symbol) and not isinstance(condition, Symbol):
        results = _unrolled(it, node.blocks[0], trips, condition, args[2:], env)
        if results is not None:
            return results
    return _Loop(it, node.blocks[0], env).results(trips, condition, args[2:])


def _unrolled(
    it: Any, body: Block, trips: int, condition: bool, carried: list[Any], env: dict[Any, Any]
) -> list[Any] | None:
    """The results of a loop whose trips are known; None where they are not, or are too many."""
    endless = trips > 1 << 60
    if trips > _MOST_TRIPS and not endless:
        return None
    with it.memory.trial() as journal, it.g.block() as written:
        trip = 0
        while condition and trip < trips:
            if trip == _MOST_TRIPS:
                return None
            inner = {**env, body.params[0]: trip, **dict(zip(body.params[1:], carried))}
            following, *carried = it.block(body, inner)
            condition, trip = it.resolve(following), trip + 1
            if isinstance(condition, Symbol):
                return None
    it.g.blocks[-1].nodes.extend(written.nodes)
    it.g.blocks[-1].sizes.update(written.sizes)
    for ref, content in journal.items():
        ref.write(content)
    return list(carried)


class _Loop:
    """One Loop. Its body is run on symbols for what it carries until their sizes do not change from
    trip to trip; then once more for its nodes."""

    def __init__(self, it: Any, body: Block, env: dict[Any, Any]) -> None:
        self.it, self.g, self.body, self.env = it, it.g, body, env

    def results(self, trips: Any, condition: Any, carried: list[Any]) -> list[Any]:
        """What the loop carries at its end; writes to memory happen."""
        values = [_content(each) for each in carried]
        refs: list[Ref] = []
        starts = self._starts(values, refs)
        for _ in range(_ROUNDS):
            run = self._run(values, refs, starts)
            if any(isinstance(e, Unsupported) for e in (*run.ends, run.condition)):
                return [Unsupported() for _ in values]
            found = [ref for ref in run.journal if ref not in refs]
            relaxed = self._relaxed(starts, run.ends)
            if not found and not relaxed:
                break
            refs += found
            starts = self._starts(values, refs, starts, run)
        return self._emit(trips, condition, values, refs, starts, run)

    def _starts(
        self, values: list[Any], refs: list[Ref], known: Any = (), run: Any = None
    ) -> list[Any]:
        """The symbols that the loop carries at its beginning; None for what stays as it is."""
        given = [*values, *(ref.content for ref in refs)]
        made = list(known)
        for place in range(len(made), len(given)):
            value = given[place]
            if isinstance(value, list):
                end = run.journal[refs[place - len(values)]] if run is not None else value
                value = as_sequence(self.it, value, list_dtype(self.it, end))
                value.is_number = value.is_number or list_is_of_numbers(self.it, end)
            if isinstance(value, (bool, int, float)):
                value = self.g.op("Identity", self.g.constant(value))
                value.is_number = True
            made.append(value if isinstance(value, Symbol) else None)
        return made

    def _run(self, values: list[Any], refs: list[Ref], starts: list[Any]) -> Any:
        with self.it.memory.trial() as journal, self.g.block() as written:
            trip = Symbol(self.g, self.g.unique("trip"), weft.int64, (), is_number=True)
            params = [None if s is None else self._param(s) for s in starts]
            inner = {**self.env, self.body.params[0]: trip}
            for ref, param in zip(refs, params[len(values) :]):
                ref.write(param)
            held = [v if p is None else p for v, p in zip(values, params)]
            inner.update(zip(self.body.params[1:], map(self.it.value, held)))
            condition, *results = self.it.block(self.body, inner)
            ends = [_content(each) for each in results] + [ref.content for ref in refs]
        return _Run(journal, written, trip, params, self.it.resolve(condition), ends)

    def _param(self, start: Symbol) -> Symbol:
        return Symbol(self.g, self.g.unique("carried"), None, None).takes(start)

    def _relaxed(self, starts: list[Any], ends: list[Any]) -> bool:
        """Forgets sizes that change from trip to trip; True if there were any."""
        changed = False
        for start, end in zip(starts, ends):
            if start is None or not isinstance(end, Symbol) or start.is_sequence:
                continue
            sizes = common(start.sizes, end.sizes)
            if sizes != start.sizes:
                start.sizes, changed = sizes, True
        return changed

    def _emit(
        self,
        trips: Any,
        condition: Any,
        values: list[Any],
        refs: list[Ref],
        starts: list[Any],
        run: Any,
    ) -> list[Any]:
        g = self.g
        g.blocks.append(run.written)
        following = scalar(g, run.condition, weft.bool)
        following = g.op("Identity", following)
        following.dtype, following.sizes = weft.bool, ()
        ends = [
            self._end(start, end, value)
            for start, end, value in zip(starts, run.ends, [*values, *(r.content for r in refs)])
        ]
        g.blocks.pop()
        kept = [i for i, start in enumerate(starts) if start is not None]
        allowed = Symbol(g, g.unique("condition"), weft.bool, ())
        params = [run.trip, allowed, *(run.params[i] for i in kept)]
        body = subgraph("body", run.written, params, [following, *(ends[i] for i in kept)])
        endless = not isinstance(trips, Symbol) and trips > 1 << 60
        bound = None if endless else scalar(g, trips, weft.int64)
        given = (bound, scalar(g, condition, weft.bool), *(starts[i] for i in kept))
        made = g.op("Loop", *given, outputs=len(kept), body=body) if kept else ()
        outputs = [made] if isinstance(made, Symbol) else list(made)
        finals: list[Any] = [*values, *(ref.content for ref in refs)]
        for i, symbol in zip(kept, outputs):
            end = ends[i]
            finals[i] = symbol.takes(end, common(starts[i].sizes, end.sizes))
        for ref, final in zip(refs, finals[len(values) :]):
            ref.write(final)
        return [self.it.value(each) for each in finals[: len(values)]]

    def _end(self, start: Any, end: Any, value: Any) -> Any:
        """What a trip gives of one carried value, as a node of the body."""
        if start is None:
            if end is not value and not (is_plain(end) and end == value):
                raise ValueError(
                    "Loop: expected to carry tensors, numbers and lists of them, "
                    f"got {_shown(value)} that becomes {_shown(end)}"
                )
            return None
        if isinstance(end, list):
            end = as_sequence(self.it, end, start.dtype)
        if not isinstance(end, (Symbol, bool, int, float)):
            raise ValueError(f"Loop: expected to carry {start}, got {_shown(end)} after a trip")
        symbol = end if isinstance(end, Symbol) else self.g.constant(end)
        if symbol.dtype != start.dtype:
            if not start.is_number:
                raise ValueError(
                    f"Loop: expected to carry {start.dtype}, got {symbol.dtype} after a trip"
                )
            symbol = self.g.cast(symbol, start.dtype)
        copy = self.g.op("Identity", symbol).takes(symbol)
        copy.is_number = start.is_number
        return copy


class _Run(NamedTuple):
    """One run of a loop's body on symbols."""

    journal: dict[Ref, Any]
    written: Written
    trip: Symbol
    params: list[Any]
    condition: Any
    ends: list[Any]


# Helpers ----------------------------------------------------------------------------------------


def subgraph(name: str, written: Written, inputs: list[Symbol], outputs: list[Symbol]) -> Any:
    """The nodes of a block as a graph that a node has as an attribute."""
    return helper.make_graph(
        written.nodes, name, [_info(each) for each in inputs], [_info(each) for each in outputs]
    )


def _info(symbol: Symbol) -> Any:
    proto = type_of(symbol)
    if proto is None:
        raise ValueError(f"export: expected a tensor whose dtype is known, got {symbol}")
    return helper.make_value_info(symbol.name, proto)


def scalar(g: Any, value: Any, dtype: Any) -> Symbol:
    """A number without dimensions."""
    if not isinstance(value, Symbol):
        return g.constant(value, dtype)
    value = g.cast(value, dtype)
    return value if value.sizes == () else g.op("Reshape", value, [])


def common(a: Any, b: Any) -> Any:
    """What is true of both sizes."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b))


def is_plain(value: Any) -> bool:
    """Whether a value is known and cannot change."""
    return value is None or isinstance(value, (bool, int, float, str, weft.dtype, weft.device))


def list_dtype(it: Any, items: Any) -> Any:
    """The dtype of a list's items; None of an empty one."""
    if isinstance(items, Symbol):
        return items.dtype
    return it.g.promote(it.resolve(items[0])) if items else None


def list_is_of_numbers(it: Any, items: Any) -> bool:
    """Whether a list holds Python numbers."""
    if isinstance(items, Symbol):
        return items.is_number
    first = it.resolve(items[0]) if items else None
    return bool(items) and (not isinstance(first, Symbol) or first.is_number)


def _content(value: Any) -> Any:
    return value.read() if isinstance(value, Ref) else value


def _bare(value: Any) -> Any:
    is_plain = isinstance(value, Ref) and isinstance(value.content, (Symbol, list))
    return value.read() if is_plain else value


def _shown(value: Any) -> str:
    if value is None or isinstance(value, Symbol):
        return str(value)
    return type(value).__name__

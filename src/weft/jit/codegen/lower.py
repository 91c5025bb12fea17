"""From a graph to the code of one function.

Control flow becomes jumps. What a branch or a loop gives has one register from the start, and where
it can be, values are made right there. Registers of objects are emptied by the instruction that
last reads them, so that memory returns as early as in eager code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.jit.codegen import control, nodes
from weft.jit.codegen.liveness import Liveness
from weft.jit.codegen.program import CONSTANT_BIT, LAST_USE_BIT, Code, FunctionData, Param, Site
from weft.jit.codegen.registers import SCALAR_BASE, Move, Registers, is_scalar_register, sequence
from weft.jit.codegen.scalars import is_scalar_type
from weft.jit.ir import Block, Function, Node, SourceRange, Value

if TYPE_CHECKING:
    from weft.jit.codegen.compile import Compiler


class Lowering:
    """The code of one function under way. `compiler` knows the tables and the other functions."""

    def __init__(self, function: Function, compiler: Compiler) -> None:
        self.function = function
        self.compiler = compiler
        self.tables = compiler.tables
        self.live = Liveness(function.graph)
        self.registers = Registers()
        self.code: list[Code] = []
        self.range: SourceRange | None = None
        # Comparisons that are part of the jump behind them.
        self.deferred: dict[Value, Node] = {}
        self.preloaded: dict[int, int] = {}  # constant -> place among the preloaded

    def run(self) -> FunctionData:
        """The finished function."""
        graph = self.function.graph
        params = []
        for name, value in zip(self.function.arg_names, graph.inputs, strict=True):
            default = None
            if name in self.function.defaults:
                default = self.tables.constant(self.function.defaults[name], value.type)
            params.append(Param(name, value.type, self.registers.define(value), default))
        self.release(self.live.idle[graph.block])
        self.block(graph.block)
        self.leave(graph.block)
        return self._finish(params)

    # Pieces of code

    def emit(
        self, name: str, a: int = 0, b: int = 0, c: int = 0, x: int = 0,
        site: Site | None = None, target: int | None = None,
    ) -> Code:  # fmt: skip
        """Adds an instruction."""
        code = Code(name, a, b, c, x, site, target, self.range)
        self.code.append(code)
        return code

    def here(self) -> int:
        """The index of the next instruction."""
        return len(self.code)

    def site(self, name: str, node: Node, extra: int = 0) -> None:
        """The instruction of a node, with a site. Values whose last use it is make room for its
        results."""
        last_used = self.live.last_uses[node]
        args = self.words(node.inputs, last_used)
        self.forget(last_used)
        results = [self.registers.define(value) for value in node.outputs]
        self.emit(name, site=Site(args, results, extra))

    def site_words(self, name: str, words: list[int], results: list[int], extra: int = 0) -> None:
        """An instruction with a site whose operands and results are settled."""
        self.emit(name, site=Site(words, results, extra))

    @staticmethod
    def last_use(register: int) -> int:
        """The operand that empties an object register."""
        return register | LAST_USE_BIT

    def words(self, inputs: tuple[Value, ...], last_used: list[Value]) -> list[int]:
        """Operands; the last mention of an object that dies says so."""
        result = []
        registers, left = self.registers.of, last_used[:]
        for value in inputs[::-1]:
            node = value.node
            if node is not None and node.kind == "prim::Constant":
                constant = self.tables.constant(node.attrs["value"], value.type)
                result.append(CONSTANT_BIT | constant)
                continue
            word = registers[value]
            if word < SCALAR_BASE and value in left:
                left.remove(value)
                word |= LAST_USE_BIT
            result.append(word)
        return result[::-1]

    def forget(self, values: list[Value]) -> None:
        """The registers of values that died without a trace are free."""
        for value in values:
            self.registers.free(self.registers.of[value])

    def release(self, values: list[Value]) -> None:
        """Empties the registers of values."""
        for value in values:
            register = self.registers.of[value]
            if not is_scalar_register(register):
                self.emit("release", register)
            self.registers.free(register)

    def source(self, value: Value) -> int:
        """A register with the value; a constant is brought into one."""
        if not value.is_constant:
            return self.registers.of[value]
        constant = self.tables.constant(value.constant, value.type)
        if is_scalar_type(value.type):
            return self._preload(constant)
        register = self.registers.take(False, value)
        self.emit("load_constant", register, x=constant)
        return register

    def scalar_source(self, value: Value) -> int:
        """As `source`, in a scalar register."""
        register = self.source(value)
        if is_scalar_register(register):
            return register
        scalar = self.registers.take(True, value)
        self.emit("unbox", scalar, register)
        self.registers.free(scalar)  # good for the next instruction
        return scalar

    def object_source(self, value: Value) -> tuple[int, bool]:
        """As `source`, in an object register; and whether it is a copy that must be released."""
        register = self.source(value)
        if not is_scalar_register(register):
            return register, value.is_constant
        boxed = self.registers.take(False, value)
        self.emit("box", boxed, register)
        return boxed, True

    def drop(self, register: int) -> None:
        """Empties a register that `object_source` made."""
        self.emit("release", register)
        self.registers.free(register)

    def _preload(self, constant: int) -> int:
        place = self.preloaded.setdefault(constant, len(self.preloaded))
        return 2 * SCALAR_BASE + place  # behind the scalar registers, see _finish

    def move(self, target: int, source: int, last: bool) -> None:
        """target = source, whatever their classes."""
        to, of = is_scalar_register(target), is_scalar_register(source)
        if to and of:
            self.emit("move_scalar", target, source)
        elif to:
            self.emit("unbox", target, source)
            if last:
                self.emit("release", source)
        elif of:
            self.emit("box", target, source)
        else:
            self.emit("move_object" if last else "copy_object", target, source)

    def load(self, target: int, value: Value) -> None:
        """target = a constant."""
        constant = self.tables.constant(value.constant, value.type)
        name = "load_scalar" if is_scalar_register(target) else "load_constant"
        self.emit(name, target, x=constant)

    def move_all(self, values: tuple[Value, ...], targets: list[int], ends: set[Value]) -> None:
        """The values a block returns go to their registers, all at once."""
        moves, constants, released = [], [], []
        for value, target in zip(values, targets, strict=True):
            if value.is_constant:
                constants.append((target, value))
            elif value.node is None or value.node.kind != "prim::Uninitialized":
                moves.append(Move(target, self.registers.of[value], value in ends))
        for move in moves:
            if move.last and move.source not in targets and move.source not in released:
                released.append(move.source)
        spares: list[int] = []

        def temporary(register: int) -> int:
            spares.append(self.registers.take(is_scalar_register(register), None))
            return spares[-1]

        sequence(moves, temporary, self.move)
        for target, value in constants:
            self.load(target, value)
        for register in [*spares, *released]:
            self.registers.free(register)

    # Structure

    def block(self, block: Block) -> None:
        """The nodes of a block."""
        for node in block.nodes:
            if node.kind == "prim::Constant":
                continue
            self.range = node.range or self.range
            if control.defer(self, node):
                continue
            if not control.lower(self, node):
                nodes.lower(self, node)
            self.release(self.live.unused[node])

    def leave(self, block: Block) -> None:
        """The end of the function."""
        (value,) = block.returns
        if value.is_constant:
            constant = self.tables.constant(value.constant, value.type)
            self.emit("return_constant", x=constant)
            return
        register = self.registers.of[value]
        scalar = is_scalar_register(register)
        self.emit("return_scalar" if scalar else "return_object", register)

    def _finish(self, params: list[Param]) -> FunctionData:
        """Numbers the registers for good: objects, scalars, preloaded constants. Jumps to jumps go
        where those go."""
        for code in self.code:
            seen = 0
            while code.target is not None and self.code[code.target].name == "jump" and seen < 8:
                code.target, seen = self.code[code.target].target, seen + 1
        objects, scalars = self.registers.counts()
        if scalars or self.preloaded:
            self._number_registers(params, objects, scalars)
        total = scalars + len(self.preloaded)
        if objects + total > 0xFFFF:
            raise ValueError(
                f"{self.function.name}: expected at most 65535 values at a time, "
                f"got {objects + total}"
            )
        data = FunctionData(self.function.name, params, self.function.return_type)
        data.objects, data.scalars, data.preload_at = objects, total, objects + scalars
        data.preload = list(self.preloaded)
        data.code = self.code
        return data

    def _number_registers(self, params: list[Param], objects: int, scalars: int) -> None:
        """Scalar registers come behind those of objects."""

        def final(register: int) -> int:
            if register >= 2 * SCALAR_BASE:
                return register - 2 * SCALAR_BASE + objects + scalars
            return register - SCALAR_BASE + objects if register >= SCALAR_BASE else register

        def final_word(word: int) -> int:
            if word & CONSTANT_BIT:
                return word
            return final(word & ~LAST_USE_BIT) | (word & LAST_USE_BIT)

        for code in self.code:
            code.a, code.b, code.c = final(code.a), final(code.b), final(code.c)
            if code.site is not None:
                code.site.args = [final_word(word) for word in code.site.args]
                code.site.results = [final(register) for register in code.site.results]
        for param in params:
            param.register = final(param.register)

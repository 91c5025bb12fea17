"""Functions of the IR as text of TorchScript's dialect of Python.

Each node is one statement, in order; constants and undefined values stand where they are used.
`FunctionPrinter` prints one function; `Program` is what the functions of an archive have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.jit.archive import calls
from weft.jit.archive.canonical import is_counted
from weft.jit.archive.collect import Collector, is_closure
from weft.jit.archive.constants import Constants, is_default, plain
from weft.jit.archive.debug import Line
from weft.jit.archive.expressions import call_of, cast, expression
from weft.jit.archive.foreign import is_foreign
from weft.jit.archive.naming import Names
from weft.jit.archive.variables import Variables
from weft.jit.ir import Block, Function, Node, Value
from weft.jit.ir import types as ty
from weft.jit.ir.source import SourceRange

_INDENT = "  "


def joined(lines: Iterable[Line]) -> str:
    """The text of lines."""
    return "".join(f"{line.text}\n" for line in lines)


def end_of_with(nodes: Sequence[Node], start: int) -> int | None:
    """Where the block of a `with` ends that a node begins; None if it begins none."""
    if not _calls(nodes[start], "__enter__"):
        return None
    for index in range(start + 1, len(nodes)):
        node = nodes[index]
        if _calls(node, "__exit__") and node.inputs[0] is nodes[start].inputs[0]:
            return None if node.output.has_uses else index
    return None


def _calls(node: Node, name: str) -> bool:
    return node.kind == "prim::CallMethod" and node.attrs["name"] == name


class Program:
    """Names and constants of an archive's code. `refused` tells by name what archives cannot say,
    `version` is the oldest version of archives that can say the rest."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.names = Names(collector.definitions)
        self.constants = Constants(self.names.type)
        self.refused: dict[str, None] = {}
        self.version = calls.OLDEST

    def need(self, node: Node) -> None:
        """Notes an operator that the code calls."""
        self.version = max(self.version, calls.version_of(node.kind))
        if is_foreign(node):
            self.refuse(node.kind)

    def refuse(self, what: str) -> None:
        """Notes what archives cannot say."""
        self.refused[what] = None


class FunctionPrinter:
    """Prints one function."""

    def __init__(self, program: Program, function: Function) -> None:
        self.program = program
        self.function = function
        self.variables = Variables()
        self.lines: list[Line] = []
        self._indent = ""
        self._range: SourceRange | None = None  # of the node that is printed

    def whole(self, name: str, owner: str | None = None) -> list[Line]:
        """The lines of the function by a name. `owner`: the class whose method it is, or empty."""
        graph = self.program.collector.graph(self.function)
        names = self.function.arg_names
        parameters = [
            f"{self.variables.define(value)}: {self.type(value.type)}"
            for value in graph.inputs[owner is not None :]
        ]
        for index in range(1, len(parameters) + 1):
            default = self._default(names[-index])
            if default is None:  # those before it have none either
                break
            parameters[-index] += f"={default}"
        if owner is not None:
            self.variables.set(graph.inputs[0], "self")
            parameters.insert(0, f"self: {owner}" if owner else "self")
        returns = self.type(self.function.return_type)
        separator = ",\n    "
        head = f"def {name}({separator.join(parameters)}) -> {returns}:"
        self.lines += map(Line, head.split("\n"))
        self._indent = _INDENT
        self._block(graph.block)
        (result,) = graph.returns or (None,)
        self._range = None
        self._line(f"return {'None' if result is None else self.use(result)}")
        return self.lines

    def _default(self, name: str) -> str | None:
        """The text of an argument's default; None where there is none, or no literal for it."""
        defaults = self.function.defaults
        if name not in defaults or not is_default(plain(defaults[name])):
            return None
        return self.program.constants.text(defaults[name])

    # Values -------------------------------------------------------------------------------------

    def type(self, type: ty.Type) -> str:
        """The text of a type."""
        return self.program.names.type(type)

    def constant(self, value: Any) -> str:
        """The text of a constant."""
        text = self.program.constants.text(value)
        if text is None:
            self.program.refuse(f"a constant of {type(value).__name__}")
        return text or "None"

    def use(self, value: Value) -> str:
        """A value where it is read."""
        if value.is_constant:
            return self.constant(value.constant)
        if value.node is not None and value.node.kind == "prim::Uninitialized":
            return f"uninitialized({self.type(value.type)})"
        return self.variables.of(value)

    def converted(self, value: Value, type: ty.Type) -> str:
        """A value where one of a wider type is wanted, which it is by a cast."""
        if value.is_constant and value.constant is None and type is not ty.NONE:
            return f"annotate({self.type(type)}, None)"
        if self.type(value.type) == self.type(type):
            return self.use(value)
        variable = self.variables.temporary()
        self._line(f"{variable} = {cast(self, type, self.use(value))}")
        return variable

    # Statements ---------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self.lines.append(Line(self._indent + text, self._range))

    def _block(self, block: Block) -> None:
        self._nodes(block.nodes)

    def _nodes(self, nodes: Sequence[Node]) -> None:
        for index, node in enumerate(nodes):
            self._range = node.range
            end = end_of_with(nodes, index)
            if end is not None:
                self._with(node, nodes[index + 1 : end])
                return self._nodes(nodes[end + 1 :])
            if node.kind == "prim::If":
                self._if(node)
            elif node.kind == "prim::Loop":
                self._loop(node)
            elif node.kind == "prim::SetAttr":
                self._set_attribute(node)
            elif node.kind not in ("prim::Constant", "prim::Uninitialized"):
                self._statement(node)
        return None

    def _with(self, enter: Node, body: Sequence[Node]) -> None:
        name = f" as {self.variables.define(enter.output)}" if enter.output.has_uses else ""
        self._line(f"with {self.use(enter.inputs[0])}{name}:")
        self._indent += _INDENT
        before = len(self.lines)
        self._nodes(body)
        if len(self.lines) == before:
            self._line("pass")
        self._indent = self._indent[: -len(_INDENT)]

    def _statement(self, node: Node) -> None:
        text = expression(self, node)
        outputs = [self.variables.define(value) for value in node.outputs]
        if node.kind in ("prim::TupleUnpack", "prim::ListUnpack") or len(outputs) > 1:
            self._line(f"{''.join(f'{each}, ' for each in outputs)}= {text}")
        else:
            self._line(f"{outputs[0]} = {text}" if outputs else text)

    def closure(self, node: Node, texts: Sequence[str]) -> str:
        """A function without arguments that does what a node forks."""
        name, function = f"__forked{self.variables.temporary()}", node.attrs["function"]
        range = self._range
        self._line(f"def {name}():")
        self._indent += _INDENT
        if is_closure(function):
            graph = self.program.collector.graph(function)
            for value, text in zip(graph.inputs, texts):
                self.variables.set(value, text)
            self._block(graph.block)
            self._range = range
            result = self.use(graph.returns[0])
        else:
            result = self.variables.temporary()
            self._line(f"{result} = {call_of(self, function, node, texts)}")
        self._line(f"return {result}")
        self._indent = self._indent[: -len(_INDENT)]
        return name

    def _set_attribute(self, node: Node) -> None:
        target, value = node.inputs
        assert isinstance(target.type, ty.ClassType)
        name = node.attrs["name"]
        text = self.converted(value, target.type.attributes[name].type)
        self._line(f"{self.use(target)}.{name} = {text}")

    def _nested(self, block: Block, targets: Sequence[str], types: Sequence[ty.Type]) -> None:
        """A block within a statement; what it gives goes to variables."""
        self._indent += _INDENT
        before, range = len(self.lines), self._range
        self._block(block)
        self._range = range
        values = block.returns[len(block.returns) - len(targets) :]
        texts = [self.converted(value, type) for value, type in zip(values, types)]
        pairs = [(target, text) for target, text in zip(targets, texts) if target != text]
        if pairs:
            self._line(f"{', '.join(t for t, _ in pairs)} = {', '.join(v for _, v in pairs)}")
        elif len(self.lines) == before:
            self._line("pass")
        self._indent = self._indent[: -len(_INDENT)]

    def _if(self, node: Node) -> None:
        condition = self.use(node.inputs[0])
        types = [value.type for value in node.outputs]
        outputs = [self.variables.define(value) for value in node.outputs]
        self._line(f"if {condition}:")
        self._nested(node.blocks[0], outputs, types)
        self._line("else:")
        self._nested(node.blocks[1], outputs, types)

    def _loop(self, node: Node) -> None:
        trips, condition, *carried = node.inputs
        body = node.blocks[0]
        step, *params = body.params
        texts = [self.converted(each, out.type) for each, out in zip(carried, node.outputs)]
        names = []
        for output, param, text in zip(node.outputs, params, texts):
            name = self.variables.define(output)
            self.variables.set(param, name)
            self._line(f"{name} = {text}")
            names.append(name)
        types = [output.type for output in node.outputs]
        if is_counted(node):
            self._line(f"for {self.variables.define(step)} in range({self.use(trips)}):")
        else:
            again = self.variables.temporary()
            self._line(f"{again} = {self.use(condition)}")
            self._line(f"while {again}:")
            names, types = [again, *names], [ty.BOOL, *types]
        self._nested(body, names, types)

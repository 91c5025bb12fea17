"""A function of the IR as Python text: what `.code` shows. One statement for each node; constants
stand where they are used."""

from __future__ import annotations

import keyword
import re
import types as python_types
from typing import Any

from weft.jit.ir import Block, Function, Node, Value
from weft.jit.ir import types as ty
from weft.jit.ir.literals import text_of

_INDENT = "  "


def code_of_function(function: Function) -> str:
    """The function as Python text.

    >>> from weft import jit
    >>> print(jit.CompilationUnit("def f(x, n: int): return x + n").f.code)
    def f(x: Tensor, n: int) -> Tensor:
      _0 = torch.add(x, n, 1)
      return _0
    <BLANKLINE>
    """
    return _Text(function).whole()


def code_with_constants(function: Function) -> tuple[str, Any]:
    """The text, in which tensors are CONSTANTS.c0, CONSTANTS.c1, ...; and an object that has these
    as attributes (`const_mapping` is the dict of them)."""
    text = _Text(function, {})
    whole = text.whole()
    constants = python_types.SimpleNamespace(**text.constants or {})
    constants.const_mapping = text.constants
    return whole, constants


class _Text:
    def __init__(self, function: Function, constants: dict[str, Any] | None = None) -> None:
        self.function = function
        self.constants = constants  # those that are named in the text; None: none are
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.lines: list[str] = []
        self.count = 0

    def whole(self) -> str:
        function = self.function
        args = []
        for name, value in zip(function.arg_names, function.graph.inputs):
            self.names[value] = name
            self.taken.add(name)
            default = f"={text_of(function.defaults[name])}" if name in function.defaults else ""
            args.append(name if name == "self" else f"{name}: {value.type.annotation}{default}")
        returns = function.return_type.annotation
        short = function.name.rpartition(".")[2]
        self.lines.append(f"def {short}({', '.join(args)}) -> {returns}:")
        self.block(function.graph.block, _INDENT)
        values = ", ".join(self.use(value) for value in function.graph.returns)
        self.lines.append(f"{_INDENT}return {values}".rstrip())
        return "\n".join(self.lines) + "\n"

    def constant(self, value: Any) -> str:
        """A constant; a tensor by its name, where they have names."""
        if self.constants is None or not hasattr(value, "shape"):
            return _constant(value)
        known = next((name for name, each in self.constants.items() if each is value), None)
        if known is None:
            known = f"c{len(self.constants)}"
            self.constants[known] = value
        return f"CONSTANTS.{known}"

    # Names ------------------------------------------------------------------------------------

    def define(self, value: Value) -> str:
        """The variable that holds a value."""
        if value not in self.names:
            base = re.sub(r"\W", "_", value.name)
            if not base or base[0].isdigit() or keyword.iskeyword(base):
                base = f"_{self.count}"
                self.count += 1
            while base in self.taken:
                base += "_"
            self.taken.add(base)
            self.names[value] = base
        return self.names[value]

    def use(self, value: Value) -> str:
        """A value where it is read."""
        if value.is_constant:
            return self.constant(value.constant)
        return self.define(value)

    # Statements -------------------------------------------------------------------------------

    def block(self, block: Block, indent: str) -> None:
        """The statements of a block."""
        for node in block:
            if node.kind != "prim::Constant":
                self.node(node, indent)

    def node(self, node: Node, indent: str) -> None:
        """One statement."""
        if node.kind == "prim::If":
            self._if(node, indent)
        elif node.kind == "prim::Loop":
            self._loop(node, indent)
        elif node.kind == "prim::SetAttr":
            target, held = node.inputs
            self.lines.append(f"{indent}{self.use(target)}.{node.attrs['name']} = {self.use(held)}")
        elif node.kind == "prim::RaiseException":
            name = node.attrs.get("exception", "RuntimeError")
            self.lines.append(f"{indent}raise {name}({self.use(node.inputs[0])})")
        else:
            outputs = ", ".join(self.define(value) for value in node.outputs)
            text = self._expression(node)
            self.lines.append(f"{indent}{outputs} = {text}" if outputs else f"{indent}{text}")

    def _if(self, node: Node, indent: str) -> None:
        self.lines.append(f"{indent}if {self.use(node.inputs[0])}:")
        for number, block in enumerate(node.blocks):
            if number:
                self.lines.append(f"{indent}else:")
            before = len(self.lines)
            self.block(block, indent + _INDENT)
            self._assign(node.outputs, block.returns, indent + _INDENT)
            if len(self.lines) == before:
                self.lines.append(f"{indent}{_INDENT}pass")

    def _loop(self, node: Node, indent: str) -> None:
        trips, first, *carried = node.inputs
        body = node.blocks[0]
        step, *params = body.params
        again, *finals = body.returns
        for output, param, start in zip(node.outputs, params, carried):
            name = self.define(output)
            self.names[param] = name
            self.lines.append(f"{indent}{name} = {self.use(start)}")
        counted = first.is_constant and again.is_constant
        if counted:
            self.lines.append(f"{indent}for {self.define(step)} in range({self.use(trips)}):")
        else:
            again_name = self.define(again) if not again.is_constant else f"_{self.count}"
            self.lines.append(f"{indent}{again_name} = {self.use(first)}")
            self.lines.append(f"{indent}while {again_name}:")
        before = len(self.lines)
        self.block(body, indent + _INDENT)
        if not counted and again.is_constant:
            self.lines.append(f"{indent}{_INDENT}{again_name} = {self.use(again)}")
        self._assign(node.outputs, finals, indent + _INDENT)
        if len(self.lines) == before:
            self.lines.append(f"{indent}{_INDENT}pass")

    def _assign(self, targets: Any, values: Any, indent: str) -> None:
        pairs = [(self.define(t), self.use(v)) for t, v in zip(targets, values)]
        pairs = [(target, value) for target, value in pairs if target != value]
        if pairs:
            left, right = zip(*pairs)
            self.lines.append(f"{indent}{', '.join(left)} = {', '.join(right)}")

    # Expressions ------------------------------------------------------------------------------

    def _expression(self, node: Node) -> str:
        args = [self.use(value) for value in node.inputs]
        listed = ", ".join(args)
        kind = node.kind
        if kind == "prim::ListConstruct":
            text = f"[{listed}]"
            return text if args else f"annotate({node.output.type.annotation}, [])"
        if kind == "prim::TupleConstruct":
            return f"({listed}{',' if len(args) == 1 else ''})"
        if kind == "prim::DictConstruct":
            pairs = ", ".join(f"{k}: {v}" for k, v in zip(args[::2], args[1::2]))
            return f"{{{pairs}}}" if pairs else f"annotate({node.output.type.annotation}, {{}})"
        if kind in ("prim::TupleUnpack", "prim::ListUnpack"):
            return listed
        if kind == "prim::TupleIndex":
            return f"{args[0]}[{node.attrs['index']}]"
        if kind == "prim::GetAttr":
            name = node.attrs["name"]
            return f"{args[0]}.{name}" if name.isidentifier() else f'getattr({args[0]}, "{name}")'
        if kind == "prim::CallMethod":
            return f"({args[0]}).{node.attrs['name']}({', '.join(args[1:])})"
        if kind in ("prim::CallFunction", "prim::fork"):
            name = node.attrs["function"].name
            return (
                f"fork({', '.join([name, *args])})" if kind == "prim::fork" else f"{name}({listed})"
            )
        return self._named(node, args)

    def _named(self, node: Node, args: list[str]) -> str:
        kind, listed = node.kind, ", ".join(args)
        if kind == "prim::Uninitialized":
            return f"uninitialized({node.output.type.annotation})"
        if kind == "prim::unchecked_cast":
            return f"unchecked_cast({node.output.type.annotation}, {args[0]})"
        if kind == "prim::isinstance":
            types = ", ".join(t.annotation for t in node.attrs["types"])
            return f"isinstance({args[0]}, ({types}))"
        if kind == "prim::CreateObject":
            return f"{node.output.type}.__new__()"
        if kind == "prim::CallPython":
            called = node.attrs["callable"]
            return f"python.{getattr(called, '__qualname__', 'callable')}({listed})"
        if kind in ("prim::EnterGradMode", "prim::ExitGradMode"):
            mode = f"{node.attrs['mode']}" if "mode" in node.attrs else ""
            return f"ops.{kind.replace('::', '.')}({mode})"
        if kind == "prim::Print":
            return f"print({listed})"
        space, _, name = node.name.partition("::")
        prefix = "torch" if space == "aten" else f"ops.{space}"
        return f"{prefix}.{name}({listed})"


def _constant(value: Any) -> str:
    if isinstance(value, (ty.EnumValue, str, bool, int, float, complex)) or value is None:
        return text_of(value)
    return text_of(value) if not hasattr(value, "shape") else f"CONSTANT(Tensor{list(value.shape)})"

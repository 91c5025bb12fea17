"""From the nodes of a graph to Python: names, expressions, statements, globals."""

from __future__ import annotations

import builtins
import enum
import functools
import keyword
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._runtime.public import weft
from weft.fx._names import _get_qualified_name, _type_repr
from weft.fx.node import Argument, Node, map_arg
from weft.utils import _pytree

if TYPE_CHECKING:
    from weft.fx.graph import Graph

# Names that generated code may always use; what is printed of values needs them.
_CUSTOM_BUILTINS: dict[str, Any] = {
    "inf": math.inf,
    "nan": math.nan,
    "NoneType": type(None),
    "torch": weft,
    "device": _C.device,
    "pytree": _pytree,
}

_INFIX = {
    "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "add": "+", "sub": "-",
    "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%", "pow": "**", "lshift": "<<",
    "rshift": ">>", "and_": "&", "or_": "|", "xor": "^", "matmul": "@",
}  # fmt: skip
_PREFIX = {"pos": "+", "neg": "-", "invert": "~"}
_INPLACE = {
    "iadd": "+=", "iand": "&=", "ifloordiv": "//=", "ilshift": "<<=", "imod": "%=", "imul": "*=",
    "imatmul": "@=", "ior": "|=", "ipow": "**=", "irshift": ">>=", "isub": "-=", "itruediv": "/=",
    "ixor": "^=", "setitem": "[{}] = {}",
}  # fmt: skip


@dataclass
class PythonCode:
    """Source text, and the objects that its global names stand for."""

    src: str
    globals: dict[str, Any]


class _Namespace:
    """Names that are different from each other, from keywords and from builtins."""

    def __init__(self) -> None:
        self._objects: dict[Any, str] = {}
        self._used: set[str] = set()
        self._count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A free name like the candidate; for an object that has one already, that."""
        if obj is not None and _key(obj) in self._objects:
            return self._objects[_key(obj)]
        candidate = re.sub(r"\W", "_", candidate, flags=re.ASCII) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = re.fullmatch(r"(.*)_(\d+)", candidate)
        base = match[1] if match else candidate
        number = int(match[2]) if match else self._count.get(base, 0)
        while candidate in self._used or _is_illegal(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        self._count[base] = number
        if obj is not None:
            self._objects[_key(obj)] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Lets an object have a name that was created already."""
        self._objects[_key(obj)] = name
        self._used.add(name)

    _associate_name_with_obj = associate_name_with_obj


def _key(obj: Any) -> Any:
    return obj if isinstance(obj, Node) else id(obj)


def _is_illegal(name: str, obj: Any) -> bool:
    if name in keyword.kwlist:
        return True
    if hasattr(builtins, name):
        return obj is not getattr(builtins, name)
    return name in _CUSTOM_BUILTINS and obj is not _CUSTOM_BUILTINS[name]


def format_target(base: str, target: str) -> str:
    """An attribute by its dotted name: self.layer, getattr(self.layers, "0")."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


def _resolves(name: str, obj: Any) -> bool:
    """Whether PyTorch's name of an object is one in weft as well."""
    found: Any = weft
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found is obj


@dataclass
class _Writer:
    """The function that is being written."""

    graph: Graph
    root: str
    namespace: _Namespace
    globals: dict[str, Any] = field(default_factory=lambda: dict(_CUSTOM_BUILTINS))
    wrapped: dict[str, None] = field(default_factory=dict)
    parameters: list[str] = field(default_factory=list)
    returns: str = ""

    def global_name(self, hint: str, obj: Any) -> str:
        """An expression for an object of the program: torch's by its dotted name."""
        if hint.startswith("torch.") and _resolves(hint, obj):
            return hint
        name = self.namespace.create_name(hint.replace(".", "_"), obj)
        self.globals.setdefault(name, obj)
        return name

    def type_text(self, kind: Any) -> str:
        """A type annotation, whose parts become globals."""
        if kind is ...:
            return self.global_name("_", kind)
        if isinstance(kind, types.UnionType):
            return "|".join(self.type_text(each) for each in kind.__args__)
        origin = getattr(kind, "__origin__", None)
        if origin is None:
            return self.global_name(_type_repr(kind), kind)
        if not isinstance(kind, types.GenericAlias):
            origin = _TYPING.get(origin, origin)
        name = self.global_name(_type_repr(origin), origin)
        parts = [self.type_text(each) for each in getattr(kind, "__args__", ())]
        return f"{name}[{','.join(parts)}]" if parts else name

    def annotation(self, node: Node) -> str:
        """ " : type" for a node that has one."""
        return "" if node.type is None else f" : {self.type_text(node.type)}"

    def value(self, arg: Argument) -> str:
        """An argument as an expression."""
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            name = self.global_name(_get_qualified_name(type(arg)), type(arg))
            return f"{name}({', '.join(map(self.value, arg))})"
        if isinstance(arg, tuple):
            return "(" + ", ".join(map(self.value, arg)) + (",)" if len(arg) == 1 else ")")
        if isinstance(arg, list):
            return "[" + ", ".join(map(self.value, arg)) + "]"
        if isinstance(arg, dict):
            items = (f"{key!r}: {self.value(value)}" for key, value in arg.items())
            return "{" + ", ".join(items) + "}"
        if isinstance(arg, slice):
            return f"slice({', '.join(map(self.value, (arg.start, arg.stop, arg.step)))})"
        if isinstance(arg, enum.Enum):
            kind = type(arg)
            return f"{self.global_name(_get_qualified_name(kind), kind)}.{arg.name}"
        if callable(arg) and hasattr(arg, "__name__"):  # a function or a class
            return self.global_name(_get_qualified_name(arg), arg)
        return repr(arg)

    def call_arguments(self, args: Iterable[Argument], kwargs: dict[str, Argument]) -> str:
        """The arguments of a call."""
        named = (f"{key} = {self.value(value)}" for key, value in kwargs.items())
        return ", ".join([*map(self.value, args), *named])

    # ---- statements, by op ----

    def placeholder(self, node: Node) -> str:
        """A parameter; a statement where the node has another name than that."""
        name = str(node.target)
        default = f" = {self.value(node.args[0])}" if node.args else ""
        self.parameters.append(f"{name}{self.annotation(node)}{default}")
        raw = name.replace("*", "")
        return "" if raw == repr(node) else f"{node!r} = {raw}"

    def output(self, node: Node) -> str:
        """The return, whose type becomes the function's."""
        if node.type is not None:
            self.returns = f" -> {self.type_text(node.type)}"
        return self.graph._codegen.generate_output(self.value(node.args[0]))

    def get_attr(self, node: Node) -> str:
        """An attribute of the root."""
        return f"{node!r}{self.annotation(node)} = {format_target(self.root, str(node.target))}"

    def call_module(self, node: Node) -> str:
        """A call of a module of the root."""
        called = format_target(self.root, str(node.target))
        return self._called(node, called, node.args)

    def call_method(self, node: Node) -> str:
        """A call of a method of the first argument."""
        called = format_target(self.value(node.args[0]), str(node.target))
        return self._called(node, called, node.args[1:])

    def _called(self, node: Node, called: str, args: Iterable[Argument]) -> str:
        given = self.call_arguments(args, node.kwargs)
        return f"{node!r}{self.annotation(node)} = {called}({given})"

    def call_function(self, node: Node) -> str:
        """A call of a function, or the operator that it stands for."""
        target: Any = node.target
        own = self.graph._codegen.write_call(node, self.value)
        if own is not None:
            return own
        if getattr(target, "__module__", None) == "_operator":
            written = self._operator(node, target.__name__)
            if written is not None:
                return written
        name = _get_qualified_name(target)
        if target is getattr and len(node.args) == 2 and _is_identifier(node.args[1]):
            self.global_name(name, target)
            owner = format_target(self.value(node.args[0]), node.args[1])
            return f"{node!r}{self.annotation(node)} = {owner}"
        if getattr(target, "__module__", None) == "_operator":
            name = name.replace("operator", "_operator", 1)
        called = self.global_name(name, target)
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(called)
        return self._called(node, called, node.args)

    def _operator(self, node: Node, name: str) -> str | None:
        if node.kwargs:
            return None
        args = [self.value(each) for each in node.args]
        result = f"{node!r}{self.annotation(node)}"
        if name in _INFIX and len(args) == 2:
            return f"{result} = {args[0]} {_INFIX[name]} {args[1]}"
        if name in _PREFIX and len(args) == 1:
            return f"{result} = {_PREFIX[name]}{args[0]}"
        if name == "getitem" and len(args) == 2:
            return f"{result} = {args[0]}[{args[1]}]"
        if name == "setitem" and len(args) == 3:
            return f"{args[0]}[{args[1]}] = {args[2]};  {result} = {args[0]}"
        if name in _INPLACE and len(args) == 2:
            return f"{args[0]} {_INPLACE[name]} {args[1]};  {result} = {args[0]}"
        return None


_TYPING = {
    list: typing.List,  # noqa: UP006
    dict: typing.Dict,  # noqa: UP006
    set: typing.Set,  # noqa: UP006
    frozenset: typing.FrozenSet,  # noqa: UP006
    tuple: typing.Tuple,  # noqa: UP006
}


def _is_identifier(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier()


def _last_uses(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """For each node the ones that nobody uses behind it."""
    last: dict[Node, list[Node]] = {}
    seen: set[Node] = set()

    def register(used: Node, user: Node) -> Node:
        if used not in seen:
            seen.add(used)
            last.setdefault(user, []).append(used)
        return used

    for node in reversed(list(nodes)):
        map_arg((node.args, node.kwargs), functools.partial(register, user=node))
    return last


class CodeGen:
    """Writes a graph's function. Derive from it to give the function another signature: inputs and
    outputs go through `process_inputs` and `process_outputs` when an Interpreter runs the graph.
    """

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line of the definition, from the parameters as text."""
        if not free_vars or free_vars[0] != "self":
            free_vars = ["self", *free_vars]
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Argument) -> str:
        """The return, from its expression."""
        return f"return {output_args}"

    def write_call(self, node: Node, text_of: Callable[[Argument], str]) -> str | None:
        """The statement of a call; None for a plain one."""
        return None

    def process_inputs(self, *args: Any) -> Any:
        """The placeholders' values, from the arguments of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The function's result, from the value of the output."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that generated code needs besides."""
        return []

    def _gen_python_code(
        self, nodes: Iterable[Node], root_module: str, namespace: _Namespace, graph: Graph
    ) -> PythonCode:
        nodes = list(nodes)
        writer = _Writer(graph, root_module, namespace)
        for name, value in self.additional_globals():
            writer.global_name(name, value)
        lines = list(_statements(nodes, writer)) or ["pass\n"]
        if self._body_transformer is not None:
            lines = self._body_transformer(lines)
        wraps = [f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped]
        head = self.gen_fn_def(writer.parameters, writer.returns)
        body = "\n".join("    " + line for line in "".join(lines).split("\n"))
        text = "\n" + "\n".join(wraps) + f"\n\n{head}\n{body}"
        return PythonCode(text, writer.globals)


def _statements(nodes: list[Node], writer: _Writer) -> Iterator[str]:
    last = _last_uses(nodes)
    for node in nodes:
        line = getattr(writer, node.op)(node)
        if node.op in ("placeholder", "output"):
            yield f"{line}\n" if line else ""
            continue
        dead = [*last.get(node, ()), *(() if node.users else (node,))]
        drop = f";  {' = '.join([*map(repr, dead), 'None'])}" if dead else ""
        yield f"{line}{drop}\n"

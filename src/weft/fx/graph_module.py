"""GraphModule: a module whose forward is written from a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import pickle
from pathlib import Path
from typing import Any

from weft._C import Tensor
from weft.fx._codegen import PythonCode
from weft.fx.graph import Graph
from weft.fx.node import Node, map_aggregate, map_arg
from weft.nn import Module
from weft.nn.parameter import Parameter
from weft.serialization import save

_counter = itertools.count()


def _exec(code: PythonCode) -> dict[str, Any]:
    """What the text of a function defines; tracebacks show its lines."""
    name = f"<eval_with_key>.{next(_counter)}"
    linecache.cache[name] = (len(code.src), None, code.src.splitlines(keepends=True), name)
    namespace = dict(code.globals)
    exec(compile(code.src, name, "exec"), namespace)
    return namespace


def _owner(root: Any, target: str, make: bool = False) -> tuple[Any, str]:
    """The module that a dotted name lies in, and its last part. `make`: modules on the way."""
    *path, last = target.split(".")
    for part in path:
        if make and not hasattr(root, part):
            root.add_module(part, Module())
        root = getattr(root, part)
    return root, last


def _assign(root: Module, target: str, value: Any) -> None:
    """Puts a value under a dotted name; a tensor that is no parameter becomes a buffer."""
    owner, name = _owner(root, target, make=True)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        owner.register_buffer(name, value)
    else:
        setattr(owner, name, value)


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Puts what a module has under a dotted name under the same name of another one, unless there
    is something. AttributeError where the first has nothing."""
    owner, name = _owner(from_module, target)
    value = getattr(owner, name)
    here, last = _owner(to_module, target, make=True)
    if not hasattr(here, last):
        _assign(to_module, target, value)


class GraphModule(Module):
    """A module generated from a `Graph`.

    root: the module whose parameters, buffers and modules the graph names, or a dict of them by
    dotted name; what the graph does not name is not taken. Each GraphModule has a class of its own,
    whose forward is `code`. After a change of `graph` call `recompile()`.

    >>> traced = weft.fx.symbolic_trace(lambda x: x + 1)
    >>> print(traced.code.strip())
    def forward(self, x):
        add = x + 1;  x = None
        return add
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        """Makes a class for the object, since forward is looked up in classes."""
        base = next(each for each in cls.__mro__ if "_is_generated" not in vars(each))
        made = type(base.__name__, (base,), {"_is_generated": True})
        return super().__new__(made)

    def __init__(
        self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            self.training = root.training
            self._take_from(root, graph)
        elif isinstance(root, dict):
            self._take_named(root, graph)
        else:
            raise RuntimeError(
                f"GraphModule: expected a Module or a dict as root, got {type(root).__name__}"
            )
        self.meta: dict[str, Any] = {}
        self._tracer_cls = graph._tracer_cls
        self.graph = graph

    def _take_from(self, root: Module, graph: Graph) -> None:
        for node in graph.nodes:
            if node.op not in ("get_attr", "call_module"):
                continue
            try:
                _copy_attr(root, self, str(node.target))
            except AttributeError:
                if node.op == "get_attr":
                    continue  # the graph may be completed later
                raise RuntimeError(
                    f"GraphModule: expected a module {node.target} in root, got none"
                ) from None

    def _take_named(self, root: dict[str, Any], graph: Graph) -> None:
        named = {str(n.target) for n in graph.nodes if n.op in ("get_attr", "call_module")}
        for target in sorted(named, key=lambda each: each.count(".")):
            if target not in root:
                raise RuntimeError(
                    f"GraphModule: expected {target}, which the graph names, in root, got none"
                )
            _assign(self, target, root[target])

    # ---- graph and code ----

    @property
    def graph(self) -> Graph:
        """The graph behind forward. Assigning one recompiles."""
        return self.__dict__["_graph"]

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"graph: expected a Graph, got {type(g).__name__}")
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The text of forward."""
        return self.__dict__["_code"]

    def recompile(self) -> PythonCode:
        """Writes forward anew from the graph. To be called after a change."""
        code = self.graph.python_code("self")
        self.__dict__["_code"] = code.src
        namespace = _exec(code)
        type(self).forward = namespace[self.graph._codegen._func_name]  # type: ignore[method-assign]
        return code

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The text of the module's class, and of GraphModules inside; printed unless told not."""
        body = "\n".join(f"    {line}".rstrip() for line in self.code.strip().split("\n"))
        text = f"class {self._get_name()}(torch.nn.Module):\n{body}\n"
        for child in self.children():
            if isinstance(child, GraphModule):
                inner = child.print_readable(print_output=False)
                text += "\n" + "\n".join(f"    {line}".rstrip() for line in inner.split("\n"))
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: str | Path, module_name: str = "FxModule") -> None:
        """Writes a package that defines the module: module.py with its code, its parameters, and
        each of its modules as a pickle, which the package loads when it is made.

        Functions that are no torch functions must be importable by the names in the code.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        save(self.state_dict(), folder / "state_dict.pt")
        lines = ["super().__init__()", "here = Path(__file__).parent"]
        for name, child in self.named_children():
            (folder / f"{name}.pkl").write_bytes(pickle.dumps(child))
            lines.append(f"self.{name} = pickle.loads((here / {name + '.pkl'!r}).read_bytes())")
        for name, tensor in self.named_parameters(recurse=False):
            empty = f"torch.empty({list(tensor.shape)}, dtype={tensor.dtype})"
            lines.append(f"self.{name} = torch.nn.Parameter({empty}, {tensor.requires_grad})")
        for name, buffer in self.named_buffers(recurse=False):
            empty = f"torch.empty({list(buffer.shape)}, dtype={buffer.dtype})"
            lines.append(f"self.register_buffer({name!r}, {empty})")
        lines.append("self.load_state_dict(torch.load(here / 'state_dict.pt'))")
        init = "\n".join(f"        {line}" for line in lines)
        code = "\n".join(f"    {line}".rstrip() for line in self.code.strip().split("\n"))
        (folder / "module.py").write_text(
            "import pickle\nfrom pathlib import Path\n\nimport weft as torch\n"
            "from weft import device, inf, nan\n\n\n"
            f"class {module_name}(torch.nn.Module):\n    def __init__(self):\n{init}\n\n{code}\n"
        )
        (folder / "__init__.py").write_text("from .module import *\n")

    # ---- submodules ----

    def add_submodule(self, target: str, m: Module) -> bool:
        """Puts a module under a dotted name, with empty modules on the way. False where something
        on the way is no module."""
        owner: Any = self
        *path, last = target.split(".")
        for part in path:
            if not hasattr(owner, part):
                owner.add_module(part, Module())
            owner = getattr(owner, part)
            if not isinstance(owner, Module):
                return False
        owner.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Removes the module of a dotted name. False where there is none."""
        try:
            owner, name = _owner(self, target)
            found = getattr(owner, name)
        except AttributeError:
            return False
        if not isinstance(found, Module):
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Removes modules that the graph neither calls nor reads anything of."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = str(node.target).split(".")
            used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
            if node.op == "call_module" and _has(self, node.target):
                called = self.get_submodule(str(node.target))
                used.update(f"{node.target}.{name}" for name, _ in called.named_modules())
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ---- copies, pickles ----

    def _state(self) -> dict[str, Any]:
        """The object's dict without what is written from the graph."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}

    def __copy__(self) -> GraphModule:
        return _fill(_base(self).__new__(_base(self)), self._state(), self.graph)

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made = _base(self).__new__(_base(self))
        memo[id(self)] = made
        state = copy.deepcopy(self._state(), memo)
        return _fill(made, state, copy.deepcopy(self.graph, memo))

    def __reduce__(self) -> Any:
        nodes = [_row(node) for node in self.graph.nodes]
        facts = (self.graph._codegen, self.graph._tracer_cls)
        return _unpickled, (_base(self), self._state(), nodes, facts)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __str__(self) -> str:
        return "\n".join(
            [
                super().__str__(),
                self.code,
                "# To see more debug info, please use `graph_module.print_readable()`",
            ]
        )


def _base(module: GraphModule) -> type[GraphModule]:
    return next(each for each in type(module).__mro__ if "_is_generated" not in vars(each))


def _has(root: Module, target: Any) -> bool:
    try:
        return isinstance(root.get_submodule(str(target)), Module)
    except AttributeError:
        return False


class _Name(str):
    """A node inside the arguments of a pickled one."""

    __slots__ = ()


def _row(node: Node) -> tuple[Any, ...]:
    def named(each: Node) -> _Name:
        return _Name(each.name)

    args, kwargs = map_arg(node.args, named), map_arg(node.kwargs, named)
    return node.op, node.name, node.target, args, kwargs, node.type


def _unpickled(
    cls: type[GraphModule], state: dict[str, Any], rows: list[tuple[Any, ...]], facts: Any
) -> GraphModule:
    codegen, tracer_cls = facts
    graph = Graph(tracer_cls=tracer_cls)
    nodes: dict[str, Node] = {}

    def node_of(each: Any) -> Any:
        return nodes[each] if isinstance(each, _Name) else each

    for op, node_name, target, args, kwargs, kind in rows:
        made = graph.create_node(
            op,
            target,
            map_aggregate(args, node_of),
            dict(map_aggregate(kwargs, node_of)),
            node_name,
            kind,
        )
        nodes[node_name] = made
    graph.set_codegen(codegen)
    return _fill(cls.__new__(cls), state, graph)


def _fill(made: GraphModule, state: dict[str, Any], graph: Graph) -> GraphModule:
    made.__setstate__(state)
    made.graph = graph
    return made


__all__ = ["GraphModule"]

"""weft.jit.freeze: compiled modules whose parameters and attributes are constants."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from typing import Any

from weft.jit.execution import LOCK, class_of
from weft.jit.frontend.source.resolver import MISSING
from weft.jit.frontend.types.module_types import ModuleInfo
from weft.jit.frontend.types.names import unique_name
from weft.jit.frontend.types.signatures import Compiled
from weft.jit.ir import Function, Graph, Node, Value
from weft.jit.ir import types as ty
from weft.jit.module_methods import add_method, compile_postponed, compiled_method
from weft.jit.passes import conv_bn, freezing
from weft.jit.passes.options import DEFAULT
from weft.jit.pipeline import freeze as freeze_method
from weft.jit.pipeline import optimize_graph
from weft.jit.script_module import RecursiveScriptModule, filled


class FrozenInfo(ModuleInfo):
    """A class type without source: its methods are those that were frozen."""

    def find(self, name: str) -> Any:
        """Nothing else of the Python class is there any more."""
        return MISSING


def freeze(
    mod: Any, preserved_attrs: Sequence[str] | None = None, optimize_numerics: bool = True
) -> RecursiveScriptModule:
    """A copy of a compiled module in evaluation mode, with forward and what preserved_attrs names:
    methods, and attributes that stay attributes. All other parameters, buffers and attributes
    become constants, branches that they decide are decided, and (optimize_numerics) batch_norm is
    folded into the layers beside it, which changes the last bits. What forward changes stays.

    Later changes of `mod` do not reach the copy, and it does not train; gradients of its inputs are
    recorded.

    >>> import weft
    >>> module = weft.nn.Sequential(weft.nn.Linear(2, 2), weft.nn.Dropout())
    >>> frozen = freeze(weft.jit.script(module.eval()))
    >>> x = weft.ones(1, 2)
    >>> bool((frozen(x) == module(x)).all()), list(frozen.parameters())
    (True, [])
    """
    _check(mod)
    names = list(preserved_attrs or ())
    with LOCK:
        methods, attributes = _split(mod, names)
        held = copy.deepcopy(mod)
        functions = _freeze_all(held, methods, attributes, optimize_numerics)
        return _assemble(held, functions, attributes)


def optimize_for_inference(
    mod: Any, other_methods: Sequence[str] | None = None
) -> RecursiveScriptModule:
    """freeze, for a module that is not frozen yet. other_methods: to keep beside forward."""
    if isinstance(mod, RecursiveScriptModule) and isinstance(mod._jit_info, FrozenInfo):
        return mod
    if isinstance(mod, RecursiveScriptModule):
        mod.eval()
    return freeze(mod, other_methods)


def run_frozen_optimizations(
    mod: RecursiveScriptModule,
    optimize_numerics: bool = True,
    preserved_methods: Sequence[str] | None = None,
) -> None:
    """What freeze(optimize_numerics=True) does beyond freezing, on a frozen module, in place."""
    if not isinstance(mod, RecursiveScriptModule) or not isinstance(mod._jit_info, FrozenInfo):
        raise RuntimeError("run_frozen_optimizations: expected a frozen module, got another")
    with LOCK:
        for compiled in mod._jit_info.compiled.values():
            graph = compiled.function.graph
            if optimize_numerics and conv_bn.run(graph):
                optimize_graph(graph, 1, DEFAULT)
        mod._jit_info.executables.clear()


def _check(mod: Any) -> None:
    if not isinstance(mod, RecursiveScriptModule):
        raise RuntimeError(
            f"freeze: expected a compiled module, got {type(mod).__name__}; use weft.jit.script or "
            "weft.jit.trace first"
        )
    if getattr(mod, "training", False):
        raise RuntimeError(
            "freeze: expected a module in evaluation mode, got one in training; call eval() first"
        )


def _split(mod: RecursiveScriptModule, names: Sequence[str]) -> tuple[list[str], set[str]]:
    """Methods and attributes among what is to be preserved; forward is a method of its own."""
    info = mod._jit_info
    compile_postponed(info)
    is_called = "forward" in info.compiled or info.find("forward") is not MISSING
    methods, attributes = ["forward"] if is_called else [], set()
    for name in names:
        head = name.partition(".")[0]
        if head in info.type.attributes:
            attributes.add(name)
        elif name in info.compiled:
            methods.append(name)
        else:
            raise RuntimeError(
                f"freeze: expected preserved_attrs to name attributes and compiled methods of "
                f"{mod.original_name}, got {name!r}"
            )
    return list(dict.fromkeys(methods)), attributes


def _frozen(function: Function, held: Any, attributes: set[str], numerics: bool) -> Function:
    """A frozen method. Its programs are finished when they are made: the one that records no
    gradients has other groups."""
    return freeze_method(function, held, attributes, DEFAULT, numerics=numerics, finish=False)


def _freeze_all(
    held: RecursiveScriptModule, methods: Sequence[str], attributes: set[str], numerics: bool
) -> dict[str, tuple[Compiled, Function]]:
    """The frozen methods by name; what one of them still reads or sets is an attribute for all."""
    info = held._jit_info
    forward = "__hooked__" if info.hooks or info.pre_hooks else "forward"
    sources = {
        name: compiled_method(info, forward if name == "forward" else name) for name in methods
    }
    while True:
        found = {
            name: (each, _frozen(each.function, held, attributes, numerics))
            for name, each in sources.items()
        }
        kept = {
            path
            for _, function in found.values()
            for path in freezing.paths(function.graph, held)
            if not _is_object(held, path)
        }
        if kept <= attributes or len(found) < 2:
            return found
        attributes = attributes | kept


def _is_object(held: RecursiveScriptModule, path: str) -> bool:
    value: Any = held
    for name in path.split("."):
        value = getattr(value, name)
    return isinstance(value, RecursiveScriptModule)


def _assemble(
    held: RecursiveScriptModule,
    functions: dict[str, tuple[Compiled, Function]],
    attributes: Collection[str],
) -> RecursiveScriptModule:
    """A module of the frozen methods, with only the members that they and the user need."""
    made = _Needed(held, [f.graph for _, f in functions.values()], attributes).root()
    for name, (source, function) in functions.items():
        _add(made._jit_info, name, source, function)
    return made


class _Needed:
    """The members that are needed of a module and of those below it: all of one that goes anywhere
    but to where its attributes are read and set."""

    def __init__(
        self, held: RecursiveScriptModule, graphs: list[Graph], attributes: Collection[str]
    ) -> None:
        self._held = held
        self._values = [
            (value, module)
            for graph in graphs
            for value, module in freezing.objects(graph, held).items()
            if isinstance(module, RecursiveScriptModule)
        ]
        self._names: dict[int, set[str]] = {}
        self._whole: set[int] = set()
        self._made: dict[int, RecursiveScriptModule] = {}
        for value, module in self._values:
            self._use(value, module)
        for path in attributes:
            self._preserve(held, path)

    def root(self) -> RecursiveScriptModule:
        """The module with what is needed, whose class the values in the graphs have then."""
        if id(self._held) in self._whole:
            self._names[id(self._held)] = set(self._held._jit_info.type.attributes)
        made = self._made[id(self._held)] = self._reduced(self._held)
        for value, module in self._values:
            known = self._made.get(id(module))
            if known is not None:
                value.type = known._jit_info.type
        return made

    def _use(self, value: Value, module: RecursiveScriptModule) -> None:
        needed = self._names.setdefault(id(module), set())
        for use in value.uses:
            user = use.user
            if not isinstance(user, Node) or user.kind not in ("prim::GetAttr", "prim::SetAttr"):
                return self._keep(module)
            if use.index or isinstance(value.type, ty.InterfaceType):
                return self._keep(module)
            needed.add(user.attrs["name"])
        return None

    def _keep(self, module: RecursiveScriptModule) -> None:
        self._whole |= {id(each) for each in module.modules()}

    def _preserve(self, module: RecursiveScriptModule, path: str) -> None:
        name, _, rest = path.partition(".")
        self._names.setdefault(id(module), set()).add(name)
        value = getattr(module, name)
        if isinstance(value, RecursiveScriptModule):
            if rest:
                self._preserve(value, rest)
            else:
                self._keep(value)

    def _module(self, module: RecursiveScriptModule) -> RecursiveScriptModule:
        if id(module) in self._whole:
            return module
        if id(module) not in self._made:
            self._made[id(module)] = self._reduced(module)
        return self._made[id(module)]

    def _reduced(self, module: RecursiveScriptModule) -> RecursiveScriptModule:
        old, needed = module._jit_info, self._names[id(module)]
        children = {
            name: self._module(child) for name, child in module._children.items() if name in needed
        }
        members = {}
        for name, each in old.type.attributes.items():
            if name in children and not isinstance(each.type, ty.InterfaceType):
                members[name] = ty.Attribute(children[name]._jit_info.type, each.kind)
            elif name in needed or each.kind == "constant":
                members[name] = each
        type_ = ty.ClassType(unique_name(old.type.name), members, is_module=True)
        info = FrozenInfo(type_, module, {})
        info.python_class, info.container = old.python_class, old.container
        info.children = {name: each._jit_info for name, each in children.items()}
        info.classes = set(old.classes)
        type_.info = info
        return _filled(module, info, children)


def _add(info: FrozenInfo, name: str, source: Compiled, function: Function) -> None:
    function.graph.inputs[0].type = info.type
    parameters = [source.parameters[0]._replace(type=info.type), *source.parameters[1:]]
    made = Compiled(f"{info.type.name}.{name}", parameters, source.returns)
    made.function.graph, made.function.doc = function.graph, function.doc
    add_method(info, name, made)


def _filled(
    held: RecursiveScriptModule, info: FrozenInfo, children: dict[str, RecursiveScriptModule]
) -> RecursiveScriptModule:
    made = RecursiveScriptModule(info, class_of(info.type).new(), None)
    filled(made, children.__getitem__, lambda name: getattr(held, name))
    if "training" not in info.type.attributes:
        object.__setattr__(made, "training", False)
    return made


__all__ = ["freeze", "optimize_for_inference", "run_frozen_optimizations"]

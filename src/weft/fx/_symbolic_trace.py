"""Tracer: runs a module or function with Proxies, and makes a graph of what it does."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from weft._C import Tensor
from weft._runtime.annotations import annotations_in, signature_of
from weft._runtime.settings import _assert
from weft.fx.graph import Graph
from weft.fx.graph_module import GraphModule
from weft.fx.node import Argument, Node, _side_effectful, map_aggregate
from weft.fx.proxy import ParameterProxy, Proxy, TracerBase
from weft.nn import Module, Parameter
from weft.nn.modules.container import Sequential

_wrapped_fns: dict[tuple[int, str], dict[str, Any]] = {}
_MISSING = object()


class PHBase:
    """The type of PH."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()
"""In concrete_args: a value that is traced."""


def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


_side_effectful.add(_assert_is_none)


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Lets a function of the calling module be recorded as one call when it is given a Proxy.

    By its name, or as a decorator; at the top level of the module. A name that the module has not
    is that of a builtin: wrap("len").
    """
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame: Any = inspect.currentframe()
    caller = frame.f_back
    if caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


# ---- what is another thing while a program is traced ----


class _Patcher:
    """Changes entries of dicts and attributes of classes, and changes them back."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._done: set[tuple[int, str]] = set()

    def item(self, owner: dict[str, Any], name: str, value: Any) -> None:
        if (id(owner), name) in self._done:
            return
        self._done.add((id(owner), name))
        before = owner.get(name, _MISSING)
        self._undo.append(functools.partial(_put_back, owner, name, before))
        owner[name] = value

    def attribute(self, owner: type, name: str, value: Any) -> None:
        before = vars(owner).get(name, _MISSING)
        put = functools.partial(delattr, owner, name)
        if before is not _MISSING:
            put = functools.partial(setattr, owner, name, before)
        self._undo.append(put)
        setattr(owner, name, value)

    def undo(self) -> None:
        for each in reversed(self._undo):
            each()


def _put_back(owner: dict[str, Any], name: str, before: Any) -> None:
    if before is _MISSING:
        del owner[name]
    else:
        owner[name] = before


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, recorded as one call where an argument is a Proxy."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    call._weft_recorded = function  # type: ignore[attr-defined]
    return call


def _find_proxy(*structures: Any) -> Proxy | None:
    found: list[Proxy] = []
    map_aggregate(structures, lambda x: found.append(x) if isinstance(x, Proxy) else None)
    return found[0] if found else None


class Tracer(TracerBase):
    """Makes graphs of modules and functions. Derive from it to say what a leaf is.

    autowrap_modules: modules whose functions are recorded as one call where the program reads them
    by a global name; autowrap_functions: more such functions.

    >>> class Whole(weft.fx.Tracer):
    ...     def is_leaf_module(self, m, module_qualified_name): return False
    >>> [node.op for node in Whole().trace(weft.nn.Sequential(weft.nn.ReLU())).nodes]
    ['placeholder', 'call_method', 'output']
    """

    root: Module

    def __init__(
        self,
        autowrap_modules: tuple[types.ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap_modules = autowrap_modules
        self._autowrap_ids = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        } | set(map(id, autowrap_functions))
        self.param_shapes_constant = param_shapes_constant
        self.module_stack: OrderedDict[str, tuple[str, Any]] = OrderedDict()
        self.tensor_attrs: dict[Tensor, str] = {}
        self.submodule_paths: dict[Module, str] | None = None
        self._own_names: dict[int, str] = {}

    # ---- for classes derived from it ----

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether calls of the module are one node: those of weft.nn, except Sequential."""
        ours = m.__module__.startswith(("weft.nn", "torch.nn", "torch.ao.nn"))
        return ours and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The dotted name of a module in the root. NameError where it is not there."""
        found = (self.submodule_paths or {}).get(mod)
        if found is None:
            found = next((name for name, each in self.root.named_modules() if each is mod), None)
        if found is None:
            raise NameError("module is not installed as a submodule")
        return found

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What a call of a module becomes: a node for a leaf, else what its forward does."""
        path = self.path_of_module(m)
        self.module_stack[path] = (path, type(m))
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            self.module_stack.popitem()

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What reading an attribute of a module gives: a Proxy for a parameter of the root, and for
        a buffer where `proxy_buffer_attributes` is set."""
        is_buffer = self.proxy_buffer_attributes and isinstance(attr_val, Tensor)
        name = self._own_names.get(id(attr_val))
        if name is None or not (isinstance(attr_val, Parameter) or is_buffer):
            return attr_val
        if name not in parameter_proxy_cache:
            factory = None
            if self.param_shapes_constant:
                factory = lambda node: ParameterProxy(self, node, name, attr_val)  # noqa: E731
            parameter_proxy_cache[name] = self.create_proxy(
                "get_attr", name, (), {}, proxy_factory_fn=factory
            )
        return parameter_proxy_cache[name]

    # ---- arguments ----

    def create_node(self, kind: str, *args: Any, **kwargs: Any) -> Node:
        """Inserts a node, which notes the modules whose calls it is part of."""
        made = super().create_node(kind, *args, **kwargs)
        if self.module_stack:
            made.meta["nn_module_stack"] = OrderedDict(self.module_stack)
        return made

    def create_arg(self, a: Any) -> Argument:
        """As of every tracer; parameters, buffers and other tensors become attributes."""
        if isinstance(a, Tensor):
            return self._tensor_arg(a)
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            fields = tuple(self.create_arg(each) for each in a)
            return self.create_node("call_function", type(a), fields, {})
        return super().create_arg(a)

    def _tensor_arg(self, a: Tensor) -> Node:
        name = self._own_names.get(id(a)) or self.tensor_attrs.get(a)
        if name is None and isinstance(a, Parameter):
            raise NameError("parameter is not a member of this module")
        if name is None:
            i = 0
            while hasattr(self.root, f"_tensor_constant{i}"):
                i += 1
            name = self.tensor_attrs[a] = f"_tensor_constant{i}"
            setattr(self.root, name, a)
        return self.create_node("get_attr", name, (), {})

    # ---- tracing ----

    def trace(
        self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
    ) -> Graph:
        """The graph of a module's forward or of a function.

        concrete_args: values that arguments have in the graph, by name; it checks at its start
        that they do. NotImplementedError for dicts and lists of them.
        """
        if isinstance(root, Module):
            self.root, fn = root, getattr(type(root), self.traced_func_name)
        else:
            self.root, fn = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = _tensor_attributes(self.root)
        self.submodule_paths = {module: name for name, module in self.root.named_modules()}
        members = (*self.root.named_parameters(), *self.root.named_buffers())
        self._own_names = {id(tensor): name for name, tensor in members}
        fn, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
        with self._patched(fn):
            result = self.create_arg(fn(*args))
        returns = _annotations(fn).get("return")
        self.create_node("output", "output", (result,), {}, type_expr=returns)
        self.submodule_paths = None
        return self.graph

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | None = None,
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Placeholders for the parameters of a function: the function, and what to call it with."""
        function: Any = inspect.unwrap(root_fn)
        code = function.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames[:total])
        args: list[Any] = []
        if is_module:
            if not names:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            names.pop(0)
            args.append(self.root)
        parameters = signature_of(function).parameters
        concrete = concrete_args or {}
        kinds = _annotations(function)
        args += [self._placeholder(parameters[n], kinds.get(n), concrete) for n in names]
        varying = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        if not code.co_kwonlyargcount and not varying:
            return root_fn, args
        if code.co_flags & inspect.CO_VARARGS:
            args.append(self._parameter(f"*{code.co_varnames[total]}", function))
            total += 1
        if code.co_flags & inspect.CO_VARKEYWORDS:
            args.append(self._parameter(f"**{code.co_varnames[total]}", function))
        return _positional(function, len(args)), args

    def _parameter(self, name: str, function: Any, default: tuple[Any, ...] = ()) -> Proxy:
        kind = _annotations(function).get(name)
        shown = "_" + name.lstrip("*")
        return self.create_proxy("placeholder", name, default, {}, name=shown, type_expr=kind)

    def _placeholder(
        self, parameter: inspect.Parameter, kind: Any, concrete: dict[str, Any]
    ) -> Any:
        name = parameter.name
        has_default = parameter.default is not parameter.empty
        default = (parameter.default,) if has_default else ()
        value = concrete.get(name, PH)
        if value is PH:
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        if isinstance(value, (dict, list, tuple)):
            raise NotImplementedError(
                f"concrete_args: expected a number, a str, None or PH for '{name}', got "
                f"{type(value).__name__}"
            )
        given = self.create_proxy("placeholder", f"{name}_1", default, {})
        message = f"{name} has been specialized to have value {value} but got another value"
        if isinstance(value, (bool, int, float, str)):
            self.create_proxy("call_function", _assert, (given == value, message), {})
        elif value is None:
            self.create_proxy("call_function", _assert_is_none, (given, message), {})
        return value

    @contextmanager
    def _patched(self, function: Callable[..., Any]) -> Iterator[None]:
        """Within, calls and attributes of modules and wrapped functions come to this tracer."""
        patcher = _Patcher()
        cache: dict[str, Any] = {}
        read, call = Module.__getattribute__, Module.__call__

        def attribute(module: Module, name: str) -> Any:
            value = read(module, name)
            return self.getattr(name, value, cache) if isinstance(value, Tensor) else value

        def called(module: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return call(module, *args, **kwargs)

            self._wrap_names(patcher, getattr(module.forward, "__globals__", {}))
            return self.call_module(module, forward, args, kwargs)

        try:
            patcher.attribute(Module, "__getattribute__", attribute)
            patcher.attribute(Module, "__call__", called)
            for (_, name), namespace in list(_wrapped_fns.items()):
                original = namespace.get(name, getattr(builtins, name, None))
                if original is not None:
                    patcher.item(namespace, name, _recording(original))
            self._wrap_names(patcher, getattr(function, "__globals__", {}))
            for module in self._autowrap_modules:
                self._wrap_names(patcher, vars(module))
            yield
        finally:
            patcher.undo()

    def _wrap_names(self, patcher: _Patcher, namespace: dict[str, Any]) -> None:
        for name, value in list(namespace.items()):
            if not name.startswith("_") and callable(value) and id(value) in self._autowrap_ids:
                patcher.item(namespace, name, _recording(value))


def _annotations(function: Any) -> dict[str, Any]:
    """The types of a function's parameters and result. Those of weft are for readers only."""
    ours = (getattr(function, "__module__", None) or "").startswith("weft.")
    return {} if ours else {**annotations_in(function)}


def _tensor_attributes(root: Module) -> dict[Tensor, str]:
    """Tensors that modules have as plain attributes, and their dotted names."""
    found: dict[Tensor, str] = {}
    for path, module in root.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                found.setdefault(value, f"{path}.{name}" if path else name)
    return found


def _positional(function: Any, count: int) -> types.FunctionType:
    """The function with all of its parameters, *args and **kwargs too, taken by position."""
    code = function.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    code = code.replace(
        co_flags=flags, co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0
    )
    return types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )


def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """A module that does what a module or function does, by a graph that can be changed.

    The graph has every operator on the inputs in the order in which they ran; control flow that
    depends on inputs raises TraceError. concrete_args: arguments that keep these values.

    >>> traced = weft.fx.symbolic_trace(lambda x: weft.relu(x) * 2)
    >>> traced(weft.tensor([-1.0, 2.0]))
    tensor([0., 4.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


__all__ = ["PH", "Tracer", "symbolic_trace", "wrap"]

"""Compiled modules: parameters, buffers and attributes live in the object that programs read."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.jit.cache import reads
from weft.jit.cache.cached_programs import CachedPrograms
from weft.jit.compiled_function import Program, Savable, absent
from weft.jit.compiled_method import ScriptMethod
from weft.jit.execution import LOCK, class_of
from weft.jit.frontend.language.objects import mode_of
from weft.jit.frontend.source.code import Code
from weft.jit.frontend.source.errors import FrontendError, from_outside, refuse
from weft.jit.frontend.source.resolver import MISSING, Resolver
from weft.jit.frontend.types import modules
from weft.jit.frontend.types.class_methods import compile_text_as_method
from weft.jit.frontend.types.classes import class_info
from weft.jit.frontend.types.module_types import JitAttribute, ModuleInfo, module_info
from weft.jit.ir import Function
from weft.jit.ir import types as ty
from weft.jit.module_methods import (
    compile_postponed,
    compiled_method,
    executable_method,
    forget_executables,
)
from weft.jit.script_class import is_plain, object_of
from weft.jit.script_function import DEFAULT_NAMES
from weft.nn.modules.module import INTERNAL, Module, hold_views

PARAMETER, BUFFER, MODULE = "parameter", "buffer", "module"

_OWN = frozenset(("_jit_object", "_jit_info", "_jit_python", "_children", *INTERNAL))


class ScriptMeta(type):
    """The class of ScriptModule. A call of a derived class makes the module as __init__ says, then
    compiles the methods that @script_method marks and the texts given to define()."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        written = cls.__dict__.get("_written", cls)  # of a compiled object, its class in the source
        made = super(ScriptMeta, written).__call__(*args, **kwargs)
        if written is ScriptModule or issubclass(written, RecursiveScriptModule):
            return made
        return compile_in_place(made)


class ScriptModule(Module, metaclass=ScriptMeta):
    """Base of compiled modules, and of classes whose methods marked @script_method are compiled.

    >>> class Scale(ScriptModule):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.by = weft.nn.Parameter(weft.tensor([2.0]))
    ...         self.define("def forward(self, x):\\n    return x * self.by")
    >>> Scale()(weft.ones(1)).item()
    2.0
    """

    def define(self, src: str) -> None:
        """Compiles methods from a text, `def name(self, x: Tensor) -> Tensor: ...`, once the object
        is made."""
        self.__dict__.setdefault("_defined", []).append(src)


class RecursiveScriptModule(Program, Savable, ScriptModule):
    """A compiled module. It is an nn.Module whose members are those of the program's object: what
    is set here is what the program reads, and what the program sets is seen here."""

    def __init__(self, info: ModuleInfo, obj: Any, python: Module | None) -> None:
        own = self.__dict__
        own["_jit_info"] = info
        own["_jit_object"] = obj
        own["_jit_python"] = python
        own["_children"] = {}
        own["_kinds"] = {
            name: each.kind
            for name, each in info.type.attributes.items()
            if each.kind in (PARAMETER, BUFFER, MODULE)
        }
        skipped = set() if python is None else set(python._non_persistent_buffers_set)
        own["_non_persistent_buffers_set"] = skipped

    # Calls ------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooked:
            return self._call_with_hooks(args, kwargs)
        return self._inside_hooks(*args, **kwargs)

    def _inside_hooks(self, *args: Any, **kwargs: Any) -> Any:
        info = self._jit_info
        name = "__hooked__" if info.hooks or info.pre_hooks else "forward"
        return executable_method(info, name)(self._jit_object, *args, **kwargs)

    @property
    def forward(self) -> Any:  # type: ignore[override]
        """The compiled forward, without its hooks."""
        return ScriptMethod(self, "forward")

    # Attributes -------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        info: ModuleInfo = self.__dict__["_jit_info"]
        declared = info.type.attributes.get(name)
        if declared is not None:
            return self._read(name, declared)
        if name in info.functions:
            return info.functions[name]
        if name in info.defined:
            return ScriptMethod(self, name)
        found = info.methods.get(name, info.find(name))
        if isinstance(found, property):
            return executable_method(info, name)(self._jit_object)
        if isinstance(found, staticmethod):
            return found.__func__
        function = getattr(found, "__func__", found)
        if inspect.isfunction(function):
            return self._method(name, function)
        if found is not MISSING:
            return found
        raise AttributeError(
            f"{info.python_class.__name__}: expected an attribute it has, got {name!r}"
            + absent(name)
        )

    def _read(self, name: str, declared: ty.Attribute) -> Any:
        if declared.kind == "constant":
            return declared.value
        if declared.type is ty.NONE:
            return None
        if declared.kind == MODULE:
            return self._children[name]
        return getattr(self._jit_object, name)

    def _method(self, name: str, function: Any) -> Callable[..., Any]:
        if mode_of(function) in ("ignore", "unused"):
            return function.__get__(self)
        return ScriptMethod(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        declared = self._jit_info.type.attributes.get(name)
        if name in _OWN or declared is None:
            if declared is None and isinstance(value, Module):
                raise RuntimeError(
                    f"{name}: expected no new submodule of a compiled module, got one"
                )
            object.__setattr__(self, name, value)
            return
        if declared.kind == "constant":
            raise RuntimeError(f"{name}: expected an attribute that may change, got a constant")
        if declared.kind == MODULE:
            self._set_child(name, declared, value)
        elif declared.type is ty.NONE:
            if value is not None:
                raise RuntimeError(
                    f"{name}: expected None, which it was when the module was compiled, "
                    f"got {type(value).__name__}"
                )
        else:
            setattr(self._jit_object, name, value)

    def _set_child(self, name: str, declared: ty.Attribute, value: Any) -> None:
        if isinstance(value, RecursiveScriptModule) and isinstance(declared.type, ty.InterfaceType):
            modules.implement(value._jit_info.type, declared.type)
        if not isinstance(value, RecursiveScriptModule) or not ty.is_subtype(
            value._jit_info.type, declared.type
        ):
            got = value._jit_info.type if isinstance(value, RecursiveScriptModule) else type(value)
            raise RuntimeError(
                f"{name}: expected a compiled module of type {declared.type}, got {got}"
            )
        if isinstance(declared.type, ty.InterfaceType):
            self._jit_info.classes.add(value._jit_info.type)
            class_of(value._jit_info.type)
            forget_executables()
        self._children[name] = value
        setattr(self._jit_object, name, value._jit_object)

    def __delattr__(self, name: str) -> None:
        if name in self._jit_info.type.attributes:
            raise RuntimeError(
                f"{name}: expected no change of a compiled module's attributes, got del"
            )
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*object.__dir__(self), *self._jit_info.type.attributes, *self._jit_info.compiled}
        return sorted(names)

    # Members ----------------------------------------------------------------------------------

    def _own(self, kind: str) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name, k in self._kinds.items() if k == kind]

    @property
    def _parameters(self) -> Any:
        return dict(self._own(PARAMETER))

    @property
    def _buffers(self) -> Any:
        return dict(self._own(BUFFER))

    @property
    def _modules(self) -> Any:
        return dict(self._own(MODULE))

    def _get_member(self, operation: str, target: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if module._kinds.get(name) != kind:
            raise AttributeError(f"{operation}: expected a {kind} {name!r}, got none")
        return getattr(module, name)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        for child in self.children() if recurse else ():
            child._apply(fn)
        with no_grad():
            for _, parameter in self._own(PARAMETER):
                if parameter is not None:
                    grad, parameter.grad = parameter.grad, None
                    parameter.data = fn(parameter.data)
                    if grad is not None:
                        parameter.grad = fn(grad).requires_grad_(grad.requires_grad)
            for name, buffer in self._own(BUFFER):
                if buffer is not None:
                    setattr(self, name, fn(buffer))
        return self

    def _put(self, name: str, value: Any, kind: str) -> None:
        raise RuntimeError(f"{name}: expected no new {kind} of a compiled module, got one")

    def __len__(self) -> int:
        return len(self._own(MODULE))

    def __iter__(self) -> Iterator[Any]:
        if self._jit_info.container == "dict":
            return iter([name for name, _ in self._own(MODULE)])
        return iter([module for _, module in self._own(MODULE)])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            return self._modules[index]
        return [module for _, module in self._own(MODULE)][index]

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __bool__(self) -> bool:
        return True

    def define(self, src: str) -> None:
        """Compiles further methods from a text: `def name(self, x: Tensor) -> Tensor: ...`."""
        with LOCK, from_outside():
            _define(self._jit_info, src)

    # What it was compiled to ----------------------------------------------------------------------

    @property
    def original_name(self) -> str:
        """The name of the Python class."""
        return self._jit_info.python_class.__name__

    @property
    def _program(self) -> Function:
        return compiled_method(self._jit_info, "forward").function

    def _parameters_of(self) -> Iterable[Tensor]:
        return self.parameters()

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    # Copies -----------------------------------------------------------------------------------

    def __copy__(self) -> Any:
        return self._duplicate(lambda value: value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        made = self._duplicate(lambda value: copy.deepcopy(value, memo))
        memo[id(self)] = made
        return made

    def _duplicate(self, convert: Callable[[Any], Any]) -> Any:
        info = self._jit_info
        made = object.__new__(type(self) if isinstance(self, InPlace) else RecursiveScriptModule)
        RecursiveScriptModule.__init__(made, info, class_of(info.type).new(), self._jit_python)
        return filled(
            made,
            lambda name: convert(self._children[name]),
            lambda name: convert(getattr(self._jit_object, name)),
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(
            f"pickle: expected an object that is no program, got a compiled {self.original_name}; "
            "use its state_dict()"
        )


def filled(
    made: RecursiveScriptModule, child_of: Callable[[str], Any], value_of: Callable[[str], Any]
) -> RecursiveScriptModule:
    """A new module, with the submodules and values that its type declares."""
    for name, declared in made._jit_info.type.attributes.items():
        if declared.kind == "constant" or declared.type is ty.NONE:
            continue
        if declared.kind == MODULE:
            made._children[name] = child_of(name)
            setattr(made._jit_object, name, made._children[name]._jit_object)
        else:
            setattr(made._jit_object, name, value_of(name))
    return made


# From a Python module -------------------------------------------------------------------------


def script_module(
    module: Module, extra: dict[str, Any], cached: CachedPrograms | None = None
) -> RecursiveScriptModule:
    """The compiled form of a module. It shares parameters and buffers with the module. Its methods
    are compiled when they are asked for, where its programs were `cached` on disk."""
    info = module_info(module, extra)
    if info.cached is None:
        _compile(info, cached)
    return _wrap(module, info, {})


def loaded_module(module: Module, cached: CachedPrograms | None) -> RecursiveScriptModule:
    """The compiled form of a module of an archive, whose methods are compiled when they are asked
    for. Submodules behind interfaces must have theirs before any program is made."""
    info = module_info(module, {})
    _postpone(info)
    if modules.has_interfaces(info):
        compile_postponed(info)
    elif cached is not None:
        _keep(info, cached)
    return _wrap(module, info, {})


def _keep(info: ModuleInfo, cached: CachedPrograms) -> None:
    """The programs of a module's methods will be kept."""
    cached.classes = {each.type.name: class_of(each.type) for each in modules.infos_below(info)}
    info.cached = cached


def _compile(info: ModuleInfo, cached: CachedPrograms | None) -> None:
    """Compiles the methods of a type, unless it has been done by another process."""
    types = {each.type.name: each.type for each in modules.infos_below(info)}
    known = {info.type.name: " ".join(types)}
    if cached is not None and not info.compiled and cached.names() == known:
        _keep(info, cached)
        _postpone(info)
        return
    before = [list(each.attributes) for each in types.values()]
    modules.compile_methods(info)
    is_same = before == [list(each.attributes) for each in types.values()]
    if cached is not None and is_same and not modules.has_interfaces(info) and reads.are_met():
        _keep(info, cached)
        cached.save_names(known)


def _postpone(info: ModuleInfo) -> None:
    """Methods of a module and of its submodules are compiled when they are asked for."""
    for each in modules.infos_below(info):
        each.postponed = not each.compiled


def _wrap(module: Module, info: ModuleInfo, made: dict[int, Any]) -> RecursiveScriptModule:
    if isinstance(module, RecursiveScriptModule):
        return module
    if id(module) in made:
        return made[id(module)]
    obj = class_of(info.type).new()
    result = RecursiveScriptModule(info, obj, module)
    made[id(module)] = result
    for name, declared in info.type.attributes.items():
        if declared.kind == "constant" or declared.type is ty.NONE:
            continue
        value = _python_value(module, name)
        if declared.kind == MODULE:
            child = _wrap(value, info.children[name], made)
            result._children[name] = child
            setattr(obj, name, child._jit_object)
            continue
        try:
            if isinstance(declared.type, ty.InterfaceType) and _is_compiled(type(value)):
                modules.stand_behind(info, class_info(type(value)).type, declared.type)
                class_of(class_info(type(value)).type)
                forget_executables()
            if isinstance(declared.type, ty.ClassType) and is_plain(type(value)):
                value = object_of(value, made)
            setattr(obj, name, value)
        except (TypeError, AttributeError) as error:
            raise FrontendError(f"{type(module).__name__}.{name}: {error}") from None
    return result


def _is_compiled(cls: type) -> bool:
    """Whether it is a class of programs: one that was scripted, or of an archive."""
    return hasattr(cls, "_from_jit") or "__weft_source__" in vars(cls)


def _define(info: ModuleInfo, src: str) -> None:
    code = Code(textwrap.dedent(src).strip() + "\n", "<define>", 1)
    for node in code.tree.body:
        if not isinstance(node, ast.FunctionDef):
            refuse(code, node)
        if node.name in info.compiled:
            raise RuntimeError(f"define: expected a new method, got another {node.name}")
        compile_text_as_method(info, node, code, Resolver(DEFAULT_NAMES))
        info.defined.add(node.name)


# Classes derived from ScriptModule --------------------------------------------------------------


class InPlace(RecursiveScriptModule):
    """A module that its class compiled when it was made. What is not marked is Python."""

    def extra_repr(self) -> str:
        return ""


def compile_in_place(module: ScriptModule) -> Any:
    """Makes a module of a class derived from ScriptModule a compiled one. The module is also of its
    class still, of which methods that are not marked stay as they are."""
    texts = module.__dict__.pop("_defined", ())
    cls = type(module)
    with LOCK, from_outside():
        info = module_info(module, shared=not texts)
        for text in texts:
            _define(info, text)
        marked = modules.exported(cls)
        for name in marked:
            compiled_method(info, name)
        made = _wrap(module, info, {})
    own = {k: v for k, v in vars(module).items() if k not in info.type.attributes and k not in _OWN}
    module.__dict__.clear()
    module.__dict__.update(made.__dict__ | own)
    hold_views(module)
    module.__class__ = _class_in_place(cls, tuple(marked))
    return module


@functools.cache
def _class_in_place(cls: Any, marked: tuple[str, ...]) -> Any:
    body: dict[str, Any] = {
        name: property(functools.partial(ScriptMethod, name=name)) for name in marked
    }
    body |= {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
    body["_written"] = cls
    if "forward" in marked or cls.forward is Module.forward:
        body["forward"] = RecursiveScriptModule.forward
    else:
        body["__call__"] = Module.__call__
    return type(cls.__name__, (cls, InPlace), body)


def _python_value(module: Module, name: str) -> Any:
    value = getattr(module, name)
    return value.value if isinstance(value, JitAttribute) else value

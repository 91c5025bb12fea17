"""nn.Module to class types: modules of one class with the same kinds of attributes share a type."""

from __future__ import annotations

import ast
import dis
import functools
import weakref
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.public import weft
from weft.jit import memo
from weft.jit.cache import reads
from weft.jit.cache.cached_programs import CachedPrograms
from weft.jit.frontend.source.code import code_of
from weft.jit.frontend.source.errors import FrontendError
from weft.jit.frontend.source.resolver import MISSING, resolver_of_function
from weft.jit.frontend.types.annotations import Annotations, type_of_value
from weft.jit.frontend.types.classes import (
    ClassInfo,
    annotations_of,
    python_class_of,
    written_annotations,
)
from weft.jit.frontend.types.names import (
    is_library_layer,
    is_written,
    qualified_name,
    static_attribute,
    unique_name,
)
from weft.jit.ir import types as ty


class JitAttribute:
    """weft.jit.Attribute(value, type): the value of an attribute with its type."""

    __weft_jit__ = "Attribute"

    def __init__(self, value: Any, type: Any) -> None:
        self.value = value
        self.type = type


class ModuleInfo(ClassInfo):
    """A class type of modules. `container` is "list" or "dict" for those that hold modules,
    "parameters" or "parameter dict" for those that hold parameters, "any" for modules of archives,
    which do not say whether they are one of these."""

    def __init__(self, type: ty.ClassType, module: weft.nn.Module, extra: dict[str, Any]) -> None:
        super().__init__(type, module.__class__)
        self.open = False
        self.extra = extra
        self.children: dict[str, ModuleInfo] = {}
        self.functions: dict[str, Any] = {}
        self.failed: dict[str, str] = {}
        self.objects: dict[str, Any] = {}  # whose classes are compiled when they are used
        self.methods: dict[str, Any] = {}  # functions that an instance has of its own
        self.pre_hooks: list[Any] = []
        self.hooks: list[Any] = []
        self.executables: dict[str, Any] = {}  # loaded methods
        self.defined: set[str] = set()  # methods that came as text
        self.classes: set[ty.ClassType] = set()  # of submodules declared as interfaces
        self.cached: CachedPrograms | None = None  # programs on disk
        self.postponed = False  # its methods will be compiled when they are asked for
        self.container = _container(module)

    def has(self, name: str) -> bool:
        """Whether modules of the type have the attribute."""
        if any(name in each for each in (self.functions, self.methods, self.objects, self.defined)):
            return True
        return self.find(name) is not MISSING


def _container(module: weft.nn.Module) -> str | None:
    if isinstance(module, weft.nn.ModuleList | weft.nn.Sequential):
        return "list"
    if isinstance(module, weft.nn.ModuleDict):
        return "dict"
    if isinstance(module, weft.nn.ParameterDict):
        return "parameter dict"
    if isinstance(module, weft.nn.ParameterList):
        return "parameters"
    return getattr(module, "__weft_container__", None)


# As long as a compiled module or a program has the type.
_types: weakref.WeakValueDictionary[Any, ModuleInfo] = weakref.WeakValueDictionary()


def module_info(
    module: weft.nn.Module,
    extra: dict[str, Any] | None = None,
    shared: bool = True,
    seen: dict[int, ModuleInfo] | None = None,
) -> ModuleInfo:
    """The type of a module: an existing one where another module had the same and types may be
    `shared`. `seen`: the types of modules by their identity; one may be in many others."""
    seen = {} if seen is None else seen
    if id(module) not in seen:
        seen[id(module)] = _info_of(module, extra, shared, seen)
    return seen[id(module)]


def _info_of(
    module: weft.nn.Module, extra: dict[str, Any] | None, shared: bool, seen: dict[int, ModuleInfo]
) -> ModuleInfo:
    found = _Survey(module, extra or {}, seen)
    key = found.key() if shared else None
    known = None if key is None else _types.get(key)
    if known is not None:
        reads.goes_on_with(known)
        return known
    info = ModuleInfo(_new_type(module), module, extra or {})
    reads.began(info)
    found.fill(info)
    info.type.info = info
    if info.container == "any":  # an archive's code names the class where a method takes a module
        memo.keep(type(module), weakref.ref(info))
    if key is not None:
        _types[key] = info
    return info


def _new_type(module: weft.nn.Module) -> ty.ClassType:
    made = ty.ClassType(unique_name(qualified_name(type(module))))
    made.is_module = True
    return made


def _check_tensors(module: weft.nn.Module) -> None:
    """Refuses a module whose parameters have no values of their own."""
    waiting = [n for n in module._kinds if weft.nn.parameter.is_lazy(module.__dict__[n])]
    if waiting:
        raise FrontendError(
            f"script: expected {type(module).__name__} with initialized parameters, which a first "
            f"call makes, got {', '.join(waiting)} without a shape"
        )
    if weft.nn.utils.parametrize.is_parametrized(module):
        names = ", ".join(module.parametrizations)
        raise FrontendError(
            f"script: expected {type(module).__name__} without parametrizations, got some of "
            f"{names}; trace it, or call weft.nn.utils.parametrize.remove_parametrizations"
        )


class _Survey:
    """What a module is made of."""

    def __init__(
        self, module: weft.nn.Module, extra: dict[str, Any], seen: dict[int, ModuleInfo]
    ) -> None:
        self.module = module
        self.seen = seen
        self.extra = extra
        cls = type(module)
        if "_kinds" not in vars(module):
            raise FrontendError(
                f"script: expected {cls.__name__} to call super().__init__(), got none"
            )
        _check_tensors(module)
        self.written = written_annotations(cls)
        self.reader = annotations_of(cls, extra)
        self.constants = self._constant_names(cls)
        self.attributes: dict[str, ty.Attribute] = {}
        self.children: dict[str, ModuleInfo] = {}
        self.functions: dict[str, Any] = {}
        self.methods: dict[str, Any] = {}
        self.failed: dict[str, str] = {}
        self.objects: dict[str, type] = {}
        self._assigned: dict[str, ty.Type | FrontendError] | None = None
        for name, kind in module._kinds.items():
            self._member(name, kind, module.__dict__[name])
        self._plain("training", module.training)
        internal = {*module._kinds, *weft.nn.modules.module.INTERNAL, "training"}
        for name, value in vars(module).items():
            if name not in internal:
                self._plain(name, value)
        for name in self.written:
            if name not in self.attributes and name not in vars(module):
                self._declared_only(name, cls)

    def _constant_names(self, cls: type) -> set[str]:
        names = set(getattr(cls, "__constants__", ()))
        names.update(*map(_set_by, filter(is_library_layer, cls.__mro__)))
        for name, (_, annotation) in self.written.items():
            text = annotation if isinstance(annotation, str) else str(annotation)
            if text.partition("[")[0].rpartition(".")[2] == "Final":
                names.add(name)
        return names

    def _member(self, name: str, kind: str, value: Any) -> None:
        if value is None:
            declared = self._declared(name, value) if kind == "buffer" else None
            self.attributes[name] = ty.Attribute(declared or ty.NONE, kind)
        elif kind == "module":
            interface = self._declared(name, value)
            info = script_info_of(value) or module_info(value, self.extra, seen=self.seen)
            self.children[name] = info
            wanted = interface if isinstance(interface, ty.InterfaceType) else info.type
            self.attributes[name] = ty.Attribute(wanted, "module")
        else:
            declared = self._declared(name, value) if kind == "buffer" else None
            keeps = isinstance(declared, ty.OptionalType)  # it may become None
            type_ = declared if declared is not None and keeps else ty.TENSOR
            self.attributes[name] = ty.Attribute(type_, kind)

    def _type_of(self, name: str, value: Any) -> ty.Type | None:
        """The declared type, or that of the value. An object of a class derived from the declared
        one has its own: calls take its methods, as in Python."""
        declared = self._declared(name, value)
        if declared is not None and value is not None and name not in self.written:
            declared = ty.non_none(declared)  # what __init__ says may be None has its value's type
        cls = None if declared is None else python_class_of(declared)
        derives = cls is not None and isinstance(value, cls) and type(value) is not cls
        return type_of_value(value) if declared is None or derives else declared

    def _declared(self, name: str, value: Any) -> ty.Type | None:
        try:
            if name in self.written:
                base, annotation = self.written[name]
                is_own = base is type(self.module)
                reader = self.reader if is_own else annotations_of(base, self.extra)
                made = reader.of_object(annotation)
                return made if isinstance(made, ty.Type) else None
            found = self.assigned().get(name)
            if isinstance(found, FrontendError):
                raise found
            return found
        except FrontendError:
            # The language has no type for "some module": each module has its own, None has one.
            if value is None or isinstance(value, weft.nn.Module):
                return None
            raise

    def _has_type(self, name: str, value: Any) -> bool:
        """Whether an attribute is declared with a type of the language."""
        try:
            return self._declared(name, value) is not None
        except FrontendError:
            return False

    def assigned(self) -> dict[str, ty.Type | FrontendError]:
        """The types of `self.x: T = ...` in the __init__ of the class and its bases."""
        if self._assigned is None:
            self._assigned = {}
            for base in reversed(type(self.module).__mro__):
                if not is_library_layer(base):
                    self._assigned.update(_assigned_in(base))
        return self._assigned

    def _declared_only(self, name: str, cls: type) -> None:
        """An annotation whose attribute is a class attribute, or is missing."""
        value = static_attribute(cls, name, MISSING)
        if value is MISSING or callable(value) or isinstance(value, property):
            return
        if name in self.constants:
            return  # found in the class when it is read
        self._plain(name, value)

    def _plain(self, name: str, value: Any) -> None:
        if isinstance(value, JitAttribute):
            type_ = self.reader.of_object(value.type)
            self.attributes[name] = ty.Attribute(type_, "attribute")
            return
        if isinstance(value, MethodType) and value.__self__ is self.module:
            self.methods[name] = value.__func__
            return
        is_class = isinstance(value, type)
        is_object = not isinstance(value, type | tuple) and is_written(type(value))
        is_called = callable(value) and not (is_object and self._has_type(name, value))
        if is_object and is_called and not hasattr(value, "_weft_jit_mode"):
            self.objects[name] = type(value)
            return
        if is_class or (is_called and not isinstance(value, Tensor | _C.dtype)):
            if name == "forward" and isinstance(value, FunctionType):
                self.methods[name] = value
            else:
                self.functions[name] = value
            return
        is_constant = name in self.constants
        try:
            type_ = self._type_of(name, value)
        except FrontendError as error:
            self.failed[name] = error.message
            return
        if type_ is None:
            if is_constant:
                self.attributes[name] = ty.Attribute(ty.NONE, "constant", value)
                return
            if is_object:
                self.objects[name] = type(value)
                return
            self.failed[name] = (
                f"expected a value that a program can hold, got {type(value).__name__}"
            )
        elif is_constant:
            self.attributes[name] = ty.Attribute(type_, "constant", value)
        else:
            self.attributes[name] = ty.Attribute(type_, "attribute")

    def key(self) -> Any:
        """Equal for modules that can share a type; None for one that shares with none."""
        hooks = self._hook_functions()
        try:
            parts: list[Any] = [type(self.module), tuple(map(tuple, hooks))]
            for name, each in self.attributes.items():
                value = _frozen(each.value) if each.kind == "constant" else None
                parts.append((name, each.kind, each.type, value))
            parts.append(tuple((name, id(info)) for name, info in self.children.items()))
            parts.append(tuple(self.functions.items()))
            parts.append(tuple(self.methods.items()))
            parts.append(tuple(self.failed.items()))
            parts.append(tuple(self.objects.items()))
            made = tuple(parts)
            hash(made)
        except TypeError:
            return None
        return made

    def _hook_functions(self) -> tuple[list[Any], list[Any]]:
        kinds = ("_forward_pre_hooks", "_forward_hooks")
        before, after = (list(self.module.__dict__.get(kind, {}).values()) for kind in kinds)
        return before, after

    def fill(self, info: ModuleInfo) -> None:
        """Gives a new type what was found."""
        info.type.attributes.update(self.attributes)
        info.children = self.children
        info.functions = self.functions
        info.methods = self.methods
        info.failed = self.failed
        info.objects = dict(self.objects)
        info.pre_hooks, info.hooks = self._hook_functions()


@functools.cache
def _set_by(layer: type) -> frozenset[str]:
    """The attributes that the methods of one of the library's layers set: constants, but for
    training."""
    functions = (each for each in vars(layer).values() if isinstance(each, FunctionType))
    names = {name for each in functions for name in _stored_by(each.__code__)}
    return frozenset({*names, *vars(layer).get("_arguments", ())} - {"training"})


_STORE_ATTR, _EXTENDED_ARG = dis.opmap["STORE_ATTR"], dis.EXTENDED_ARG


def _stored_by(code: CodeType) -> Iterator[str]:
    """The attributes that a function sets, of any object. `dis` takes ten times as long, a tenth of
    loading a first archive."""
    written, argument = code.co_code, 0
    for at in range(0, len(written), 2):
        argument |= written[at + 1]
        if written[at] == _STORE_ATTR:
            yield code.co_names[argument]
        argument = argument << 8 if written[at] == _EXTENDED_ARG else 0


def _assigned_in(cls: type) -> dict[str, ty.Type | FrontendError]:
    function = vars(cls).get("__init__")
    if not isinstance(function, FunctionType):
        return {}
    try:
        code = code_of(function)
        reader = Annotations(code, resolver_of_function(function))
    except FrontendError:
        return {}
    found: dict[str, ty.Type | FrontendError] = {}
    for node in ast.walk(code.tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            try:
                made = reader.read(node.annotation)
            except FrontendError as error:  # told if the attribute turns out to need it
                made = error
            if isinstance(made, ty.Type | FrontendError):
                found[node.target.attr] = made
    return found


def _frozen(value: Any) -> Any:
    """Something hashable that is equal for equal constants of equal types."""
    if isinstance(value, list | tuple):
        return (type(value), tuple(map(_frozen, value)))
    if isinstance(value, dict):
        return (dict, tuple((key, _frozen(item)) for key, item in value.items()))
    return (type(value), value)


def script_info_of(module: Any) -> ModuleInfo | None:
    """The type of a module that has been scripted already."""
    return getattr(module, "_jit_info", None)

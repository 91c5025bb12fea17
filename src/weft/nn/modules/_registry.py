"""What a module consists of: its parameters, buffers and child modules.

A member lives in the instance's `__dict__`, like any attribute, so reading `self.weight` costs what
reading an attribute costs. `_kinds` remembers, in the order of registration, which names are
members and of which kind. `_parameters`, `_buffers` and `_modules` are live views of both.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    MutableMapping,
    ValuesView,
)
from operator import methodcaller
from typing import Any, ClassVar

from weft._C import Tensor
from weft.nn.parameter import Buffer, Parameter
from weft.utils.hooks import RemovableHandle

PARAMETER = "parameter"
BUFFER = "buffer"
MODULE = "module"


# Hooks of all modules, by the kind of the members that they are called for.
_registration_hooks: dict[str, dict[int, Callable[..., Any]]] = {
    kind: OrderedDict() for kind in (PARAMETER, BUFFER, MODULE)
}


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, parameter)` before a parameter is registered in any module. What
    it returns is registered instead, unless it is None.

    >>> names = []
    >>> handle = weft.nn.modules.module.register_module_parameter_registration_hook(
    ...     lambda module, name, parameter: names.append(name))
    >>> _ = weft.nn.Linear(1, 1)
    >>> handle.remove()
    >>> names
    ['weight', 'bias']
    """
    return RemovableHandle.insert(_registration_hooks[PARAMETER], hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, buffer)` before a buffer is registered in any module. What it
    returns is registered instead, unless it is None."""
    return RemovableHandle.insert(_registration_hooks[BUFFER], hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, child)` before a child is registered in any module. What it
    returns is registered instead, unless it is None."""
    return RemovableHandle.insert(_registration_hooks[MODULE], hook)


class Members(MutableMapping[str, Any]):
    """A live view of one kind of members of one module."""

    __slots__ = ("_kind", "_owner")

    def __init__(self, owner: Registry, kind: str) -> None:
        self._owner = owner
        self._kind = kind

    def __contains__(self, name: object) -> bool:
        return self._owner._kinds.get(name) == self._kind  # type: ignore[call-overload]

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        return self._owner.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._owner._put(name, value, self._kind)

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        Registry.__delattr__(self._owner, name)  # a program's own may come from there

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, kind in self._owner._kinds.items() if kind == self._kind])

    def __len__(self) -> int:
        return sum(kind == self._kind for kind in self._owner._kinds.values())

    # What a dict has and the views of a mapping lack: programs walk children from the last one.

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self))

    def keys(self) -> KeysView[str]:
        """The names, as of now."""
        return dict(self._listed()).keys()

    def values(self) -> ValuesView[Any]:
        """The members, as of now."""
        return dict(self._listed()).values()

    def items(self) -> ItemsView[str, Any]:
        """Names and members, as of now."""
        return dict(self._listed()).items()

    def _listed(self) -> list[tuple[str, Any]]:
        return self._owner._own(self._kind)

    def popitem(self) -> tuple[str, Any]:
        """Takes the last member out, and gives its name and itself."""
        if not self:
            raise KeyError("popitem: expected members, got none")
        name = list(self)[-1]
        return name, self.pop(name)

    def __or__(self, other: Any) -> dict[str, Any]:
        return dict(self) | dict(other)

    def __ror__(self, other: Any) -> dict[str, Any]:
        return dict(other) | dict(self)

    def copy(self) -> dict[str, Any]:
        """A dict with these members."""
        return dict(self)

    def __repr__(self) -> str:
        return repr(dict(self))


class _Held(Members):
    """The view that a module's own `__dict__` has, for programs that look there: it does not keep
    the module alive, and copies and pickles leave it to the module that they make."""

    __slots__ = ("_reference",)

    @property
    def _owner(self) -> Any:
        return self._reference()

    @_owner.setter
    def _owner(self, owner: Any) -> None:
        self._reference = weakref.ref(owner)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, ()


#: the names of the views
VIEWS = {"_parameters": PARAMETER, "_buffers": BUFFER, "_modules": MODULE}


def hold_views(module: Registry) -> None:
    """Puts the views of a module into its `__dict__`."""
    for name, kind in VIEWS.items():
        module.__dict__[name] = _Held(module, kind)


def _members(kind: str) -> Any:
    """The property with all members of a kind; assigning a mapping replaces them."""

    def set_members(module: Registry, members: Mapping[str, Any]) -> None:
        given = dict(members)
        for name in Members(module, kind):
            module.__dict__.pop(name)
        # A new dict: modules whose __dict__ was copied may share the old one.
        kinds = {name: known for name, known in module._kinds.items() if known != kind}
        module.__dict__["_kinds"] = kinds
        for name, value in given.items():
            module._put(name, value, kind)
        hold_views(module)

    return property(lambda module: Members(module, kind), set_members)


def _member_by_getattr(module: Any, name: str) -> Any:
    """`__getattribute__` of modules with a `__getattr__` of their own."""
    kinds = object.__getattribute__(module, "__dict__").get("_kinds", ())
    if name in kinds and not any(name in vars(base) for base in type(module).__mro__):
        return type(module).__getattr__(module, name)
    return object.__getattribute__(module, name)


class Registry:
    """The part of Module that knows its members; see Module."""

    # What PyTorch keeps in each object, and here a class or a property knows.
    _computed_attributes: ClassVar[tuple[str, ...]] = ()
    _kinds: dict[str, str]
    _non_persistent_buffers_set: set[str]
    training: bool

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A program's __getattr__ is asked for members, which are no attributes in PyTorch: it may
        # note who reads a parameter.
        own = getattr(cls.__getattr__, "__module__", "").partition(".")[0] == "weft"
        if not own and cls.__getattribute__ is object.__getattribute__:
            setattr(cls, "__getattribute__", _member_by_getattr)  # noqa: B010

    def __init__(self) -> None:
        attributes = self.__dict__
        attributes["training"] = True
        attributes["_kinds"] = {}
        attributes["_non_persistent_buffers_set"] = set()
        hold_views(self)

    _parameters = _members(PARAMETER)
    _buffers = _members(BUFFER)
    _modules = _members(MODULE)

    # Attributes -------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        kinds = self.__dict__.get("_kinds")
        kind = _kind_of(value)
        if kinds is None:
            if kind is not None:
                raise AttributeError(
                    f"{type(self).__name__}: expected Module.__init__() to be called before "
                    f"a {kind} is assigned, got {name!r}"
                )
            object.__setattr__(self, name, value)
            return
        known = kinds.get(name)
        if kind is None and known is None:
            object.__setattr__(self, name, value)
        else:
            kept = _checked_kind(name, value, kind, known)
            if kept == PARAMETER:
                if known != PARAMETER:
                    self.__dict__.pop(name, None)
                self.register_parameter(name, value)  # programs replace the method
            else:
                self._add(name, value, kept)
            if kind == BUFFER:  # the last one says what is saved
                change = set.discard if value.persistent else set.add
                change(self._non_persistent_buffers_set, name)

    def __getattr__(self, name: str) -> Any:
        # Reached when the ordinary look-up has failed; wrappers call it through super(), and
        # programs by its name, as a way to the members alone.
        attributes = self.__dict__
        if name in attributes and name in attributes.get("_kinds", ()):
            return attributes[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__.get("_kinds", ()):  # also below a property without a deleter
            self.__dict__.pop(name, None)
            del self._kinds[name]
        else:
            object.__delattr__(self, name)
        self._non_persistent_buffers_set.discard(name)

    def _put(self, name: str, value: Any, kind: str) -> None:
        """Stores a member and its kind; a name that changes its kind moves to the end."""
        if self._kinds.get(name) != kind:
            self._kinds.pop(name, None)
            self._non_persistent_buffers_set.discard(name)
            self._kinds[name] = kind
        self.__dict__[name] = value

    def _add(self, name: str, value: Any, kind: str) -> None:
        """Stores a member, or what the hooks of all modules give for it."""
        if value is not None or kind != PARAMETER:
            for hook in list(_registration_hooks[kind].values()):
                replaced = hook(self, name, value)
                value = value if replaced is None else replaced
        self._put(name, value, kind)

    # Registration -----------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under `name`; None holds its place (and is not in state_dict)."""
        self._check_member("register_parameter", name, PARAMETER, param, Parameter, "Parameter")
        self._add(name, param, PARAMETER)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is state but not learned; `persistent` puts it into state_dict."""
        self._check_member("register_buffer", name, BUFFER, tensor, Tensor, "Tensor")
        self._add(name, tensor, BUFFER)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name: str, module: Any) -> None:
        """The same as add_module."""
        self.add_module(name, module)

    def add_module(self, name: str, module: Any) -> None:
        """Adds a child module under `name`; None holds its place."""
        self._check_member("add_module", name, MODULE, module, Registry, "Module")
        self._add(name, module, MODULE)

    def _check_member(
        self, operation: str, name: str, kind: str, value: Any, type_: Any, what: str
    ) -> None:
        """Checks a new name, and that the value is None or of a type."""
        if "_kinds" not in self.__dict__:
            raise AttributeError(f"{operation}: expected Module.__init__() to be called before")
        if not isinstance(name, str):
            raise TypeError(f"{operation}: expected a string as name, got {_typename(name)}")
        if name == "" or "." in name:
            raise KeyError(f"{operation}: expected a non-empty name without '.', got {name!r}")
        if self._kinds.get(name) != kind and hasattr(self, name):
            raise KeyError(f"{operation}: expected an unused name, got the attribute {name!r}")
        if value is not None and not isinstance(value, type_):
            raise TypeError(
                f"{operation}: expected a {what} or None for {name!r}, got {_typename(value)}"
            )

    # Walking ----------------------------------------------------------------------------------

    def _own(self, kind: str) -> list[tuple[str, Any]]:
        """This module's own members of one kind, None included."""
        attributes = self.__dict__
        return [(name, attributes[name]) for name, k in self._kinds.items() if k == kind]

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Yields (dotted name, value) of those that get_members_fn gives for each module."""
        seen: set[int] = set()
        start = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in start if recurse else [(prefix, self)]:
            for name, value in get_members_fn(module):
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yields (dotted name, parameter) of this module and, by default, all below it."""
        own = methodcaller("_own", PARAMETER)
        return self._named_members(own, prefix, recurse, remove_duplicate)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yields (dotted name, buffer) of this module and, by default, all below it."""
        own = methodcaller("_own", BUFFER)
        return self._named_members(own, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yields each parameter once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yields each buffer once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Yields (name, module) of the direct children, each module once."""
        seen: set[int] = set()
        for name, child in self._own(MODULE):
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                yield name, child

    def children(self) -> Iterator[Any]:
        """Yields the direct child modules, each once."""
        for _, child in self.named_children():
            yield child

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yields (dotted name, module) of this module (empty name) and all below it."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._own(MODULE):
            if child is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from child.named_modules(memo, path, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """Yields this module and all below it, each once unless remove_duplicate is False."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def get_submodule(self, target: str) -> Any:
        """The module at a dotted path; the empty path is this module."""
        module: Any = self
        for step in target.split(".") if target else []:
            child = getattr(module, step, None)
            if not isinstance(child, Registry):
                raise AttributeError(
                    f"get_submodule: expected {type(module).__name__} to have a child module "
                    f"{step!r}, got {_typename(child)}"
                )
            module = child
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Puts a module at a dotted path, in the place of the one there; strict: only there.

        ValueError for an empty path and for what is no module, AttributeError where the path leads
        through something else.
        """
        if not target or not isinstance(module, Registry):
            raise ValueError(
                f"set_submodule: expected a path and a module, got {target!r} and "
                f"{_typename(module)}"
            )
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if (strict or hasattr(parent, name)) and not isinstance(
            getattr(parent, name, None), Registry
        ):
            raise AttributeError(
                f"set_submodule: expected {type(parent).__name__} to have a child module "
                f"{name!r}, got {_typename(getattr(parent, name, None))}"
            )
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        return self._get_member("get_parameter", target, PARAMETER)

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        return self._get_member("get_buffer", target, BUFFER)

    def _get_member(self, operation: str, target: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if module._kinds.get(name) != kind:
            raise AttributeError(
                f"{operation}: expected {type(module).__name__} to have a {kind} {name!r}, got none"
            )
        return module.__dict__[name]


def _kind_of(value: Any) -> str | None:
    """The kind that a value has by itself: a plain tensor is a buffer when registered as one."""
    if isinstance(value, Parameter):
        return PARAMETER
    if isinstance(value, Buffer):
        return BUFFER
    return MODULE if isinstance(value, Registry) else None


_EXPECTED = {PARAMETER: "a Parameter", MODULE: "a Module", BUFFER: "a Tensor"}


def _checked_kind(name: str, value: Any, kind: str | None, known: str | None) -> str:
    """The kind under which `value` is kept; an existing member only accepts its own kind."""
    keeps = value is None or (known == BUFFER and isinstance(value, Tensor))
    if kind == PARAMETER or (kind in (MODULE, BUFFER) and known != PARAMETER):
        return kind
    assert known is not None
    if keeps:
        return known
    raise TypeError(f"{name}: expected {_EXPECTED[known]} or None, got {_typename(value)}")


def _typename(value: Any) -> str:
    return value.type() if type(value) is Tensor else type(value).__name__

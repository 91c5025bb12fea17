"""Instances of compiled classes, shared by Python and the programs they were given to.

From the first call on, the attributes of an instance live in the program's object: descriptors on
the class read and write them there. Lists and dicts are copies on either side of the border, as all
are; Python's copy of an attribute is brought up to date when Python reads the attribute, the
program's when the instance is passed.
"""

from __future__ import annotations

import weakref
from typing import Any

from weft._C import Tensor
from weft.jit.execution import class_of
from weft.jit.frontend.types.classes import class_info

_STATE = "_jit_state"
_ABSENT = object()
_instances: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()


class _State:
    """What a shared instance holds: the program's object, and Python's lists and dicts among its
    attributes, each with its contents when both sides were last equal."""

    def __init__(self, shared: Any) -> None:
        self.shared = shared
        self.containers: dict[str, tuple[Any, Any]] = {}

    def read(self, name: str) -> Any:
        value = getattr(self.shared, name)
        known, before = self.containers.get(name, (None, None))
        if type(value) is not type(known):
            return self.keep(name, value)
        if not _same(value, before):
            known.clear()
            (known.extend if isinstance(known, list) else known.update)(value)
            self.keep(name, known)
        return known

    def write(self, name: str, value: Any) -> None:
        setattr(self.shared, name, value)
        self.keep(name, value)

    def keep(self, name: str, value: Any) -> Any:
        if isinstance(value, (list, dict)):
            self.containers[name] = value, _copied(value)
        else:
            self.containers.pop(name, None)
        return value

    def pass_containers(self) -> None:
        """Gives the program the lists and dicts that Python has changed."""
        for name, (value, before) in list(self.containers.items()):
            if not _same(value, before):
                self.write(name, value)


class _SharedAttribute:
    """The descriptor of an attribute; `default` is the class's own value of that name."""

    def __init__(self, name: str, default: Any) -> None:
        self.name, self.default = name, default

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        own = {} if instance is None else vars(instance)
        if _STATE in own:
            return own[_STATE].read(self.name)
        value = own.get(self.name, self.default)
        if value is _ABSENT:
            holder = owner.__name__ if owner else type(instance).__name__
            raise AttributeError(f"'{holder}' object has no attribute '{self.name}'")
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        own = vars(instance)
        if _STATE in own:
            own[_STATE].write(self.name, value)
        else:
            own[self.name] = value

    def __delete__(self, instance: Any) -> None:
        if _STATE in vars(instance) or self.name not in vars(instance):
            raise AttributeError(self.name)
        del vars(instance)[self.name]


def shared_object(instance: Any) -> Any:
    """The program's object for an instance: the same one as long as the instance lives."""
    state = vars(instance).get(_STATE)
    if state is None:
        return _share(instance)
    state.pass_containers()
    return state.shared


def _share(instance: Any) -> Any:
    info = class_info(type(instance))
    values = {name: getattr(instance, name) for name in info.type.attributes}
    share_class(type(instance), list(values))
    shared = class_of(info.type).new()
    state = attach(instance, shared)
    try:
        for name, value in values.items():
            state.write(name, value)
    except BaseException:
        del vars(instance)[_STATE], _instances[shared]
        raise
    for name in values:
        vars(instance).pop(name, None)
    return shared


def attach(instance: Any, shared: Any) -> _State:
    """Makes an instance the one that Python has for a program's object."""
    state = vars(instance)[_STATE] = _State(shared)
    _instances[shared] = instance
    return state


def instance_of(cls: Any, shared: Any) -> Any:
    """Python's instance for a program's object; a new one if there is none."""
    instance = _instances.get(shared)
    if instance is None:
        share_class(cls, shared._class.attributes)
        instance = cls.__new__(cls)
        attach(instance, shared)
    return instance


def can_share(cls: type) -> bool:
    """Whether instances have a place for the program's object: with __slots__ they have none."""
    return bool(cls.__dictoffset__ and cls.__weakrefoffset__)


def share_class(cls: type, names: list[str]) -> None:
    """Puts the descriptors into a class, once."""
    if _STATE in vars(cls):
        return
    for name in names:
        setattr(cls, name, _SharedAttribute(name, getattr(cls, name, _ABSENT)))
    if getattr(cls, "__getstate__", None) is getattr(object, "__getstate__", None):
        cls.__getstate__ = _own_attributes  # type: ignore[attr-defined]
    setattr(cls, _STATE, None)


def _own_attributes(self: Any) -> dict[str, Any]:
    """What a copy or a pickle of an instance takes: its attributes, not the program's object."""
    own = dict(vars(self))
    state = own.pop(_STATE, None)
    if state is not None:
        own.update((name, state.read(name)) for name in state.shared._class.attributes)
    return own


def _copied(value: Any) -> Any:
    """A container with containers of its own, and the same items."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _same(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if type(left) is not type(right) or isinstance(left, Tensor):
        return False
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    both_nan = left != left and right != right
    return bool(left == right or both_nan)

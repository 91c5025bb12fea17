"""`record`: small classes of named values, as `dataclasses.dataclass` makes them, at a tenth of its
cost: a process that compiles its first function makes fifty of them first.

>>> @record
... class Point:
...     x: int
...     y: int = 0
>>> Point(1), Point(1) == Point(1, 0), Point(1) == Point(2)
(Point(x=1, y=0), True, False)
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from weft.jit.ir.fresh_stack import on_fresh_stack

T = TypeVar("T")


class _Field:
    """A field whose default is made anew for each object, or that __init__ does not take."""

    def __init__(self, default_factory: Callable[[], Any] | None, init: bool) -> None:
        self.default_factory, self.init = default_factory, init


def field(*, default_factory: Callable[[], Any] | None = None, init: bool = True) -> Any:
    """A field with a fresh default, or (`init=False`) one that `__post_init__` sets."""
    return _Field(default_factory, init)


if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from typing import NamedTuple as NamedTuple
else:

    class _NamedTupleType(type):
        def __new__(meta, name, bases, space):
            names = tuple(space.get("__annotations__", ()))
            defaults = [space.pop(each) for each in names if each in space]
            module = space["__module__"]
            made = on_fresh_stack(namedtuple, name, names, defaults=defaults, module=module)
            for key, value in space.items():
                if key not in ("__module__", "__qualname__"):
                    setattr(made, key, value)
            return made

    # As typing.NamedTuple, which reads every annotation first and takes thrice as long.
    NamedTuple = type.__new__(_NamedTupleType, "NamedTuple", (), {})

    def record(cls=None, *, frozen=False, eq=True, repr=True):
        """Gives the class __init__, __repr__ and __eq__ from its annotations, in their order.

        frozen: fields cannot be set, and equal objects have equal hashes. A `__post_init__` is
        called last; it sets fields of frozen objects through `__dict__`.
        """
        if cls is None:
            return lambda each: record(each, frozen=frozen, eq=eq, repr=repr)
        names = tuple(cls.__dict__.get("__annotations__", ()))  # noqa: RUF063 (inspect is slow)
        _add_init(cls, names, frozen)
        cls.__match_args__ = names
        own = cls.__dict__
        if repr and "__repr__" not in own:
            cls.__repr__ = _repr
        if eq and names and "__eq__" not in own:
            cls._record_key = staticmethod(attrgetter(*names))
            cls.__eq__ = _eq
            cls.__hash__ = _hash if frozen else None
        if frozen:
            cls.__setattr__ = cls.__delattr__ = _refuse
        return cls


def _add_init(cls: Any, names: tuple[str, ...], frozen: bool) -> None:
    """__init__, the one method that is worth being compiled for its class: at its first use, for
    most classes are never used in a process."""
    own = cls.__dict__
    defaults = {name: own[name] for name in names if name in own}
    for name, default in defaults.items():
        if isinstance(default, _Field):
            delattr(cls, name)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        made: dict[str, Any] = {}
        scope = {
            f"_{name}": default.default_factory if isinstance(default, _Field) else default
            for name, default in defaults.items()
        }
        text = _text_of_init(names, defaults, frozen, hasattr(cls, "__post_init__"))
        on_fresh_stack(exec, text, scope, made)
        cls.__init__ = made["__init__"]
        cls.__init__(self, *args, **kwargs)

    cls.__init__ = __init__


def _text_of_init(
    names: tuple[str, ...], defaults: dict[str, Any], frozen: bool, is_followed: bool
) -> str:
    """The source of __init__, in which `_name` is the default of a field, or what makes one."""
    parameters, body = [], []
    target = "own[{!r}]" if frozen else "self.{}"
    for name in names:
        default, value = defaults.get(name), name
        if isinstance(default, _Field):
            if not default.init:
                continue
            parameters.append(f"{name}=None")
            value = f"_{name}() if {name} is None else {name}"
        else:
            parameters.append(f"{name}=_{name}" if name in defaults else name)
        body.append(f"{target.format(name)} = {value}")
    if frozen:
        body.insert(0, "own = self.__dict__")
    if is_followed:
        body.append("self.__post_init__()")
    return f"def __init__(self, {', '.join(parameters)}):\n    " + "\n    ".join(body or ["pass"])


def _repr(self: Any) -> str:
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({values})"


def _eq(self: Any, other: object) -> Any:
    if self is other:
        return True
    if type(self) is not type(other):
        return NotImplemented
    return self._record_key(self) == self._record_key(other)  # type: ignore[attr-defined]


def _hash(self: Any) -> int:
    return hash(self._record_key(self))


def _refuse(self: Any, name: str, value: object = None) -> None:
    raise AttributeError(f"{type(self).__name__}: expected not to be changed, got {name}")

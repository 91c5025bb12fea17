"""Names of functions and classes in programs, whose they are; and Python values as values of
the language's types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft._C import Tensor
from weft._runtime.public import weft
from weft.jit import python_classes
from weft.jit.frontend.source.resolver import MISSING
from weft.jit.frontend.types.annotations import type_of_value
from weft.jit.ir import types as ty


def qualified_name(obj: Any) -> str:
    """The name of a function or class in the IR: "__torch__.package.module.name"."""
    module = getattr(obj, "__module__", None) or "__main__"
    name = str(getattr(obj, "__qualname__", "") or getattr(obj, "__name__", "object"))
    name = name.replace(".<locals>", "").replace("<lambda>", "_lambda")
    # Definitions of archives have the names that they had.
    return (
        f"{module}.{name}" if module.split(".")[0] == "__torch__" else f"__torch__.{module}.{name}"
    )


_names: set[str] = set()
_copies: dict[str, int] = {}  # how many names were made of one


def unique_name(name: str, cls: type | None = None) -> str:
    """The name, or one that tells the class from an earlier one of the same name. Archives have
    classes whose names were told apart before, so what is made of a name may be there already; and
    programs from disk know classes that nobody has compiled."""
    head, _, rest = name.partition(".")
    made = name
    while made in _names or python_classes.find(made) not in (None, cls):
        number = _copies.get(name, 0)
        _copies[name] = number + 1
        made = f"{head}.___torch_mangle_{number}.{rest}"
    _names.add(made)
    return made


def is_library(obj: Any) -> bool:
    """Whether a function is one of weft's own, whose annotations may be open; or of an archive,
    and takes modules."""
    if getattr(obj, "__weft_open__", False):
        return True
    module = getattr(obj, "__module__", "") or ""
    return module == "weft" or module.startswith("weft.")


def is_library_layer(cls: type) -> bool:
    """Whether the class stands in weft.nn.modules."""
    return cls.__module__.startswith("weft.nn.modules.")


_LIBRARIES = frozenset(("weft", "builtins", "typing", "collections", "nanobind"))
_HEAP_TYPE, _IMMUTABLE_TYPE = 1 << 9, 1 << 8


def is_written(cls: type) -> bool:
    """Whether a class of values is written in Python by users, and not in C as itertools.count."""
    module: Any = cls.__module__  # of a type written in C it may be a descriptor
    if not isinstance(module, str):
        return False
    if module.partition(".")[0] in _LIBRARIES and not hasattr(cls, "__weft_script__"):
        return False
    if not cls.__flags__ & _HEAP_TYPE or cls.__flags__ & _IMMUTABLE_TYPE:
        return False
    return not issubclass(cls, weft.nn.Module | Tensor)


_NUMBERS: dict[ty.Type, tuple[Any, tuple[type, ...]]] = {
    ty.BOOL: (bool, (int,)),
    ty.INT: (int, (int,)),
    ty.FLOAT: (float, (int, float)),
    ty.COMPLEX: (complex, (int, float, complex)),
}


def as_type(value: Any, type: ty.Type) -> Any:
    """The value as one of the type, with the conversions of numbers that a call makes, in lists,
    tuples and dicts too: a register of floats must not get an int. MISSING where it is none."""
    inner = ty.non_none(type)
    if value is None:
        may_be_none = inner is ty.TENSOR or ty.is_subtype(ty.NONE, type)
        return None if may_be_none else MISSING
    if inner in _NUMBERS:
        make, kinds = _NUMBERS[inner]
        return make(value) if isinstance(value, kinds) else MISSING
    if isinstance(inner, ty.UnionType):
        return _as_member(value, inner)
    if isinstance(value, list | tuple | dict):
        return _as_container(value, inner)
    is_other = not isinstance(value, str) if inner is ty.STR else False
    if inner is ty.TENSOR:
        is_other = isinstance(value, int | float | complex | str)
    return MISSING if is_other else value


def _as_member(value: Any, union: ty.UnionType) -> Any:
    """The value as it is where a member of the union takes it so, or as the first that takes it."""
    found = [each for member in union.members if (each := as_type(value, member)) is not MISSING]
    exact = [each for each in found if each.__class__ is value.__class__]
    return next(iter(exact or found), MISSING)


def _as_container(value: Any, type: ty.Type) -> Any:
    if isinstance(type, ty.DictType) and isinstance(value, dict):
        keys = _as_items(list(value), [type.key] * len(value))
        items = _as_items(list(value.values()), [type.value] * len(value))
        return MISSING if keys is MISSING or items is MISSING else dict(zip(keys, items))
    if isinstance(type, ty.ListType) and not isinstance(value, dict):
        return _as_items(value, [type.elem] * len(value))
    if isinstance(type, ty.TupleType) and len(value) == len(type.elems):
        items = _as_items(list(value), type.elems)
        if items is MISSING:
            return MISSING
        return value.__class__(*items) if hasattr(value, "_fields") else tuple(items)
    known = type is ty.ANY and type_of_value(value) is not None
    return value if known else MISSING


def _as_items(values: Sequence[Any], types: Sequence[ty.Type]) -> Any:
    items = [as_type(value, type) for value, type in zip(values, types)]
    return MISSING if any(item is MISSING for item in items) else items


def static_attribute(cls: type, name: str, default: Any) -> Any:
    """What stands in a class or its bases under a name, without what descriptors make of it."""
    found = (vars(base)[name] for base in cls.__mro__ if name in vars(base))
    return next(found, default)

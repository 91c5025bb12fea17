"""Names of functions and classes in programs, and whose they are."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor
from weft._runtime.public import weft
from weft.jit import python_classes


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
    if not isinstance(module, str) or module.partition(".")[0] in _LIBRARIES:
        return False
    if not cls.__flags__ & _HEAP_TYPE or cls.__flags__ & _IMMUTABLE_TYPE:
        return False
    return not issubclass(cls, weft.nn.Module | Tensor)

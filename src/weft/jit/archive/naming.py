"""Names of definitions in an archive, and the text of types.

Names do not depend on what the process compiled before: the first definition of a name keeps it,
further ones are told apart by `___torch_mangle_0`, `___torch_mangle_1`, ... before the last part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from weft.jit.archive.collect import Definition
from weft.jit.ir import Function
from weft.jit.ir import types as ty

_ROOT = "__torch__"
_MANGLED = re.compile(r"___torch_mangle_\d+")
_INSTANCE = re.compile(r"(?<=[^_])__\d+$")  # of a function compiled for further types
_TYPES: dict[ty.Type, str] = {
    ty.NONE: "NoneType", ty.DEVICE: "Device", ty.DTYPE: "int", ty.LAYOUT: "int",
    ty.MEMORY_FORMAT: "int", ty.GENERATOR: "Generator", ty.NUMBER: "number",
}  # fmt: skip


class Names:
    """The names of definitions."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        self._names: dict[Any, str] = {}
        listed = list(definitions)
        bases = [_base(each.name) for each in listed]  # type: ignore[union-attr]
        of_types = {base for each, base in zip(listed, bases) if isinstance(each, ty.Type)}
        taken = of_types | set(bases)
        counts: dict[str, int] = {}
        for definition, base in zip(listed, bases):
            name = _outside(base, taken)
            count = counts[name] = counts.get(name, -1) + 1
            if count:
                module, _, short = name.rpartition(".")
                name = f"{module}.___torch_mangle_{count - 1}.{short}"
            self._names[_key(definition)] = name

    def of(self, definition: Definition) -> str:
        """The qualified name of a definition."""
        return self._names[_key(definition)]

    def type(self, type: ty.Type) -> str:
        """The text of a type."""
        known = _TYPES.get(type)
        if known is not None:
            return known
        if _key(type) in self._names:
            return self.of(type)
        if isinstance(type, ty.ListType):
            return f"List[{self.type(type.elem)}]"
        if isinstance(type, ty.OptionalType):
            return f"Optional[{self.type(type.elem)}]"
        if isinstance(type, ty.DictType):
            return f"Dict[{self.type(type.key)}, {self.type(type.value)}]"
        if isinstance(type, ty.UnionType):  # dtypes and ints are one member
            return f"Union[{', '.join(dict.fromkeys(map(self.type, type.members)))}]"
        if isinstance(type, ty.FutureType):
            return f"Future[{self.type(type.elem)}]"
        if isinstance(type, ty.TupleType):
            return f"Tuple[{', '.join(map(self.type, type.elems)) or '()'}]"
        return type.annotation


def _key(definition: Definition) -> Any:
    """Functions and classes are compared by identity, other types by structure."""
    by_identity = isinstance(definition, Function | ty.ClassType | ty.InterfaceType)
    return id(definition) if by_identity else definition


def _base(name: str) -> str:
    """The name in its Python module, with PyTorch's names of layers and without marks that tell it
    from others."""
    parts = [re.sub(r"\W", "_", part) for part in name.split(".") if not _MANGLED.fullmatch(part)]
    parts[-1] = _INSTANCE.sub("", parts[-1])
    parts = parts[1:] if parts[0] == _ROOT else parts
    parts = parts[1:] if parts[0] == "__main__" and len(parts) > 1 else parts
    if parts[:2] == ["weft", "nn"]:
        parts[0] = "torch"
    return ".".join([_ROOT, *parts])


def _outside(name: str, taken: set[str]) -> str:
    """A name that lies within no other definition: `C.f` of a class C becomes `C_f`."""
    parts = name.split(".")
    for end in range(2, len(parts)):
        if ".".join(parts[:end]) in taken or parts[end - 1][:1].isupper():
            return ".".join([*parts[: end - 1], "_".join(parts[end - 1 :])])
    return name

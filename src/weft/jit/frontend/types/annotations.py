"""Python annotations and type comments to IR types."""

from __future__ import annotations

import ast
import collections.abc
import enum
import sys
import types as python_types
import typing
from typing import Any

from weft import _C
from weft._C import Generator, Size, Tensor
from weft.jit.cache import reads
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.code import Code
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.source.resolver import MISSING, Resolver
from weft.jit.ir import types as ty
from weft.jit.ir.fresh_stack import parse


class Generic:
    """An annotation that leaves the type to the call: only weft's own functions have such."""

    def __repr__(self) -> str:
        return "any type"


GENERIC = Generic()

_PLAIN: dict[Any, ty.Type] = {
    int: ty.INT,
    float: ty.FLOAT,
    bool: ty.BOOL,
    complex: ty.COMPLEX,
    str: ty.STR,
    None: ty.NONE,
    type(None): ty.NONE,
    typing.Any: ty.ANY,
    object: ty.ANY,
    Tensor: ty.TENSOR,
    _C.device: ty.DEVICE,
    _C.dtype: ty.DTYPE,
    Size: ty.ListType(ty.INT),
    _C.layout: ty.LAYOUT,
    _C.memory_format: ty.MEMORY_FORMAT,
    Generator: ty.GENERATOR,
}

#: by type without parts, and by kind of container, the class of its values in Python
PYTHON_CLASSES: dict[Any, type] = {
    **{t: cls for cls, t in _PLAIN.items() if isinstance(cls, type) and isinstance(t, ty.BaseType)},
    **{ty.ListType: list, ty.TupleType: tuple, ty.DictType: dict},
}

# What annotations and type comments name without an import, as in torch.jit.
TYPE_NAMES: dict[str, Any] = {
    **{
        name: getattr(typing, name)
        for name in ("List", "Dict", "Tuple", "Optional", "Union", "Any")
    },
    "Tensor": Tensor,
    "Device": _C.device,
    "number": ty.NUMBER,
}
_OPEN = (collections.abc.Sequence, collections.abc.Iterable, collections.abc.Callable)
_KEYS = (ty.INT, ty.FLOAT, ty.STR, ty.BOOL, ty.COMPLEX, ty.DEVICE)
KEYS = "int, float, bool, complex, str, Tensor, device, an enum, or a tuple of these but Tensor"


def is_key(type: ty.Type, within: bool = False) -> bool:
    """Whether values of the type can be keys of a dict. Tensors are by their identity, which a
    tuple that holds them cannot be."""
    if isinstance(type, ty.TupleType):
        return all(is_key(each, True) for each in type.elems)
    return isinstance(type, ty.EnumType) or type in _KEYS or (type is ty.TENSOR and not within)


def class_type(cls: type, range: Any) -> ty.Type:
    """The type of instances of a class written in Python."""
    return verb["type_of_class"](cls, range)


def _is_init_var(cls: Any) -> bool:
    return cls is getattr(sys.modules.get("dataclasses"), "InitVar", MISSING)


class Annotations:
    """Reads annotations of one piece of source.

    `generic` lets weft's own functions leave types open: Any, Sequence, tuple[T, ...] and Callable
    then give GENERIC.
    """

    def __init__(self, code: Code, resolver: Resolver, generic: bool = False) -> None:
        self.code = code
        self.resolver = resolver
        self.generic = generic
        # A method of a derived class reads its own class where a base names itself.
        self.own: ty.Type | None = None
        self.bases: tuple[type, ...] = ()

    def read(self, node: ast.expr) -> Any:
        """The type an annotation means; GENERIC where it is open. FrontendError if it is none."""
        range = self.code.range(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self._of_text(node.value, node)
        if isinstance(node, ast.Constant) and node.value is None:
            return ty.NONE
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self._union([self.read(node.left), self.read(node.right)])
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.List | ast.Tuple) and self.generic:
            return GENERIC
        return self.of_object(self.object(node), range)

    def _of_text(self, text: str, node: ast.expr | ast.arg) -> Any:
        try:
            inner = parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            fail(f"annotation: expected a type, got {text!r}", self.code.range(node))
        for part in ast.walk(inner):
            ast.copy_location(part, node)
        return self.read(inner)

    def object(self, node: ast.expr) -> Any:
        """The Python object that a dotted name means."""
        range = self.code.range(node)
        if isinstance(node, ast.Name):
            found = self.resolver.find(node.id)
            if found is MISSING:
                found = TYPE_NAMES.get(node.id, MISSING)
            if found is MISSING:
                fail(
                    f"annotation: expected the name of a type, got the unknown name {node.id!r}",
                    range,
                    _import_hint(node.id),
                )
            return found
        if isinstance(node, ast.Attribute):
            if node.attr.startswith("__") and node.attr.endswith("__"):
                fail(f"annotation: expected a type, got {ast.unparse(node)}", range)
            owner = self.object(node.value)
            try:
                return getattr(owner, node.attr)
            except Exception:
                fail(
                    f"annotation: expected a type, got {ast.unparse(node)}, which is not there",
                    range,
                )
        if isinstance(node, ast.Constant):
            return node.value
        fail(f"annotation: expected a type, got the expression {ast.unparse(node)}", range)

    def length(self, node: ast.expr | None) -> int | None:
        """The 2 of BroadcastingList2[int], whose argument may be one number; None of others."""
        if not isinstance(node, ast.Subscript):
            return None
        return getattr(self.object(node.value), "__weft_length__", None)

    def _subscript(self, node: ast.Subscript) -> Any:
        base = self.object(node.value)
        origin = typing.get_origin(base) or base
        if hasattr(base, "__weft_length__"):
            origin = list
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if origin is typing.Annotated:
            items = items[:1]
        if _is_init_var(origin):
            return self.read(items[0])
        if origin is typing.Literal:
            return self.of_object(base[self._literals(items)], self.code.range(node))
        if origin is tuple and ast.unparse(node.slice) == "()":  # Tuple[()]
            return ty.TupleType(())
        parts: list[Any] = []
        for item in items:
            if isinstance(item, ast.Constant) and item.value is ...:
                parts.append(...)
            else:
                parts.append(self.read(item))
        return self._generic_type(origin, parts, self.code.range(node))

    def _literals(self, items: list[ast.expr]) -> tuple[Any, ...]:
        return tuple(item.value if isinstance(item, ast.Constant) else None for item in items)

    def of_object(self, obj: Any, range: Any = None) -> Any:
        """The type that a Python object used as annotation means."""
        if not isinstance(obj, ty.Type):
            reads.read(obj, self.code.source.filename)
        if isinstance(obj, typing.ForwardRef):
            obj = obj.__forward_arg__
        if isinstance(obj, str):
            node = parse("0", mode="eval").body
            return self._of_text(obj, node)
        if _is_init_var(type(obj)):  # an argument of __init__ that is no field
            obj = obj.type
        _refuse_values(obj, range)
        plain = _PLAIN.get(obj)
        if plain is None and obj is getattr(sys.modules.get("numbers"), "Number", plain):
            plain = ty.NUMBER if obj is not None else None
        if obj in (list, tuple, dict) if isinstance(obj, type) else False:
            if self.generic:
                return GENERIC
            fail(
                f"annotation: expected the types inside a {obj.__name__}, got none",
                range,
                {"list": "List[int]", "tuple": "Tuple[int, Tensor]", "dict": "Dict[str, Tensor]"}[
                    obj.__name__
                ],
            )
        if self.generic and (obj in (typing.Any, object) or obj in _OPEN):
            return GENERIC
        if plain is not None:
            return plain
        if isinstance(obj, ty.Type):
            return obj
        if isinstance(obj, typing.NewType):
            return self.of_object(obj.__supertype__, range)
        if isinstance(obj, typing.TypeVar):
            if self.generic:
                return GENERIC
            fail(f"annotation: expected a concrete type, got the type variable {obj}", range)
        if isinstance(obj, python_types.UnionType):
            return self._union([self.of_object(arg, range) for arg in typing.get_args(obj)])
        origin = typing.get_origin(obj)
        if origin is not None:
            if origin is typing.Literal:
                return self._union([self.of_object(type(a), range) for a in typing.get_args(obj)])
            arguments = typing.get_args(obj)
            if origin is typing.Annotated:
                arguments = arguments[:1]
            if self.generic and origin in _OPEN:
                return GENERIC
            parts = [a if a is ... else self.of_object(a, range) for a in arguments]
            return self._generic_type(origin, parts, range)
        if isinstance(obj, type) and self.own is not None and obj in self.bases:
            return self.own
        if isinstance(obj, type):
            return self._class(obj, range)
        fail(f"annotation: expected a type, got {_show(obj)}", range)

    def _class(self, cls: type, range: Any) -> Any:
        if issubclass(cls, Tensor):
            return ty.TENSOR
        is_closed = issubclass(cls, enum.Enum | tuple) or hasattr(cls, "__weft_script__")
        if self.generic and not is_closed:
            return GENERIC
        return class_type(cls, range)

    def _union(self, parts: list[Any]) -> Any:
        if any(part is GENERIC for part in parts):
            return GENERIC
        return ty.union_of(parts)

    def _generic_type(self, origin: Any, parts: list[Any], range: Any) -> Any:
        """A type with arguments, such as List[int]."""
        _refuse_values(origin, range)
        name = getattr(origin, "__name__", None) or str(origin).rpartition(".")[2]
        if origin in _OPEN:
            if self.generic:
                return GENERIC
            fail(f"annotation: expected a concrete type, got {name}", range, "List[...]")
        if ... in parts:
            if self.generic:
                return GENERIC
            fail(
                "annotation: expected a tuple of fixed length, got tuple[..., ...]",
                range,
                "List[T], or a tuple type with every element",
            )
        if any(part is GENERIC for part in parts):
            return GENERIC
        wanted = {list: 1, dict: 2, typing.Optional: 1, typing.Final: 1, typing.Annotated: 1}
        if origin in wanted and len(parts) != wanted[origin]:
            fail(f"annotation: expected {wanted[origin]} types in {name}, got {len(parts)}", range)
        if origin is list:
            return ty.ListType(parts[0])
        if origin in (dict, collections.abc.Mapping):
            if not is_key(parts[0]):
                got = parts[0].annotation
                fail(f"annotation: expected keys of type {KEYS}, got {got}", range)
            return ty.DictType(*parts)
        if origin is tuple:
            return ty.TupleType(tuple(parts))
        if not parts:
            fail(f"annotation: expected types in {name}, got none", range)
        if origin is typing.Optional:
            return ty.optional_of(parts[0])
        if origin in (typing.Union, python_types.UnionType):
            return ty.union_of(parts)
        if origin in (typing.Final, typing.Annotated) or name == "Final":
            return parts[0]
        if name == "Future" and len(parts) == 1:
            return ty.FutureType(parts[0])
        fail(
            f"annotation: expected a type of the language, got {name}[...]",
            range,
            "List, Dict, Tuple, Optional, Union, or a class marked @weft.jit.script",
        )


def _refuse_values(obj: Any, range: Any) -> None:
    """Refuses what cannot be looked up in a table of types: a dict, say, or a tensor, whose
    comparison is none."""
    try:
        hash(obj)
    except TypeError:
        is_value = True
    else:
        is_value = isinstance(obj, Tensor)
    if is_value:
        fail(f"annotation: expected a type, got {_show(obj):.80}", range)


def _show(obj: Any) -> str:
    try:
        return repr(obj)
    except Exception:
        return f"an object of {type(obj).__name__}"


def _import_hint(name: str) -> str | None:
    return f"from typing import {name}" if name in typing.__all__ else None


def type_of_value(value: Any) -> ty.Type | None:
    """The type of a Python value as an attribute or constant; None if it has none.

    Lists and dicts take the type of what they hold; empty ones hold tensors.
    """
    if isinstance(value, Tensor):
        return ty.TENSOR
    if isinstance(value, enum.Enum):
        return class_type(type(value), None)
    for kind in (bool, int, float, complex, str):
        if isinstance(value, kind):
            return _PLAIN[kind]
    if value is None:
        return ty.NONE
    if isinstance(value, Size):
        return ty.ListType(ty.INT)
    if isinstance(value, tuple):
        parts = [part for part in map(type_of_value, tuple.__iter__(value)) if part is not None]
        if len(parts) < tuple.__len__(value):
            return None
        if hasattr(type(value), "_fields"):
            return class_type(type(value), None)
        return ty.TupleType(tuple(parts))
    if isinstance(value, list):
        inner = _common([type_of_value(item) for item in value])
        return None if inner is None else ty.ListType(inner)
    if isinstance(value, dict):
        keys = _common([type_of_value(key) for key in value], ty.STR)
        values = _common([type_of_value(item) for item in value.values()])
        return None if keys is None or values is None else ty.DictType(keys, values)
    return _PLAIN.get(type(value)) if isinstance(value, _OBJECTS) else None


_OBJECTS = (_C.device, _C.dtype, _C.layout, _C.memory_format, Generator)


def _common(parts: list[ty.Type | None], empty: ty.Type = ty.TENSOR) -> ty.Type | None:
    result: ty.Type | None = parts[0] if parts else empty
    for part in parts:
        if part is None or result is None:
            return None
        result = ty.unify(result, part)
    return result

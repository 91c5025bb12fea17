"""Schemas of operators from the annotations of Python functions."""

from __future__ import annotations

import collections.abc
import inspect
import typing
from collections.abc import Callable, Iterable
from types import NoneType, UnionType
from typing import Any, NoReturn

from weft import _C
from weft._C import Tensor
from weft._runtime.annotations import signature_of

_BASES: dict[Any, str] = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    _C.dtype: "ScalarType",
    _C.device: "Device",
}
_LISTS = (list, collections.abc.Sequence)
_IN_LISTS = ("Tensor", "Tensor?", "SymInt", "float", "bool", "Scalar")
_RETURNED = ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar")
_NUMBERS = {int, float, bool}


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
) -> str:
    """The schema of an operator that takes and gives what the annotations of a function say.

    - mutates_args: the names of the tensors that it writes to; "unknown" for all.
    - op_name: what stands before the arguments.

    Arguments are tensors, numbers, strings, dtypes, devices, each of them optional, and lists of
    tensors and numbers; results are tensors, lists of them and numbers, one, several or none.
    ValueError for other annotations and for functions with `*args` or `**kwargs`.

    >>> def scale(x: weft.Tensor, by: float = 2.0) -> weft.Tensor: ...
    >>> weft.library.infer_schema(scale, mutates_args=())
    '(Tensor x, float by=2.0) -> Tensor'
    """
    signature = signature_of(prototype_function)
    try:
        hints = typing.get_type_hints(prototype_function)
    except Exception as error:
        refuse(f"annotations that can be read, got {error}", signature)
    written = _written(mutates_args, signature)
    parts: list[str] = []
    for index, parameter in enumerate(signature.parameters.values()):
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        parts.append(_argument(parameter, hints, index, written, signature))
    if "return" not in hints:
        refuse("a return type annotation, got none", signature)
    return f"{op_name or ''}({', '.join(parts)}) -> {_result(hints['return'], signature)}"


def refuse(expected: str, signature: inspect.Signature) -> NoReturn:
    """Raises ValueError for a function of the signature."""
    raise ValueError(f"infer_schema(func): expected {expected}; func has the signature {signature}")


def _written(names: str | Iterable[str], signature: inspect.Signature) -> set[str] | None:
    """The tensors that are written to; None: it is not known."""
    if names == "unknown":
        return None
    given = {names} if isinstance(names, str) else set(names)
    unknown = sorted(given - set(signature.parameters))
    if unknown:
        refuse(f"mutates_args with names of parameters, got {unknown}", signature)
    return given


def _argument(
    parameter: inspect.Parameter,
    hints: dict[str, Any],
    index: int,
    written: set[str] | None,
    signature: inspect.Signature,
) -> str:
    name = parameter.name
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        refuse(f"no positional-only, * and ** parameters, got {name}", signature)
    if name not in hints:
        refuse(f"parameter {name} with a type annotation, got none", signature)
    text = _type(hints[name])
    if text is None:
        refuse(f"parameter {name} of a type of schemas, got {hints[name]}", signature)
    is_tensor = text.startswith("Tensor")
    if written is not None and name in written and not is_tensor:
        refuse(f"mutates_args with names of tensors, got {name}", signature)
    if is_tensor and (written is None or name in written):
        text = text.replace("Tensor", f"Tensor(a{index}!)", 1)
    if parameter.default is parameter.empty:
        return f"{text} {name}"
    return f"{text} {name}={_default(parameter.default, name, signature)}"


def _default(value: Any, name: str, signature: inspect.Signature) -> str:
    if value is None or isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, _C.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, _C.device):
        return f'"{value}"'
    if isinstance(value, (list, tuple)) and all(isinstance(v, (int, float)) for v in value):
        return f"[{', '.join(map(str, value))}]"
    refuse(f"parameter {name} with a number, a string or None as default, got {value!r}", signature)


def _type(hint: Any) -> str | None:
    """The type of schemas for an annotation; None where there is none."""
    if hint in _BASES:
        return _BASES[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, UnionType):
        return _union(args)
    if origin in _LISTS and len(args) == 1:
        item = _type(args[0])
        return f"{item}[]" if item in _IN_LISTS else None
    return None


def _union(args: tuple[Any, ...]) -> str | None:
    options = set(args) - {NoneType}
    mark = "?" if NoneType in args else ""
    if options == _NUMBERS:
        return f"Scalar{mark}"
    item = _type(options.pop()) if len(options) == 1 else None
    return None if item is None else item + mark


def _result(hint: Any, signature: inspect.Signature) -> str:
    if hint in (None, NoneType):
        return "()"
    is_tuple = typing.get_origin(hint) is tuple
    args = typing.get_args(hint) if is_tuple else (hint,)
    texts = [_type(each) for each in args if each != ()]
    if any(text not in _RETURNED for text in texts):
        refuse(f"results of types of schemas, got {hint}", signature)
    joined = ", ".join(map(str, texts))
    return f"({joined})" if is_tuple else joined

"""Annotations of functions and classes, as far as their names mean something.

From Python 3.14 on they are evaluated when they are asked for, all of them at once, by a function
that a class has among its members. Names that only type checkers import are nowhere then: such an
annotation is the text of it, as all are under `from __future__ import annotations`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weft._runtime import lazy

if TYPE_CHECKING:
    import inspect

_annotationlib = lazy.module("annotationlib")
_inspect = lazy.module("inspect")

#: what Python puts into a class for the annotations in its body
OF_PYTHON = frozenset(
    ("__annotate__", "__annotate_func__", "__annotations_cache__", "__conditional_annotations__")
)


def annotations_in(obj: Any) -> Mapping[str, Any]:
    """The annotations of a function, or those in the body of a class."""
    try:
        found = getattr(obj, "__annotations__", {})  # types written in C have none, or a descriptor
        return found if isinstance(found, Mapping) else {}
    except Exception:  # of names that are not there yet, since 3.14
        found = _annotationlib.get_annotations(obj, format=_with_forward_references())
        return {name: getattr(each, "__forward_arg__", each) for name, each in found.items()}


def signature_of(function: Any) -> inspect.Signature:
    """The parameters of a function. ValueError and TypeError where inspect.signature raises."""
    if sys.version_info < (3, 14):
        return _inspect.signature(function)
    return _inspect.signature(function, annotation_format=_with_forward_references())


def _with_forward_references() -> Any:
    return _annotationlib.Format.FORWARDREF

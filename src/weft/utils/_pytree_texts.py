"""How structures of nested containers are written in JSON, as PyTorch does: names of their classes,
and what else is known of them. `weft.utils._pytree` writes and reads whole structures."""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

from weft import _C


class Text(NamedTuple):
    """How a container is written: its name, and its context if JSON cannot say that."""

    name: str
    to_dumpable_context: Callable[[Any], Any] | None = None
    from_dumpable_context: Callable[[Any], Any] | None = None


def _register_namedtuple(cls: Any, *, serialized_type_name: str) -> None:
    """Says the name of a class of named tuples in texts of `treespec_dumps`."""
    TEXTS[cls] = Text(serialized_type_name)


def text_of(cls: Any) -> Text:
    """How a class is written. NotImplementedError for one without a name."""
    if cls not in TEXTS:
        raise NotImplementedError(
            f"treespec_dumps: expected a type registered with a serialized_type_name, got {cls}"
        )
    return TEXTS[cls]


def type_of(name: str) -> Any:
    """The class of a name. NotImplementedError where there is none."""
    found = next((cls for cls, text in TEXTS.items() if text.name == name), None)
    if found is None:
        raise NotImplementedError(f"treespec_loads: expected a registered type, got {name!r}")
    return found


def _told_default(context: Any) -> dict[str, Any]:
    made, keys = context
    where = {"module": made.__module__, "name": made.__qualname__}
    return {f"default_factory_{k}": v for k, v in where.items()} | {"dict_context": keys}


def _default_told(text: dict[str, Any]) -> list[Any]:
    module, name = text["default_factory_module"], text["default_factory_name"]
    # Nothing is imported because a text says so, and a key that is missing calls no function.
    made = getattr(sys.modules.get(module), name, None)
    if not isinstance(made, type) or (made not in TEXTS and made.__module__ != "builtins"):
        raise NotImplementedError(f"treespec_loads: expected a known type, got {module}.{name}")
    return [made, text["dict_context"]]


TEXTS: dict[Any, Text] = {
    **{cls: Text(f"builtins.{cls.__name__}") for cls in (tuple, list, dict)},
    **{cls: Text(f"collections.{cls.__name__}") for cls in (OrderedDict, deque)},
    _C.Size: Text("torch.Size"),
    namedtuple: Text("collections.namedtuple", lambda cls: text_of(cls).name, type_of),
    defaultdict: Text("collections.defaultdict", _told_default, _default_told),
}

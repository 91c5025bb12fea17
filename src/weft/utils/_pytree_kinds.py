"""Kinds of containers: how each is taken apart and made again. `weft.utils._pytree` shows them."""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from weft import _C
from weft._runtime.exports import list_own as _list_own
from weft.utils._pytree_keys import GetAttrKey, MappingKey, SequenceKey
from weft.utils._pytree_texts import TEXTS, Text

IsLeaf = Callable[[Any], bool] | None


class _Kind(NamedTuple):
    """How a container becomes its parts and a context, and these a container."""

    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None


DICTS = (dict, OrderedDict, defaultdict)


def _named(value: Any) -> bool:
    return isinstance(value, tuple) and (
        hasattr(value, "_fields") or hasattr(type(value), "n_sequence_fields")
    )


SUPPORTED_NODES: dict[Any, _Kind] = {
    dict: _Kind(
        lambda d: (list(d.values()), list(d.keys())), lambda values, keys: dict(zip(keys, values))
    ),
    OrderedDict: _Kind(
        lambda d: (list(d.values()), list(d.keys())),
        lambda values, keys: OrderedDict(zip(keys, values)),
    ),
    defaultdict: _Kind(
        lambda d: (list(d.values()), [d.default_factory, list(d.keys())]),
        lambda values, made: defaultdict(made[0], zip(made[1], values)),
    ),
    deque: _Kind(lambda x: (list(x), x.maxlen), lambda values, most: deque(values, maxlen=most)),
    list: _Kind(lambda x: (list(x), None), lambda values, _: list(values)),
    tuple: _Kind(lambda x: (list(x), None), lambda values, _: tuple(values)),
    _C.Size: _Kind(lambda x: (list(x), None), lambda values, _: tuple(values)),
    namedtuple: _Kind(
        lambda x: (list(x), type(x)),
        # Results of operators (torch.return_types.max) take their values as one argument.
        lambda values, kind: kind(*values) if hasattr(kind, "_fields") else kind(values),
    ),
}


def _kind_of(tree: Any, is_leaf: IsLeaf) -> tuple[Any, _Kind | None]:
    """The key of a tree among SUPPORTED_NODES, and its kind; None for a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None, None
    node_type = _get_node_type(tree)
    return node_type, SUPPORTED_NODES.get(node_type)


def _get_node_type(tree: Any) -> Any:
    """The key of a value among SUPPORTED_NODES, if it is a container: its class, or namedtuple."""
    if type(tree) not in SUPPORTED_NODES and _named(tree):
        return namedtuple
    return type(tree)


def _steps_of(tree: Any, kind: Any, parts: list[Any]) -> list[Any]:
    """The steps from a container to its parts."""
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is not None:
        return [step for step, _ in with_keys(tree)[0]]
    if kind is namedtuple and hasattr(tree, "_fields"):
        return [GetAttrKey(name) for name in tree._fields]
    if kind in DICTS:
        return [MappingKey(key) for key in tree]
    return [SequenceKey(index) for index in range(len(parts))]


def register_pytree_node(
    cls: Any,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None,
    **_: Any,
) -> None:
    """Makes a class a container: flatten_fn(x) is (parts, context), unflatten_fn makes it again.
    flatten_with_keys_fn(x) gives each part with its step of a path, ((step, part), ...).

    serialized_type_name is its name in texts of `treespec_dumps`; to_dumpable_context and
    from_dumpable_context turn the context into what JSON can say, and back.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"register_pytree_node: expected a new type, got {cls.__name__} again")
    SUPPORTED_NODES[cls] = _Kind(flatten_fn, unflatten_fn, flatten_with_keys_fn)
    if serialized_type_name is not None:
        TEXTS[cls] = Text(serialized_type_name, to_dumpable_context, from_dumpable_context)


def register_dataclass(
    cls: Any,
    *,
    field_names: Sequence[str] | None = None,
    drop_field_names: Sequence[str] = (),
    serialized_type_name: str | None = None,
    **_: Any,
) -> None:
    """Makes a dataclass a container of the fields that __init__ takes, None among the context.
    serialized_type_name is its name in texts of `treespec_dumps`.

    field_names and drop_field_names: which fields are parts, and which are left to their defaults;
    ValueError unless each of those that __init__ takes is in one of them.

    >>> from dataclasses import make_dataclass
    >>> from weft.utils._pytree import tree_map
    >>> Point = make_dataclass("Point", ["x", "y"])
    >>> register_dataclass(Point)
    >>> tree_map(lambda part: part + 1, Point(1, 2))
    Point(x=2, y=3)
    """
    every = [each.name for each in dataclasses.fields(cls) if each.init]
    names = [each for each in every if each not in drop_field_names]
    if field_names is not None:
        if set(field_names) | set(drop_field_names) != set(every):
            raise ValueError(f"register_dataclass: expected the fields {every}, got {field_names}")
        names = list(field_names)

    def flatten(value: Any) -> tuple[list[Any], Any]:
        held = {name: getattr(value, name) for name in names}
        filled = [name for name in names if held[name] is not None]
        return [held[name] for name in filled], (filled, [n for n in names if n not in filled])

    def unflatten(parts: Iterable[Any], context: Any) -> Any:
        filled, empty = context
        return cls(**dict(zip(filled, parts)), **dict.fromkeys(empty))

    def with_keys(value: Any) -> tuple[list[tuple[Any, Any]], Any]:
        parts, context = flatten(value)
        return [(GetAttrKey(name), part) for name, part in zip(context[0], parts)], context

    register_pytree_node(
        cls, flatten, unflatten, flatten_with_keys_fn=with_keys,
        serialized_type_name=serialized_type_name, to_dumpable_context=json.dumps,
        from_dumpable_context=lambda text: tuple(json.loads(text)),
    )  # fmt: skip


def register_constant(cls: Any) -> None:
    """Makes values of a class parts of the structure, which have no leaves. They are compared, so
    TypeError where the class does not say when two are equal, and hash."""
    if cls.__eq__ is object.__eq__ or cls.__hash__ is None:
        raise TypeError(f"register_constant: expected __eq__ and __hash__, got {cls.__name__}")
    register_pytree_node(cls, lambda value: ([], value), lambda _, value: value)


def is_namedtuple_class(cls: Any) -> bool:
    """Whether it is a class that namedtuple or typing.NamedTuple made, or one derived from it."""
    fields = getattr(cls, "_fields", None)
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(fields, tuple)


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether it is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether it is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether it is a type of results with names, such as that of max, or one of Python's own."""
    fields = (getattr(cls, name, None) for name in ("n_fields", "n_sequence_fields"))
    made = isinstance(cls, type) and all(isinstance(count, int) for count in fields)
    return made and issubclass(cls, tuple)


def is_structseq_instance(obj: Any) -> bool:
    """Whether it is a result with names."""
    return is_structseq_class(type(obj))


_list_own(vars())

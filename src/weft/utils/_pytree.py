"""Nested containers as flat lists: tree_flatten, tree_map and the like.

Containers are dict, OrderedDict, defaultdict, list, tuple, deque, named tuples, and what
register_pytree_node adds; everything else is a leaf, None too.

>>> leaves, spec = tree_flatten({"a": [1, 2], "b": 3})
>>> leaves
[1, 2, 3]
>>> tree_unflatten([x * 10 for x in leaves], spec)
{'a': [10, 20], 'b': 30}
"""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from weft import _C
from weft._runtime.exports import list_own as _list_own
from weft.utils._pytree_keys import GetAttrKey, KeyPath, MappingKey, SequenceKey
from weft.utils._pytree_keys import key_get as key_get
from weft.utils._pytree_keys import keystr as keystr
from weft.utils._pytree_texts import TEXTS, Text, text_of, type_of
from weft.utils._pytree_texts import _register_namedtuple as _register_namedtuple

PyTree = Any
Context = Any
IsLeaf = Callable[[Any], bool] | None


class _Kind(NamedTuple):
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None


@dataclass(frozen=True, repr=False)
class TreeSpec:
    """The structure of a tree: its kind of container, what it knows besides, and its parts."""

    type: Any
    context: Any
    children_specs: list[TreeSpec] = field(default_factory=list)

    @property
    def num_leaves(self) -> int:
        """How many leaves there are."""
        if self.type is None:
            return 1
        return sum(child.num_leaves for child in self.children_specs)

    @property
    def num_children(self) -> int:
        """How many parts there are right below."""
        return len(self.children_specs)

    @property
    def num_nodes(self) -> int:
        """How many containers and leaves there are."""
        return 1 + sum(child.num_nodes for child in self.children_specs)

    def __hash__(self) -> int:
        return hash((self.type, tuple(self.children_specs)))  # contexts may be lists

    def __repr__(self) -> str:
        parts = ",\n".join(repr(child) for child in self.children_specs).replace("\n", "\n  ")
        return f"TreeSpec({self.type.__name__}, {self.context}, [{parts}])"

    def is_leaf(self) -> bool:
        """Whether the tree is one leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The parts right below."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """The part of an index."""
        return self.children_specs[index]

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The parts of a tree at the places of the leaves. ValueError where a container is another
        one; dicts of all kinds are alike, in any order.

        >>> tree_structure([1, 2]).flatten_up_to([(3, 4), 5])
        [(3, 4), 5]
        """
        if self.is_leaf():
            return [tree]
        kind, how = _kind_of(tree, None)
        if self.type in _DICTS and kind in _DICTS:
            keys = self.context[1] if self.type is defaultdict else self.context
            parts = [tree[key] for key in keys if key in tree]
            same = len(parts) == len(keys) == len(tree)
        else:
            parts, context = how.flatten_fn(tree) if how else ([], None)
            same = kind == self.type and len(parts) == self.num_children
            same = same and (kind is deque or context == self.context)
        if not same:
            raise ValueError(f"flatten_up_to: expected a tree that begins as {self}, got {tree!r}")
        children = zip(self.children_specs, parts)
        return [found for child, part in children for found in child.flatten_up_to(part)]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """tree_unflatten of the leaves."""
        return tree_unflatten(leaves, self)


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])

    def __repr__(self) -> str:
        return "*"


_DICTS = (dict, OrderedDict, defaultdict)


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


# Names by which libraries ask for how a container is taken apart and made again.
def _flatten_with_keys(kind: Any) -> Callable[[Any], tuple[list[tuple[Any, Any]], Any]]:
    def flatten(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
        parts, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        return list(zip(_steps(tree, kind, parts), parts)), context

    return flatten


for _kind, _name in (
    *((dict, "dict"), (OrderedDict, "ordereddict"), (OrderedDict, "odict"), (deque, "deque")),
    *((defaultdict, "defaultdict"), (list, "list"), (tuple, "tuple"), (namedtuple, "namedtuple")),
):
    globals()[f"_{_name}_flatten"] = SUPPORTED_NODES[_kind].flatten_fn
    globals()[f"_{_name}_unflatten"] = SUPPORTED_NODES[_kind].unflatten_fn
    globals()[f"_{_name}_flatten_with_keys"] = _flatten_with_keys(_kind)


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


_register_pytree_node = register_pytree_node  # its name before it was public


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


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a value is a leaf.

    >>> tree_is_leaf(1), tree_is_leaf([1])
    (True, False)
    """
    return _kind_of(tree, is_leaf)[1] is None


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of all arguments.

    >>> arg_tree_leaves([1, 2], x=(3,))
    [1, 2, 3]
    """
    return [leaf for each in (*args, *kwargs.values()) for leaf in tree_leaves(each)]


def _kind_of(tree: Any, is_leaf: IsLeaf) -> tuple[Any, _Kind | None]:
    if is_leaf is not None and is_leaf(tree):
        return None, None
    node_type = _get_node_type(tree)
    return node_type, SUPPORTED_NODES.get(node_type)


def _get_node_type(tree: Any) -> Any:
    """The key of a value among SUPPORTED_NODES, if it is a container: its class, or namedtuple."""
    if type(tree) not in SUPPORTED_NODES and _named(tree):
        return namedtuple
    return type(tree)


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the structure. is_leaf: says what else is a leaf."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, is_leaf, leaves)


def _flatten(tree: Any, is_leaf: IsLeaf, leaves: list[Any]) -> TreeSpec:
    kind, how = _kind_of(tree, is_leaf)
    if how is None:
        leaves.append(tree)
        return LeafSpec()
    parts, context = how.flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(part, is_leaf, leaves) for part in parts])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of a structure with these leaves. ValueError unless there are as many."""
    values = list(leaves)
    if len(values) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten: expected {treespec.num_leaves} leaves, got {len(values)}"
        )
    return _unflatten(iter(values), treespec)


def _unflatten(leaves: Any, spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    how = SUPPORTED_NODES[spec.type]
    return how.unflatten_fn(
        [_unflatten(leaves, child) for child in spec.children_specs], spec.context
    )


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterable[Any]:
    """An iterator over the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """The tree of func(leaf, and what the other trees have at its place). ValueError for trees of
    other containers.

    >>> tree_map(lambda x, y: x + y, [1, (2,)], [10, (20,)])
    [11, (22,)]
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return tree_unflatten([func(*values) for values in zip(*columns)], spec)


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None
) -> list[Any] | None:
    """The leaves of a tree that ends earlier than a structure, each as often as the structure has
    leaves there; None where they are of other kinds.

    >>> _broadcast_to_and_flatten([0, 1], tree_structure(["a", ("b", "c")]))
    [0, 1, 1]
    """
    kind, how = _kind_of(tree, is_leaf)
    if how is None:
        return [tree] * treespec.num_leaves
    parts, context = how.flatten_fn(tree)
    if (kind, context, len(parts)) != (treespec.type, treespec.context, treespec.num_children):
        return None
    found = [
        _broadcast_to_and_flatten(part, child, is_leaf)
        for part, child in zip(parts, treespec.children_specs)
    ]
    if any(each is None for each in found):
        return None
    return [leaf for each in found for leaf in each or ()]


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Calls func as tree_map does, for what it does to the leaves; returns the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(
    type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """tree_map for leaves of a type (or tuple of types, or for which it holds); others stay.

    >>> tree_map_only(int, lambda x: -x, [1, "a"])
    [-1, 'a']
    """
    fits = _test_of(type_or_types_or_pred)
    return tree_map(lambda leaf: func(leaf) if fits(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Calls func as tree_map_only does, for what it does to the leaves; returns the tree."""
    tree_map_only(type_or_types_or_pred, func, tree, is_leaf)
    return tree


def _test_of(kind: Any) -> Callable[[Any], bool]:
    return kind if not isinstance(kind, type | tuple) else lambda leaf: isinstance(leaf, kind)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves satisfy pred."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether any leaf satisfies pred."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(
    type_or_types: Any, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Whether all leaves of a type satisfy pred."""
    return all(map(pred, filter(_test_of(type_or_types), tree_leaves(tree, is_leaf))))


def tree_any_only(
    type_or_types: Any, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Whether any leaf of a type satisfies pred."""
    return any(map(pred, filter(_test_of(type_or_types), tree_leaves(tree, is_leaf))))


# Paths ------------------------------------------------------------------------------------------


def tree_flatten_with_path(
    tree: PyTree, is_leaf: IsLeaf = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves in order, each with the path to it, and the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves in order, each with the path to it.

    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1, 2]})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    kind, how = _kind_of(tree, is_leaf)
    if how is None:
        return [((), tree)]
    parts, _ = how.flatten_fn(tree)
    found = []
    for step, part in zip(_steps(tree, kind, parts), parts):
        found += [((step, *path), leaf) for path, leaf in tree_leaves_with_path(part, is_leaf)]
    return found


def _steps(tree: Any, kind: Any, parts: list[Any]) -> list[Any]:
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is not None:
        return [step for step, _ in with_keys(tree)[0]]
    if kind is namedtuple and hasattr(tree, "_fields"):
        return [GetAttrKey(name) for name in tree._fields]
    if kind in (dict, OrderedDict, defaultdict):
        return [MappingKey(key) for key in tree]
    return [SequenceKey(index) for index in range(len(parts))]


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """tree_map of func(path, leaf, and the leaves at its place in the other trees).

    >>> tree_map_with_path(lambda path, x: keystr(path), {"a": (1, 2)})
    {'a': ("['a'][0]", "['a'][1]")}
    """
    paths = [path for path, _ in tree_leaves_with_path(tree, is_leaf)]
    ordered = tree_unflatten(range(len(paths)), tree_structure(tree, is_leaf))
    return tree_map(
        lambda place, *leaves: func(paths[place], *leaves), ordered, tree, *rests, is_leaf=None
    )


def treespec_pprint(treespec: TreeSpec) -> str:
    """A structure as a tree of stars.

    >>> treespec_pprint(tree_structure([1, {"a": 2}]))
    "[*, {'a': *}]"
    """
    return repr(tree_unflatten([LeafSpec()] * treespec.num_leaves, treespec))


# Structures as texts ----------------------------------------------------------------------------


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as a text in JSON, as PyTorch writes it; protocol 1 is the only one.

    NotImplementedError for a container registered without a name, TypeError for a context (such as
    the keys of a dict) that JSON cannot say.

    >>> treespec_dumps(tree_structure((1,)))[:43]
    '[1, {"type": "builtins.tuple", "context": "'
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec_dumps: expected a TreeSpec, got {type(treespec).__name__}")
    if protocol not in (None, 1):
        raise ValueError(f"treespec_dumps: expected protocol 1, got {protocol}")
    return json.dumps([1, _told(treespec)])


def _told(spec: TreeSpec) -> dict[str, Any]:
    name = context = None
    if spec.type is not None:
        name, tell, _ = text_of(spec.type)
        context = tell(spec.context) if tell else json.dumps(spec.context)
    return {
        "type": name,
        "context": context,
        "children_spec": list(map(_told, spec.children_specs)),
    }


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that `treespec_dumps` wrote.

    NotImplementedError for a type without a name here, ValueError for another protocol.

    >>> treespec_loads(treespec_dumps(tree_structure({"a": [1, 2]}))).num_leaves
    2
    """
    protocol, text = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"treespec_loads: expected protocol 1, got {protocol}")
    return _spec_of(text)


def _spec_of(text: dict[str, Any]) -> TreeSpec:
    if text["type"] is None:
        return LeafSpec()
    kind = type_of(text["type"])
    read = TEXTS[kind].from_dumpable_context or json.loads
    return TreeSpec(kind, read(text["context"]), [_spec_of(part) for part in text["children_spec"]])


_list_own(vars(), "PyTree GetAttrKey MappingKey SequenceKey key_get keystr")

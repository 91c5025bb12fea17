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

import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from weft._runtime.exports import list_own as _list_own
from weft.utils import _pytree_kinds as _kinds
from weft.utils._pytree_keys import *  # noqa: F403
from weft.utils._pytree_keys import KeyPath
from weft.utils._pytree_kinds import *  # noqa: F403
from weft.utils._pytree_kinds import DICTS, SUPPORTED_NODES, IsLeaf, _kind_of, _steps_of
from weft.utils._pytree_texts import TEXTS, text_of, type_of
from weft.utils._pytree_texts import _register_namedtuple as _register_namedtuple

PyTree = Any
Context = Any
_get_node_type = _kinds._get_node_type  # libraries find it here
_register_pytree_node = _kinds.register_pytree_node  # its name before it was public


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
        if self.type in DICTS and kind in DICTS:
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


# Names by which libraries ask for how a container is taken apart and made again.
def _flatten_with_keys(kind: Any) -> Callable[[Any], tuple[list[tuple[Any, Any]], Any]]:
    def flatten(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
        parts, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        return list(zip(_steps_of(tree, kind, parts), parts)), context

    return flatten


for _kind, _name in (
    *((dict, "dict"), (OrderedDict, "ordereddict"), (OrderedDict, "odict"), (deque, "deque")),
    *((defaultdict, "defaultdict"), (list, "list"), (tuple, "tuple"), (namedtuple, "namedtuple")),
):
    globals()[f"_{_name}_flatten"] = SUPPORTED_NODES[_kind].flatten_fn
    globals()[f"_{_name}_unflatten"] = SUPPORTED_NODES[_kind].unflatten_fn
    globals()[f"_{_name}_flatten_with_keys"] = _flatten_with_keys(_kind)


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
    for step, part in zip(_steps_of(tree, kind, parts), parts):
        found += [((step, *path), leaf) for path, leaf in tree_leaves_with_path(part, is_leaf)]
    return found


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


_list_own(
    vars(),
    "PyTree GetAttrKey MappingKey SequenceKey key_get keystr register_constant register_dataclass "
    "register_pytree_node is_namedtuple is_namedtuple_class is_namedtuple_instance "
    "is_structseq_class is_structseq_instance",
)

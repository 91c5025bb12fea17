"""utils._pytree: containers, constants and the rarer functions, in both libraries."""

from __future__ import annotations

import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
from libraries import both

Pair = namedtuple("Pair", "x y")
NESTED: dict[str, tuple[Any, list[Any], list[str]]] = {
    "deque": (deque([1, [2]], 5), [1, 2], ["[0]", "[1][0]"]),
    "defaultdict": (defaultdict(list, {"b": 1, "a": (2,)}), [1, 2], ["['b']", "['a'][0]"]),
    "named": (Pair(1, {"k": 2}), [1, 2], [".x", ".y['k']"]),
}


def tree_of(lib: Any) -> Any:
    return importlib.import_module(f"{lib.__name__}.utils._pytree")


@both
@pytest.mark.parametrize("name", NESTED)
def test_containers(lib: Any, name: str) -> None:
    tree, (value, leaves, paths) = tree_of(lib), NESTED[name]
    assert tree.tree_leaves(value) == leaves and not tree.tree_is_leaf(value)
    again = tree.tree_map(lambda leaf: leaf, value)
    assert type(again) is type(value) and again == value
    assert getattr(again, "maxlen", None) == getattr(value, "maxlen", None)
    found = tree.tree_leaves_with_path(value)
    assert [tree.keystr(path) for path, _ in found] == paths
    assert all(tree.key_get(value, path) == leaf for path, leaf in found)


@both
def test_ways_of_single_containers(lib: Any) -> None:
    tree, pair = tree_of(lib), Pair(1, 2)
    for kind, value, context in [
        ("list", [1, 2], None),
        ("tuple", (1, 2), None),
        ("dict", {"a": 1, "b": 2}, ["a", "b"]),
        ("odict", OrderedDict(a=1, b=2), ["a", "b"]),
        ("namedtuple", pair, Pair),
    ]:
        parts, about = getattr(tree, f"_{kind}_flatten")(value)
        assert (list(parts), about) == ([1, 2], context)
        again = getattr(tree, f"_{kind}_unflatten")([1, 2], about)
        assert again == value and type(again) is type(value)


@both
def test_dataclasses(lib: Any) -> None:
    @dataclass
    class Point:
        x: Any
        y: Any = None
        z: int = 3

    @dataclass
    class Named:
        x: Any
        name: str = "default"

    tree = tree_of(lib)
    tree.register_dataclass(Point)
    tree.register_dataclass(Named, field_names=["x"], drop_field_names=["name"])
    assert tree.tree_leaves(Point(1, [2])) == [1, 2, 3]
    assert tree.tree_map(lambda leaf: leaf * 2, Point(1)) == Point(2, None, 6)
    assert tree.tree_leaves(Named(1, "a")) == [1]
    paths = [tree.keystr(path) for path, _ in tree.tree_leaves_with_path([Point(1, [2])])]
    assert paths == ["[0].x", "[0].y[0]", "[0].z"]
    assert tree.tree_map(lambda leaf: leaf, Named(1, "a")) == Named(1, "default")

    @dataclass
    class Missing:
        x: Any
        y: Any

    with pytest.raises(ValueError):
        tree.register_dataclass(Missing, field_names=["x"])


@both
def test_constants(lib: Any) -> None:
    @dataclass(frozen=True)
    class Constant:
        value: int

    tree = tree_of(lib)
    tree.register_constant(Constant)
    leaves, spec = tree.tree_flatten([Constant(1), 2])
    assert leaves == [2] and tree.tree_unflatten([5], spec) == [Constant(1), 5]
    assert spec == tree.tree_structure([Constant(1), 3])
    assert spec != tree.tree_structure([Constant(2), 3])
    with pytest.raises(TypeError):
        tree.register_constant(type("Plain", (), {}))


@both
def test_functions(lib: Any) -> None:
    tree, seen, mixed = tree_of(lib), [], [1, "a", {"k": 2}]
    assert [tree.is_namedtuple(v) for v in (Pair, Pair(1, 2), (1,), int)] == [
        True,
        True,
        False,
        False,
    ]
    assert tree.is_namedtuple_class(Pair) and tree.is_namedtuple_instance(Pair(1, 2))
    assert tree.arg_tree_leaves([1], (2,), k={"a": 3}) == [1, 2, 3]
    assert tree.tree_all_only(int, lambda leaf: leaf > 0, mixed)
    assert tree.tree_any_only(str, lambda leaf: leaf == "a", mixed)
    assert not tree.tree_any_only(float, lambda leaf: True, mixed)
    assert tree.tree_map_only_(int, seen.append, mixed) is mixed and seen == [1, 2]


LEAF = '{"type": null, "context": null, "children_spec": []}'
DEFAULT = (
    '{"default_factory_module": "builtins", "default_factory_name": "list", "dict_context": ["a"]}'
)
TEXTS: list[tuple[Any, str, str]] = [  # a container of one leaf, its type, its context
    ((3,), "builtins.tuple", '"null"'),
    ({"a": 1}, "builtins.dict", r'"[\"a\"]"'),
    (OrderedDict(a=1), "collections.OrderedDict", r'"[\"a\"]"'),
    (deque([1], 3), "collections.deque", '"3"'),
    (defaultdict(list, {"a": 1}), "collections.defaultdict", DEFAULT),
]


@both
def test_structures_as_texts(lib: Any) -> None:
    tree = tree_of(lib)
    for value, kind, context in TEXTS:
        spec = tree.tree_structure(value)
        text = f'[1, {{"type": "{kind}", "context": {context}, "children_spec": [{LEAF}]}}]'
        assert tree.treespec_dumps(spec, 1) == text and tree.treespec_loads(text) == spec
    spec = tree.tree_structure([1, {"a": (2, None)}])
    assert tree.treespec_loads(tree.treespec_dumps(spec)) == spec
    with pytest.raises(NotImplementedError):
        tree.treespec_dumps(tree.tree_structure(Pair(1, 2)))
    with pytest.raises(NotImplementedError):
        tree.treespec_loads('[1, {"type": "no.such", "context": null, "children_spec": []}]')
    with pytest.raises(TypeError):
        tree.treespec_dumps(tree.tree_structure({1j: 2}))
    with pytest.raises(ValueError):
        tree.treespec_dumps(tree.tree_structure(1), 2)


@pytest.mark.parametrize("factory", ["os.getpid", "builtins.breakpoint", "threading.Thread"])
def test_texts_name_no_functions(factory: str) -> None:
    """A missing key calls the factory."""
    import weft

    module, name = factory.split(".")
    context = DEFAULT.replace("builtins", module).replace("list", name)
    text = f'[1, {{"type": "collections.defaultdict", "context": {context}, "children_spec": []}}]'
    with pytest.raises(NotImplementedError, match=f"known type, got {factory}"):
        weft.utils._pytree.treespec_loads(text)


@both
def test_named_tuples_as_texts(lib: Any) -> None:
    tree, kind = tree_of(lib), namedtuple("kind", "x")
    tree._register_namedtuple(kind, serialized_type_name=f"test.{lib.__name__}.kind")
    spec = tree.tree_structure(kind(1))
    assert tree.treespec_loads(tree.treespec_dumps(spec)) == spec


@both
def test_paths_through_classes_that_name_their_parts(lib: Any) -> None:
    class Numbered(list[Any]): ...

    tree = tree_of(lib)

    def with_keys(x: Any) -> Any:
        return [(tree.MappingKey(10 * i), part) for i, part in enumerate(x)], None

    tree.register_pytree_node(
        Numbered, tree._list_flatten, tree._list_unflatten, flatten_with_keys_fn=with_keys
    )
    paths, _ = tree.tree_flatten_with_path({"a": Numbered([1, [2]])})
    assert [(tree.keystr(path), leaf) for path, leaf in paths] == [
        ("['a'][0]", 1),
        ("['a'][10][0]", 2),
    ]
    for name, value in (
        ("list", [1]),
        ("tuple", (1,)),
        ("dict", {"a": 1}),
        ("namedtuple", Pair(1, 2)),
    ):
        parts, context = getattr(tree, f"_{name}_flatten_with_keys")(value)
        flat = getattr(tree, f"_{name}_flatten")(value)
        assert ([part for _, part in parts], context) == flat


@both
def test_structures_are_counted_shown_and_hashed(lib: Any) -> None:
    p = tree_of(lib)
    spec = p.tree_structure([1, (2, {"a": 3}), []])
    assert (spec.num_nodes, spec.num_children, spec.num_leaves) == (7, 3, 3)
    assert p.tree_structure(1).num_nodes == 1 and spec.child(0) == spec.children()[0]
    shown = ["TreeSpec(list, None, [*,", "  TreeSpec(tuple, None, [*,",
             "    TreeSpec(dict, ['a'], [*])]),", "  TreeSpec(list, None, [])])"]  # fmt: skip
    assert repr(spec) == "\n".join(shown)
    assert p.treespec_pprint(spec) == "[*, (*, {'a': *}), []]"
    assert len({spec, p.tree_structure([4, (5, {"a": 6}), []]), p.tree_structure([])}) == 2


UP_TO: list[tuple[Any, Any, Any]] = [
    ([1, 2], [[3, 4], {"a": 1}], [[3, 4], {"a": 1}]),
    ({"a": 1, "b": (2,)}, {"b": ((4,),), "a": 3}, [3, (4,)]),
    ({"a": 1, "b": 2}, OrderedDict(b=4, a=3), [3, 4]),
    ([1, 2], (1, 2), None),
    ([1, 2], [1], None),
    ([1, 2], 1, None),
    ({"a": 1}, {"b": 1}, None),
    ({"a": 1}, {"a": 1, "b": 1}, None),
]


@both
@pytest.mark.parametrize("number", range(len(UP_TO)))
def test_trees_are_flattened_up_to_a_structure(lib: Any, number: int) -> None:
    p, (tree, deeper, expected) = tree_of(lib), UP_TO[number]
    if expected is None:
        for call in (p.tree_structure(tree).flatten_up_to, lambda x: p.tree_map(max, tree, x)):
            with pytest.raises(ValueError):
                call(deeper)
        return
    assert p.tree_structure(tree).flatten_up_to(deeper) == expected
    mapped = p.tree_leaves(p.tree_map(lambda leaf, part: (leaf, part), tree, deeper))
    assert mapped == [x for pair in zip(p.tree_leaves(tree), expected) for x in p.tree_leaves(pair)]


@both
@pytest.mark.parametrize(
    ("tree", "expected"),
    [(0, [0, 0, 0]), ([0, 1], [0, 1, 1]), ([0, (1, 2)], [0, 1, 2]), ([0, [1, 2]], None), ([0], None)],
)  # fmt: skip
def test_trees_that_end_early_are_broadcast(lib: Any, tree: Any, expected: Any) -> None:
    p = tree_of(lib)
    assert p._broadcast_to_and_flatten(tree, p.tree_structure([7, (8, 9)])) == expected

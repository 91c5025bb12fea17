"""Modules that hold others, changed as lists and dictionaries are, in both libraries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from libraries import both


def layers(lib: Any, count: int = 2) -> Any:
    """Linear(1, 1), Linear(1, 2), ... in a Sequential."""
    return lib.nn.Sequential(*[lib.nn.Linear(1, i + 1) for i in range(count)])


def outs(modules: Any) -> list[int]:
    return [each.out_features for each in modules]


def changed(start: Any, *steps: Callable[[Any], Any]) -> Any:
    for step in steps:
        step(start)
    return start


SEQUENCES: dict[str, tuple[Callable[[Any], Any], list[int]]] = {
    "times": (lambda t: layers(t) * 2, [1, 2, 1, 2]),
    "factor": (lambda t: 3 * layers(t, 1), [1, 1, 1]),
    "times_in_place": (lambda t: changed(layers(t), lambda s: s.__imul__(2)), [1, 2, 1, 2]),
    "plus": (lambda t: layers(t) + layers(t, 1), [1, 2, 1]),
    "plus_in_place": (lambda t: changed(layers(t), lambda s: s.__iadd__(layers(t, 1))), [1, 2, 1]),
    "insert": (
        lambda t: changed(
            layers(t), lambda s: s.insert(-1, t.nn.Linear(1, 7)), lambda s: s.insert(3, t.nn.Linear(1, 8))
        ),
        [1, 7, 2, 8],
    ),
    "delete": (
        lambda t: changed(layers(t, 5), lambda s: s.__delitem__(slice(1, 3)), lambda s: s.__delitem__(-1)),
        [1, 4],
    ),
    "pop": (lambda t: changed(layers(t, 3), lambda s: s.pop(1)), [1, 3]),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_as_lists(lib: Any, name: str) -> None:
    make, expected = SEQUENCES[name]
    made = make(lib)
    assert outs(made) == expected and list(made._modules) == [str(i) for i in range(len(made))]


@both
def test_factors_repeat_the_same_modules(lib: Any) -> None:
    start = layers(lib)
    many = start * 2
    assert many[0] is many[2] is start[0] and len(list(many.parameters())) == 4


ERRORS: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "times_0": (lambda t: layers(t) * 0, ValueError),
    "times_text": (lambda t: layers(t) * "a", TypeError),
    "plus_list": (lambda t: layers(t) + [t.nn.ReLU()], ValueError),
    "insert_outside": (lambda t: layers(t).insert(9, t.nn.ReLU()), IndexError),
    "parameters_of_a_number": (lambda t: t.nn.ParameterList(3), TypeError),
    "extended_by_a_tensor": (lambda t: t.nn.ParameterList().extend(t.ones(2)), TypeError),
    "parameters_of_integers": (lambda t: t.nn.ParameterList([t.tensor([1])]), RuntimeError),
}


@both
@pytest.mark.parametrize("name", ERRORS)
def test_errors(lib: Any, name: str) -> None:
    call, error = ERRORS[name]
    with pytest.raises(error):
        call(lib)


@both
def test_lists_of_parameters_hold_other_values(lib: Any) -> None:
    held = lib.nn.ParameterList([lib.ones(1), 3, "x", None])
    held += [lib.zeros(2), 2.5]
    held[1] = lib.ones(3)
    assert [type(each).__name__ for each in held] == [
        "Parameter", "Parameter", "str", "NoneType", "Parameter", "float",
    ]  # fmt: skip
    assert sorted(held.state_dict()) == ["0", "1", "4"] and len(held) == 6
    assert type(held[1:3]) is lib.nn.ParameterList and len(held[1:3]) == 2
    assert "(2): Object of type: str" in repr(held) and "(4): Parameter containing" in repr(held)


@both
def test_plain_dictionaries_of_parameters_are_sorted(lib: Any) -> None:
    pairs = [("b", lib.ones(1)), ("a", lib.zeros(1))]
    found = [list(lib.nn.ParameterDict(kind(pairs))) for kind in (dict, OrderedDict, list)]
    assert found == [["a", "b"], ["b", "a"], ["b", "a"]]
    shared = lib.nn.Linear(1, 1)
    assert len(list(lib.nn.Sequential(shared, shared).modules(remove_duplicate=False))) == 3
    assert lib.nn.ModuleList([shared]).pop(key=0) is shared


@both
def test_dictionaries_of_parameters_are_joined(lib: Any) -> None:
    one = lib.nn.ParameterDict({"a": lib.ones(1), "b": 3})
    other = one | {"b": lib.zeros(1), "c": lib.ones(2)}
    assert list(other.state_dict()) == ["a", "b", "c"] and one["b"] == 3
    assert list({"z": 1} | one) == ["z", "a", "b"] and type({"z": 1} | one) is dict
    kept = one
    one |= {"d": lib.ones(1)}
    assert kept is one and "d" in kept


@both
def test_places_are_popped_by_the_name_key(lib: Any) -> None:
    assert layers(lib, 3).pop(key=1).out_features == 2
    with pytest.raises(TypeError):
        layers(lib).pop()


@both
def test_modules_with_those_that_are_there_twice(lib: Any) -> None:
    one = lib.nn.ReLU()
    net = lib.nn.Sequential(one, one)
    assert [len(list(net.modules(each))) for each in (True, False)] == [2, 3]

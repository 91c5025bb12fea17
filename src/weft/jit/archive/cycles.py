"""What PyTorch does not compile: functions that call themselves, classes that hold themselves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from weft.jit.archive.collect import Collector, attributes_of, methods_of
from weft.jit.archive.known import operator_of
from weft.jit.ir import Function
from weft.jit.ir import types as ty


def refuse_cycles(collector: Collector, refuse: Callable[[str], None]) -> None:
    """Names the functions and classes of a program that are on a circle."""
    functions = [each for each in collector.definitions if isinstance(each, Function)]
    classes = [each for each in collector.definitions if isinstance(each, ty.ClassType)]
    functions += [method for each in classes for _, method in methods_of(each)]
    for found in _on_circles(functions, lambda function: _called(collector, function)):
        refuse(f"{found.name}, which calls itself")
    for found in _on_circles(classes, _held):
        refuse(f"{found.name}, which holds itself")


def _called(collector: Collector, function: Function) -> Iterator[Function]:
    for node in collector.graph(function).walk():
        if "function" in node.attrs and operator_of(node.attrs["function"]) is None:
            yield node.attrs["function"]
        elif node.kind == "prim::CallMethod" and isinstance(node.inputs[0].type, ty.ClassType):
            yield node.inputs[0].type.methods[node.attrs["name"]]


def _held(held: ty.Type) -> Iterator[ty.ClassType]:
    parts = [t for _, t in attributes_of(held)] if isinstance(held, ty.ClassType) else held.children
    for part in parts:
        if isinstance(part, ty.ClassType):
            yield part
        else:
            yield from _held(part)


def _on_circles(things: Iterable[Any], following: Callable[[Any], Iterable[Any]]) -> list[Any]:
    """Those from which a way leads back to themselves; the first of each circle."""
    found: list[Any] = []
    done: set[Hashable] = set()
    for first in things:
        way: list[tuple[Any, Iterator[Any]]] = [(first, iter(following(first)))]
        on_way = {id(first)}
        while way:
            thing, rest = way[-1]
            each = next(rest, None)
            if each is None:
                done.add(id(thing))
                on_way.discard(id(thing))
                way.pop()
            elif id(each) in on_way:
                found.append(each)
            elif id(each) not in done:
                on_way.add(id(each))
                way.append((each, iter(following(each))))
    return found

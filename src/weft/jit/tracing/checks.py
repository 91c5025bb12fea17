"""check_trace: what was recorded is recorded again, and the program is compared with Python."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.jit.ir.graph import Graph, Node, Value
from weft.jit.passes.operators import operator_of
from weft.jit.tracing import structures
from weft.jit.tracing.source_locations import TracerWarning
from weft.nn.modules.module import Module

if TYPE_CHECKING:
    from weft.jit.tracing.trace import Call


class TracingCheckError(Exception):
    """A trace that is not what the function does; `extra_msg` says of which check."""

    def __init__(self, graph_diff_error: str | None, tensor_compare_error: str | None,
                 extra_msg: str | None = None) -> None:  # fmt: skip
        self.graph_diff_error = graph_diff_error
        self.tensor_compare_error = tensor_compare_error
        self.extra_msg = extra_msg
        self.message = graph_diff_error or tensor_compare_error or ""
        super().__init__(self.message + (f" ({extra_msg})" if extra_msg else ""))


def check(
    graph: Graph,
    traced: Callable[..., Any],
    func: Callable[..., Any],
    record: Callable[[Call], Any],
    calls: list[Call],
    tolerance: float,
    module: Module | None = None,
) -> None:
    """Compares for each call, from the same state of the generator and the buffers."""
    for number, call in enumerate(calls):
        message = f"check_inputs[{number - 1}]" if number else "the example inputs"
        with _unchanged(module) as again:
            other = call.copy()
            expected = func(*other.args, **other.kwargs)
            again()
            other = call.copy()
            got = traced(*other.args, **other.kwargs)
            again()
            second = _quietly(record, call.copy())
        difference = _first_difference(graph, second.graph)
        if difference is not None:
            raise TracingCheckError(difference, None, message)
        error = _compare(graph, expected, got, tolerance)
        if error is not None:
            raise TracingCheckError(None, error, message)


def warn_of_randomness(graph: Graph) -> None:
    """A TracerWarning where the trace draws random numbers that it does not seed, as it does where
    it drops values as in training: few mean it to."""
    for node in graph.walk():
        operator = operator_of(node)
        if operator is not None and "seeds" in operator.tags:
            return
        if operator is None or not operator.nondeterministic or node.range is None:
            continue
        given = {arg.name: value for arg, value in zip(operator.args, node.inputs)}
        constants = {n: value.constant for n, value in given.items() if value.is_constant}
        trains = constants.get("train", constants.get("training"))
        if trains is False or constants.get("p") == 0:
            continue
        name, line, _ = node.range.file_line_col()
        kind = f"{node.kind} of training" if trains else node.kind
        warnings.warn_explicit(
            f"The trace keeps {kind}, which is random: call .eval() before tracing, or give "
            "training=False, unless it is meant",
            TracerWarning,
            name,
            line,
        )


def _quietly(record: Callable[[Call], Any], call: Call) -> Any:
    with warnings.catch_warnings():  # they were shown for the first time
        warnings.simplefilter("ignore")
        return record(call)


@contextmanager
def _unchanged(module: Module | None) -> Iterator[Callable[[], None]]:
    """Puts generator and buffers back: when called, and at the end."""
    state = _C.get_rng_state()
    buffers = [] if module is None else list(module.buffers())
    kept = [(buffer, buffer.detach().clone(), buffer._version) for buffer in buffers]

    def again() -> None:
        _C.set_rng_state(state)
        for buffer, before, version in kept:
            if buffer._version != version:
                with no_grad():
                    buffer.copy_(before)

    try:
        yield again
    finally:
        again()


# Graphs ---------------------------------------------------------------------------------------


def _first_difference(graph: Graph, other: Graph) -> str | None:
    """The first node that is another one, with its place; None for the same graph."""
    numbers: tuple[dict[Value, int], dict[Value, int]] = ({}, {})
    for values, each in zip(numbers, (graph, other)):
        for value in each.inputs:
            values[value] = len(values)
    nodes, others = list(graph.walk()), list(other.walk())
    for a, b in zip(nodes, others):
        if not _same(a, b, *numbers):
            return _told(a, b)
        for values, node in zip(numbers, (a, b)):
            for output in node.outputs:
                values[output] = len(values)
    if len(nodes) != len(others):
        longer = nodes if len(nodes) > len(others) else others
        node = longer[min(len(nodes), len(others))]
        which = "only the first" if longer is nodes else "only the second"
        return f"trace: expected the same operators in every call, got {_shown(node)}, {which} time"
    return None


def _same(a: Node, b: Node, first: dict[Value, int], second: dict[Value, int]) -> bool:
    if a.kind != b.kind or len(a.inputs) != len(b.inputs) or len(a.outputs) != len(b.outputs):
        return False
    if any(first.get(x) != second.get(y) for x, y in zip(a.inputs, b.inputs)):
        return False
    if set(a.attrs) != set(b.attrs):
        return False
    return all(_same_attribute(name, a.attrs[name], b.attrs[name]) for name in a.attrs)


def _same_attribute(name: str, a: Any, b: Any) -> bool:
    if name in ("function", "callable"):
        return name == "callable" or a is b or (a.name, str(a.graph)) == (b.name, str(b.graph))
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        same = a.shape == b.shape and a.dtype == b.dtype
        return same and (a is b or bool(_equal(a, b)))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    return type(a) is type(b) and bool(a == b)


def _equal(a: Tensor, b: Tensor) -> bool:
    floating = a.is_floating_point() or a.is_complex()
    same = (a == b) | ((a != a) & (b != b)) if floating else a == b
    return bool(same.all())


def _told(a: Node, b: Node) -> str:
    return (
        f"trace: expected the same operators in every call, got {_shown(a)} the first time and "
        f"{_shown(b)} the second"
    )


def _shown(node: Node) -> str:
    text = node.kind
    if node.kind == "prim::Constant":
        value = node.attrs["value"]
        text = "a tensor" if isinstance(value, Tensor) else repr(value)
        user = next((use.user for use in node.output.uses), None)
        text = f"the constant {text}" + (f" for {user.kind}" if isinstance(user, Node) else "")
    return f"{text} at {_place(node)}"


def _place(node: Node | None) -> str:
    if node is None or node.range is None:
        return "an unknown place"
    name, line, _ = node.range.file_line_col()
    return f'File "{name}", line {line}'


# Results --------------------------------------------------------------------------------------


def _compare(graph: Graph, expected: Any, got: Any, tolerance: float) -> str | None:
    first, second = structures.tensors(expected), structures.tensors(got)
    if len(first) != len(second):
        return f"trace: expected {len(first)} tensors as result, got {len(second)}"
    values = _results(graph.returns[0])
    for index, (a, b) in enumerate(zip(first, second)):
        if a.shape != b.shape or a.dtype != b.dtype:
            told = f"{a.dtype} of shape {tuple(a.shape)}, got {b.dtype} of {tuple(b.shape)}"
        elif _close(a, b, tolerance):
            continue
        else:
            told = f"results within {tolerance} of Python's, got others, by up to {_gap(a, b)}"
        value = values[index] if index < len(values) else None
        place = _place(value.node) if value is not None else "an unknown place"
        return f"trace: expected of output {index}, made at {place}, {told}"
    return None


def _results(value: Value) -> list[Value]:
    node = value.node
    if node is not None and node.kind in ("prim::TupleConstruct", "prim::ListConstruct"):
        return [each for item in node.inputs for each in _results(item)]
    return [value]


def _close(a: Tensor, b: Tensor, tolerance: float) -> bool:
    with no_grad():
        if a.is_floating_point() or a.is_complex():
            return _C.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
        return bool((a == b).all())


def _gap(a: Tensor, b: Tensor) -> Any:
    with no_grad():
        wide = _C.complex128 if a.is_complex() else _C.float64
        return (a.to(wide) - b.to(wide)).abs().max().item()

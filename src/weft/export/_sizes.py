"""Sizes of an exported program: which numbers and shapes follow from those of its inputs."""

from __future__ import annotations

import copy
import math
import operator
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.export._convert import run_node
from weft.export._records import Expression, Size, TensorRecord, record_of
from weft.fx import Node
from weft.fx.node import map_arg
from weft.nn.parameter import Parameter
from weft.random import fork_rng
from weft.utils._pytree import tree_flatten, tree_unflatten

if TYPE_CHECKING:
    from weft.export._trace import _Export


class Fixed(Exception):
    """Sizes that stay those of the example."""

    def __init__(self, symbols: frozenset[str]) -> None:
        super().__init__()
        self.symbols = symbols


def copied(tensor: Tensor) -> Tensor:
    """A tensor of its own with the same values, which asks for gradients as that does."""
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


_RELATIONS: dict[Any, str] = {
    getattr(operator, name.lower()): name for name in ("Eq", "Ne", "Lt", "Le", "Gt", "Ge")
}


class Sizes:
    """Runs a graph for the sizes of the example and for others, and writes down what is what."""

    def __init__(self, export: _Export, nodes: list[Node], tensors: list[Tensor]) -> None:
        self.export, self.nodes, self.tensors = export, nodes, tensors
        self.hints = export.symbols.hints
        self.others = {each: self._others(each, i) for i, each in enumerate(self.hints)}
        self.unknown = 0

    def settle(self) -> None:
        """Describes every node, and makes numbers that never differ constants."""
        found = [self._run(self.hints)]
        for symbol, others in self.others.items():
            try:
                found += [self._checked({**self.hints, symbol: each}) for each in others]
            except RuntimeError:
                if symbol not in self.export.symbols.tried:
                    raise
                raise Fixed(self.export.fixed | {symbol}) from None
        for node in list(self.export.graph.nodes):
            values: list[Any] = [each.get(node) for each in found]
            if isinstance(values[0], Tensor):
                record = self._record(values)
                node.meta["tensor_meta"] = record
                node.meta["val"] = record.example()
            elif _has_tensors(values[0]) and node.op == "call_function":
                parts = zip(*values)
                node.meta["tensor_meta"] = [self._record(list(p)) for p in parts if _are_tensors(p)]
            elif _is_number(values[0]) and node.op == "call_function":
                self._settle_number(node, values)
            elif node.op == "call_function" and node.users:
                self._replace(node, values[0])

    def _others(self, symbol: str, index: int) -> list[int]:
        """Two other values in the range of a symbol: a formula that fits all three is linear."""
        low, high = self.export.symbols.ranges[symbol]
        hint, last = self.hints[symbol], math.inf if high is None else high
        wanted = (hint + 3 + 2 * index, hint + 4 + 2 * index, high, hint + 1, hint - 1, hint - 2)
        inside = [n for n in wanted if n is not None and max(low or 1, 1) <= n <= last]
        return [n for n in dict.fromkeys(inside) if n != hint][:2]

    def _inputs(self, values: dict[str, int]) -> list[Tensor]:
        """The example's tensors, in these sizes."""
        made = list(map(copied, self.tensors))
        places = [i for i, each in enumerate(self.export.leaves) if isinstance(each, Tensor)]
        for (leaf, dim), size in self.export.symbols.sizes(values).items():
            at = places.index(leaf)
            rows = _C.arange(size) % max(made[at].shape[dim], 1)
            flag = made[at].requires_grad
            made[at] = made[at].detach().index_select(dim, rows).requires_grad_(flag)
        return made

    def _run(self, values: dict[str, int]) -> dict[Node, Any]:
        """What every node gives."""
        export = self.export
        found: dict[Node, Any] = {}
        given = dict(zip(self.nodes, self._inputs(values)))
        with fork_rng(), no_grad():
            for node in export.graph.nodes:
                if node.op == "placeholder":
                    held = given.get(node, export.tensors.get(node, export.examples[node]))
                    is_buffer = isinstance(held, Tensor) and not isinstance(held, Parameter)
                    found[node] = held.detach().clone() if is_buffer else held
                elif node.op == "output":
                    found[node] = map_arg(node.args, found.__getitem__)[0]
                else:
                    found[node] = run_node(node, found)
        return found

    def _checked(self, values: dict[str, int]) -> dict[Node, Any]:
        """The run for other sizes, which has to give what the module gives."""
        text = ", ".join(f"{n} = {v}" for n, v in values.items())
        module = copy.deepcopy(self.export.module)
        given = iter(self._inputs(values))
        leaves = [next(given) if isinstance(e, Tensor) else e for e in self.export.leaves]
        args, kwargs = tree_unflatten(leaves, self.export.in_spec)
        try:
            with fork_rng(), no_grad():
                wanted = tree_flatten(module(*args, **kwargs))[0]
            found = self._run(values)
        except RuntimeError as error:
            raise RuntimeError(
                f"export: expected a module that does the same for all sizes, got one for which "
                f"the program fails where {text}: {error}"
            ) from error
        got = found[self.export.graph.output_node()]
        for one, other in zip(wanted, got):
            if isinstance(one, Tensor) and not _is_close(one, other):
                raise RuntimeError(
                    "export: expected a module that does the same for all sizes, got one that "
                    f"gives other results than its program where {text}"
                )
        return found

    def _record(self, values: list[Tensor]) -> TensorRecord:
        record = record_of(values[0])
        sizes = [self._size([v.shape[d] for v in values]) for d in range(values[0].dim())]
        strides = [self._size([v.stride(d) for v in values]) for d in range(values[0].dim())]
        return record._replace(sizes=sizes, strides=strides)

    def _size(self, values: list[int]) -> Size:
        """The formula of a size, if it is linear in one symbol; else a new symbol."""
        first, rest = values[0], iter(values[1:])
        moving = []
        for symbol, others in self.others.items():
            steps = [divmod(next(rest) - first, each - self.hints[symbol]) for each in others]
            if any(step != (0, 0) for step in steps):
                moving.append((symbol, steps))
        if not moving:
            return first
        (symbol, ((factor, more), *same)), *further = moving
        if not further and not more and all(step == (factor, 0) for step in same):
            summand = first - factor * self.hints[symbol]
            text = symbol if factor == 1 else f"{factor}*{symbol}"
            if summand:
                text += f" {'+' if summand > 0 else '-'} {abs(summand)}"
            return Expression(text, first)
        return self._unknown(first)

    def _unknown(self, hint: int | None) -> Expression:
        """A symbol of its own."""
        name = f"u{self.unknown}"
        self.unknown += 1
        self.export.symbols.ranges[name] = (None, None)
        return Expression(name, hint)

    def _settle_number(self, node: Node, values: list[Any]) -> None:
        node.meta["number_type"] = type(values[0])
        if node.all_input_nodes:
            self._describe_number(node, values)
        else:  # of constants
            self._replace(node, values[0])

    def _describe_number(self, node: Node, values: list[Any]) -> None:
        """A number that is the same for all sizes is a constant, unless a tensor's value gives
        it."""
        relation = _RELATIONS.get(node.target)
        if relation is not None:
            sides = (n.meta["number"] if isinstance(n, Node) else n for n in node.args)
            node.meta["number"] = Expression(f"{relation}({', '.join(map(str, sides))})", None)
            return
        is_value = getattr(node.target, "_opname", "") == "item" or any(
            "number" in each.meta for each in node.all_input_nodes
        )
        if is_value:
            node.meta["number"] = self._unknown(None)
        elif any(each != values[0] for each in values) and type(values[0]) is int:
            node.meta["number"] = self._size(values)
        elif all(each == values[0] for each in values):
            self._replace(node, values[0])
        elif node.target is not operator.getitem:
            node.meta["number"] = self._unknown(None)

    def _replace(self, node: Node, value: Any) -> None:
        """Puts a constant in the place of a node."""
        for user in list(node.users):
            user.args = map_arg(user.args, lambda n: value if n is node else n)
            user.kwargs = map_arg(user.kwargs, lambda n: value if n is node else n)


def _has_tensors(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(each, Tensor) for each in value)


def _are_tensors(values: tuple[Any, ...]) -> bool:
    return all(isinstance(each, Tensor) for each in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _is_close(one: Tensor, other: Any) -> bool:
    if not isinstance(other, Tensor) or one.shape != other.shape or one.dtype != other.dtype:
        return False
    exact = _C.complex128 if one.is_complex() else _C.float64
    return bool(_C.allclose(one.to(exact), other.to(exact), 1e-3, 1e-3, equal_nan=True))

"""The gradient of a fusion group, as another group.

The backward group reads the inputs again and computes what it needs of the forward steps anew:
arithmetic is cheaper than memory. It gives one gradient for each place where an input is read, in
the order in which the engine would meet the operators, so that sums come out with the same bits as
operator by operator: gradients of inner values are added here in that order, those of inputs by the
engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from weft.jit.codegen.steps import NotFusible, Operand, Steps, Unit, gradient

Edge = tuple[int, str, int]  # (input of the forward group, "gradient" | "output", index)


@dataclass
class Derivative:
    """`steps` of the backward group, whose inputs are the forward group's and then one gradient for
    each of its outputs; `outputs` are steps that leave it."""

    steps: Steps
    outputs: list[int] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    depends: list[int] = field(default_factory=list)  # of outputs: bit i: input i has a gradient


def differentiate(forward: Steps, outputs: list[int], inputs: int) -> Derivative:
    """Raises NotFusible where some gradient is not arithmetic on elements."""
    return _Backward(forward, outputs, inputs).run()


class _Names(Mapping[str, object]):
    """What formulas may name; forward values are computed anew when one is first named."""

    def __init__(
        self,
        values: Mapping[str, object],
        recomputed: Callable[[object], object],
        known: dict[str, object],
    ) -> None:
        self._values, self._recomputed, self._known = values, recomputed, known

    def __getitem__(self, name: str) -> object:
        if name not in self._known:
            self._known[name] = self._recomputed(self._values[name])
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter({**self._values, **self._known})

    def __len__(self) -> int:
        return len({**self._values, **self._known})


class _Backward:
    def __init__(self, forward: Steps, outputs: list[int], inputs: int) -> None:
        self._forward, self._outputs, self._inputs = forward, outputs, inputs
        self._result = Derivative(Steps(share=True))
        self._again: dict[int, Operand] = {}
        self._grads: dict[int, Operand] = {}  # of forward steps, as known so far

    def run(self) -> Derivative:
        depends = self._dependencies()
        self._result.depends = [depends.get(step, 0) for step in self._outputs]
        for k, step in enumerate(self._outputs):
            if depends.get(step):
                self._grads[step] = Operand("input", self._inputs + k)
        for unit in reversed(self._forward.units):
            grad = self._grads.get(unit.result.index) if unit.result.kind == "step" else None
            if grad is not None:
                self._unit(unit, grad, depends)
        if not self._result.edges:
            raise NotFusible("no input has a gradient")
        return self._result

    def _dependencies(self) -> dict[int, int]:
        """By forward step: the inputs a gradient goes to from it."""
        found: dict[int, int] = {}
        for unit in self._forward.units:
            if unit.row.no_gradient:
                raise NotFusible(f"{unit.row.key}: a gradient that is not implemented")
            if not unit.row.grad and "nondifferentiable" not in unit.row.tags:
                raise NotFusible(f"{unit.row.key}: no gradient formula")
            reached = 0
            for name in unit.row.differentiable:
                value = unit.names[name]
                if isinstance(value, Operand) and value.kind == "input":
                    reached |= 1 << value.index
                elif isinstance(value, Operand) and value.kind == "step":
                    reached |= found.get(value.index, 0)
            if unit.result.kind == "step":
                found[unit.result.index] = reached
        return found

    def _unit(self, unit: Unit, grad: Operand, depends: dict[int, int]) -> None:
        values = {**unit.names, "result": unit.result, "result0": unit.result}
        names = _Names(values, self._recomputed, {"grad": grad, "grads[0]": grad})
        for name, formula in gradient(unit.row.key):
            value = unit.names[name]
            if not isinstance(value, Operand):
                raise NotFusible(f"{unit.row.key}: expected a tensor as {name}")
            wanted = value.kind == "input" or depends.get(value.index)
            part = self._result.steps.evaluate(formula, names) if wanted else None
            if part is None:
                continue
            if value.kind == "input":
                self._result.edges.append((value.index, *self._leaving(part)))
            elif value.index in self._grads:
                sum_ = self._result.steps.add("add_Tensor", [self._grads[value.index], part], [1])
                self._grads[value.index] = sum_
            else:
                self._grads[value.index] = part

    def _leaving(self, part: Operand) -> tuple[str, int]:
        if part.kind == "input":
            if part.index < self._inputs:
                raise NotFusible("a gradient that is an input")
            return "gradient", part.index - self._inputs
        outputs = self._result.outputs
        if part.index not in outputs:
            outputs.append(part.index)
        return "output", outputs.index(part.index)

    def _recomputed(self, value: object) -> object:
        """A value of the forward group in terms of the backward one."""
        if not isinstance(value, Operand) or value.kind == "input":
            return value
        if value.kind == "constant":
            return self._forward.constants[value.index]
        if value.index not in self._again:
            op, tensors, numbers = self._forward.steps[value.index]
            self._again[value.index] = self._result.steps.add(
                op,
                [self._recomputed(t) for t in tensors],  # type: ignore[misc]
                [self._recomputed(n) for n in numbers],
            )
        return self._again[value.index]

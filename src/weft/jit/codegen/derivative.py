"""The gradient of a fusion group, as another group.

The backward group reads the inputs again and computes what it needs of the forward steps anew:
arithmetic is cheaper than memory. Values of rows (means, deviations) are small and cost a pass, so
the forward group saves them. A result that a row operator stands behind (a softmax) is read, since
there is arithmetic no more. The group gives one gradient for each input: the gradients of the
places where a value is read are added as they are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from weft.jit.codegen.rows import ALL, ELEMENTS, ROW, SQUEEZED, NotFusible, RowResult, RowStep
from weft.jit.codegen.steps import Op, Operand, Steps, Unit
from weft.jit.ir.record import field, record
from weft.jit.operator_facts import row_of_id

Edge = tuple[int, str, int]  # (input of the forward group, "gradient" | "output", index)


@record
class Derivative:
    """`steps` of the backward group, whose inputs are the forward group's, then one gradient for
    each of its outputs, then these outputs, then the forward steps `saved`; `outputs` are steps
    that leave it."""

    steps: Steps
    outputs: list[int] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    depends: list[int] = field(default_factory=list)  # of outputs: bit i: input i has a gradient
    saved: list[int] = field(default_factory=list)  # values of rows that the forward group saves


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
        spaces = {inputs + k: forward.spaces[step] for k, step in enumerate(outputs)}
        spaces = {i: space for i, space in spaces.items() if space != ELEMENTS}
        self._result = Derivative(Steps(share=True, strict=False, input_spaces=spaces))
        self._again: dict[int, Operand] = {}
        self._grads: dict[Operand, Operand] = {}  # of forward values, as known so far
        self._read: set[int] = set()  # forward steps that are read as results

    def run(self) -> Derivative:
        depends = self._dependencies()
        self._result.depends = [depends.get(step, 0) for step in self._outputs]
        costly = self._behind_rows()
        self._read = {
            step
            for step in self._outputs
            if step in costly and depends.get(step) and self._forward.spaces[step] == ELEMENTS
        }
        for k, step in enumerate(self._outputs):
            if depends.get(step):
                self._grads[Operand("step", step)] = Operand("input", self._inputs + k)
        for unit in reversed(self._forward.units):
            grad = self._grads.get(unit.result) if unit.result.kind == "step" else None
            if grad is not None:
                self._unit(unit, grad, depends)
        for value, grad in self._grads.items():
            if value.kind == "input":
                self._result.edges.append((value.index, *self._leaving(grad)))
        if not self._result.edges:
            raise NotFusible("no input has a gradient")
        _drop_unused(self._result)
        return self._result

    def _dependencies(self) -> dict[int, int]:
        """By forward step: the inputs a gradient goes to from it."""
        found: dict[int, int] = {}
        for unit in self._forward.units:
            if not unit.row.has_gradient and "nondifferentiable" not in unit.row.tags:
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

    def _behind_rows(self) -> set[int]:
        """The forward steps that are, or are computed from, row operators."""
        found: set[int] = set()
        for step, (op, tensors, _) in enumerate(self._forward.steps):
            if not isinstance(op, str) or any(
                t.kind == "step" and t.index in found for t in tensors
            ):
                found.add(step)
        return found

    def _unit(self, unit: Unit, grad: Operand, depends: dict[int, int]) -> None:
        values = {**unit.names, "result": unit.result, "result0": unit.result}
        for i in (1, 2):  # of layer norm; nothing else has several
            values[f"result{i}"] = Operand("step", unit.result.index + i)
        names = _Names(values, self._recomputed, {"grad": grad, "grads[0]": grad})
        if unit.row.gradient is None:
            raise NotFusible(f"{unit.row.key}: one formula for several gradients")
        for name, formula in unit.row.gradient:
            value = unit.names[name]
            if not isinstance(value, Operand):
                raise NotFusible(f"{unit.row.key}: expected a tensor as {name}")
            wanted = value.kind == "input" or depends.get(value.index)
            part = self._result.steps.evaluate(formula, names) if wanted else None
            if part is None:
                continue
            part = self._fitted(part, unit, value)
            if value in self._grads:
                part = self._result.steps.add("add_Tensor", [self._grads[value], part], [1])
            self._grads[value] = part

    def _fitted(self, part: Operand, unit: Unit, value: Operand) -> Operand:
        """A part of the gradient as the engine gives it to an operand: summed over the row where
        the operand had one value for it."""
        steps = self._result.steps
        space = self._forward.space(value)
        whole = unit.result.kind == "step" and self._forward.space(unit.result) == ELEMENTS
        if space == ELEMENTS:
            if value.kind == "input" and steps.space(part) == ALL:
                raise NotFusible("a gradient that is the same for all")
            return part
        if not whole:
            return part
        if space != ROW or steps.space(part) != ELEMENTS:
            raise NotFusible("a gradient that is the same for a whole row")
        return steps.add(RowStep("sum_dim_IntList"), [part], [], ROW)

    def _leaving(self, part: Operand) -> tuple[str, int]:
        if part.kind == "input":
            if not self._inputs <= part.index < self._inputs + len(self._outputs):
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
        if value.kind == "length":
            return value
        if value.index in self._read:
            at = self._inputs + len(self._outputs) + self._outputs.index(value.index)
            return Operand("input", at)
        if value.index not in self._again:
            op, tensors, numbers = self._forward.steps[value.index]
            if self._forward.spaces[value.index] in (ROW, SQUEEZED):
                self._again[value.index] = self._save(value.index)
                return self._again[value.index]
            space = "" if isinstance(op, str) else self._forward.spaces[value.index]
            self._again[value.index] = self._add(op, tensors, numbers, space)
        return self._again[value.index]

    def _add(
        self, op: Op, tensors: Sequence[Operand], numbers: Sequence[Operand], space: str
    ) -> Operand:
        """A step of the forward group once more; its further results stand right behind it."""
        steps = self._result.steps
        again = [self._recomputed(t) for t in tensors]
        first = steps.add(op, again, [self._recomputed(n) for n in numbers], space)  # type: ignore[arg-type]
        for index in range(1, row_of_id(op.id).results if isinstance(op, RowStep) else 1):
            steps.add(RowResult(index), [first], [], ROW)
        return first

    def _save(self, step: int) -> Operand:
        """A value of rows as one more input. Results are saved beside what the caller gets, who may
        write over it."""
        at = self._inputs + 2 * len(self._outputs) + len(self._result.saved)
        self._result.saved.append(step)
        self._result.steps.input_spaces[at] = self._forward.spaces[step]
        return Operand("input", at)


def _drop_unused(result: Derivative) -> None:
    """Takes out steps that no output needs: what a formula names it need not read."""
    steps = result.steps
    used: set[int] = set()
    for index in reversed(range(len(steps.steps))):
        op, tensors, _ = steps.steps[index]
        if index in result.outputs or index in used:
            used |= {index, *(t.index for t in tensors if t.kind == "step")}
    for index, (op, tensors, _) in enumerate(steps.steps):  # results stay with their operator
        if isinstance(op, RowResult) and tensors[0].index in used:
            used.add(index)
    renumbered = {old: new for new, old in enumerate(sorted(used))}

    def moved(value: Operand) -> Operand:
        return Operand("step", renumbered[value.index]) if value.kind == "step" else value

    steps.spaces = [steps.spaces[old] for old in renumbered]
    steps.steps = [
        (op, [moved(t) for t in tensors], numbers)
        for op, tensors, numbers in (steps.steps[old] for old in renumbered)
    ]
    result.outputs = [renumbered[output] for output in result.outputs]

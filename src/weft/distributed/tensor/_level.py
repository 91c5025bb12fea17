"""Operators on tensors of several processes: on what this process has, by the rules.

The extension hands every operator that Python asks for to the level (`perform`), and everything
else that is asked of a tensor (`override`), as it does for traces and for vmap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, NoReturn

from weft import _C
from weft._C import Tensor
from weft.distributed.tensor import (  # noqa: F401 (rules)
    _lookups,
    _rules,
    _views,
)
from weft.distributed.tensor._layout import Layout, Placements, of_gradient
from weft.distributed.tensor._moves import move, moved
from weft.distributed.tensor._overrides import OVERRIDES
from weft.distributed.tensor._plans import Plan, cheapest, shape_of, tensors_in
from weft.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from weft.func._batched import recorded_by, seen_by
from weft.func._operators import Operator, operator, operator_of_key

Call = Callable[[list[Any], Sequence[Placements]], Any]


class Level:
    """What operators do to tensors of the class `kind`, whose memory is that of this process's
    part, and which have a `_layout`."""

    operator = staticmethod(operator_of_key)

    def __init__(self, kind: type[Tensor]) -> None:
        self.kind = kind

    def active(self) -> AbstractContextManager[None]:
        """A block in which this thread's operators go to the level."""
        return recorded_by(self)

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Within, operators run on the parts of this process."""
        with seen_by(None), _C.DisableTorchFunctionSubclass():
            yield

    # Tensors ----------------------------------------------------------------------------------

    def layout(self, tensor: Any) -> Layout:
        """Where a tensor lies."""
        return tensor._layout

    def wrap(self, local: Tensor, layout: Layout) -> Any:
        """A tensor of several processes, over the part of this one."""
        made = local.as_subclass(self.kind)
        made.__dict__["_layout"] = layout
        return made

    def part(self, whole: Tensor, layout: Layout) -> Tensor:
        """The part of this process of a tensor that all have."""
        every = layout.placed((Replicate(),) * layout.mesh.ndim)
        return moved(whole, every, layout.placements)

    def redistributed(self, tensor: Any, target: Placements) -> Any:
        """The tensor with other placements."""
        layout = self.layout(tensor)
        if layout.placements == target:
            return tensor
        with self.outside():
            return self.wrap(move(tensor, layout, target), layout.placed(target))

    def settled(self, tensor: Any) -> Any:
        """The tensor with no reductions left to do."""
        placements = self.layout(tensor).placements
        return self.redistributed(tensor, of_gradient(placements))

    def whole(self, tensor: Any) -> Tensor:
        """All of the tensor, as a plain one."""
        if not isinstance(tensor, self.kind):
            return tensor
        layout = self.layout(tensor)
        every = (Replicate(),) * layout.mesh.ndim
        with self.outside():
            return move(tensor, layout, every).as_subclass(Tensor)

    # Called by the extension ----------------------------------------------------------------------

    def perform(self, schema: str, given: tuple[Any, ...]) -> Any:
        """The result of an operator, from what all processes have."""
        op = operator(schema)
        if not any(isinstance(each, self.kind) for each in tensors_in(given)):
            with self.outside():
                return op.call(given)
        if op.writes_out:
            self.unsupported(f"{op.name}: expected no out= beside DTensors, got one")
        return _rules.apply(self, op, given)

    def override(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Something that is no operator of the table was asked of a tensor."""
        if name not in OVERRIDES:
            self.unsupported(f"{name}: expected what works on a DTensor, got one that does not")
        return OVERRIDES[name](self, *args, **kwargs)

    def unsupported(self, what: str) -> NoReturn:
        """Raises for what there is no rule for."""
        raise NotImplementedError(what)

    paused = outside  # what overrides of traces ask

    # What overrides of vmap ask: here no tensor stands for samples.

    def samples(self, tensor: Any) -> None:
        """None."""

    def refuse_decision(self, what: str, given: Any) -> None:
        """Nothing: elements are those of all processes."""

    # Plans --------------------------------------------------------------------------------------

    def run(self, op: Operator, given: Sequence[Any], plan: Plan, call: Call | None = None) -> Any:
        """The result by a plan; `call`, told the placements of the operands, computes it of this
        process's parts (the operator itself where nothing is said)."""
        tensors = tensors_in(given)
        mesh = next(self.layout(t).mesh for t in tensors if isinstance(t, self.kind))
        layouts = [self._layout_on(op, t, mesh) for t in tensors]
        sizes = [layout_bytes(t, layout) for t, layout in zip(tensors, layouts)]
        found = cheapest(plan, layouts, sizes, op.in_place)
        if found is None:
            raise RuntimeError(
                f"{op.name}: expected operands that leave the placements of the first as they are, "
                f"got {[layout.placements for layout in layouts]}"
            )
        targets, result = found
        with self.outside():
            parts = iter([self._enter(*each, result) for each in zip(tensors, layouts, targets)])
            items = [_filled(each, parts) for each in given]
            if plan.shape is not None:
                own = Layout(mesh, result, tuple(plan.shape)).local_shape()
                items = [own if a.is_size else item for a, item in zip(op.arguments, items)]
            made = op.call(items) if call is None else call(items, targets)
            if op.in_place:
                return given[0]
            extents = {
                letter: size
                for letters, layout in zip(plan.operands, layouts)
                for letter, size in zip(letters, layout.shape)
            }
            if plan.shape is not None:
                extents = dict(zip(plan.result, plan.shape))
            return self._wrapped(made, Layout(mesh, result, ()), plan.result, extents)

    def try_sizes(self, op: Operator, given: Sequence[Any]) -> None:
        """Raises what the operator raises of tensors of the whole sizes, if it does."""
        with self.outside():
            every = (t.detach().new_empty(shape_of(t), device="meta") for t in tensors_in(given))
            with suppress(NotImplementedError):
                op.call([_filled(each, every) for each in given])

    def _layout_on(self, op: Operator, tensor: Tensor, mesh: Any) -> Layout:
        if not isinstance(tensor, self.kind):
            return Layout(mesh, (Replicate(),) * mesh.ndim, tuple(tensor.shape))
        layout = self.layout(tensor)
        if layout.mesh != mesh:
            raise RuntimeError(
                f"{op.name}: expected DTensors of one mesh, got {layout.mesh}, {mesh}"
            )
        return layout

    def _enter(self, tensor: Tensor, layout: Layout, target: Placements, result: Placements) -> Any:
        """This process's part of an operand."""
        terms = tuple(map(_of_terms, target, result))
        if layout.placements == target and (terms == target or not tensor.requires_grad):
            return tensor
        return move(tensor, layout, target, grad_from=terms)

    def _wrapped(self, made: Any, layout: Layout, letters: Sequence[Any], extents: Any) -> Any:
        if isinstance(made, Tensor):
            shape = list(made.shape)
            for placement in layout.placements:
                if isinstance(placement, Shard):
                    shape[placement.dim] = extents[letters[placement.dim]]
            return self.wrap(made, layout._replace(shape=tuple(shape)))
        if isinstance(made, (tuple, list)):
            return type(made)([self._wrapped(each, layout, letters, extents) for each in made])
        return made


def _of_terms(operand: Placement, result: Placement) -> Placement:
    """The placement of an operand's gradient. Where processes compute different parts of a result
    from equal operands, the gradients of those are terms of a sum."""
    if isinstance(operand, Replicate) and isinstance(result, Partial):
        return result
    if isinstance(operand, Replicate) and isinstance(result, Shard):
        return Partial()
    return Replicate() if isinstance(operand, Partial) else operand


def layout_bytes(tensor: Tensor, layout: Layout) -> int:
    """The memory of the whole tensor."""
    size = tensor.element_size()
    for each in layout.shape:
        size *= each
    return size


def _filled(value: Any, parts: Iterator[Any]) -> Any:
    """An argument with the parts of this process in place of its tensors."""
    if isinstance(value, (list, tuple)):
        return type(value)([_filled(each, parts) for each in value])
    return next(parts) if isinstance(value, Tensor) else value

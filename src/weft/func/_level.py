"""One call of vmap: what its function asks of tensors, done to the tensors of all samples.

The extension hands every operator that Python asks for to the level (`perform`), and everything
else that is asked of a tensor (`override`), as it does for traces. An operator runs by the rule of
its row where there is one, else sample by sample; either runs one level further out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn

from weft import _C
from weft._C import Tensor
from weft.func import _layouts, _products, _random  # noqa: F401  (their rules)
from weft.func._batched import Refused, has_history, recorded_by, seen_by
from weft.func._operators import Operator, operator
from weft.func._overrides import OVERRIDES
from weft.func._rules import Unbatchable, rule_of
from weft.utils._pytree import tree_leaves, tree_map


class Level:
    """A batch of `size` samples. Tensors that are not of the batch are the same for all of them."""

    def __init__(self, size: int, randomness: str) -> None:
        self.size = size
        self.randomness = randomness
        self.outer = _C._recorder()

    def active(self) -> AbstractContextManager[None]:
        """A block in which this thread's operators go to the level."""
        return recorded_by(self)

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Within, operators go to the level further out, or run."""
        with seen_by(self.outer):
            yield

    def __deepcopy__(self, memo: Any) -> Level:
        return self  # a copied tensor is of the same batch

    def __reduce__(self) -> NoReturn:
        self.unsupported("a pickle of one of its tensors")

    # Tensors ----------------------------------------------------------------------------------

    def holds(self, tree: Any) -> bool:
        """Whether a tensor of the batch is among the leaves."""
        return any(self.samples(each) is not None for each in tree_leaves(tree))

    def wrap(self, samples: Tensor) -> Tensor:
        """Tensors along the first dimension, as the function sees one of them."""
        with seen_by(None):
            seen = samples.detach()
            seen = seen.select(0, 0) if self.size else seen.new_zeros(samples.shape[1:])
            if has_history(samples):
                seen.requires_grad_()
        seen.__dict__["_batch"] = (self, samples)
        return seen

    def samples(self, tensor: Any) -> Tensor | None:
        """The tensors of all samples; None for one that is the same for all, or no tensor."""
        batch = getattr(tensor, "_batch", None) if isinstance(tensor, Tensor) else None
        return batch[1] if batch is not None and batch[0] is self else None

    def expanded(self, tensor: Tensor) -> Tensor:
        """The tensors of all samples, equal ones where it is the same for all."""
        samples = self.samples(tensor)
        if samples is not None:
            return samples
        with self.outside():
            return _C._aten.expand(_C._aten.unsqueeze(tensor, 0), (self.size, *tensor.shape))

    def spread(self, tensor: Tensor) -> Tensor:
        """The tensor with samples of its own at this level and all around it."""
        samples = self.samples(tensor)
        if samples is None:
            if hasattr(self.outer, "spread"):
                tensor = self.outer.spread(tensor)
            return self.wrap(self.expanded(tensor))
        if hasattr(self.outer, "spread"):
            return self.wrap(self.outer.spread(samples))
        return tensor

    # Called by the extension --------------------------------------------------------------------

    def perform(self, schema: str, given: tuple[Any, ...]) -> Any:
        """The result of an operator, for all samples."""
        op = operator(schema)
        batched = self.holds(list(given))
        if op.row is not None and "random" in op.row.tags:
            return _random.perform(self, op, given, batched)
        if not batched:
            with self.outside():
                return op.call(given)
        self._check(op, given)
        try:
            result = rule_of(op)(self, op, given)
        except Unbatchable:
            result = self.one_by_one(op.name, op.call, given)
        return given[0] if op.in_place else result

    def override(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Something that is no operator of the table was asked of a tensor."""
        return OVERRIDES[name](self, *args, **kwargs)

    def _check(self, op: Operator, given: Sequence[Any]) -> None:
        """What no batch can do."""
        if op.writes_out:
            raise RuntimeError(f"vmap: expected operators without out=, got {op.name} with it")
        for argument, value in zip(op.arguments, given):
            if argument.is_written and self.samples(value) is None:
                raise Refused(
                    f"vmap: expected {op.name} in place on a tensor of the batch, got one that is "
                    "the same for all samples; make it of a tensor of the batch, as new_zeros() "
                    "does, or use the operator that is not in place"
                )
            if not argument.type.startswith("Tensor"):
                self.refuse_decision(f"{op.name} with one for {argument.name}", value)
        if not op.gives_tensors:
            self.refuse_decision(op.name, list(given))
        values = {argument.name: value for argument, value in zip(op.arguments, given)}
        if op.row is not None and _depends_on_elements(op.row.shape, values):
            raise RuntimeError(
                f"vmap: expected operators whose sizes do not depend on elements, got {op.name}"
            )

    def refuse_decision(self, what: str, given: Any) -> None:
        """Raises where Python would learn an element of the batch, which differ by sample."""
        if self.holds(given):
            raise Refused(
                f"vmap: expected a function that asks no tensor of the batch for its elements, got "
                f"{what}: samples may differ; use operators such as where() instead"
            )

    # Sample by sample ---------------------------------------------------------------------------

    def one_by_one(self, name: str, call: Callable[..., Any], given: Any) -> Any:
        """The results of calls for each sample, stacked: what no rule does at once."""
        with self.outside():
            done = [call(self.sample(given, i)) for i in range(self.size)]
        if not done:
            raise RuntimeError(f"vmap: expected a batch of at least one sample for {name}, got 0")
        return self.stacked(name, given, done)

    def sample(self, given: Any, i: int) -> Any:
        """Nested arguments of one sample."""

        def of_sample(value: Any) -> Any:
            samples = self.samples(value)
            return value if samples is None else _C._aten.select(samples, 0, i)

        return tree_map(of_sample, given)

    def stacked(self, name: str, given: Any, done: list[Any]) -> Any:
        """Nested results of all samples as the function sees them."""
        first = done[0]
        if isinstance(first, Tensor):
            if len({tuple(each.shape) for each in done}) > 1:
                raise RuntimeError(
                    "vmap: expected operators whose sizes do not depend on elements, got "
                    f"{name} with {sorted({tuple(each.shape) for each in done})}"
                )
            with self.outside():
                return self.wrap(_C._aten.stack(done))
        if isinstance(first, (list, tuple)):
            parts = [self.stacked(name, given, list(each)) for each in zip(*done)]
            return type(first)(parts)
        if any(each != first for each in done):
            self.refuse_decision(name, given)
        return first

    def unsupported(self, what: str) -> NoReturn:
        """Raises for what a batch cannot do."""
        raise RuntimeError(f"vmap: expected what works on a batch, got {what}")


def _depends_on_elements(shape: str, values: dict[str, Any]) -> bool:
    """Whether a formula of sizes leaves one unknown, with these arguments."""
    told = re.findall(r"unknown if (\w+) == -1", shape)
    return shape.count("unknown") > len(told) or any(values[name] == -1 for name in told)

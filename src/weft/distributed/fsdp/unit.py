"""The parameters of one module, of which each process keeps some rows.

A unit gathers its parameters before the module's forward, and lets go of them behind it. What
forward saved of them for backward is kept as a place in the unit, not as memory: backward gathers
again when it asks for the first. Their gradients are summed where their rows are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from weft._C import Tensor
from weft._runtime.repetition import is_repetition, repeated_in
from weft.autograd.function import Function
from weft.autograd.grad_mode import is_grad_enabled, no_grad
from weft.autograd.graph import saved_tensors_hooks
from weft.distributed.collectives import all_gather_into_tensor
from weft.distributed.fsdp.bundle import Location, Owner, bundles_of
from weft.distributed.groups import ProcessGroup
from weft.nn.parameter import Parameter


class Shard(NamedTuple):
    """Rows of a tensor of `shape` (first dimension), from `start` on."""

    rows: Tensor
    start: int
    shape: tuple[int, ...]


_SHARDS = "_weft_shard"
_GROUP = "_weft_group"
_SPREAD = "_weft_spread"  # marks the whole parameter that shards replace


def shard_of(parameter: Tensor) -> tuple[int, tuple[int, ...]] | None:
    """First row and full shape of a sharded parameter; None for any other."""
    return getattr(parameter, _SHARDS, None)


def gathered(rows: Tensor, parameter: Tensor) -> Tensor:
    """The whole of a tensor of which each process has `rows`, as of a sharded parameter. All
    processes of its group call it."""
    group, shape = getattr(parameter, _GROUP), parameter.__dict__[_SHARDS][1]
    own = rows.new_zeros(-(-shape[0] // group.size()), *shape[1:])
    own[: rows.size(0)] = rows
    whole = rows.new_empty(group.size() * own.size(0), *shape[1:])
    all_gather_into_tensor(whole, own, group)
    return whole[: shape[0]]


def own_rows(whole: Tensor, parameter: Tensor) -> Tensor:
    """The rows of a whole tensor that this process keeps of a sharded parameter."""
    start = parameter.__dict__[_SHARDS][0]
    return whole[start : start + parameter.size(0)]


class _Saved(NamedTuple):
    """A tensor over the memory of gathered parameters."""

    at: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


class Unit:
    """Parameters of a module and of its children that are in no unit of their own."""

    _running = 0  # units whose forward runs

    def __init__(
        self,
        parameters: Sequence[tuple[Parameter, Sequence[Location]]],
        group: ProcessGroup,
        reshards: bool,
    ) -> None:
        self.group, self.reshards = group, reshards
        self.next: Unit | None = None  # the one that is gathered ahead
        self._bundles = bundles_of([self._spread(*each) for each in parameters], group)
        self._owners = [owner for bundle in self._bundles for owner in bundle.owners]
        self._full: list[Tensor] | None = None
        self._is_ahead = False  # the bundles are being gathered

    def _spread(self, parameter: Parameter, locations: Sequence[Location]) -> Owner:
        shape, name = tuple(parameter.shape), locations[0][1]
        if hasattr(parameter, _SPREAD):
            raise ValueError(
                f"fully_shard: expected modules that share a parameter in one unit, got {name} of "
                f"shape {shape} in two"
            )
        if not shape or not parameter.is_floating_point():
            raise ValueError(
                f"fully_shard: expected floating parameters with a dimension, got {name} of shape "
                f"{shape} and {parameter.dtype}"
            )
        rows = -(-shape[0] // self.group.size())
        start = min(rows * self.group.rank(), shape[0])
        own = parameter.detach()[start : start + rows].clone()
        spread = Parameter(own, requires_grad=parameter.requires_grad)
        setattr(spread, _SHARDS, (start, shape))
        setattr(spread, _GROUP, self.group)
        setattr(parameter, _SPREAD, True)
        for module, each in locations:
            setattr(module, each, spread)
        return Owner(locations, spread, shape, rows)

    # ---- parameters ----

    def gather(self) -> None:
        """Begins to collect the rows of all processes, unless they are here."""
        if self._full is None and not self._is_ahead:
            self._is_ahead = True
            with no_grad():
                for bundle in self._bundles:
                    bundle.gather()

    def full(self) -> list[Tensor]:
        """The whole parameters."""
        self.gather()
        if self._full is None:
            with no_grad():
                self._full = [each for bundle in self._bundles for each in bundle.full()]
            self._is_ahead = False
        return self._full

    def free(self) -> None:
        """Lets go of the whole parameters."""
        self._full, self._is_ahead = None, False
        for bundle in self._bundles:
            bundle.free()

    def shards(self) -> list[Parameter]:
        """The parameters that this process keeps."""
        return [owner.parameter for owner in self._owners]

    # ---- forward ----

    @contextmanager
    def whole(self) -> Iterator[None]:
        """A block in which the module has whole parameters. In a repetition of forward, backward
        comes next: it needs this unit, and not the following one."""
        is_first = not is_repetition()
        if Unit._running == 0 and is_first:
            self._forget_old()
        Unit._running += 1
        if self.next is not None and is_first:
            self.next.gather()
        try:
            hooks = saved_tensors_hooks(self._pack, self._unpack)
            with self._replaced(), hooks, repeated_in(self._replaced):
                yield
        finally:
            Unit._running -= 1
            if is_first and (self.reshards or not is_grad_enabled()):
                self.free()

    @contextmanager
    def _replaced(self) -> Iterator[None]:
        """A block in which the module's attributes are the whole parameters."""
        if self._owners:
            self._set(_Gathered.apply(self, *self.shards()))
        try:
            yield
        finally:
            self._set(self.shards())

    def _forget_old(self) -> None:
        """Lets go of what an earlier forward gathered and nobody used: shards may have changed."""
        unit: Unit | None = self
        while unit is not None:
            unit.free()
            unit = unit.next

    def _set(self, tensors: Sequence[Tensor]) -> None:
        for owner, tensor in zip(self._owners, tensors):
            for module, name in owner.locations:
                module.__dict__[name] = tensor

    def _pack(self, tensor: Tensor) -> Any:
        if self._full is None:
            return tensor
        memory = tensor.untyped_storage().data_ptr()
        for at, full in enumerate(self._full):
            if full.untyped_storage().data_ptr() == memory:
                return _Saved(at, tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
        return tensor

    def _unpack(self, packed: Any) -> Tensor:
        if not isinstance(packed, _Saved):
            return packed
        full = self.full()[packed.at]
        return full.detach().as_strided(packed.size, packed.stride, packed.offset)

    # ---- backward ----

    def reduced(self, grads: Sequence[Tensor]) -> list[Tensor]:
        """The mean of whole gradients over all processes, of the rows that are kept here."""
        left, reducing = iter(grads), []
        for bundle in self._bundles:
            reducing.append(bundle.reduce([next(left) for _ in bundle.owners]))
        found = []
        for bundle, (work, own) in zip(self._bundles, reducing):
            work.wait()
            found += bundle.parts(own.div_(self.group.size()))
        return found


class _Gathered(Function):
    """Whole parameters of a unit, from the rows that are kept here."""

    @staticmethod
    def forward(ctx: Any, unit: Unit, *shards: Tensor) -> tuple[Tensor, ...]:
        ctx.unit = unit
        return tuple(full.view(full.shape) for full in unit.full())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        ctx.unit.free()  # before the sum, which needs memory of its own
        with no_grad():
            return None, *ctx.unit.reduced(grads)

"""How every operation of a group runs: checks, contiguous memory, posting, the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.distributed.errors import DistError
from weft.distributed.groups import ProcessGroup
from weft.distributed.launchers import is_debugging
from weft.distributed.work import Work, progress
from weft.nn.parameter import is_spread

_FINGERPRINT = 256  # bytes in which a process says what it calls


class Operation(NamedTuple):
    """An operation that reads sources and fills targets, in memory order, without copies of those
    that are contiguous.

    post: gets the channel and both lists and gives MPI's requests. in_place: the targets are
    sources too. finish: called at the end. like: says what all processes have to agree on; None for
    what concerns some of them, the ranks of the world in `peers`.
    """

    what: str
    targets: Sequence[Tensor]
    sources: Sequence[Tensor]
    post: Callable[[Any, list[Tensor], list[Tensor]], list[Any]]
    in_place: bool = False
    finish: Callable[[], None] | None = None
    like: Callable[[], str] | None = None
    peers: Sequence[int] | None = None

    def run(self, group: ProcessGroup, async_op: bool) -> Work | None:
        """Runs it; the Work of an asynchronous one."""
        with no_grad():
            work = self._alone(group) if group.channel is None else self._posted(group)
        if async_op:
            if not work.poll():
                progress.add(work)
            return work
        work.wait()
        return None

    def _alone(self, group: ProcessGroup) -> Work:
        for target, source in zip(self.targets, self.sources):
            if target is not source:
                target.copy_(source.reshape(target.shape))
        return Work(self.what, group, result=self.targets, finish=self.finish)

    def _posted(self, group: ProcessGroup) -> Work:
        if self.like is not None and is_debugging():
            _compare(f"{self.what}({self.like()})", self.what, group)
        group.transport.watch.check(self.what)
        sources = [source.detach().contiguous() for source in self.sources]
        targets = [self._writable(target) for target in self.targets]
        requests = self.post(group.channel, targets, sources)

        def finish() -> None:
            with no_grad():
                for target, written in zip(self.targets, targets):
                    if written.data_ptr() != target.data_ptr():
                        target.copy_(written)
                    else:
                        _count_write(target)
                if self.finish is not None:
                    self.finish()

        kept = (sources, targets)
        return Work(self.what, group, requests, self.targets, finish, kept, self.peers)

    def _writable(self, target: Tensor) -> Tensor:
        if target.is_contiguous():
            return target.detach()
        return target.detach().contiguous() if self.in_place else target.new_empty(target.shape)


def _count_write(tensor: Tensor) -> None:
    """Tells autograd, which counts writes of operators, of MPI's."""
    tensor.detach().as_strided((0,), (1,)).zero_()


def _compare(call: str, what: str, group: ProcessGroup) -> None:
    """DistError where the processes of a group do not call the same. Waits for all of them."""
    text = call.encode()[:_FINGERPRINT].ljust(_FINGERPRINT)
    own = _C.frombuffer(bytearray(text), dtype=_C.uint8)
    all_ = own.new_empty(group.size(), _FINGERPRINT)
    Work(what, group, group.channel.all_gather(all_, own), kept=(own, all_)).wait()
    calls: dict[str, list[int]] = {}
    for rank, row in zip(group.ranks, all_):
        calls.setdefault(bytes(row.tolist()).decode().strip(), []).append(rank)
    if len(calls) > 1:
        got = ", ".join(f"{text} on ranks {ranks}" for text, ranks in calls.items())
        raise DistError(f"{what}: expected the same call on all ranks, got {got}")


def described(tensor: Tensor) -> str:
    """Dtype and shape, as debug mode compares them."""
    return f"{tensor.dtype}{list(tensor.shape)}"


def tensors_of(what: str, *values: Any) -> None:
    """TypeError for what is no tensor; RuntimeError for tensors without plain memory."""
    for value in values:
        if not isinstance(value, Tensor):
            raise TypeError(f"{what}: expected a tensor, got {type(value).__name__}")
        if is_spread(value):
            raise RuntimeError(
                f"{what}: expected plain tensors, got a {type(value).__name__}; to_local() gives "
                "one, of what this process has"
            )
        if value.device.type != "cpu" or value.is_sparse:
            raise RuntimeError(
                f"{what}: expected dense tensors of the CPU, got {value.layout} on {value.device}"
            )


def listed(what: str, name: str, tensors: Any, count: int) -> list[Tensor]:
    """A list of as many tensors as there are processes; RuntimeError for any other, ValueError for
    None."""
    plural = "process" if count == 1 else "processes"
    if tensors is None:
        raise ValueError(f"{what}: expected {name} for {count} {plural}, got None")
    found = list(tensors)
    if len(found) != count:
        raise RuntimeError(f"{what}: expected {name} for {count} {plural}, got {len(found)}")
    tensors_of(what, *found)
    return found


def same_elements(what: str, target: Tensor, source: Tensor, parts: int = 1) -> None:
    """RuntimeError unless the target has `parts` times the source's elements, ValueError unless
    they are of its dtype."""
    if target.numel() != source.numel() * parts or target.dtype != source.dtype:
        kind = RuntimeError if target.dtype == source.dtype else ValueError
        raise kind(
            f"{what}: expected an output of {source.numel() * parts} elements of {source.dtype}, "
            f"got {target.numel()} of {target.dtype}"
        )

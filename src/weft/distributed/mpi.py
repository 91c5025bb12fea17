"""MPI by mpi4py: tensors as buffers, operators of reductions, the operations of a communicator.

The only file that imports mpi4py. Importing it starts MPI, so nothing imports it before
`init_process_group` finds that the world has more than one process. All operations are those that
return at once; their requests are completed by `weft.distributed.work`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from mpi4py import MPI

from weft import _C
from weft._C import Tensor
from weft.distributed.neighbours import Neighbours, Process
from weft.distributed.reductions import ReduceOp, reduce_into
from weft.distributed.watch import Watch

# Elements of one message or reduction: counts of MPI 3 are ints of C.
LARGEST = 2**30
# The tag of collective transfers; users' are lower.
_EXCHANGE: int = MPI.COMM_WORLD.Get_attr(MPI.TAG_UB) or 2**15 - 1

_NUMBERS = {
    _C.uint8: MPI.UINT8_T, _C.int8: MPI.INT8_T, _C.int16: MPI.INT16_T, _C.int32: MPI.INT32_T,
    _C.int64: MPI.INT64_T, _C.uint16: MPI.UINT16_T, _C.uint32: MPI.UINT32_T,
    _C.uint64: MPI.UINT64_T, _C.float32: MPI.FLOAT, _C.float64: MPI.DOUBLE,
    _C.complex64: MPI.C_FLOAT_COMPLEX, _C.complex128: MPI.C_DOUBLE_COMPLEX,
}  # fmt: skip
_BY_SIZE = {1: MPI.BYTE, 2: MPI.INT16_T, 4: MPI.INT32_T, 8: MPI.INT64_T, 16: MPI.C_DOUBLE_COMPLEX}
_OPERATORS = {
    ReduceOp.SUM: MPI.SUM, ReduceOp.AVG: MPI.SUM, ReduceOp.PRODUCT: MPI.PROD,
    ReduceOp.MIN: MPI.MIN, ReduceOp.MAX: MPI.MAX,
    ReduceOp.BAND: MPI.BAND, ReduceOp.BOR: MPI.BOR, ReduceOp.BXOR: MPI.BXOR,
}  # fmt: skip
_LOGICAL = {
    ReduceOp.SUM: MPI.LOR, ReduceOp.MAX: MPI.LOR, ReduceOp.BOR: MPI.LOR,
    ReduceOp.PRODUCT: MPI.LAND, ReduceOp.MIN: MPI.LAND, ReduceOp.BAND: MPI.LAND,
    ReduceOp.BXOR: MPI.LXOR,
}  # fmt: skip
_own_operators: dict[tuple[Any, ReduceOp], Any] = {}


def _memory(tensor: Tensor) -> Any:
    return MPI.buffer.fromaddress(tensor.data_ptr(), tensor.nbytes)


def _pieces(tensor: Tensor) -> list[Tensor]:
    """The elements of a contiguous tensor in pieces that one message holds."""
    count = tensor.numel()
    if count <= LARGEST:
        return [tensor]
    flat = tensor.view(-1)
    return [flat[at : at + LARGEST] for at in range(0, count, LARGEST)]


def _bytes_of(tensor: Tensor) -> list[Any]:
    """A tensor as MPI moves it: elements of the same size."""
    return [_memory(tensor), tensor.numel(), _BY_SIZE[tensor.element_size()]]


def _operator(dtype: Any, op: ReduceOp) -> tuple[Any, Any]:
    """MPI's datatype and operator of a reduction: its own, or one that calls weft's kernels."""
    if dtype == _C.bool:
        return MPI.C_BOOL, _LOGICAL[op]
    if dtype in _NUMBERS:
        return _NUMBERS[dtype], _OPERATORS[op]
    if (dtype, op) not in _own_operators:

        def combine(source: Any, target: Any, _: Any) -> None:
            reduce_into(_C.frombuffer(target, dtype=dtype), _C.frombuffer(source, dtype=dtype), op)

        _own_operators[dtype, op] = MPI.Op.Create(combine, commute=True)
    return _BY_SIZE[dtype.itemsize], _own_operators[dtype, op]


class Channel:
    """A communicator of some processes. Tensors are contiguous; each method posts its operation
    and gives the requests that are complete when it is done."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()

    def part(self, ranks: Sequence[int], tag: int) -> Channel:
        """A communicator of these ranks, in this order. Only they call it."""
        members = self._comm.Get_group().Incl(list(ranks))
        return Channel(self._comm.Create_group(members, tag))

    def free(self) -> None:
        """Gives the communicator back. All members call it."""
        self._comm.Free()

    # ---- one buffer ----

    def broadcast(self, tensor: Tensor, root: int) -> list[Any]:
        """Copies the root's tensor to all."""
        return [self._comm.Ibcast(_bytes_of(piece), root) for piece in _pieces(tensor)]

    def all_reduce(self, tensor: Tensor, op: ReduceOp) -> list[Any]:
        """Reduces in place."""
        kind, operator = _operator(tensor.dtype, op)
        return [
            self._comm.Iallreduce(MPI.IN_PLACE, [_memory(p), p.numel(), kind], operator)
            for p in _pieces(tensor)
        ]

    def reduce(self, tensor: Tensor, op: ReduceOp, root: int) -> list[Any]:
        """Reduces in place at the root; other tensors stay as they are."""
        kind, operator = _operator(tensor.dtype, op)
        requests = []
        for piece in _pieces(tensor):
            buffer = [_memory(piece), piece.numel(), kind]
            own = (MPI.IN_PLACE, buffer) if self.rank == root else (buffer, None)
            requests.append(self._comm.Ireduce(*own, operator, root))
        return requests

    def all_gather(self, output: Tensor, source: Tensor) -> list[Any]:
        """Copies all sources, one behind another, into output."""
        count = source.numel()
        if count <= LARGEST:
            memory, _, kind = _bytes_of(output)
            return [self._comm.Iallgather(_bytes_of(source), [memory, count, kind])]
        parts = output.view(-1).split(count)
        parts[self.rank].copy_(source.view(-1))
        return [r for root, part in enumerate(parts) for r in self.broadcast(part, root)]

    def reduce_scatter(
        self, output: Tensor, source: Tensor, op: ReduceOp, counts: Sequence[int]
    ) -> list[Any]:
        """Reduces the sources; each rank gets its part, of `counts` elements."""
        if source.numel() > LARGEST:
            return self._reduce_parts(output, source, op, counts)
        kind, operator = _operator(source.dtype, op)
        send = [_memory(source), source.numel(), kind]
        receive = [_memory(output), output.numel(), kind]
        return [self._comm.Ireduce_scatter(send, receive, list(counts), operator)]

    def _reduce_parts(
        self, output: Tensor, source: Tensor, op: ReduceOp, counts: Sequence[int]
    ) -> list[Any]:
        kind, operator = _operator(source.dtype, op)
        requests = []
        for root, part in enumerate(source.view(-1).split(list(counts))):
            targets = _pieces(output) if root == self.rank else _pieces(part)
            for piece, target in zip(_pieces(part), targets):
                send = [_memory(piece), piece.numel(), kind]
                receive = [_memory(target), target.numel(), kind] if root == self.rank else None
                requests.append(self._comm.Ireduce(send, receive, operator, root))
        return requests

    def barrier(self) -> list[Any]:
        """Is complete when all are here."""
        return [self._comm.Ibarrier()]

    # ---- from rank to rank ----

    def exchange(
        self, outputs: Sequence[tuple[int, Tensor]], sources: Sequence[tuple[int, Tensor]]
    ) -> list[Any]:
        """Receives each output from its rank, and sends each source to its rank."""
        receives = [r for rank, t in outputs for r in self.receive(t, rank, _EXCHANGE)]
        return receives + [r for rank, t in sources for r in self.send(t, rank, _EXCHANGE)]

    def send(self, tensor: Tensor, rank: int, tag: int) -> list[Any]:
        """Sends a tensor."""
        return [self._comm.Isend(_bytes_of(piece), rank, tag) for piece in _pieces(tensor)]

    def receive(self, tensor: Tensor, rank: int | None, tag: int) -> list[Any]:
        """Receives a tensor; from any rank without one. ValueError for more than one message of
        any rank: the next may be another's."""
        source, pieces = MPI.ANY_SOURCE if rank is None else rank, _pieces(tensor)
        if rank is None and len(pieces) > 1:
            raise ValueError(f"recv: expected a source of {tensor.numel()} elements, got none")
        return [self._comm.Irecv(_bytes_of(piece), source, tag) for piece in pieces]

    # ---- messages between those that wait (weft.distributed.watch) ----

    def post(self, message: Any, rank: int) -> Any:
        """Sends a small object; the request has to be kept until it is complete."""
        return self._comm.isend(message, rank, 0)

    def gathered(self, value: Any) -> list[Any]:
        """The small objects of all ranks. Waits for them."""
        return self._comm.allgather(value)

    def messages(self) -> Iterator[tuple[int, Any]]:
        """The small objects that have arrived, each with the rank that sent it."""
        status = MPI.Status()
        while (found := self._comm.improbe(MPI.ANY_SOURCE, 0, status)) is not None:
            yield status.Get_source(), found.recv()

    def abort(self) -> None:
        """Ends all processes of the world."""
        MPI.COMM_WORLD.Abort(1)


class Transport:
    """MPI as a world of processes uses it: a channel of all, and the watch over them."""

    def __init__(self) -> None:
        self.world = Channel(MPI.COMM_WORLD.Dup())
        channel = Channel(MPI.COMM_WORLD.Dup())
        self.watch = Watch(channel, Neighbours(channel.gathered(Process.own())))

    @staticmethod
    def error_text(error: Exception) -> str | None:
        """What MPI says of an error; None for errors of others."""
        return error.Get_error_string() if isinstance(error, MPI.Exception) else None

    @staticmethod
    def test_all(requests: list[Any], sources: list[int] | None = None) -> bool:
        """Whether all requests are complete. Lets MPI make progress, without the interpreter lock.
        Fills `sources` with the ranks from which their messages came."""
        statuses = None if sources is None else [MPI.Status() for _ in requests]
        if not MPI.Request.Testall(requests, statuses):
            return False
        if sources is not None and statuses is not None:
            sources.extend(status.Get_source() for status in statuses)
        return True


@functools.cache
def transport() -> Transport:
    """The transport of this process. Groups that begin and end use the same one."""
    return Transport()

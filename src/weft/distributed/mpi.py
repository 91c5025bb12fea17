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
from weft.distributed.errors import DistBackendError
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
    # MPI's own give each process another result where there is a NaN.
    is_ordered = dtype.is_floating_point and op in (ReduceOp.MIN, ReduceOp.MAX)
    if dtype in _NUMBERS and not is_ordered:
        return _NUMBERS[dtype], _OPERATORS[op]
    if (dtype, op) not in _own_operators:

        def combine(source: Any, target: Any, _: Any) -> None:
            reduce_into(_C.frombuffer(target, dtype=dtype), _C.frombuffer(source, dtype=dtype), op)

        _own_operators[dtype, op] = MPI.Op.Create(combine, commute=True)
    return _BY_SIZE[dtype.itemsize], _own_operators[dtype, op]


class _Part(MPI.Request):
    """A message that is a part of a collective operation: MPI takes a shorter one, too."""

    size = 0  # in bytes
    sender = 0  # rank in the world


class Channel:
    """A communicator of some processes, `ranks` of the world. Tensors are contiguous; each method
    posts its operation and gives the requests that are complete when it is done."""

    def __init__(self, comm: Any, ranks: Sequence[int] | None = None) -> None:
        self._comm = comm
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        self._ranks = range(self.size) if ranks is None else ranks

    def part(self, ranks: Sequence[int], tag: int) -> Channel:
        """A communicator of these ranks, in this order. Only they call it."""
        members = self._comm.Get_group().Incl(list(ranks))
        return Channel(self._comm.Create_group(members, tag), ranks)

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
        requests: list[Any] = []
        for rank, output in outputs:
            for piece in _pieces(output):
                part = _Part(self._comm.Irecv(_bytes_of(piece), rank, _EXCHANGE))
                part.size, part.sender = piece.nbytes, self._ranks[rank]
                requests.append(part)
        return requests + [r for rank, t in sources for r in self.send(t, rank, _EXCHANGE)]

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
    def statuses(requests: Sequence[Any]) -> list[Any]:
        """What test_all fills: how each request ended."""
        return [MPI.Status() for _ in requests]

    @staticmethod
    def test_all(requests: list[Any], statuses: list[Any]) -> bool:
        """Whether all requests are complete. Lets MPI make progress, without the interpreter lock.
        DistBackendError where MPI reports an error, and for a part that is too short."""
        try:
            if not MPI.Request.Testall(requests, statuses):
                return False
        except MPI.Exception as error:
            raise DistBackendError(
                f"expected MPI to end it, got {_text(error, statuses)}"
            ) from error
        for part, status in zip(requests, statuses):
            # A count that MPI cannot say is negative; what is too long is an error of its own.
            if isinstance(part, _Part) and 0 <= (got := status.Get_count(MPI.BYTE)) < part.size:
                raise DistBackendError(
                    f"expected {part.size} bytes of rank {part.sender}, got {got}"
                )
        return True


def _text(error: Any, statuses: Sequence[Any]) -> str:
    """What MPI says of an error: the first that a request has of its own, or the error itself."""
    own = [status.Get_error() for status in statuses]
    found = [code for code in own if code not in (MPI.SUCCESS, MPI.ERR_PENDING)]
    if error.Get_error_class() != MPI.ERR_IN_STATUS or not found:
        return error.Get_error_string()
    return MPI.Get_error_string(found[0])


@functools.cache
def transport() -> Transport:
    """The transport of this process. Groups that begin and end use the same one."""
    return Transport()

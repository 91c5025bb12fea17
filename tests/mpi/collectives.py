"""Collectives of all processes against NumPy, which knows what every rank has."""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

import weft
import weft.distributed as dist
from weft import memory
from weft.distributed import ReduceOp

FLOATS = (weft.float32, weft.float64, weft.float16, weft.bfloat16)
BYTES = (weft.float8_e4m3fn, weft.float8_e5m2)
UNSIGNED = (weft.uint8, weft.uint16, weft.uint32, weft.uint64)
WHOLE = (*UNSIGNED, weft.int8, weft.int16, weft.int32, weft.int64)
COMPLEX = (weft.complex64, weft.complex128)
EVERY = (*FLOATS, *BYTES, *WHOLE, *COMPLEX, weft.bool)
OPERATORS: dict[ReduceOp, tuple[Callable[[Any, Any], Any], Any]] = {
    ReduceOp.SUM: (operator.add, (*FLOATS, weft.float8_e4m3fn, *WHOLE, *COMPLEX)),
    ReduceOp.PRODUCT: (operator.mul, (*FLOATS, *WHOLE, *COMPLEX)),
    ReduceOp.MIN: (np.minimum, (*FLOATS, *WHOLE)),
    ReduceOp.MAX: (np.maximum, (*FLOATS, *WHOLE)),
    ReduceOp.BAND: (operator.and_, WHOLE),
    ReduceOp.BOR: (operator.or_, (*WHOLE, weft.bool)),
    ReduceOp.BXOR: (operator.xor, (*WHOLE, weft.bool)),
}


def drawn(rng: Any, n: int, shape: tuple[int, ...], dtype: Any) -> list[Any]:
    """A tensor of small whole numbers for each rank, the same in all processes, so that every
    dtype sums them exactly. Some are not contiguous."""
    values = rng.integers(0, 2 if dtype == weft.bool else 4, (n, *shape))
    made = [weft.tensor(value).to(dtype) for value in values]
    if len(shape) > 1 and rng.integers(2):
        made = [each.mT.contiguous().mT for each in made]
    return made


def numbers(tensor: Any) -> Any:
    """A tensor as NumPy's, of a type that holds its values."""
    if tensor.dtype in (weft.float16, weft.bfloat16, *BYTES):
        tensor = tensor.double()
    return tensor.numpy()


def same(what: str, got: Any, expected: Any) -> None:
    values = numbers(got)
    assert np.array_equal(values, expected), f"{what}: {values} is not {expected}"


def shapes(rng: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(0, 5, rng.integers(0, 4)))


def check_reductions(rng: Any, group: Any, me: int, n: int) -> None:
    for op, (combine, dtypes) in OPERATORS.items():
        for dtype in dtypes:
            shape = shapes(rng)
            all_ = drawn(rng, n, shape, dtype)
            expected = reduce(combine, map(numbers, all_)).astype(numbers(all_[0]).dtype)
            x = all_[me].clone()
            before = x._version
            dist.all_reduce(x, op, group=group)
            same(f"all_reduce {op} {dtype}", x, expected)
            assert x._version > before or n == 1
            root = int(rng.integers(n))
            x = all_[me].clone()
            dist.reduce(x, op=op, group=group, group_dst=root)
            if me == root:
                same(f"reduce {op} {dtype}", x, expected)
            parts = [drawn(rng, n, shape, dtype) for _ in range(n)]  # by rank, then by part
            y = weft.empty(shape, dtype=dtype)
            dist.reduce_scatter(y, parts[me], op, group=group)
            own = reduce(combine, [numbers(part[me]) for part in parts])
            same(f"reduce_scatter {op} {dtype}", y, own)
            together = weft.stack(parts[me]) if parts[me] else y
            dist.reduce_scatter_tensor(y.zero_(), together, op, group=group)
            same(f"reduce_scatter_tensor {op} {dtype}", y, own)
    for dtype in FLOATS:
        for op in (ReduceOp.MIN, ReduceOp.MAX):  # alike in all processes, wherever a NaN comes from
            x = weft.where(weft.arange(n) == me, float("nan"), 1.0).to(dtype)
            dist.all_reduce(x, op, group=group)
            assert x.isnan().all(), (op, dtype, x)
    x = weft.full((3,), float(me))
    work = dist.all_reduce(x, ReduceOp.AVG, group=group, async_op=True)
    assert work is not None and work.wait() and work.is_success() and work.result()[0] is x
    same("all_reduce AVG", x, np.full(3, (n - 1) / 2, "float32"))


def check_copies(rng: Any, group: Any, me: int, n: int) -> None:
    for dtype in EVERY:
        shape = shapes(rng)
        all_ = drawn(rng, n, shape, dtype)
        expected = [numbers(each) for each in all_]
        root = int(rng.integers(n))
        x = all_[me].clone()
        dist.broadcast(x, group=group, group_src=root)
        same("broadcast", x, expected[root])
        outputs = [weft.empty(shape, dtype=dtype) for _ in range(n)]
        dist.all_gather(outputs, all_[me], group=group)
        for got, value in zip(outputs, expected):
            same("all_gather", got, value)
        whole = weft.empty((n, *shape), dtype=dtype)
        dist.all_gather_into_tensor(whole, all_[me], group=group)
        same("all_gather_into_tensor", whole, np.stack(expected))
        rows = list(whole.zero_().unbind(0))  # views that lie one behind another
        work = dist.all_gather(rows, all_[me], group=group, async_op=True)
        assert work is not None and work.wait()
        same("all_gather of views", whole, np.stack(expected))
        outputs = [weft.empty(shape, dtype=dtype) for _ in range(n)]
        dist.gather(all_[me], outputs if me == root else None, group=group, group_dst=root)
        if me == root:
            same("gather", weft.stack(outputs), np.stack(expected))
        x = weft.empty(shape, dtype=dtype)
        dist.scatter(x, all_ if me == root else None, group=group, group_src=root)
        same("scatter", x, expected[me])


def check_all_to_all(rng: Any, group: Any, me: int, n: int) -> None:
    for dtype in (weft.bfloat16, weft.int64, weft.complex64):
        rows = rng.integers(0, 4, (n, n))  # of what each rank sends to each
        sent = [drawn(rng, 1, (int(rows[i].sum()), 2), dtype)[0] for i in range(n)]
        parts = [each.split(rows[i].tolist()) for i, each in enumerate(sent)]
        expected = np.concatenate([numbers(parts[i][me]) for i in range(n)])
        x = weft.empty(int(rows[:, me].sum()), 2, dtype=dtype)
        splits = (rows[:, me].tolist(), rows[me].tolist())
        dist.all_to_all_single(x, sent[me], *splits, group=group)
        same("all_to_all_single", x, expected)
        outputs = list(x.zero_().split(splits[0]))
        dist.all_to_all(outputs, list(parts[me]), group=group)
        same("all_to_all", x, expected)


def check_transfers(rng: Any, group: Any, me: int, n: int) -> None:
    if n == 1:
        return
    after, before = (me + 1) % n, (me - 1) % n
    x, y = weft.full((3, 2), float(me)).mT, weft.empty(3, 2).mT
    work = dist.isend(x, group=group, group_dst=after, tag=7)
    assert dist.recv(y, group=group, group_src=before, tag=7) == dist.get_global_rank(group, before)
    work.wait()
    same("ring", y, np.full((2, 3), before, "float32"))
    operations = [
        dist.P2POp(dist.irecv, y, group=group, group_peer=before),
        dist.P2POp(dist.isend, x + 1, group=group, group_peer=after),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    same("batch", y, np.full((2, 3), before + 1, "float32"))
    x, y = x[:, :2].contiguous(), weft.empty(2, 2)  # of any rank: one message
    if me == 0:
        seen = {dist.recv(y, group=group) for _ in range(n - 1)}
        assert seen == set(dist.get_process_group_ranks(group)[1:])
    else:
        dist.send(x, group=group, group_dst=0)
    if me < 2:
        objects: list[Any] = [me, {"x": weft.ones(2)}] if me == 0 else [None, None]
        if me == 0:
            dist.send_object_list(objects, group=group, group_dst=1)
        else:
            sender = dist.recv_object_list(objects, group=group, group_src=0)
            assert sender == dist.get_global_rank(group, 0)
        assert objects[0] == 0 and objects[1]["x"].tolist() == [1, 1]


def check_objects(rng: Any, group: Any, me: int, n: int) -> None:
    values = [{"rank": rank, "text": "x" * rank * 100} for rank in range(n)]
    places: list[Any] = [None] * n
    dist.all_gather_object(places, values[me], group=group)
    assert places == values
    places = [None] * n
    root = int(rng.integers(n))
    dist.gather_object(values[me], places if me == root else None, group=group, group_dst=root)
    assert places == (values if me == root else [None] * n)
    places = list(values) if me == root else [None] * n
    dist.broadcast_object_list(places, group=group, group_src=root)
    assert places == values
    place: list[Any] = [None]
    dist.scatter_object_list(place, values if me == root else None, group=group, group_src=root)
    assert place == [values[me]]


def check_futures(rng: Any, group: Any, me: int, n: int) -> None:
    x = weft.ones(3)
    work = dist.all_reduce(x, group=group, async_op=True)
    assert work is not None
    later = work.get_future().then(lambda done: done.value()[0] * 2)
    assert later.wait().tolist() == [2.0 * n] * 3 and work.is_completed()
    dist.monitored_barrier(group)


CHECKS = [value for name, value in sorted(globals().items()) if name.startswith("check_")]


def check_groups(rng: Any, me: int, n: int) -> None:
    """Every check in groups of some ranks, in another order, too."""
    order = [int(rank) for rank in rng.permutation(n)][: max(n - 1, 2)]
    group = dist.new_group(order, sort_ranks=False)
    if me in order:
        assert dist.get_process_group_ranks(group) == order
        assert dist.get_group_rank(group, me) == group.rank() == order.index(me)
        for check in CHECKS:
            check(rng, group, group.rank(), len(order))
        dist.destroy_process_group(group)
    else:
        assert dist.get_rank(group) == -1 and group == dist.GroupMember.NON_GROUP_MEMBER
    ranks = [list(range(0, n, 2)), list(range(1, n, 2))][: 2 if n > 1 else 1]
    own, all_ = dist.new_subgroups_by_enumeration(ranks)
    assert dist.get_process_group_ranks(own) == ranks[me % 2] and len(all_) == len(ranks)
    own, all_ = dist.new_subgroups(1)
    assert len(all_) == n and dist.get_process_group_ranks(own) == [me]
    x = weft.ones(2)
    dist.all_reduce(x, group=own)
    assert x.tolist() == [1, 1]


def check_no_copies(me: int, n: int) -> None:
    """Contiguous tensors are MPI's buffers: no operation takes memory beside them."""
    count = 1 << 18
    x, y, part = weft.ones(n * count), weft.ones(n * count), weft.ones(count)
    every, other = list(weft.ones(n, count)), list(weft.ones(n, count))
    calls = {
        "all_reduce": lambda: dist.all_reduce(x),
        "reduce": lambda: dist.reduce(x, 0),
        "broadcast": lambda: dist.broadcast(x, 0),
        "all_gather": lambda: dist.all_gather(every, part),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(x, part),
        "gather": lambda: dist.gather(part, every if me == 0 else None),
        "scatter": lambda: dist.scatter(part, every if me == 0 else None),
        "reduce_scatter": lambda: dist.reduce_scatter(part, every),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(part, x),
        "all_to_all": lambda: dist.all_to_all(every, other),
        "all_to_all_single": lambda: dist.all_to_all_single(y, x),
    }
    for name, call in calls.items():
        memory.reset_peak()
        before = memory.stats()["bytes_in_use"]
        call()
        peak = memory.stats()["peak_bytes_in_use"]
        assert peak - before < part.nbytes // 8, (name, peak - before)


def main() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        dist.init_process_group("gloo")
    me, n = dist.get_rank(), dist.get_world_size()
    assert len(said) == (me == 0 and n > 1), said
    from weft.distributed import mpi  # after init_process_group, which starts MPI

    for largest in (2**30, 4):  # elements of a message: then everything goes in pieces
        mpi.LARGEST = largest
        rng = np.random.default_rng([int(sys.argv[1]), largest])
        for check in CHECKS:
            check(rng, dist.group.WORLD, me, n)
        check_groups(np.random.default_rng(largest), me, n)
        if largest > 4:
            check_no_copies(me, n)
    dist.destroy_process_group()
    assert not dist.is_initialized()


main()

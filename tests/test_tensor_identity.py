"""One wrapper per tensor: identity, state that outlives Python references, gc, threads, counts."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import threading
import weakref
from typing import Any

import pytest

import weft

HAS_LOCK = getattr(sys, "_is_gil_enabled", lambda: True)()


class Marked(weft.Tensor):
    pass


def leaf_with_grad() -> weft.Tensor:
    x = weft.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    return x


def test_grad_is_one_object() -> None:
    x = leaf_with_grad()
    assert x.grad is x.grad
    held = x.grad
    assert x.grad is held


def test_inplace_returns_self() -> None:
    x = weft.ones(3)
    assert x.add_(1) is x
    y = x
    y += 1
    assert y is x


V, M, B = (weft.ones(*shape) for shape in ((2,), (2, 2), (1, 2, 2)))
PLACES = weft.tensor([0, 1])
#: arguments of methods that change their tensor: some of these fit each
GIVEN: list[tuple[Any, ...]] = [
    (), (1.0,), (0.5,), (0,), (1,), (0, 1), (2, 0, 1.0), ((2,),), (abs,),
    (V,), (M,), (PLACES,), (V, V), (M, V), (M, M), (B, B), (V, pow), (V > 0, V), (V > 0, 1.0), (PLACES, V),
    (0, PLACES, V), (0, PLACES, 1.0), (0, PLACES, V, "mean"), ((PLACES,), V), ((2,), (1,)), (V, V, max),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*numbers before or between the tensors")
@pytest.mark.parametrize("name", [n for n in dir(weft.Tensor) if n[-1] == "_" and n[0] != "_"])
def test_methods_that_change_their_tensor_return_it(name: str) -> None:
    for like, dtype, given in itertools.product(
        (V, M, B), (weft.float32, weft.int64, weft.float64), GIVEN
    ):
        x = like.to(dtype, copy=True)
        try:
            result = getattr(x, name)(*given)
        except (TypeError, RuntimeError, ValueError, IndexError):
            continue
        assert result is x
        return
    raise AssertionError("expected arguments that fit among GIVEN, got none")


def test_attributes_survive_while_cpp_holds_the_tensor() -> None:
    x = leaf_with_grad()
    x.grad.note = "kept"  # type: ignore[union-attr]
    gc.collect()
    assert x.grad.note == "kept"  # type: ignore[union-attr]
    for _ in range(3):  # again and again: ownership turns round each time
        x.grad.count = getattr(x.grad, "count", 0) + 1  # type: ignore[union-attr]
    assert x.grad.count == 3  # type: ignore[union-attr]


def test_subclass_survives_while_cpp_holds_the_tensor() -> None:
    x = weft.ones(3, requires_grad=True)
    grad = weft.ones(3).as_subclass(Marked)
    x.grad = grad
    name = id(grad)
    del grad
    gc.collect()
    assert type(x.grad) is Marked
    assert id(x.grad) == name


@pytest.mark.skipif(not HAS_LOCK, reason="weak references end with Python's last")
def test_weak_reference_survives_while_cpp_holds_the_tensor() -> None:
    x = leaf_with_grad()
    reference = weakref.ref(x.grad)
    gc.collect()
    assert reference() is x.grad
    x.grad = None
    gc.collect()
    assert reference() is None


@pytest.mark.skipif(not HAS_LOCK, reason="weak references end with Python's last")
def test_found_through_weak_reference_after_cpp_let_go() -> None:
    x = leaf_with_grad()
    reference = weakref.ref(x.grad)
    alive = reference()  # owned by C++, reached without a wrap
    x.grad = None
    assert alive is not None
    assert alive.tolist() == [2, 2, 2]
    assert (alive + 1).tolist() == [3, 3, 3]
    del alive
    assert reference() is None


def test_wrapper_without_state_goes_at_once() -> None:
    x = weft.ones(3)
    reference = weakref.ref(x)
    del x
    assert reference() is None


def test_subclass_goes_with_its_tensor() -> None:
    x = weft.ones(3, requires_grad=True)
    x.grad = weft.ones(3).as_subclass(Marked)
    x.grad.payload = payload = Marked(2)  # type: ignore[union-attr]
    reference = weakref.ref(payload)
    del payload
    assert reference() is not None
    x.grad = None
    gc.collect()
    assert reference() is None


def test_cycle_through_attribute_is_collected() -> None:
    x = weft.ones(3)
    x.me = x  # type: ignore[attr-defined]
    reference = weakref.ref(x)
    del x
    gc.collect()
    assert reference() is None


def test_cycle_is_kept_while_cpp_holds_the_tensor() -> None:
    x = leaf_with_grad()

    class Box:
        pass

    box = Box()
    box.grad = x.grad  # type: ignore[attr-defined]
    box.data = [1, 2]  # type: ignore[attr-defined]
    x.grad.box = box  # type: ignore[union-attr]
    del box
    gc.collect()
    assert x.grad.box.data == [1, 2]  # type: ignore[union-attr]
    x.grad.box.data.append(3)  # type: ignore[union-attr]
    gc.collect()
    gc.collect()
    assert x.grad.box.data == [1, 2, 3]  # type: ignore[union-attr]


def test_tracked_only_with_a_dict() -> None:
    x = weft.ones(3)
    assert not gc.is_tracked(x)
    x.note = 1  # type: ignore[attr-defined]
    assert gc.is_tracked(x)
    y = weft.ones(3)
    assert y.__dict__ == {}
    assert gc.is_tracked(y)
    assert gc.is_tracked(Marked(2))


def test_drop_in_another_thread() -> None:
    for _ in range(50):
        box: list[Any] = [leaf_with_grad()]
        box[0].grad.note = object()
        thread = threading.Thread(target=box.clear)
        thread.start()
        thread.join()


def test_backward_thread_drops_python_state() -> None:
    # A hook's closure and attributes go away while the engine runs without the GIL.
    def work() -> None:
        for _ in range(50):
            x = weft.ones(4, requires_grad=True)
            y = x * 2
            y.tag = object()  # type: ignore[attr-defined]
            y.sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_million_objects_leave_nothing() -> None:
    x = weft.ones(2)
    for _ in range(1000):
        x + x
    gc.collect()
    before = (
        weft.memory_stats()["bytes_in_use"],
        len(gc.get_objects()),
        sys.getrefcount(weft.Tensor),
    )
    for _ in range(20000):
        x + x
    gc.collect()
    after = weft.memory_stats()["bytes_in_use"], len(gc.get_objects()), sys.getrefcount(weft.Tensor)
    assert after[0] == before[0]
    assert abs(after[1] - before[1]) < 10
    assert abs(after[2] - before[2]) < 200  # the free list keeps some


def test_reference_counts_of_arguments() -> None:
    x, y = weft.ones(2), weft.ones(2)
    names = ("x", "y")

    def counts() -> list[int]:
        return [sys.getrefcount(o) for o in (x, y, names, None)][:3]

    before = counts()
    for _ in range(100):
        x + y, x - 1, 1 - x, x == y, weft.add(x, y, alpha=2), x.sum(dim=0), x[0], x[None], x.shape
        x.view(2, 1), x.numpy(), x.tolist(), x.__dlpack__(), repr(x)
        with pytest.raises(TypeError):
            weft.add(x, names)  # type: ignore[arg-type]
        with pytest.raises(IndexError):
            x[5]
    assert counts() == before


def test_subclass_with_slots_and_finaliser() -> None:
    seen = []

    class Loud(weft.Tensor):
        __slots__ = ("extra",)

        def __del__(self) -> None:
            seen.append(self.tolist())

    x = weft.ones(2).as_subclass(Loud)
    x.extra = [1]
    del x
    assert seen == [[1, 1]]


def test_shutdown_with_live_tensors() -> None:
    program = """
import weft, threading
x = weft.ones(3, requires_grad=True)
(x * 2).sum().backward()
x.grad.note = [1]
x.me = x
class T(weft.Tensor): pass
y = weft.ones(2).as_subclass(T); y.me = y
keep = [x.register_hook(lambda g: g)]
import numpy; a = numpy.ones(3); t = weft.from_numpy(a)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""

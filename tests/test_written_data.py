"""Writes through x, x.detach(), x.data and views of them: which of them x and saved values notice."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from libraries import both

# Where a write goes in, and whether x notices.
PLACES: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "x": (lambda x: x, True),
    "a view": (lambda x: x[1:], True),
    "detach": (lambda x: x.detach(), True),
    "a view of detach": (lambda x: x.detach().view(2, 2).t(), True),
    "data": (lambda x: x.data, False),
    "a view of data": (lambda x: x.data.view(2, 2)[0], False),
    "data of a view": (lambda x: x[1:].data, False),
    "data of detach": (lambda x: x.detach().data, False),
    "detach of data": (lambda x: x.data.detach(), False),
    "a window of data": (lambda x: x.data.unfold(0, 2, 2)[1], False),
    "part of data": (lambda x: x.data.split(2)[1], False),
}

FORMS: dict[str, Callable[[Any], Any]] = {
    "add_": lambda t: t.add_(1),
    "+=": lambda t: t.__iadd__(1),
    "copy_": lambda t: t.copy_(t + 1),
    "zero_": lambda t: t.zero_(),
    "setitem": lambda t: t.__setitem__(0, 5),
    "setitem of a part": lambda t: t.__setitem__((..., slice(None)), 5),
    "index_fill_": lambda t: t.index_fill_(0, (t == t).nonzero()[:1, 0], 2),
    "normal_": lambda t: t.normal_(),
    "masked_fill_": lambda t: t.masked_fill_(t == t, 1),
}


@both
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", PLACES)
def test_a_write_is_noticed(place: str, form: str, lib: Any) -> None:
    where, noticed = PLACES[place]
    w, x = lib.ones(4, requires_grad=True), lib.zeros(4)
    y = (w * x).sum()
    FORMS[form](where(x))
    assert (x._version > 0) is noticed
    if noticed:
        with pytest.raises(RuntimeError, match="version"):
            y.backward()
    else:
        y.backward()
        assert w.grad.tolist() == x.tolist()  # the elements that are there now


@both
def test_data_counts_its_own_writes(lib: Any) -> None:
    x = lib.zeros(3)
    d = x.data
    x.add_(1)
    d.add_(1)
    view, plain = d[0], d.detach()
    view.add_(1)
    plain.add_(1)
    assert (x._version, d._version, view._version, plain._version) == (1, 3, 3, 3)
    assert (x.data._version, d.data._version) == (0, 0)

    w = lib.ones(3, requires_grad=True)
    y = (w * d).sum()
    x.add_(1)
    x.data.add_(1)
    y.backward(retain_graph=True)
    view.add_(1)
    with pytest.raises(RuntimeError, match="version"):
        y.backward()


@both
def test_new_data_keeps_the_count(lib: Any) -> None:
    x, y = lib.zeros(3, requires_grad=True), lib.tensor([1.0, 1.0])
    with lib.no_grad():
        x.add_(1)
        x.add_(1)
    y.add_(1)
    x.data = y
    assert (x._version, y._version) == (2, 1)
    with lib.no_grad():
        x.add_(1)
    x.detach().add_(1)
    assert (x._version, y._version, y.tolist()) == (4, 1, [4, 4])

    loss = (x * x).sum()
    x.data = lib.ones(2).add_(4).add_(0)
    loss.backward()
    assert x.grad.tolist() == [10, 10]
    x.data.sub_(x.grad)
    assert x.tolist() == [-5, -5] and x._version == 4


@both
def test_a_history_over_data(lib: Any) -> None:
    d = lib.ones(3).data.requires_grad_()
    y = d.exp()
    y.sum().backward()
    with lib.no_grad():
        d[1:].sub_(d.grad[1:])
    assert d.is_leaf and d._version == 1
    z = d * 1
    first = z[0]
    z.mul_(2)
    assert first.grad_fn is not None and first._base is z
    lib.autograd.grad(z.sum(), d)


@both
def test_complex_data(lib: Any) -> None:
    x = lib.zeros(3, dtype=lib.complex64)
    d = x.data
    d.normal_()
    lib.view_as_real(d).add_(1)
    d.real.add_(1)
    d.imag = 1
    assert (x._version, d._version) == (0, 4)
    assert x.imag.tolist() == [1, 1, 1]


@both
def test_a_wrapper_found_by_a_weak_reference_keeps_the_count(lib: Any) -> None:
    holder = [lib.zeros(2).data]
    holder[0].add_(1)
    found: Any = weakref.ref(holder[0])()
    holder.clear()
    gc.collect()
    found.add_(1)
    assert found._version == 2


@both
def test_inference_tensors_count_nothing(lib: Any) -> None:
    with lib.inference_mode():
        x = lib.zeros(2)
        x.data.add_(1)
        x.data = lib.ones(3)
        assert x.tolist() == [1, 1, 1]
        with pytest.raises(RuntimeError, match="version counter"):
            assert x.data._version

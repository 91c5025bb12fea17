"""Views of another dtype: shared memory, gradients through in-place writes, programs."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.autograd import gradcheck, gradgradcheck


def _complex(*shape: int) -> Any:
    return weft.randn(*shape, dtype=weft.complex128, requires_grad=True)


def _real(*shape: int) -> Any:
    return weft.randn(*shape, dtype=weft.float64, requires_grad=True)


def _write_parts(z: Any) -> Any:
    y = z * 1
    weft.view_as_real(y)[0].mul_(2).sin_()
    return y * y


def _write_real_and_imaginary(z: Any) -> Any:
    y = z * 1
    y.imag.mul_(2)
    y.real.exp_()
    return weft.view_as_real(y) * y.real.unsqueeze(-1)


def _write_through_a_transposed_view(z: Any) -> Any:
    y = (z * 1).t()
    weft.view_as_real(y)[..., 0].mul_(3)
    return y * y.conj()


def _write_numbers(r: Any) -> Any:
    y = r * 1
    weft.view_as_complex(y).mul_(1 + 2j).exp_()
    return y * y


def _write_part_of_the_numbers(r: Any) -> Any:
    y = r * 1
    weft.view_as_complex(y[1:])[..., :1].mul_(1 - 2j)
    return y.sin() * y


def _write_as_other_dtype(r: Any) -> Any:
    y = r * 1
    y.view(weft.complex128).mul_(2j)
    return y.exp()


def _write_base_under_a_view(z: Any) -> Any:
    y = z * 1
    parts = weft.view_as_real(y)
    y.mul_(2 + 1j)
    return parts * parts


_CASES: list[tuple[Any, Any]] = [
    (_write_parts, lambda: _complex(3, 2)),
    (_write_real_and_imaginary, lambda: _complex(2, 2)),
    (_write_base_under_a_view, lambda: _complex(3)),
    (_write_numbers, lambda: _real(2, 3, 2)),
    (_write_part_of_the_numbers, lambda: _real(3, 2, 2)),
    (_write_as_other_dtype, lambda: _real(2, 4)),
    (lambda z: weft.view_as_real(z), lambda: _complex(2, 2)),
    (lambda z: z.real * z.imag, lambda: _complex(3)),
    (lambda r: weft.view_as_complex(r), lambda: _real(3, 2)),
    (lambda z: z.view(weft.float64), lambda: _complex(2, 2)),
]


@pytest.mark.parametrize("place", range(len(_CASES)))
def test_gradients_pass_views_and_writes(place: int) -> None:
    weft.manual_seed(place)
    function, make = _CASES[place]
    argument = make()
    assert gradcheck(function, [argument])
    assert gradgradcheck(function, [argument])


@pytest.mark.parity
@pytest.mark.parametrize("place", range(5))
def test_gradients_equal_torch(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    function, make = _CASES[place]
    weft.manual_seed(place)
    start = make().detach().numpy()
    results = []
    for lib in (weft, torch):
        monkeypatch.setitem(globals(), "weft", lib)
        leaf = lib.tensor(start, requires_grad=True)
        output = function(leaf)
        output.abs().sum().backward()
        results.append((output.tolist(), leaf.grad.tolist()))
    monkeypatch.undo()
    for ours, theirs in zip(*results):
        weft.testing.assert_close(weft.tensor(ours), weft.tensor(theirs))


def test_versions_are_shared() -> None:
    z = weft.ones(2, dtype=weft.complex64, requires_grad=True) * 1
    result = (z * z).abs().sum()
    weft.view_as_real(z).mul_(2)
    with pytest.raises(RuntimeError, match="changed in place"):
        result.backward()
    leaf = weft.ones(2, dtype=weft.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf that requires grad"):
        leaf.real.mul_(2)
    with weft.no_grad():
        leaf.real.mul_(2)
    assert leaf.tolist() == [2, 2]


def test_memory_is_shared_and_refusals() -> None:
    z = weft.tensor([[1 + 2j, 3 + 4j, 5j], [6 + 1j, 7, 8 - 1j]]).t()
    pairs = weft.view_as_real(z)
    assert pairs.shape == (3, 2, 2) and pairs.data_ptr() == z.data_ptr()
    pairs[0, 1, 1] = 9
    assert z[0, 1].item() == 6 + 9j
    back = weft.view_as_complex(pairs)
    back[2, 0] = 1
    assert z[2, 0].item() == 1
    x = weft.ones(2)
    assert x.real is x
    for make, text in (
        (lambda: weft.view_as_complex(weft.zeros(2, 2).t()), "expected stride 1 in the last dim"),
        (lambda: weft.view_as_complex(weft.zeros(3, 2, dtype=weft.int32)), "float32 or float64"),
        (lambda: weft.view_as_complex(weft.zeros(5)[1:3]), "an even storage offset, got 1"),
        (lambda: weft.view_as_complex(weft.zeros(3, 3)[:, :2]), "expected even strides, got 3"),
        (lambda: weft.view_as_real(x), "view_as_real: expected a complex tensor"),
        (lambda: x.imag, "imag: expected a complex tensor"),
        (lambda: weft.zeros(3).view(weft.float64), "view: expected a size of the last dim"),
    ):
        with pytest.raises(RuntimeError, match=text):
            make()


@weft.jit.script
def _scripted(z: weft.Tensor, x: weft.Tensor) -> tuple[weft.Tensor, weft.Tensor]:
    y = z * 2
    y.real.mul_(3)
    bits = x.view(weft.int32)
    bits += 1
    pairs = weft.view_as_real(y)
    whole = weft.view_as_complex(pairs) + weft.imag(y)
    return whole, x * 1


def test_programs_view_other_dtypes() -> None:
    z = weft.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    x = weft.tensor([1.0, 2.0])
    for _ in range(3):  # interpreted, fused, native
        given = x.clone()
        whole, changed = _scripted(z, given)
        assert whole.tolist() == [6 + 4j + 4, 18 - 2j - 2]
        assert changed.tolist() == given.tolist() and given.view(weft.int32).tolist() == [
            bits + 1 for bits in x.view(weft.int32).tolist()
        ]
        z.grad = None
        whole.abs().sum().backward()
        assert z.grad is not None

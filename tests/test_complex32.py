"""complex32: two float16 parts, computed in complex64 and rounded once at the end."""

from __future__ import annotations

import copy
import io
import math
import pickle

import numpy as np
import pytest

import weft

VALUES = [1 + 2j, 0.1 - 3j, -0.5 + 0j, 7j]


def numbers(values: list[complex] = VALUES) -> weft.Tensor:
    return weft.tensor(values, dtype=weft.complex32)


def test_a_dtype() -> None:
    kind = weft.complex32
    assert kind is weft.chalf and repr(kind) == "torch.complex32" and kind.itemsize == 4
    assert kind.is_complex and kind.is_signed and not kind.is_floating_point
    assert kind.to_real() is weft.float16 and weft.float16.to_complex() is kind
    assert weft.bfloat16.to_complex() is weft.complex64 and kind.to_complex() is kind
    assert weft.finfo(kind).dtype == "float16"
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert numbers().type() == "torch.ComplexHalfTensor"


def test_elements() -> None:
    x = numbers()
    assert x.tolist() == [1 + 2j, complex(float(np.float16(0.1)), -3), -0.5 + 0j, 7j]
    assert x[0].item() == 1 + 2j and complex(x[3]) == 7j
    assert repr(x[:2]) == "tensor([1.0000+2.j, 0.1000-3.j], dtype=torch.complex32)"
    with pytest.raises(RuntimeError, match="expected a value that fits in complex32"):
        weft.full((1,), 1e6, dtype=weft.complex32)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        *((name, "complex32") for name in ("bool", "uint8", "int64", "float16", "complex32")),
        *((name, "complex64") for name in ("bfloat16", "float32", "complex64")),
        *((name, "complex128") for name in ("float64", "complex128")),
    ],
)
def test_promotion(other: str, expected: str) -> None:
    found = getattr(weft, expected)
    assert weft.promote_types(weft.complex32, getattr(weft, other)) is found
    assert (numbers() + weft.ones(4, dtype=getattr(weft, other))).dtype is found


def test_promotion_of_numbers() -> None:
    assert (weft.ones(2).half() * 1j).dtype is weft.complex32
    assert (weft.ones(2).bfloat16() * 1j).dtype is weft.complex64
    assert weft.result_type(weft.ones(2).half(), 1j) is weft.complex32
    assert (numbers() * 2.5).dtype is weft.complex32


@pytest.mark.filterwarnings("ignore:to. expected a complex dtype")
@pytest.mark.parametrize("kind", [each for each in weft._C._dtypes if not each.is_complex])
def test_conversions_of_real_dtypes(kind: weft.dtype) -> None:
    x = weft.tensor([0.0, 1.0, 1.0]).to(kind)
    z = x.to(weft.complex32)
    assert z.tolist() == [0, 1, 1] and weft.equal(z.to(kind), x)


def test_conversions_round_each_part_once() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(100, 2)) * 10.0 ** rng.integers(-9, 6, size=(100, 2))
    with np.errstate(over="ignore"):
        rounded = wide.astype(np.float32).astype(np.float16)
    z = weft.view_as_complex(weft.from_numpy(wide)).to(weft.complex32)
    assert np.array_equal(weft.view_as_real(z).numpy(), rounded)
    parts = weft.from_numpy(np.stack([halves, halves[::-1]], -1))
    there = weft.view_as_complex(parts).to(weft.complex64)
    back = weft.view_as_real(there.chalf()).numpy()
    assert np.array_equal(weft.view_as_real(there).numpy(), parts.float().numpy(), equal_nan=True)
    assert np.array_equal(back, parts.numpy(), equal_nan=True)


def test_parts_are_views() -> None:
    x = numbers()
    assert x.real.dtype is x.imag.dtype is weft.float16
    assert x.imag.data_ptr() == x.data_ptr() + 2
    x.imag[0] = 5
    assert x[0].item() == 1 + 5j
    assert weft.view_as_real(x).shape == (4, 2) and x.view(weft.float16).shape == (8,)
    assert weft.equal(x.view(weft.float16).view(weft.complex32), x)
    assert weft.view_as_complex(weft.ones(3, 2).half()).dtype is weft.complex32
    assert weft.complex(x.real, x.imag).tolist() == x.tolist()
    assert weft.ones(2).chalf().tolist() == [1, 1]


@pytest.mark.parametrize(
    "name", ["neg", "conj", "sgn", "exp", "sqrt", "sum", "cumsum", "cumprod", "prod", "mean"]
)
def test_computes_in_complex64(name: str) -> None:
    x = numbers()
    given = (0,) if name.startswith("cum") else ()
    found = getattr(weft, name)(x, *given)
    exact = getattr(weft, name)(x.cfloat(), *given)
    assert found.dtype is weft.complex32
    assert weft.allclose(found.cfloat(), exact, rtol=2e-3)


def test_arithmetic() -> None:
    x, y = numbers(), numbers(VALUES[::-1])
    for one in (lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a / b, weft.outer, weft.dot):
        assert weft.equal(one(x, y), one(x.cfloat(), y.cfloat()).chalf())
    assert weft.equal(x[:, None] * y, weft.outer(x, y))
    assert x.abs().dtype is weft.float16 and x.abs()[0] == np.float16(math.sqrt(5))
    assert (x == numbers()).all() and weft.equal(x, numbers()) and not (x != x).any()
    assert x.clone().add_(1j)[3] == 8j and weft.isfinite(x).all()


def test_moves() -> None:
    x = numbers()
    assert weft.cat([x, x.flip(0)])[4:].tolist() == x.tolist()[::-1]
    assert x[weft.tensor([3, 0])].tolist() == [7j, 1 + 2j] and x[x == 7j].tolist() == [7j]
    assert weft.nonzero(weft.tensor([0, 1j, -0.0], dtype=weft.complex32)).tolist() == [[1]]
    places = (weft.tensor([0, 0]),)
    assert x.index_put(places, x[:2], accumulate=True)[0].cfloat() == x[:1].sum() * 2 + x[1]
    assert x.view(2, 2).t().contiguous()[0, 1] == x[2]
    assert weft.where(weft.tensor([True, False, True, False]), x, 0)[1] == 0


def test_factories() -> None:
    kind = {"dtype": weft.complex32}
    assert weft.zeros(2, **kind).tolist() == [0, 0] and weft.ones(2, **kind).tolist() == [1, 1]
    assert weft.full((1,), 2 - 1j, **kind).item() == 2 - 1j and weft.eye(2, **kind)[1, 1] == 1
    assert weft.linspace(0, 1j, 3, **kind).tolist() == [0, 0.5j, 1j]
    weft.manual_seed(0)
    x = weft.randn(2000, **kind)
    assert abs(x.abs().square().mean().item() - 1) < 0.1
    assert weft.rand(50, **kind).real.min() >= 0 and weft.empty(3, device="meta", **kind).is_meta
    assert weft.set_default_dtype(weft.float16) is None
    try:
        assert weft.tensor(1j).dtype is weft.complex32
    finally:
        weft.set_default_dtype(weft.float32)


def test_gradients() -> None:
    x, y = numbers().requires_grad_(), weft.ones(4, dtype=weft.float16, requires_grad=True)
    (x * y * 2j).abs().sum().backward()
    assert x.grad.dtype is weft.complex32 and y.grad.dtype is weft.float16
    wide = numbers().cfloat().requires_grad_()
    (wide * 2j).abs().sum().backward()
    assert weft.allclose(x.grad.cfloat(), wide.grad, rtol=2e-3)


def test_files_and_other_libraries(tmp_path: object) -> None:
    x = numbers()
    file = io.BytesIO()
    weft.save(x, file)
    file.seek(0)
    for found in (weft.load(file), pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert found.dtype is weft.complex32 and weft.equal(found, x)
    assert weft.equal(weft.from_dlpack(x), x)
    with pytest.raises(TypeError, match=r"got complex32; use cfloat\(\)\.numpy\(\)"):
        x.numpy()
    with pytest.raises(RuntimeError, match="at least 32 bits, got complex32"):
        weft.fft.fft(x)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_files_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    for save, load in ((weft, torch), (torch, weft)):
        file = io.BytesIO()
        save.save(save.tensor(VALUES, dtype=save.complex32), file)
        file.seek(0)
        assert load.load(file).tolist() == numbers().tolist()


def test_programs() -> None:
    @weft.jit.script
    def f(x):
        return (x.chalf() * 2j).to(weft.complex32)

    for _ in range(3):
        assert weft.equal(f(weft.ones(3)), weft.full((3,), 2j, dtype=weft.complex32))
    traced = weft.jit.trace(lambda x: x.chalf() + 1, (weft.ones(2),))
    assert traced(weft.ones(2)).dtype is weft.complex32

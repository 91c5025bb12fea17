"""weft.fft, windows and short-time transforms against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import weft
from weft.autograd import gradcheck, gradgradcheck
from weft.signal import windows

pytestmark = pytest.mark.threads

RNG = np.random.default_rng(21)
REAL = RNG.normal(size=(3, 4, 6))
COMPLEX = REAL + 1j * RNG.normal(size=(3, 4, 6))
NORMS = (None, "backward", "ortho", "forward")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_dimension(name: str, norm: str | None) -> None:
    x = REAL if name in ("rfft", "ihfft") else COMPLEX
    for n, dim in ((None, -1), (5, 0), (7, 1), (2, -1)):
        got = getattr(weft.fft, name)(weft.from_numpy(x), n, dim, norm)
        expected = getattr(np.fft, name)(x, n, dim, norm)
        np.testing.assert_allclose(got.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    "name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"]
)
def test_several_dimensions(name: str, norm: str | None) -> None:
    x = REAL if name.startswith("rfft") else COMPLEX
    for s, dim in ((None, (-2, -1)), ((5, 3), (0, 2)), ((4, 7), (1, 2))):
        got = getattr(weft.fft, name)(weft.from_numpy(x), s, dim, norm)
        expected = getattr(np.fft, name)(x, s, dim, norm)
        np.testing.assert_allclose(got.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lines_however_they_lie(dtype: type) -> None:
    # Fewer and more than a group, in the last dimension and before it, short and long, even and
    # odd, and of a prime that has no stage.
    for shape, dim in (
        ((7, 6), 1),
        ((37, 64), 1),
        ((2, 40, 21), 1),
        ((45, 5), 0),
        ((3, 600), 1),
        ((333,), 0),
        ((521, 2), 0),
        ((20, 67), 1),
        ((1, 1), 1),
        ((20, 9000), 1),
    ):
        x = RNG.normal(size=shape).astype(dtype)
        z = (x + 1j * RNG.normal(size=shape)).astype(np.result_type(dtype, np.complex64))
        n = shape[dim]
        exact = np.fft.fft(z.astype(np.complex128), axis=dim)
        half = np.fft.rfft(x.astype(np.float64), axis=dim)
        for got, expected in (
            (weft.fft.fft(weft.from_numpy(z), dim=dim), exact),
            (weft.fft.ifft(weft.from_numpy(exact.astype(z.dtype)), dim=dim), z),
            (weft.fft.rfft(weft.from_numpy(x), dim=dim), half),
            (weft.fft.irfft(weft.from_numpy(half.astype(z.dtype)), n, dim), x),
        ):
            error = np.abs(got.numpy() - expected) ** 2
            size = np.mean(np.abs(expected) ** 2)
            assert np.sqrt(error.mean() / size) < 4 * np.finfo(dtype).eps, (shape, dim)
    assert weft.fft.rfft(weft.ones(0, 4)).shape == (0, 3)


def test_hermitian_transforms_of_several_dimensions() -> None:
    x = weft.from_numpy(COMPLEX)
    by_hand = weft.fft.hfft(weft.fft.fft(x, dim=1), dim=2)
    np.testing.assert_allclose(weft.fft.hfft2(x).numpy(), by_hand.numpy(), atol=1e-10)
    back = weft.fft.ihfft2(weft.fft.hfft2(x, (4, 9)))
    np.testing.assert_allclose(
        weft.fft.hfft2(back, (4, 9)).numpy(), weft.fft.hfft2(x, (4, 9)).numpy(), atol=1e-10
    )
    assert tuple(weft.fft.hfftn(x).shape) == (3, 4, 10)
    assert tuple(weft.fft.ihfftn(weft.from_numpy(REAL)).shape) == (3, 4, 4)


@pytest.mark.parametrize("n", [5, 6])
def test_gradients(n: int) -> None:
    x = weft.from_numpy(RNG.normal(size=(2, n))).requires_grad_()
    weights = weft.from_numpy(
        RNG.normal(size=(2, n // 2 + 1)) + 1j * RNG.normal(size=(2, n // 2 + 1))
    )

    def spectrum(t: weft.Tensor) -> weft.Tensor:
        return weft.real(weft.fft.rfftn(t, norm="ortho") * weights)

    def there_and_back(t: weft.Tensor) -> weft.Tensor:
        return weft.fft.irfft(weft.fft.rfft(t) * weights, n + 1)

    def whole(t: weft.Tensor) -> weft.Tensor:
        return weft.fft.ifft2(weft.fft.fft(t, n + 2, norm="forward")).abs()

    for function in (spectrum, there_and_back, whole):
        assert gradcheck(function, [x])
    assert gradgradcheck(lambda t: there_and_back(t).square(), [x])


def test_dtypes_frequencies_and_errors() -> None:
    assert weft.fft.fft(weft.arange(4)).dtype == weft.complex64
    assert weft.fft.irfft(weft.ones(3)).dtype == weft.float32
    np.testing.assert_allclose(weft.fft.fftfreq(7, 0.5).numpy(), np.fft.fftfreq(7, 0.5), rtol=1e-6)
    np.testing.assert_allclose(
        weft.fft.rfftfreq(6, 2.0).numpy(), np.fft.rfftfreq(6, 2.0), rtol=1e-6
    )
    for frequencies in (weft.fft.fftfreq, weft.fft.rfftfreq):
        with pytest.raises(RuntimeError, match="fftfreq: expected a floating or complex dtype"):
            frequencies(4, dtype=weft.int64)
    x = weft.from_numpy(REAL)
    np.testing.assert_array_equal(
        weft.fft.fftshift(x, (0, 2)).numpy(), np.fft.fftshift(REAL, (0, 2))
    )
    np.testing.assert_array_equal(weft.fft.ifftshift(x).numpy(), np.fft.ifftshift(REAL))
    for function, args, text in (
        (
            weft.fft.fft,
            (weft.ones(3).half(),),
            "fft: expected a dtype of at least 32 bits, got float16",
        ),
        (weft.fft.rfft, (weft.ones(3) * 1j,), "rfft: expected a real tensor"),
        (weft.fft.fft, (weft.ones(3), 0), "fft: expected n of at least 1"),
        (weft.fft.fft, (weft.ones(3), None, -1, "half"), "fft: expected norm backward, ortho"),
        (weft.fft.fftn, (weft.ones(3, 3), (1,), (0, 1)), "fftn: expected 2 sizes, got"),
        (weft.fft.fftn, (weft.ones(3, 3), None, (0, 0)), "fftn: expected different dims"),
        (weft.fft.irfft, (weft.ones(1),), "irfft: expected at least 1 entry"),
        (weft.fft.irfftn, (weft.ones(0, 3),), "irfftn: expected at least 1 entry"),
        (weft.fft.hfft2, (weft.ones(0, 3),), "hfftn: expected at least 1 entry"),
    ):
        with pytest.raises(RuntimeError, match=text):
            function(*args)


# ---- windows and short stretches ----


@pytest.mark.parametrize(
    ("name", "reference", "extra"),
    [
        ("hann", np.hanning, ()),
        ("hamming", np.hamming, ()),
        ("blackman", np.blackman, ()),
        ("bartlett", np.bartlett, ()),
        ("kaiser", np.kaiser, (12.0,)),
    ],
)
def test_windows(name: str, reference: Any, extra: Any) -> None:
    make, signal = getattr(weft, f"{name}_window"), getattr(windows, name)
    for length in (1, 2, 7, 8):
        expected = reference(length, *extra)
        options = {"dtype": weft.float64}
        np.testing.assert_allclose(make(length, False, **options).numpy(), expected, atol=1e-12)
        np.testing.assert_allclose(signal(length, **options).numpy(), expected, atol=1e-12)
        longer = reference(length + 1, *extra)[:-1]
        if length > 1:
            np.testing.assert_allclose(make(length, **options).numpy(), longer, atol=1e-12)
            np.testing.assert_allclose(
                signal(length, sym=False, **options).numpy(), longer, atol=1e-12
            )
    with pytest.raises(RuntimeError, match=f"{name}_window: expected window_length >= 0, got -1"):
        make(-1)


def test_the_other_windows() -> None:
    k = np.arange(6.0)
    for got, expected in (
        (windows.gaussian(6, std=1.5), np.exp(-0.5 * ((k - 2.5) / 1.5) ** 2)),
        (windows.exponential(6, tau=2.0), np.exp(-np.abs(k - 2.5) / 2)),
        (windows.cosine(6), np.sin(np.pi * (k + 0.5) / 6)),
        (windows.general_hamming(6, alpha=0.6), 0.6 - 0.4 * np.cos(2 * np.pi * k / 5)),
    ):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)
    assert windows.nuttall(7)[3].item() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="gaussian: expected std > 0, got 0"):
        windows.gaussian(3, std=0)


def test_stft_and_its_inverse() -> None:
    signal = RNG.normal(size=(2, 40))
    window = weft.hann_window(8, dtype=weft.float64)
    x = weft.from_numpy(signal).requires_grad_()
    spectra = weft.stft(x, 8, 4, window=window, return_complex=True)
    padded = np.pad(signal, [(0, 0), (4, 4)], "reflect")
    frames = np.stack([padded[:, s : s + 8] for s in range(0, 41, 4)], 1) * window.numpy()
    np.testing.assert_allclose(
        spectra.detach().numpy(), np.fft.rfft(frames).transpose(0, 2, 1), atol=1e-12
    )
    back = weft.istft(spectra, 8, 4, window=window, length=40)
    np.testing.assert_allclose(back.detach().numpy(), signal, atol=1e-12)
    assert gradcheck(lambda t: weft.stft(t, 8, 4, window=window, return_complex=True).abs(), [x])
    parts = x.stft(8, 4, window=window, return_complex=False)
    assert tuple(parts.shape) == (2, 5, 11, 2)
    two_sided = weft.stft(x, 8, 4, window=window, onesided=False, return_complex=True)
    np.testing.assert_allclose(
        weft.istft(two_sided, 8, 4, window=window).detach().numpy(), signal, atol=1e-12
    )
    with pytest.raises(RuntimeError, match="stft: expected return_complex as True or False"):
        weft.stft(x, 8)
    with pytest.raises(RuntimeError, match="istft: expected windows that leave no gap"):
        weft.istft(spectra, 8, 8, window=window, center=False)
    assert math.isclose(weft.stft(x, 8, normalized=True, return_complex=True)[0, 0, 0].abs().item(),
                        weft.stft(x, 8, return_complex=True)[0, 0, 0].abs().item() / 8**0.5)  # fmt: skip

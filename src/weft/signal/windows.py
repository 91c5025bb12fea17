"""Windows of M entries, symmetric, or (sym=False) periodic: `torch.signal.windows`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from weft import _C
from weft._C import Tensor


def _made(
    name: str, m: int, dtype: Any, layout: Any, requires_grad: bool,
    shape: Callable[[Tensor], Tensor],
) -> Tensor:  # fmt: skip
    """shape(k) over k = 0, 1, ..., computed in float64; k counts in parts of the span."""
    kind = _C.get_default_dtype() if dtype is None else dtype
    if layout not in (None, _C.strided):
        raise ValueError(f"{name}: expected the layout torch.strided, got {layout}")
    if m < 0 or kind not in (_C.float32, _C.float64):
        raise ValueError(
            f"{name}: expected M >= 0 and dtype float32 or float64, got {m} and {kind}"
        )
    positions = _C.arange(m, dtype=_C.float64)
    window = _C.ones(m, dtype=kind) if m <= 1 else shape(positions).to(kind)
    return window.requires_grad_() if requires_grad else window


def _span(m: int, sym: bool) -> int:
    return m - 1 if sym else m


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None,
    layout: Any = _C.strided, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """exp(-|k - center| / tau).

    Shape [M], float32 or the given dtype, as of all windows. sym=False leaves out the last entry of
    a window of M + 1. Raises ValueError for a negative M, for tau <= 0, and for a `center` beside
    sym=True.

    >>> weft.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    if tau <= 0:
        raise ValueError(f"exponential: expected tau > 0, got {tau}")
    if sym and center is not None:
        raise ValueError(f"exponential: expected center=None with sym, got {center}")
    middle = _span(M, sym) / 2 if center is None else center
    return _made("exponential", M, dtype, layout, requires_grad,
                 lambda k: (-(k - middle).abs() / tau).exp())  # fmt: skip


def cosine(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = _C.strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Half a sine wave.

    Shape, options and errors are those of exponential.

    >>> weft.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    count = M if sym else M + 1
    return _made("cosine", M, dtype, layout, requires_grad,
                 lambda k: ((k + 0.5) * (math.pi / count)).sin())  # fmt: skip


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = _C.strided,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """exp(-((k - centre) / std)^2 / 2).

    Shape, options and errors are those of exponential; std is above 0.

    >>> weft.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    if std <= 0:
        raise ValueError(f"gaussian: expected std > 0, got {std}")
    middle = _span(M, sym) / 2
    return _made("gaussian", M, dtype, layout, requires_grad,
                 lambda k: (-0.5 * ((k - middle) / std).square()).exp())  # fmt: skip


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = _C.strided,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """i0(beta * sqrt(1 - x^2)) / i0(beta) for x over [-1, 1].

    Shape, options and errors are those of exponential.

    >>> weft.signal.windows.kaiser(3, beta=1.0)
    tensor([0.7898, 1.0000, 0.7898])
    """
    if beta < 0:
        raise ValueError(f"kaiser: expected beta >= 0, got {beta}")

    def shape(k: Tensor) -> Tensor:
        arch = (1 - (2 * k / _span(M, sym) - 1).square()).clamp_min(0).sqrt()
        return (arch * beta).i0() / _C.tensor(float(beta), dtype=_C.float64).i0()

    return _made("kaiser", M, dtype, layout, requires_grad, shape)


def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None, layout: Any = _C.strided,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """a[0] - a[1] cos(x) + a[2] cos(2 x) - ..., x over [0, 2 pi].

    Shape, options and errors are those of exponential.

    >>> weft.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    weights = list(a)
    if not weights:
        raise ValueError("general_cosine: expected at least one coefficient, got none")

    def shape(k: Tensor) -> Tensor:
        angle = k * (2 * math.pi / _span(M, sym))
        terms = ((-1) ** i * w * (angle * i).cos() for i, w in enumerate(weights))
        result: Any = 0
        for term in terms:
            result = result + term
        return result

    return _made("general_cosine", M, dtype, layout, requires_grad, shape)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """alpha - (1 - alpha) cos(x).

    Shape, options and errors are those of exponential.

    >>> weft.signal.windows.general_hamming(3, alpha=0.75)
    tensor([0.5000, 1.0000, 0.5000])
    """
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_hamming with 0.54.

    Shape, options and errors are those of exponential.

    >>> weft.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_hamming with 0.5.

    Shape, options and errors are those of exponential.

    >>> weft.signal.windows.hann(4, sym=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_cosine of Blackman's coefficients.

    Shape, options and errors are those of exponential.

    >>> weft.signal.windows.blackman(5).abs()
    tensor([1.3878e-17, 3.4000e-01, 1.0000e+00, 3.4000e-01, 1.3878e-17])
    """
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_cosine of Nuttall's coefficients, as Blackman and Nuttall's window has them.

    Shape, options and errors are those of exponential.

    >>> weft.signal.windows.nuttall(3)
    tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)


def bartlett(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = _C.strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A triangle.

    Shape, options and errors are those of exponential.

    >>> weft.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _made("bartlett", M, dtype, layout, requires_grad,
                 lambda k: 1 - (2 * k / _span(M, sym) - 1).abs())  # fmt: skip

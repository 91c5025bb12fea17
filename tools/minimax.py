"""Computes the polynomials of src/weft/_kernels/coefficients.py (needs mpmath; run by hand).

    python tools/minimax.py > src/weft/_kernels/coefficients.py

Each polynomial minimises the greatest weighted error on an interval: Remez' exchange algorithm in
60-digit arithmetic. The weight makes it the relative error of the function that is built from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from textwrap import wrap

from mpmath import mp, mpf

mp.dps = 60
Function = Callable[[mpf], mpf]


def remez(f: Function, weight: Function, low: mpf, high: mpf, degree: int) -> tuple[list[mpf], mpf]:
    """Coefficients (constant first) of the best polynomial, and its greatest weighted error."""
    count = degree + 2
    points = [
        (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (i + mpf(1) / 2) / count)
        for i in range(count)
    ]
    grid = [
        (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (i + mpf(1) / 2) / 800)
        for i in range(800)
    ]
    values = [(x, f(x), weight(x)) for x in grid]
    for _ in range(12):
        rows = [
            [x**k for k in range(degree + 1)] + [(-1) ** i / weight(x)]
            for i, x in enumerate(points)
        ]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([f(x) for x in points]))
        coefficients, level = list(solution[: degree + 1]), abs(solution[degree + 1])
        errors = [(x, (mp.polyval(coefficients[::-1], x) - y) * w) for x, y, w in values]
        points, worst = _extrema(errors, count)
        if worst <= level * mpf("1.001"):
            break
    return coefficients, worst


def _extrema(errors: list[tuple[mpf, mpf]], count: int) -> tuple[list[mpf], mpf]:
    """The places of the greatest error in each stretch of one sign; the `count` best in a row."""
    peaks: list[tuple[mpf, mpf]] = []
    for x, e in errors:
        if peaks and (peaks[-1][1] > 0) == (e > 0):
            if abs(e) > abs(peaks[-1][1]):
                peaks[-1] = (x, e)
        else:
            peaks.append((x, e))
    while len(peaks) > count:
        peaks.pop(0 if abs(peaks[0][1]) < abs(peaks[-1][1]) else -1)
    assert len(peaks) == count, f"remez: expected {count} alternations, got {len(peaks)}"
    return [x for x, _ in peaks], max(abs(e) for _, e in peaks)


def taylor_safe(f: Function, limit: Function) -> Function:
    """f away from 0, its limit near it."""
    return lambda x: f(x) if abs(x) > mpf("1e-12") else limit(x)


HALF_LN2 = mp.log(2) / 2 * mpf("1.002")
LOG_LOW, LOG_HIGH = mp.sqrt(mpf(1) / 2) - 1, mp.sqrt(2) - 1
ATANH_Z = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.001")
SIN_Z = (mp.pi / 4) ** 2 * mpf("1.004")
ATAN_Z = mp.tan(mp.pi / 8) ** 2 * mpf("1.001")
TANH_Z = mpf("0.6") ** 2 * mpf("1.001")
ERF_SPLIT, ERF_END = mpf("0.92"), mpf("3.95")


def exp_tail(x: mpf) -> mpf:
    return (mp.expm1(x) - x) / x**2 if abs(x) > mpf("1e-12") else mpf(1) / 2 + x / 6


def root(f: Function) -> Function:
    """(f(s) / s - 1) / s^2 as a function of z = s^2, for an odd function f with f'(0) = 1."""

    def apply(z: mpf) -> mpf:
        s = mp.sqrt(max(z, mpf("1e-24")))
        return (f(s) / s - 1) / s**2

    return apply


def relative(f: Function, power: int) -> Function:
    """Weight of a polynomial in z that is multiplied by s^power to give f(s)."""
    return lambda z: mp.sqrt(max(z, mpf("1e-24"))) ** power / f(mp.sqrt(max(z, mpf("1e-24"))))


def log_tail(x: mpf) -> mpf:
    return (mp.log1p(x) - x + x * x / 2) / x**3 if abs(x) > mpf("1e-12") else mpf(1) / 3


def atanh_tail(z: mpf) -> mpf:
    s = mp.sqrt(max(z, mpf("1e-24")))
    return (2 * mp.atanh(s) / s - 2) / s**2


def exp2_tail(x: mpf) -> mpf:
    return mp.expm1(x * mp.log(2)) / x if x else mp.log(2)


def cos_tail(z: mpf) -> mpf:
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2 if z > mpf("1e-12") else mpf(1) / 24


def exp_weight(x: mpf) -> mpf:
    return (x * x + mpf("1e-6")) / mp.exp(x)


def exp2_weight(x: mpf) -> mpf:
    return (abs(x) + mpf("1e-9")) / mpf(2) ** x


def normal_tail(x: mpf) -> mpf:
    return mp.erfc(x / mp.sqrt(2)) / 2


def erf_tail(z: mpf) -> mpf:
    return mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1 if z > mpf("1e-24") else 2 / mp.sqrt(mp.pi) - 1


def erfc_slope(u: mpf) -> mpf:
    """(L(3/4 + u) - L(3/4)) / u for L = log2(erfc)."""
    u = u if abs(u) > mpf("1e-12") else mpf("1e-12")
    return mp.log(mp.erfc(u + mpf("0.75")) / mp.erfc(mpf("0.75")), 2) / u


def of_shepherd(t: mpf) -> mpf:
    """(1 + 2 a) erfc(a) exp(a^2) for t = (a - 3.75) / (a + 3.75)."""
    a = mpf("3.75") * (1 + t) / (1 - t)
    return (1 + 2 * a) * mp.erfc(a) * mp.exp(a * a)


def bessel(order: int) -> Function:
    """I_n(x) / x^n for z = x^2."""

    def apply(z: mpf) -> mpf:
        x = mp.sqrt(max(z, mpf("1e-24")))
        return mp.besseli(order, x) / x**order

    return apply


def bessel_tail(order: int) -> Function:
    """I_n(x) exp(-x) sqrt(x) for r = 1 / x."""

    def apply(r: mpf) -> mpf:
        if r < mpf("1e-6"):
            return (1 + (1 - 4 * order) * r / 8) / mp.sqrt(2 * mp.pi)
        return mp.besseli(order, 1 / r) * mp.exp(-1 / r) / mp.sqrt(r)

    return apply


def inverse_erf(w: mpf) -> mpf:
    y = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(y) / y if y > mpf("1e-20") else mp.sqrt(mp.pi) / 2


# Name, what it approximates, function, weight, interval, degree.
TABLES: list[tuple[str, str, Function, Function, mpf, mpf, int]] = [
    ("EXP_32", "(e^r - 1 - r) / r^2", exp_tail, exp_weight, -HALF_LN2, HALF_LN2, 4),
    (
        "EXPM1_32",
        "the same, for e^r - 1",
        exp_tail,
        lambda x: abs(x) + mpf("1e-9"),
        -HALF_LN2,
        HALF_LN2,
        5,
    ),
    ("EXP_64", "the same", exp_tail, exp_weight, -HALF_LN2, HALF_LN2, 9),
    (
        "EXPM1_64",
        "the same, for e^r - 1",
        exp_tail,
        lambda x: abs(x) + mpf("1e-9"),
        -HALF_LN2,
        HALF_LN2,
        10,
    ),
    ("EXP2_32", "(2^r - 1) / r", exp2_tail, exp2_weight, mpf("-0.501"), mpf("0.501"), 5),
    ("EXP2_40", "the same, to 40 bits", exp2_tail, exp2_weight, mpf("-0.501"), mpf("0.501"), 7),
    ("EXP2_64", "the same", exp2_tail, exp2_weight, mpf("-0.501"), mpf("0.501"), 10),
    (
        "LOG_32",
        "(log(1 + f) - f + f^2 / 2) / f^3",
        log_tail,
        lambda x: x * x + mpf("1e-6"),
        LOG_LOW,
        LOG_HIGH,
        7,
    ),
    (
        "LOG_40",
        "(log((1 + s) / (1 - s)) / s - 2) / z, z = s^2, to 40 bits",
        atanh_tail,
        lambda z: z + mpf("1e-12"),
        mpf(0),
        ATANH_Z,
        4,
    ),
    ("LOG_64", "the same", atanh_tail, lambda z: z + mpf("1e-12"), mpf(0), ATANH_Z, 6),
    ("SIN_32", "(sin r / r - 1) / z, z = r^2", root(mp.sin), relative(mp.sin, 3), mpf(0), SIN_Z, 2),
    ("SIN_64", "the same", root(mp.sin), relative(mp.sin, 3), mpf(0), SIN_Z, 6),
    (
        "COS_32",
        "(cos r - 1 + z / 2) / z^2, z = r^2",
        cos_tail,
        lambda z: z**2 + mpf("1e-12"),
        mpf(0),
        SIN_Z,
        2,
    ),
    ("COS_64", "the same", cos_tail, lambda z: z**2 + mpf("1e-12"), mpf(0), SIN_Z, 5),
    (
        "ATAN_32",
        "(atan t / t - 1) / z, z = t^2",
        root(mp.atan),
        relative(mp.atan, 3),
        mpf(0),
        ATAN_Z,
        4,
    ),
    ("ATAN_64", "the same", root(mp.atan), relative(mp.atan, 3), mpf(0), ATAN_Z, 11),
    (
        "ASIN_32",
        "(asin s / s - 1) / z, z = s^2",
        root(mp.asin),
        relative(mp.asin, 3),
        mpf(0),
        mpf("0.2505"),
        4,
    ),
    ("ASIN_64", "the same", root(mp.asin), relative(mp.asin, 3), mpf(0), mpf("0.2505"), 12),
    (
        "TANH_32",
        "(tanh x / x - 1) / z, z = x^2, x < 0.6",
        root(mp.tanh),
        relative(mp.tanh, 3),
        mpf(0),
        TANH_Z,
        5,
    ),
    ("TANH_64", "the same", root(mp.tanh), relative(mp.tanh, 3), mpf(0), TANH_Z, 13),
    (
        "ERF_32",
        "erf x / x - 1 in z = x^2, x < 0.92",
        erf_tail,
        lambda z: mpf(1),
        mpf(0),
        ERF_SPLIT**2 * mpf("1.001"),
        6,
    ),
    (
        "ERFC_32",
        "log2(erfc x), 0.92 <= x < 3.95",
        lambda x: mp.log(mp.erfc(x), 2),
        lambda x: mp.erfc(x),
        ERF_SPLIT,
        ERF_END,
        6,
    ),
    (
        "ERF_64",
        "erf x / x - 1 in z = x^2, x < 3/4",
        erf_tail,
        lambda z: mpf(1),
        mpf(0),
        mpf("0.5626"),
        10,
    ),
    (
        "ERFC_64",
        "log2(erfc(3/4 + u) / erfc(3/4)) / u, u up to 5.2",
        erfc_slope,
        lambda u: (u + mpf("1e-9")) * mp.erfc(u + mpf("0.75")),
        mpf(0),
        mpf("5.2"),
        17,
    ),
    (
        "ERFCX_32",
        "(1 + 2 a) erfc(a) exp(a^2) in t = (a - 3.75) / (a + 3.75), a up to 10.2",
        of_shepherd,
        lambda t: 1 / of_shepherd(t),
        mpf(-1),
        mpf("0.4624"),
        12,
    ),
    *(
        entry
        for n in (0, 1)
        for entry in (
            (
                f"BESSEL_I{n}",
                f"I_{n}(x) / x^{n} in z = x^2, x up to 8",
                bessel(n),
                lambda z, n=n: 1 / bessel(n)(z),
                mpf(0),
                mpf(64),
                10,
            ),
            (
                f"BESSEL_I{n}_TAIL",
                f"I_{n}(x) exp(-x) sqrt(x) in r = 1 / x, x from 8",
                bessel_tail(n),
                lambda r: mpf("2.5"),
                mpf(0),
                mpf("0.125"),
                8,
            ),
        )
    ),
    (
        "NORMAL_TAIL_32",
        "log2(erfc(x / sqrt 2) / 2), 0 <= x <= 5.6",
        lambda x: mp.log(normal_tail(x), 2),
        lambda x: mp.sqrt(normal_tail(x)),
        mpf(0),
        mpf("5.6"),
        9,
    ),
    (
        "ERFINV_CENTRE",
        "erfinv y / y in w - 3.125, w = -log(1 - y^2) up to 6.25",
        lambda x: inverse_erf(x + mpf("3.125")),
        lambda x: 1 / inverse_erf(x + mpf("3.125")),
        mpf("-3.125"),
        mpf("3.126"),
        12,
    ),
    (
        "ERFINV_TAIL_32",
        "erfinv y / y in sqrt w - 3.3, up to the last y before 1",
        lambda x: inverse_erf((x + mpf("3.3")) ** 2),
        lambda x: 1 / inverse_erf((x + mpf("3.3")) ** 2),
        mpf("-0.81"),
        mpf("0.81"),
        10,
    ),
    (
        "ERFINV_TAIL_64",
        "the same in sqrt w - 4.4",
        lambda x: inverse_erf((x + mpf("4.4")) ** 2),
        lambda x: 1 / inverse_erf((x + mpf("4.4")) ** 2),
        mpf("-1.91"),
        mpf("1.61"),
        9,
    ),
]


def written(name: str, values: Iterable[float]) -> str:
    """The source of a table of numbers."""
    text = " ".join(f"{value!r}," for value in values)
    lines = wrap(text, 96, break_on_hyphens=False)
    return "\n    ".join([f"{name} = (", *lines]) + "\n)  # fmt: skip"


def main() -> None:
    print('"""Minimax polynomials of the kernel language\'s functions, constant term first.\n')
    print('Made by tools/minimax.py (Remez algorithm); errors are greatest weighted ones.\n"""\n')
    for name, what, f, weight, low, high, degree in TABLES:
        coefficients, error = remez(f, weight, low, high, degree)
        print(f"\n# {what}; error {mp.nstr(error, 3)}")
        print(written(name, map(float, coefficients)))


if __name__ == "__main__":
    main()

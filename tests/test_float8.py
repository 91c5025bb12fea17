"""float8_e4m3fn: one row of the dtype table and its conversions."""

import itertools
import math
import pickle

import pytest

import weft
from weft.serialization import safetensors

F8 = weft.float8_e4m3fn
BITS = weft.arange(256, dtype=weft.uint8)


def value_of(bits):
    """The number that eight bits stand for, by the definition of the format."""
    sign, exponent, mantissa = -1.0 if bits & 0x80 else 1.0, bits >> 3 & 15, bits & 7
    if exponent == 15 and mantissa == 7:
        return math.nan
    return sign * (
        2.0**-9 * mantissa if exponent == 0 else 2.0 ** (exponent - 7) * (1 + mantissa / 8)
    )


VALUES = [value_of(bits) for bits in range(256)]
FINITE = sorted({value for value in VALUES if value == value})


def nearest(x):
    """To the nearest value, ties to the one of even bits; NaN stays, the rest ends at 448."""
    if math.isnan(x):
        return math.nan
    x = min(max(x, -448.0), 448.0)
    found = min(FINITE, key=lambda v: (abs(v - x), VALUES.index(v) & 1))
    return math.copysign(found, x)


def same(a, b):
    return len(a) == len(b) and all(
        (math.isnan(x) and math.isnan(y)) or (x == y and math.copysign(1, x) == math.copysign(1, y))
        for x, y in zip(a, b)
    )


@pytest.mark.parametrize("to", [weft.float32, weft.float64, weft.float16, weft.bfloat16])
def test_all_values(to):
    x = BITS.view(F8)
    assert x.dtype is F8 and x.element_size() == 1 and x.is_floating_point()
    assert same(x.to(to).tolist(), VALUES)
    assert same(x.tolist(), VALUES)
    back = x.to(to).to(F8).view(weft.uint8)
    known = weft.tensor([value == value for value in VALUES])
    assert bool((back == BITS)[known].all())


def halfway():
    """Every value, what lies in the middle of two and a little off it, and what is too large."""
    for low, high in itertools.pairwise(FINITE):
        middle = (low + high) / 2
        yield from (low, middle, math.nextafter(middle, -1e9), math.nextafter(middle, 1e9))
    yield from (448.0, 463.9, 464.0, 480.0, 1e9, -1e9, math.inf, -math.inf, math.nan, -0.0, 1e-30)


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
def test_rounds_to_nearest_even_and_saturates(dtype):
    numbers = weft.tensor(list(halfway()), dtype=weft.float64).to(weft.float32).to(dtype)
    assert same(numbers.to(F8).tolist(), [nearest(x) for x in numbers.tolist()])
    for x in numbers[::50].tolist():  # numbers go another way than kernels
        assert same([weft.full((), x, dtype=F8).item()], [nearest(x)])


def test_other_dtypes():
    assert weft.tensor([300, -500, 0]).to(F8).tolist() == [288.0, -448.0, 0.0]
    assert weft.tensor([True, False]).to(F8).tolist() == [1.0, 0.0]
    assert weft.tensor([1.5 + 2j]).to(F8).tolist() == [1.5]
    assert weft.tensor([2.9, -3.0], dtype=F8).to(weft.int64).tolist() == [3, -3]


def test_memory():
    x = weft.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=F8)
    assert weft.cat([x.t(), x]).tolist() == [[1.0, 3.0], [2.0, 4.0], [1.0, 2.0], [3.0, 4.0]]
    assert x.clone()[1].tolist() == [3.0, 4.0] and weft.zeros(2, dtype=F8).tolist() == [0.0, 0.0]
    x[0, 0] = 0.3
    assert x[0, 0].item() == 0.3125
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()


def test_printing():
    x = weft.tensor([1.0, -0.5, 448.0], dtype=F8)
    assert str(x) == "tensor([  1.0000,  -0.5000, 448.0000], dtype=torch.float8_e4m3fn)"
    assert x.type() == "torch.Float8_e4m3fnTensor" and repr(F8) == "torch.float8_e4m3fn"
    info = weft.finfo(F8)
    assert (info.bits, info.max, info.min, info.eps, info.tiny) == (8, 448.0, -448.0, 0.125, 2**-6)


def test_files(tmp_path):
    x = weft.tensor([1.0, -0.5, 448.0], dtype=F8)
    safetensors.save_file({"x": x}, tmp_path / "x.safetensors")
    assert safetensors.load_file(tmp_path / "x.safetensors")["x"].tolist() == x.tolist()
    weft.save(x, tmp_path / "x.pt")
    loaded = weft.load(tmp_path / "x.pt")
    assert loaded.dtype is F8 and loaded.tolist() == x.tolist()


def test_refusals():
    x = weft.ones(2, dtype=F8)
    with pytest.raises(
        RuntimeError, match="expected dtypes with a common type, got float8_e4m3fn and float32"
    ):
        weft.promote_types(F8, weft.float32)
    with pytest.raises(TypeError, match="got float8_e4m3fn"):
        x.numpy()
    with pytest.raises(TypeError, match="at least 16 bits, got float8_e4m3fn"):
        weft.nextafter(x, x)
    assert weft.promote_types(F8, F8) is F8


@pytest.mark.parity
def test_as_pytorch():
    torch = pytest.importorskip("torch")

    real = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn)
    assert same(real.float().tolist(), VALUES)
    numbers = torch.tensor(list(halfway()), dtype=torch.float64)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        theirs = numbers.to(dtype)
        mine = weft.tensor(theirs.double().tolist(), dtype=weft.float64)
        mine = mine.to(getattr(weft, str(dtype).removeprefix("torch.")))
        wanted, got = theirs.to(torch.float8_e4m3fn), mine.to(F8)
        assert wanted.view(torch.uint8).tolist() == got.view(weft.uint8).tolist(), dtype
    assert str(real[40:60]) == str(BITS.view(F8)[40:60])
    assert repr(torch.finfo(torch.float8_e4m3fn)) == repr(weft.finfo(F8))
    assert real.type() == BITS.view(F8).type()

"""Floats of one byte: rows of the dtype table and their conversions."""

import itertools
import math
import pickle
from typing import NamedTuple

import pytest

import weft
from weft.serialization import safetensors


class Format(NamedTuple):
    """A format by its definition: `largest` is a finite magnitude, `overflow` what lies above it."""

    mantissa: int
    bias: int
    largest: float
    overflow: float
    negative_zero: bool = True


FORMATS = {
    "float8_e4m3fn": Format(3, 7, 448.0, 448.0),
    "float8_e5m2": Format(2, 15, 57344.0, math.inf),
    "float8_e4m3fnuz": Format(3, 8, 240.0, math.nan, False),
    "float8_e5m2fnuz": Format(2, 16, 57344.0, math.nan, False),
}
BITS = weft.arange(256, dtype=weft.uint8)
F8 = weft.float8_e4m3fn


def value_of(bits, form):
    """The number that eight bits stand for, by the definition of the format."""
    if bits == 0x80 and not form.negative_zero:
        return math.nan
    sign, exponent = -1.0 if bits & 0x80 else 1.0, (bits & 0x7F) >> form.mantissa
    part = (bits & ((1 << form.mantissa) - 1)) / (1 << form.mantissa)
    magnitude = 2.0 ** (max(exponent, 1) - form.bias) * (part + (exponent > 0))
    if magnitude <= form.largest:
        return sign * magnitude
    return sign * math.inf if part == 0 and math.isinf(form.overflow) else math.nan


def values(form):
    return [value_of(bits, form) for bits in range(256)]


def finite(form):
    return sorted({value for value in values(form) if math.isfinite(value)})


def nearest(x, form):
    """To the nearest value, ties to the one of even bits; what rounds above the largest overflows."""
    if math.isnan(x):
        return math.nan
    known = values(form)[:128]
    step = form.largest - max(value for value in finite(form) if value < form.largest)
    # The largest magnitude is odd only where its successor, which a tie rounds to, is even.
    odd = known.index(form.largest) & 1
    above = form.largest + step / 2
    if abs(x) > above or (odd and abs(x) == above):
        return math.copysign(form.overflow, x)
    found = min(
        (value for value in finite(form) if value >= 0),
        key=lambda value: (abs(value - abs(x)), known.index(value) & 1),
    )
    return math.copysign(found, x) if found or form.negative_zero else 0.0


def same(a, b):
    return len(a) == len(b) and all(
        (math.isnan(x) and math.isnan(y)) or (x == y and math.copysign(1, x) == math.copysign(1, y))
        for x, y in zip(a, b)
    )


@pytest.fixture(params=FORMATS)
def name(request):
    return request.param


@pytest.mark.parametrize("to", [weft.float32, weft.float64, weft.float16, weft.bfloat16])
def test_all_values(name, to):
    dtype, form = getattr(weft, name), FORMATS[name]
    x = BITS.view(dtype)
    assert x.dtype is dtype and x.element_size() == 1 and x.is_floating_point()
    assert same(x.to(to).tolist(), values(form))
    assert same(x.tolist(), values(form))
    back = x.to(to).to(dtype).view(weft.uint8)
    known = weft.tensor([value == value for value in values(form)])
    assert bool((back == BITS)[known].all())


def halfway(form):
    """Every value, what lies in the middle of two and a little off it, and what is too large."""
    for low, high in itertools.pairwise(finite(form)):
        middle = (low + high) / 2
        yield from (low, middle, math.nextafter(middle, -1e9), math.nextafter(middle, 1e9))
    top = form.largest
    step = 2.0 ** (math.frexp(top)[1] - 1 - form.mantissa)
    for factor in (0.0, 0.499, 0.5, 0.501, 1.0, 1e9):
        yield from (top + factor * step, -top - factor * step)
    yield from (math.inf, -math.inf, math.nan, -0.0, 1e-30, -1e-30)


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
def test_rounds_to_nearest_even(name, dtype):
    to, form = getattr(weft, name), FORMATS[name]
    numbers = weft.tensor(list(halfway(form)), dtype=weft.float64).to(weft.float32).to(dtype)
    assert same(numbers.to(to).tolist(), [nearest(x, form) for x in numbers.tolist()])
    for x in numbers[::50].tolist():  # numbers go another way than kernels
        assert same([weft.full((), x, dtype=to).item()], [nearest(x, form)])


@pytest.mark.filterwarnings("ignore:to. expected a complex dtype")
def test_other_dtypes(name):
    dtype = getattr(weft, name)
    assert weft.tensor([30, -48, 0]).to(dtype).tolist()[1:] == [-48.0, 0.0]
    assert weft.tensor([True, False]).to(dtype).tolist() == [1.0, 0.0]
    assert weft.tensor([1.5 + 2j]).to(dtype).tolist() == [1.5]
    assert weft.tensor([2.5, -3.0], dtype=dtype).to(weft.int64).tolist() == [2, -3]


def test_memory(name):
    dtype = getattr(weft, name)
    x = weft.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=dtype)
    assert weft.cat([x.t(), x]).tolist() == [[1.0, 3.0], [2.0, 4.0], [1.0, 2.0], [3.0, 4.0]]
    assert x.clone()[1].tolist() == [3.0, 4.0] and weft.zeros(2, dtype=dtype).tolist() == [0, 0]
    x[0, 0] = 0.26
    assert x[0, 0].item() == 0.25
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()


def test_order(name):
    """NaN is above all numbers, and no number has its place."""
    form = FORMATS[name]
    known = BITS.view(getattr(weft, name))
    ordered = known.sort()[0].tolist()
    numbers = sorted(value for value in values(form) if value == value)
    assert ordered[: len(numbers)] == numbers
    assert all(math.isnan(value) for value in ordered[len(numbers) :])


def test_printing():
    x = weft.tensor([1.0, -0.5, 448.0], dtype=F8)
    assert str(x) == "tensor([  1.0000,  -0.5000, 448.0000], dtype=torch.float8_e4m3fn)"
    assert x.type() == "torch.Float8_e4m3fnTensor" and repr(F8) == "torch.float8_e4m3fn"
    info = weft.finfo(F8)
    assert (info.bits, info.max, info.min, info.eps, info.tiny) == (8, 448.0, -448.0, 0.125, 2**-6)


def test_files(name, tmp_path):
    dtype = getattr(weft, name)
    x = weft.tensor([1.0, -0.5, 224.0], dtype=dtype)
    safetensors.save_file({"x": x}, tmp_path / "x.safetensors")
    assert safetensors.load_file(tmp_path / "x.safetensors")["x"].tolist() == x.tolist()
    weft.save(x, tmp_path / "x.pt")
    loaded = weft.load(tmp_path / "x.pt")
    assert loaded.dtype is dtype and loaded.tolist() == x.tolist()


def test_refusals(name):
    dtype = getattr(weft, name)
    x = weft.ones(2, dtype=dtype)
    for other in (weft.float32, *(getattr(weft, each) for each in FORMATS if each != name)):
        with pytest.raises(RuntimeError, match=f"expected dtypes with a common type, got {name}"):
            weft.promote_types(dtype, other)
    with pytest.raises(TypeError, match=f"got {name}"):
        x.numpy()
    with pytest.raises(BufferError, match="expected a dtype that buffers have"):
        memoryview(x)
    with pytest.raises(TypeError, match=f"at least 16 bits, got {name}"):
        weft.nextafter(x, x)
    assert weft.promote_types(dtype, dtype) is dtype


def test_dlpack(name):
    x = BITS.view(getattr(weft, name))
    y = weft.from_dlpack(x)
    assert y.dtype is x.dtype and y.data_ptr() == x.data_ptr()


# ---- products ----


def operands(module):
    a = module.arange(12.0).reshape(3, 4).to(module.float8_e4m3fn)
    b = (module.arange(8.0).reshape(4, 2) - 3).to(module.float8_e5m2)
    return a, b, module.tensor(0.5), module.tensor([0.25])


PRODUCTS = {
    "plain": lambda t, a, b, s, r: t._scaled_mm(a, b, s, r, out_dtype=t.float32),
    "the dtype of self": lambda t, a, b, s, r: t._scaled_mm(a, b, s, r),
    "bias": lambda t, a, b, s, r: t._scaled_mm(
        a, b, s, r, bias=t.ones(2), out_dtype=t.bfloat16, use_fast_accum=True
    ),
    "rows and columns": lambda t, a, b, s, r: t._scaled_mm(
        a, b, t.tensor([[1.0], [2.0], [4.0]]), t.tensor([[0.5, 0.25]]), out_dtype=t.float32
    ),
    "scale of the result": lambda t, a, b, s, r: t._scaled_mm(
        a, b, s, r, scale_result=t.tensor(2.0), out_dtype=t.float8_e5m2
    ),
    "wide results": lambda t, a, b, s, r: t._scaled_mm(
        a, b, s, r, scale_result=t.tensor(2.0), out_dtype=t.float16
    ),
}


def test_scaled_products():
    a, b, s, r = operands(weft)
    exact = a.float() @ b.float() * 0.125
    assert weft.equal(PRODUCTS["plain"](weft, a, b, s, r), exact)
    assert PRODUCTS["the dtype of self"](weft, a, b, s, r).dtype is weft.float8_e4m3fn
    assert weft.equal(PRODUCTS["bias"](weft, a, b, s, r), (exact + 1).bfloat16())
    scales = weft.tensor([[1.0], [2.0], [4.0]]) * weft.tensor([[0.5, 0.25]]) * 8
    assert weft.equal(PRODUCTS["rows and columns"](weft, a, b, s, r), exact * scales)
    halved = PRODUCTS["scale of the result"](weft, a, b, s, r)
    assert weft.equal(halved.float(), (exact / 2).to(weft.float8_e5m2).float())
    assert weft.equal(PRODUCTS["wide results"](weft, a, b, s, r), exact.half())


REFUSED = {
    "numbers of float32": (lambda t, a, b, s, r: t._scaled_mm(a.float(), b, s, r), ValueError),
    "vectors": (lambda t, a, b, s, r: t._scaled_mm(a[0], b, s, r), RuntimeError),
    "sizes": (lambda t, a, b, s, r: t._scaled_mm(a, b[:3], s, r), RuntimeError),
    "scales of float64": (lambda t, a, b, s, r: t._scaled_mm(a, b, s.double(), r), ValueError),
    "scales of other sizes": (
        lambda t, a, b, s, r: t._scaled_mm(a, b, t.ones(2, 1), t.ones(1, 2)), ValueError,
    ),
    "bias of another size": (
        lambda t, a, b, s, r: t._scaled_mm(a, b, s, r, bias=t.ones(3)), RuntimeError,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_scaled_products_refused(case):
    call, error = REFUSED[case]
    with pytest.raises(error, match=r"^_scaled_mm: expected"):
        call(weft, *operands(weft))


@pytest.mark.parity
@pytest.mark.parametrize("case", [*PRODUCTS, *REFUSED])
def test_scaled_products_as_pytorch(case):
    torch = pytest.importorskip("torch")
    if case in REFUSED:
        call, error = REFUSED[case]
        with pytest.raises(error):
            call(torch, *operands(torch))
        return
    theirs, ours = (PRODUCTS[case](t, *operands(t)) for t in (torch, weft))
    assert str(theirs.dtype) == str(ours.dtype) and theirs.tolist() == ours.tolist()


@pytest.mark.parity
def test_as_pytorch(name):
    torch = pytest.importorskip("torch")
    form, mine, theirs = FORMATS[name], getattr(weft, name), getattr(torch, name)
    real, ours = torch.arange(256, dtype=torch.uint8).view(theirs), BITS.view(mine)
    assert same(real.float().tolist(), values(form))
    numbers = torch.tensor(list(halfway(form)), dtype=torch.float64)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        given = numbers.to(dtype)
        taken = weft.tensor(given.double().tolist(), dtype=weft.float64)
        taken = taken.to(getattr(weft, str(dtype).removeprefix("torch.")))
        wanted, got = given.to(theirs), taken.to(mine)
        assert wanted.view(torch.uint8).tolist() == got.view(weft.uint8).tolist(), dtype
    assert str(real[40:60]) == str(ours[40:60])
    assert repr(torch.finfo(theirs)) == repr(weft.finfo(mine))
    assert real.type() == ours.type()
    assert str(torch.from_dlpack(ours).dtype) == str(mine)


@pytest.mark.parity
def test_a_million_floats_as_pytorch(name):
    torch = pytest.importorskip("torch")
    bits = torch.randint(-(2**31), 2**31, (1 << 20,), generator=torch.Generator().manual_seed(1))
    wanted = bits.int().view(torch.float32).to(getattr(torch, name)).view(torch.uint8)
    got = weft.from_dlpack(bits.int()).view(weft.float32).to(getattr(weft, name))
    assert torch.equal(torch.from_dlpack(got.view(weft.uint8)) & 0x7F, wanted & 0x7F)
    number = ~bits.int().view(torch.float32).isnan()  # the sign of NaN is free
    assert torch.equal(torch.from_dlpack(got.view(weft.uint8))[number], wanted[number])

"""Calls in PyTorch's less common forms: each runs in both libraries and must give the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from op_cases import calling

import weft
import weft.nn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def _spread(t: Any) -> Any:
    """A matrix [3, 3] of full rank."""
    return t.eye(3) * 3 + t.arange(9.0).reshape(3, 3).sin()


def _cube(t: Any) -> Any:
    """int64 [1, 2, 4, 4, 5], both signs."""
    return t.arange(160).reshape(1, 2, 4, 4, 5) * 37 % 101 - 40


#: a function of the library
FORMS: dict[str, Callable[[Any], Any]] = {
    "addr: bools": lambda t: t.addr(t.eye(2, 3) > 0, t.tensor([True, False]), t.ones(3) > 0),
    "addr: bools without self": lambda t: t.addr(
        t.eye(2, 3) > 0, t.tensor([True, False]), t.ones(3) > 0, beta=False, alpha=2
    ),
    "addr: bools without the product": lambda t: t.addr(
        t.eye(2, 3) > 0, t.tensor([True, False]), t.ones(3) > 0, alpha=0
    ),
    "avg_pool3d: int64": lambda t: t.nn.functional.avg_pool3d(_cube(t), 2),
    "avg_pool3d: int64, padded": lambda t: t.nn.functional.avg_pool3d(_cube(t), 3, 2, 1),
    "avg_pool3d: int64, what is inside": lambda t: t.nn.functional.avg_pool3d(
        _cube(t), 3, 2, 1, ceil_mode=True, count_include_pad=False
    ),
    "avg_pool3d: int64, a divisor": lambda t: t.nn.functional.avg_pool3d(
        _cube(t)[0], 3, ceil_mode=True, divisor_override=-4
    ),
    "conv2d: uint8": lambda t: t.nn.functional.conv2d(
        _cube(t)[0].byte(), _cube(t)[0, :, :, :2, :2].byte(), padding=1
    ),
    "conv1d: int8, with a bias": lambda t: t.nn.functional.conv1d(
        _cube(t)[0, 0].char(), _cube(t)[0, :, :, 0, :2].char(), t.ones(2, dtype=t.int8)
    ),
    "conv3d: int16": lambda t: t.nn.functional.conv3d(
        _cube(t).short(), _cube(t)[:, :, :2, :2, :2].short() * 50
    ),
    "repeat_interleave: int32": lambda t: t.repeat_interleave(t.tensor([1, 2], dtype=t.int32)),
    "scatter_reduce: max": lambda t: t.zeros(2).scatter_reduce(
        0, t.tensor([0, 1, 0]), t.tensor([1.0, -2.0, 3.0]), "max", include_self=False
    ),
    "scatter_reduce: min": lambda t: t.zeros(2).scatter_reduce(
        0, t.tensor([0, 1, 0]), t.tensor([1.0, -2.0, 3.0]), "min"
    ),
    "tensor: of tensors of one element": lambda t: t.tensor([t.ones(1), t.zeros(1, 1), 2.0]),
    "tensor: of tensors, nested": lambda t: t.tensor([[t.ones(1)], [t.zeros(1, dtype=t.int64)]]),
    "tensor: rows, one of them a tensor": lambda t: t.tensor([[1.0, 2.0], t.zeros(2)]),
    "Tensor: of tensors": lambda t: t.Tensor([t.ones(1), 3]),
    "as_tensor: of tensors": lambda t: t.as_tensor([t.tensor(True), t.ones(1, 1)]),
    "amax: None as dim": lambda t: t.amax(_spread(t), dim=None),
    "amin: None by place, keepdim": lambda t: _spread(t).amin(None, True),
    "roll: None as dims": lambda t: _spread(t).roll(1, None),
    "squeeze_: several dims": lambda t: t.ones(1, 2, 1).squeeze_([0, 2]),
    "fftn: a whole number as s": lambda t: t.fft.fftn(_spread(t), 2).real,
    "irfftn: a whole number as s": lambda t: t.fft.irfftn(_spread(t), 3),
    "cosine_similarity: integers beside floats": lambda t: t.cosine_similarity(
        t.arange(9).reshape(3, 3), _spread(t)
    ),
    "cholesky_inverse: reads the lower triangle": lambda t: t.cholesky_inverse(_spread(t)),
    "cholesky_inverse: reads the upper triangle": lambda t: t.cholesky_inverse(_spread(t), True),
    "view_as: other by its name": lambda t: _spread(t).view_as(other=t.ones(9)),
    "reshape_as: other by its name": lambda t: _spread(t).t().reshape_as(other=t.ones(9)),
    "type_as: other by its name": lambda t: _spread(t).type_as(other=t.ones(1, dtype=t.int32)),
    "cpu: a memory format": lambda t: t.ones(1, 2, 2, 2).cpu(memory_format=t.channels_last),
    "histogram: a hundred bins": lambda t: t.histogram(_spread(t)).hist,
    "arange: int64 bounds lose their fractions": lambda t: t.arange(-1.5, 2.2, dtype=t.int64),
    "arange: the size of int32 comes of the bounds": lambda t: t.arange(0, 2.9, dtype=t.int32),
    "arange: int32 values of a whole start and step": lambda t: t.arange(
        0.5, 2.9, 1.5, dtype=t.int32
    ),
    "arange: an int32 step below 1": lambda t: t.arange(0, 2, 0.5, dtype=t.int32),
    "addmm: integers with fractional factors": lambda t: t.addmm(
        t.ones(2, 2, dtype=t.int64), t.full((2, 2), 7), t.full((2, 2), 3), beta=1.6, alpha=2.9
    ),
    "baddbmm: integers with fractional factors": lambda t: t.baddbmm(
        t.ones(1, 2, 2, dtype=t.int32),
        t.full((1, 2, 2), 7, dtype=t.int32),
        t.full((1, 2, 2), 3, dtype=t.int32),
        beta=0.6,
        alpha=2.9,
    ),
    "avg_pool2d: no stride": lambda t: t.nn.functional.avg_pool2d(
        t.arange(16.0).reshape(1, 4, 4), 2, stride=None
    ),
    "batch_norm: no entries": lambda t: t.nn.functional.batch_norm(
        t.zeros(0, 3), t.zeros(3), t.ones(3), training=True
    ),
    "block_diag: tensors as arguments": lambda t: t.block_diag(t.ones(2, 1), t.ones(3), t.ones(())),
    "cdist: a mode": lambda t: t.cdist(t.eye(3), t.ones(2, 3), 2.0, "donot_use_mm_for_euclid_dist"),
    "conv_transpose2d: output_padding of whole strides": lambda t: t.nn.functional.conv_transpose2d(
        t.arange(18.0).reshape(1, 2, 3, 3),
        t.arange(24.0).reshape(2, 3, 2, 2),
        padding=1,
        output_padding=(2, 1),
        dilation=(3, 2),
    ),
    "cov: integers": lambda t: t.cov(t.arange(6).reshape(2, 3) ** 2),
    "cov: weights of a wider dtype": lambda t: t.cov(
        t.arange(6.0).reshape(2, 3) ** 2, aweights=t.arange(1, 4).to(t.float64)
    ),
    "corrcoef: complex": lambda t: t.corrcoef(t.tensor([[1j, 2, 3], [0, 1, 2 + 1j]])),
    "quantile: a number along a dim": lambda t: t.quantile(
        t.tensor(2.0), t.tensor([0.5, 0.1]), dim=0, keepdim=True
    ),
    "prod: as bool": lambda t: t.tensor([[2, 0], [3, 4]]).prod(1, dtype=t.bool),
    "sum: as bool": lambda t: t.tensor([[0, 0], [3, 4]]).sum(1, dtype=t.bool),
    "square: of bools": lambda t: t.tensor([True, False]).square(),
    "resize_as_": lambda t: t.resize_as_(t.arange(6), t.zeros(2, 2)),
    "scatter: adds": lambda t: t.ones(3).scatter(
        0, t.tensor([0, 0]), t.tensor([2.0, 5.0]), reduce="add"
    ),
    "scatter: multiplies, int32 index": lambda t: t.full((3,), 2.0).scatter(
        0, t.tensor([0, 0], dtype=t.int32), t.tensor([2.0, 5.0]), reduce="multiply"
    ),
    "scatter: multiplies by a number": lambda t: t.ones(3).scatter(
        0, t.tensor([0, 0]), 4.0, reduce="multiply"
    ),
    "scatter_: adds": lambda t: t.ones(3).scatter_(
        0, t.tensor([0, 2]), t.tensor([2.0, 5.0]), reduce="add"
    ),
    "scatter_: adds a number": lambda t: t.ones(3).scatter_(0, t.tensor([0, 2]), 3, reduce="add"),
    "take_along_dim: from the end": lambda t: t.take_along_dim(
        t.arange(6).reshape(2, 3), t.tensor([[-1], [-3]]), 1
    ),
    "tensordot: one entry against several": lambda t: t.tensordot(
        t.arange(2).reshape(1, 2), t.arange(6).reshape(2, 3), dims=([0], [1])
    ),
    **{
        f"linalg.{name}: keywords": lambda t, n=name, a=arguments: getattr(t.linalg, n)(
            **{word: make(t) for word, make in a.items()}
        )
        for name, arguments in {
            "norm": {"input": _spread},
            "matrix_norm": {"input": _spread},
            "vector_norm": {"input": _spread, "dim": lambda t: 1},
            "pinv": {"input": _spread},
            "matrix_rank": {"input": _spread},
            "cond": {"input": _spread},
            "tensorinv": {"input": _spread, "ind": lambda t: 1},
            "householder_product": {"input": _spread, "tau": lambda t: t.ones(3)},
            "lstsq": {"input": _spread, "b": _spread},
            "tensorsolve": {"input": _spread, "other": lambda t: t.ones(3)},
        }.items()
    },
    "result_type: keywords": lambda t: t.zeros(1, dtype=t.result_type(tensor=t.ones(1), other=2j)),
    "copy_: other by its name": lambda t: t.zeros(2).copy_(other=t.ones(2), non_blocking=True),
    "map_: other by its name": lambda t: t.ones(2).map_(
        callable=lambda a, b: a - b, other=t.eye(2)[0]
    ),
    "smm: mat2 by its name": lambda t: t.smm(t.eye(2).to_sparse(), mat2=t.ones(2, 1)).to_dense(),
    "resize_as_: keywords": lambda t: t.resize_as_(input=t.arange(4), the_template=t.zeros(2)),
    "view_copy: another dtype": lambda t: t.view_copy(t.ones(2), dtype=t.int32),
    **{
        f"{name}: a layout": lambda t, n=name: (
            getattr(t.fft, n)(4, layout=t.strided)
            if "freq" in n
            else getattr(t, n)(0, 2, 1, layout=t.strided)
        )
        for name in ("fftfreq", "rfftfreq", "logspace", "range")
    },
    **{
        f"{name}: a generator": lambda t, n=name, a=arguments: getattr(t, n)(
            -t.ones(5), *a, generator=t.Generator().manual_seed(3)
        )
        for name, arguments in {
            "rand_like": (),
            "randn_like": (),
            "randint_like": (1, 99),
            "rrelu": (0.1, 0.9, True),
        }.items()
    },
    "triangular_solve: keywords": lambda t: t.triangular_solve(input=_spread(t), A=_spread(t)),
    "ormqr: keywords": lambda t: t.ormqr(_spread(t), input2=t.ones(3), input3=_spread(t)),
    "lstsq: residuals and rank": lambda t: t.linalg.lstsq(
        t.arange(12.0).reshape(4, 3) ** 2, t.ones(4, 2), driver="gelsd"
    ),
    "matrix_rank: atol": lambda t: t.linalg.matrix_rank(t.diag(t.arange(4.0)), atol=1.5),
    "matrix_rank: hermitian without rows": lambda t: t.linalg.matrix_rank(
        t.zeros(2, 0, 0), hermitian=True
    ),
    "multi_dot: vectors at both ends": lambda t: t.linalg.multi_dot(
        [t.ones(2), t.arange(6.0).reshape(2, 3), t.ones(3, 4), t.ones(4)]
    ),
    "pinv: hermitian": lambda t: t.linalg.pinv(t.diag(t.arange(3.0)), hermitian=True),
    "pinv: no columns": lambda t: t.linalg.pinv(t.zeros(2, 3, 0)),
    "logdet: complex": lambda t: t.logdet(t.tensor([[1j, 2], [3, 1]])),
}


def _same(one: Any, other: Any) -> None:
    if isinstance(other, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other):
            _same(a, b)
        return
    assert str(one.dtype).partition(".")[2] == str(other.dtype).partition(".")[2]
    assert tuple(one.shape) == tuple(other.shape)
    np.testing.assert_allclose(one.numpy(), other.resolve_conj().numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.filterwarnings("ignore")
def test_form(name: str) -> None:
    _same(FORMS[name](weft), FORMS[name](torch))


@pytest.mark.filterwarnings("ignore:ComplexHalf support")  # PyTorch's
@pytest.mark.parametrize(
    "name",
    [
        "bool",
        "byte",
        "char",
        "short",
        "int",
        "long",
        "half",
        "bfloat16",
        "float",
        "double",
        "cfloat",
        "cdouble",
        "chalf",
    ],
)
@pytest.mark.parametrize("format", ["contiguous_format", "preserve_format", "channels_last"])
def test_memory_format_of_conversions(name: str, format: str) -> None:
    def convert(library: Any, source: Any) -> Any:
        return getattr(source, name)(memory_format=getattr(library, format))

    for permuted in (False, True):
        one, other = weft.ones(2, 3, 4, 5), torch.ones(2, 3, 4, 5)
        if permuted:
            one, other = one.permute(0, 3, 1, 2), other.permute(0, 3, 1, 2)
        mine, theirs = convert(weft, one), convert(torch, other)
        assert mine.stride() == theirs.stride()
        assert str(mine.dtype) == str(theirs.dtype)


def test_conversion_names_what_is_wrong() -> None:
    with pytest.raises(TypeError, match="half: expected argument 'memory_format' of type memory_"):
        weft.ones(2).half(memory_format=1)
    with pytest.raises(TypeError, match="float: expected known argument names, got 'format'"):
        weft.ones(2).float(format=1)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_normal_numbers_have_means_in_both_parts(dtype: str) -> None:
    drawn = []
    for library in (weft, torch):
        library.manual_seed(3)
        drawn.append(library.empty(5, dtype=getattr(library, dtype)).normal_(-2, 0.5))
    np.testing.assert_allclose(drawn[0].numpy(), drawn[1].numpy(), rtol=1e-6)


def test_gradients_of_normal_numbers_are_zeros() -> None:
    mean, std = weft.zeros(3, requires_grad=True), weft.ones(2, 3, requires_grad=True)
    weft.normal(mean, std).sum().backward()
    assert mean.grad.tolist() == [0] * 3 and std.grad.tolist() == [[0] * 3] * 2


def test_in_place_forms_are_seen_where_pytorch_shows_them() -> None:
    places = ((weft, torch), (weft.Tensor, torch.Tensor))
    names = {row.name + "_" for row in calling.ROWS.values() if row.inplace is not None}
    other = [n for n in names for ours, theirs in places if hasattr(ours, n) != hasattr(theirs, n)]
    assert other == []


def test_all_overloads_of_a_name_have_out_forms() -> None:
    """Those that PyTorch documents, of names of which weft has any."""
    ours: dict[str, set[str]] = {}
    for row in calling.ROWS.values():
        if row.out is not None and row.variants:
            ours.setdefault(row.name, {"dtype_out"}).add(row.out)
    missing = []
    for name, known in ours.items():
        packet = getattr(torch.ops.aten, name)
        theirs = {o for o in packet.overloads() if o.endswith("out")} - known
        missing += [
            f"{name}.{o}" for o in theirs if torch.Tag.generated not in getattr(packet, o).tags
        ]
    # weft takes tensors of no dimensions as numbers there
    assert {name for name in missing if not name.startswith("linspace.")} == set()


def test_scatter_refuses_other_reductions() -> None:
    with pytest.raises(RuntimeError, match='scatter: expected reduce "add" or "multiply", got "m'):
        weft.ones(3).scatter(0, weft.tensor([0]), weft.ones(1), reduce="mean")


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "sub",
        "mul",
        "div",
        "true_divide",
        "floor_divide",
        "remainder",
        "fmod",
        "pow",
        "copysign",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
    ],
)
def test_an_operand_that_is_a_number_beside_out(name: str) -> None:
    function, x = getattr(weft, name), weft.tensor([1.5, -2.0, 7.25])
    expected = function(x, 2)
    out = weft.empty(3, dtype=expected.dtype)
    assert function(x, 2, out=out) is out
    assert weft.equal(out, expected)


def _of_each_kind(library: Any) -> list[Any]:
    names = [
        "bool",
        "uint8",
        "int8",
        "int32",
        "int64",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
    dtypes = [getattr(library, name) for name in names]
    tensors = [make(dtype) for dtype in dtypes for make in (lambda d: library.ones(2, dtype=d),
                                                             lambda d: library.tensor(1, dtype=d))]  # fmt: skip
    return [*tensors, True, 3, 2.5, 1j]


def test_result_type_of_every_pair() -> None:
    mine, theirs = _of_each_kind(weft), _of_each_kind(torch)
    for a, x in zip(mine, theirs):
        for b, y in zip(mine, theirs):
            assert str(weft.result_type(a, b)) == str(torch.result_type(x, y)), (x, y)
    with pytest.raises(TypeError, match="result_type: expected tensors and numbers, got str"):
        weft.result_type(1, "a")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32", "int64"])
def test_shifts(dtype: str) -> None:
    found = []
    for library in (weft, torch):
        x = library.tensor([1, 0, 3], dtype=getattr(library, dtype))
        by = library.tensor([1, 2, 9], dtype=getattr(library, dtype if dtype != "bool" else "int8"))
        results = [x << 1, x >> 1, x << by, x >> by, 3 << x, 9 >> x, x << 70, x >> 70]
        if dtype != "bool":
            y = x.clone()
            y <<= 2
            y >>= by
            results.append(y)
        found.append([(str(each.dtype), each.tolist()) for each in results])
    assert found[0] == found[1]


def test_shifts_of_floats_are_refused() -> None:
    for shift in (lambda: weft.ones(2) << 1, lambda: weft.ones(2) >> 1.5):
        with pytest.raises(RuntimeError, match=r"bitwise_.*_shift: expected dtype uint8"):
            shift()
    with pytest.raises(TypeError, match="unsupported operand"):
        weft.ones(2) << "a"


def test_shifts_in_traces() -> None:
    def shifted(x: Any) -> Any:
        y = x.clone()
        y <<= 1
        return (x << 2) + (1 << x) + (y >> 1)

    traced = weft.jit.trace(shifted, weft.tensor([1, 2]))
    given = weft.tensor([3, 1, 0])
    assert traced(given).tolist() == shifted(given).tolist() == [23, 7, 1]


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_of_no_points_are_refused(name: str) -> None:
    for n in (0, -1):
        with pytest.raises(RuntimeError, match=f"{name}: expected n of at least 1, got {n}"):
            getattr(weft.fft, name)(weft.ones(4), n)


RESULTS: dict[str, Callable[[Any], Any]] = {
    "histogram": lambda t: t.histogram(_spread(t), 2),
    "histogramdd": lambda t: t.histogramdd(_spread(t), [2, 1, 1]),
    "triangular_solve": lambda t: t.triangular_solve(t.ones(3, 1), t.eye(3)),
    "lu": lambda t: t.linalg.lu(t.eye(3)),
    "lu_factor_ex": lambda t: t.linalg.lu_factor_ex(t.eye(3)),
    "lu_unpack": lambda t: t.lu_unpack(*t.linalg.lu_factor(t.eye(3))),
    "ldl_factor": lambda t: t.linalg.ldl_factor(t.eye(3)),
    "lstsq": lambda t: t.linalg.lstsq(_spread(t), t.arange(1.0, 4.0).unsqueeze(1)),
    "solve_ex": lambda t: t.linalg.solve_ex(t.eye(3), t.eye(3)),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.filterwarnings("ignore")
def test_results_with_names_print_as_there(name: str) -> None:
    assert repr(RESULTS[name](weft)) == repr(RESULTS[name](torch))

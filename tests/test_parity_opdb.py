"""No operator passes fewer samples of PyTorch's op_db than tests/parity/expected.txt says."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import weft

torch = pytest.importorskip("torch", reason="PyTorch is the reference of these tests")
pytest.importorskip("expecttest", reason="PyTorch's operator samples need expecttest")
pytestmark = pytest.mark.parity


PARTS = 4  # so that workers share them; each starts a process that reads PyTorch's test suite


@pytest.mark.parametrize("part", range(PARTS))
def test_no_operator_passes_fewer_samples_than_expected(part: int) -> None:
    from parity import outcome, runner

    version, expected = outcome.read_expected()
    if torch.__version__.partition("+")[0] != version:
        pytest.skip(f"the samples were counted with torch {version}")
    mine = {name: expected[name] for name in list(expected)[part::PARTS]}
    assert outcome.drops(runner.run(list(mine)), mine) == []


def test_expected_file_is_sorted_and_names_each_operator_once() -> None:
    from parity.outcome import EXPECTED

    lines = EXPECTED.read_text().splitlines()
    names = [line.split()[0] for line in lines if not line.startswith("#")]
    assert names == sorted(set(names))


#: what PyTorch refuses and weft does: numbers alone have an operator as well
PERMITTED = frozenset(("__rdiv__",))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_what_pytorch_refuses_is_refused(part: int) -> None:
    from parity.operators import op_infos, weft_function
    from parity.refusals import refusals

    functions = [
        (info, weft_function(info)) for info in op_infos().values() if info.name not in PERMITTED
    ]
    through = [
        f"{info.name}: {text}"
        for info, ours in functions[part::PARTS]
        if ours is not None
        for refused, text in refusals(info, ours)
        if not refused
    ]
    assert through == []


def _outs(library: Any, result: Any) -> Any:
    """Tensors without elements for `out=`, in the dtypes of PyTorch's result."""
    from parity.convert import flat, name_of

    made = [library.empty(0, dtype=getattr(library, name_of(t.dtype))) for t in flat(result)]
    return tuple(made) if isinstance(result, tuple | list) else made[0]


def _out_problem(info: Any, ours: Any) -> str | None:
    """What is wrong with `out=` of an operator that has it in PyTorch, for its first sample."""
    from parity.convert import flat, to_weft
    from parity.operators import dtypes_of, samples_of

    dtypes = [dtype for dtype, _ in dtypes_of(info)]
    dtype = torch.float32 if torch.float32 in dtypes else dtypes[0]
    sample = samples_of(info, dtype, False)[0]
    args, kwargs = (sample.input, *sample.args), sample.kwargs
    try:
        expected = info.op(*args, **kwargs)
        info.op(*args, **kwargs, out=_outs(torch, expected))
    except (AttributeError, RuntimeError, TypeError):
        return None  # PyTorch gives no tensor, or does not run this sample
    out = _outs(weft, expected)
    try:
        ours(*to_weft(args), **to_weft(kwargs), out=out)
    except Exception as error:
        return str(error)
    got, wanted = ([tuple(t.shape) for t in flat(each)] for each in (out, expected))
    return None if got == wanted else f"expected shapes {wanted}, got {got}"


@pytest.mark.filterwarnings("ignore")
def test_every_operator_that_has_out_in_pytorch_has_it() -> None:
    from parity.operators import op_infos, weft_function

    problems = {
        name: _out_problem(info, weft_function(info))
        for name, info in op_infos().items()
        if info.supports_out and weft_function(info) is not None
    }
    assert {name: text for name, text in problems.items() if text} == {}


#: PyTorch converts to integers or bools here, or refuses complex numbers; weft asks the category alone
OUT_CATEGORIES = frozenset(
    ("addr", "bernoulli", "cumprod", "lu", "nanmean", "nansum", "nn.functional.avg_pool2d")
    + ("nn.functional.avg_pool3d", "fft.hfft", "fft.hfft2", "fft.hfftn", "fft.irfft", "fft.irfft2")
    + ("fft.irfftn",)
)
OUT_DTYPES = ("float64", "float16", "int64", "int32", "bool", "uint8", "complex64", "float32")


def _takes_out(
    library: Any, call: Any, results: list[Any], several: bool, at: int, dtype: str
) -> bool:
    from parity.convert import name_of

    names = [name_of(each.dtype) for each in results]
    names[at] = dtype
    made = [
        library.empty(tuple(each.shape), dtype=getattr(library, name))
        for each, name in zip(results, names, strict=True)
    ]
    try:
        call(out=tuple(made) if several else made[0])
    except Exception:
        return False
    return True


def _wrong_out_dtypes(info: Any, ours: Any, dtype: Any) -> list[str]:
    """Dtypes of `out=` that one library takes and the other refuses, for the first sample."""
    from parity.convert import Unconvertible, flat, to_weft

    torch.manual_seed(0)
    try:
        sample = next(iter(info.sample_inputs("cpu", dtype)))
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        expected = info.op(*args, **kwargs)
        converted = to_weft(args), to_weft(kwargs)
    except (Exception, Unconvertible):
        return []
    results, several = flat(expected), isinstance(expected, tuple | list)
    if not all(isinstance(each, torch.Tensor) for each in results):
        return []
    theirs = functools.partial(info.op, *args, **kwargs)
    mine = functools.partial(ours, *converted[0], **converted[1])
    return [
        f"{dtype}: result {at} to {name}"
        for at in range(len(results))
        for name in OUT_DTYPES
        if _takes_out(torch, theirs, results, several, at, name)
        != _takes_out(weft, mine, results, several, at, name)
    ]


@pytest.mark.filterwarnings("ignore")
def test_out_takes_the_dtypes_that_pytorchs_takes() -> None:
    from parity.operators import op_infos, weft_function

    wrong = [
        f"{name} of {found}"
        for name, info in op_infos().items()
        if info.supports_out and weft_function(info) is not None and name not in OUT_CATEGORIES
        for dtype in (torch.float32, torch.int64, torch.bool)
        if dtype in info.supported_dtypes("cpu")
        for found in _wrong_out_dtypes(info, weft_function(info), dtype)
    ]
    assert wrong == []

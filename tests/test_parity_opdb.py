"""No operator passes fewer samples of PyTorch's op_db than tests/parity/expected.txt says."""

from __future__ import annotations

from typing import Any

import pytest

import weft

torch = pytest.importorskip("torch", reason="PyTorch is the reference of these tests")
pytest.importorskip("expecttest", reason="PyTorch's operator samples need expecttest")
pytestmark = pytest.mark.parity


PARTS = 8  # so that workers share them


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


#: what PyTorch refuses and weft does: it writes to a fresh result first, so `out=` may overlap with
#: arguments, and be of a wider dtype; a number of `masked_fill` wraps as `fill_` does
PERMITTED = frozenset(
    ("__rdiv__", "aminmax", "complex", "gather", "index_select", "kthvalue", "masked_fill")
    + ("masked_select", "multinomial", "take")
)


def _let_through(info: Any, ours: Any) -> list[str]:
    """The error samples of an operator that PyTorch refuses and weft does not."""
    from parity.convert import Unconvertible, to_weft

    found = []
    for each in info.error_inputs("cpu"):
        sample = each.sample_input
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        try:
            info.op(*args, **kwargs)
        except Exception as error:
            text = str(error).partition("\n")[0]
        else:
            continue
        try:
            ours(*to_weft(args), **to_weft(kwargs))
        except (Exception, Unconvertible):
            continue
        found.append(f"{info.name}: {text}")
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_what_pytorch_refuses_is_refused(part: int) -> None:
    from parity.operators import op_infos, weft_function

    infos = [
        info
        for name, info in op_infos().items()
        if info.error_inputs_func is not None
        and info.name not in PERMITTED
        and weft_function(info) is not None
    ]
    through = [
        text for info in infos[part::PARTS] for text in _let_through(info, weft_function(info))
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

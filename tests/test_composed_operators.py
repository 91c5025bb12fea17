"""Operators that weft composes in Python, as hosts have them: functions of composed.weft."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from composed_calls import FILE, Operators, listed
from cpp_programs import SOURCES, run, weft_command
from test_libtorch_frontend import check_lines

import weft
import weft.nn.functional as F
from weft import Tensor

HOST = SOURCES / "named_operators.c"


@pytest.fixture(scope="module")
def operators() -> Operators:
    return Operators()


def x(*sizes: int) -> Tensor:
    count = weft.Size(sizes).numel()
    return (weft.arange(float(count)) * 0.7).sin().reshape(sizes) * 1.5 + 0.05


CASES: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("fft_irfft2", weft.fft.irfft2, (x(4, 5),)),
    ("hstack", lambda tensors: weft.hstack(tensors), ([x(3), x(2)],)),
    ("atleast_2d.Sequence", lambda tensors: list(weft.atleast_2d(tensors)), ([x(3), x(2)],)),
    ("conv3d.padding", F.conv3d, (x(1, 2, 4, 4, 4), x(3, 2, 2, 3, 3), None, [1, 1, 1], "same")),
    ("linspace.Tensor_Scalar", weft.linspace, (weft.tensor(1.0), 3, 5)),
    ("max_pool1d", F.max_pool1d, (x(1, 2, 9), [3])),
    ("quantile.scalar", weft.quantile, (x(4, 5), 0.25, 1, True)),
    ("special_softmax", weft.softmax, (x(4, 5), 1)),
    ("upsample_nearest1d.vec", lambda x, size, scales: F.interpolate(x, scale_factor=scales[0]),
     (x(1, 2, 5), None, [1.7])),
]  # fmt: skip


@pytest.mark.parametrize("key, function, args", CASES, ids=[case[0] for case in CASES])
def test_it_gives_what_python_gives(
    key: str, function: Callable[..., Any], args: tuple[Any, ...], operators: Operators
) -> None:
    def graded(run: Callable[..., Any]) -> tuple[Any, Any]:
        given = [a.clone().requires_grad_() if isinstance(a, Tensor) else a for a in args]
        result = run(*given)
        leaves = [each for each in given if isinstance(each, Tensor) and each.dim() > 0]
        if leaves:
            (result.abs() ** 2).sum().backward()
        return result, [leaf.grad for leaf in leaves]

    found, expected = graded(lambda *given: operators.call(key, given, {})), graded(function)
    weft.testing.assert_close(found, expected, rtol=0, atol=0)


def test_the_file_has_each_operator_of_the_list_once(operators: Operators) -> None:
    keys = [each.schema.key for each in listed()]
    assert len(set(keys)) == len(keys) == len(operators.schemas)
    rows = {key for key in keys if hasattr(weft.ops.aten, key.partition(".")[0])}
    assert len(rows) > 400


def test_what_no_composition_takes_is_refused(operators: Operators) -> None:
    with pytest.raises(AssertionError, match="hann_window: expected a strided layout, got another"):
        operators.call("hann_window", (4,), {"layout": 1})
    assert operators.call("hann_window", (4,), {"layout": 0}).shape == (4,)


# ---- hosts ----


def c_host(folder: Path, library: Path | None = None) -> Path:
    program = folder / "host"
    flags = weft_command("--flags").split()
    if library is not None:  # a copy, which is found first
        flags = [f"-L{library}", f"-Wl,-rpath,{library}", *flags]
    run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", HOST, *flags, "-o", program)
    return program


def test_hosts_find_them_by_name(tmp_path: Path) -> None:
    lines = run(c_host(tmp_path), "aten::fft_rfft", "aten::avg_pool1d").splitlines()
    assert lines == [
        "relu: 3 values",
        "aten::fft_rfft: fft_rfft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor",
        "aten::avg_pool1d: avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], "
        "int[1] padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
        "upsample of one number: 12 values",
        "clip: expected at most 3 arguments, got 4",
        "mish: expected a value for argument 'self', got none",
        "mish: expected argument 'self' of type Tensor, got int",
        "listed 1 time",
    ]


def test_other_names_are_refused(tmp_path: Path) -> None:
    for name in ("aten::fft_rfft1", "aten::", "fft_rfft", "my::fft_rfft", "aten::zz"):
        said = run(c_host(tmp_path), name).splitlines()[1]
        assert said == (
            f"{name}: weft_find_operator: expected an operator of the library, got '{name}'"
        )


@pytest.mark.parametrize("damage", ["absent", "cut short", "no schemas", "other"])
def test_a_host_that_asks_for_none_needs_no_file(damage: str, tmp_path: Path) -> None:
    shutil.copy(FILE.parent / "libweft.so", tmp_path)
    place = tmp_path / FILE.name
    if damage == "cut short":
        place.write_bytes(FILE.read_bytes()[:-1000])
    elif damage == "no schemas":
        _functions(place, {})
    elif damage == "other":
        _functions(place, {"schemas": "twice(Tensor x, int n) -> Tensor"})
    lines = run(c_host(tmp_path, tmp_path), "aten::fft_rfft").splitlines()
    assert lines[0] == "relu: 3 values"
    assert lines[1].startswith("aten::fft_rfft: ")
    expected = {
        "absent": "composed.weft, which does not lie beside the library",
        "cut short": "expected",
        "no schemas": "expected",
        "other": "expected a function of the schema twice(Tensor x, int n) -> Tensor, got one of",
    }
    assert expected[damage] in lines[1]


@weft.jit.script
def twice(x: Tensor) -> Tensor:
    return x + x


def _functions(place: Path, extra: dict[str, str | bytes]) -> None:
    weft.jit.aot_compile({"twice": twice}, place, extra_files=extra)


def test_programs_of_libtorch_have_them(libtorch_programs: Path) -> None:
    check_lines(run(libtorch_programs, "composed"), (SOURCES / "composed.txt").read_text())


# ---- PyTorch ----


@pytest.mark.parity
def test_pytorch_prints_the_same(pytorch_programs: Path) -> None:
    check_lines(run(pytorch_programs, "composed"), (SOURCES / "composed.txt").read_text())


@pytest.mark.parity
def test_schemas_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    for each in listed():
        schema = each.schema
        overloads = getattr(torch.ops.aten, schema.name)
        theirs = getattr(overloads, schema.overload or "default")._schema
        names = [arg.name for arg in theirs.arguments]
        assert [arg.name for arg in schema.args] == names, schema
        assert [arg.has_default for arg in schema.args] == [
            arg.has_default_value() for arg in theirs.arguments
        ], schema
        assert [arg.kwarg_only for arg in schema.args] == [
            arg.kwarg_only for arg in theirs.arguments
        ], schema
        assert [arg.is_written for arg in schema.args] == [
            arg.is_write for arg in theirs.arguments
        ], schema


PARTS = 4
#: what weft's functions do otherwise in Python as well (tests/parity/expected.txt), and what takes
#: the memory format of its input alone
OTHERWISE = frozenset(("as_strided_scatter", "special_bessel_j0", "special_bessel_y1", "chalf"))


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_samples_of_pytorch(part: int, operators: Operators) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("expecttest", reason="PyTorch's operator samples need expecttest")
    from parity.compare import Case, check
    from parity.operators import op_infos, samples_of

    infos: dict[str, list[Any]] = {}
    for info in op_infos().values():
        names = [info.aten_name, info.name, *(alias.name for alias in info.aliases)]
        for name in {each.replace("nn.functional.", "").replace(".", "_") for each in names}:
            infos.setdefault(name, []).append(info)
    wrong, compared = [], 0
    keys = sorted(key for key in operators.schemas if key not in OTHERWISE)
    for key in keys[part::PARTS]:
        name, _, overload = key.partition(".")
        theirs = getattr(getattr(torch.ops.aten, name), overload or "default")
        found = infos.get(name) or infos.get(name.rstrip("_")) or []
        for info in found:
            if torch.float32 not in info.supported_dtypes("cpu"):
                continue
            has_gradient = info.supports_autograd and not name.endswith("_")
            for sample in samples_of(info, torch.float32, has_gradient)[:6]:
                case = Case(
                    theirs, lambda *a, key=key, **k: operators.call(key, a, k),
                    (sample.input, *sample.args), sample.kwargs, sample.output_process_fn_grad,
                    info.name,
                )  # fmt: skip
                try:
                    problems = check(case, has_gradient)
                except (RuntimeError, TypeError, NotImplementedError, ValueError, IndexError):
                    continue  # PyTorch's own operator takes other arguments
                compared += 1
                wrong += [f"{key}: {problem}" for problem in problems if problem]
    assert wrong == []
    assert compared > 100

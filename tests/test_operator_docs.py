"""What docstrings of operators say of sizes, dtypes and errors is so, for the samples of op_cases."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from op_cases import CASES, Case
from op_cases.calling import ROWS, function_of
from op_cases.realise import realise, to_library

import weft
from weft._ops.table import Row

sys.path.append(str(Path(__file__).resolve().parent.parent / "tools"))
from gen.docs import Docs

DOCS = Docs(list(ROWS.values()))
KINDS = {
    "bools": weft.bool, "integers": weft.int64, "floats": weft.float32, "complex numbers": weft.complex64,
}  # fmt: skip
DTYPES = ("float64", "float16", "int32", "bool")


def test_blocks_are_of_rows_and_have_known_sections() -> None:
    names = {row.name for row in ROWS.values()}
    keys = {f"{row.name}.{row.overload or 'default'}" for row in ROWS.values()}
    for name, lines in DOCS._blocks.items():
        assert name in names | keys, f"{name}: expected an operator or the key of a row"
        first = next((at for at, line in enumerate(lines) if line.startswith(">>> ")), len(lines))
        heads = {line.partition(": ")[0] for line in lines[:first]}
        assert heads <= {"Shape", "Dtype", "Gradient", "Raises", "In place"}, (name, heads)


def sections(row: Row) -> dict[str, str]:
    lines = DOCS.row(row).splitlines()
    return dict(line.split(": ", 1) for line in lines if re.match("(Shape|Dtype|Raises): ", line))


def calls(row: Row, case: Case) -> Iterator[dict[str, Any]]:
    """The arguments of the case's samples by their names in the docstring."""
    names = ["input" if arg.name == "self" else arg.name for arg in row.schema.args]
    for dtype in dict.fromkeys([case.dtypes[0], *(d for d in DTYPES if d in case.dtypes)]):
        for at, sample in enumerate(case.samples):
            made = to_library(realise(sample, case, dtype, at), weft, dtype)
            yield dict(zip(names, made.args)) | {
                "input" if name == "self" else name: value for name, value in made.kwargs.items()
            }


def call(row: Row, given: dict[str, Any]) -> Any:
    """Calls the row; arguments between those that are given have their defaults."""
    function, args = function_of(row.key), list(row.schema.args)
    named = {arg: "input" if arg.name == "self" else arg.name for arg in args}
    last = max(at for at, arg in enumerate(args) if named[arg] in given)
    positional = [
        given.get(named[arg], arg.default) for arg in args[: last + 1] if not arg.kwarg_only
    ]
    keywords = {
        arg.name: given[named[arg]] for arg in args if arg.kwarg_only and named[arg] in given
    }
    return function(*positional, **keywords)


def told_shape(text: str, given: dict[str, Any]) -> tuple[int, ...] | None:
    """The sizes that a section says in one of the usual ways."""
    if text == "0-d.":
        return ()
    if text == "`size`.":
        return tuple(given["size"])
    if (of := re.fullmatch(r"that of (\w+)\.", text)) and isinstance(given.get(of[1]), weft.Tensor):
        return tuple(given[of[1]].shape)
    if sizes := re.fullmatch(r"the sizes of (.*), broadcast\.", text):
        tensors = [given.get(name) for name in re.split(", | and ", sizes[1])]
        shapes = [tuple(each.shape) for each in tensors if isinstance(each, weft.Tensor)]
        return tuple(weft.broadcast_shapes(*shapes))
    return None


def told_dtype(text: str, given: dict[str, Any]) -> Any:
    """The dtype of the first result that a section says in one of the usual ways."""
    if re.fullmatch(r"(bool|int32|int64|float64)\.", text):
        return getattr(weft, text[:-1])
    if both := re.fullmatch(r"the promoted dtype of (\w+) and (\w+)\.", text):
        return weft.result_type(given[both[1]], given[both[2]])
    of = re.fullmatch(
        r"(?:`dtype`, or )?that of (\w+)((?:, .* for integers and bools)?)(, for .*)?\.", text
    )
    if of is None or "dtype" in given or not isinstance(given.get(of[1]), weft.Tensor):
        return None
    dtype = given[of[1]].dtype
    if not of[2] or dtype.is_floating_point or dtype.is_complex:
        return dtype
    return weft.int64 if "int64" in of[2] else weft.get_default_dtype()


@pytest.mark.parametrize("family", sorted({row.family for row in ROWS.values()}))
def test_sizes_and_dtypes_are_those_of_the_docstring(family: str) -> None:
    for key, case in CASES.items():
        row = ROWS[key]
        if row.family != family or "backward" in row.tags or row.writes:
            continue
        told = sections(row)
        for given in calls(row, case):
            result = call(row, given)
            first = result[0] if isinstance(result, tuple) else result
            shape = told_shape(told.get("Shape", ""), given)
            dtype = told_dtype(told.get("Dtype", ""), given)
            assert shape in (None, getattr(first, "shape", None)), (key, told, given)
            assert dtype in (None, getattr(first, "dtype", None)), (key, told, given)


@pytest.mark.parametrize("family", sorted({row.family for row in ROWS.values() if row.is_program}))
def test_errors_are_those_of_the_docstring(family: str) -> None:
    """Of rows with kernels: sizes that do not broadcast, kinds of numbers, dimensions out of range."""
    for key, case in CASES.items():
        row = ROWS[key]
        if row.family != family or not row.is_program or "backward" in row.tags:
            continue
        told, given = sections(row)["Raises"], next(calls(row, case))
        masks = (*row.bool_inputs, *row.int_inputs)
        tensors = [n for n, v in given.items() if isinstance(v, weft.Tensor)]
        for kind in (kind for kind in KINDS if kind in told):
            changed = {n: given[n].to(KINDS[kind]) for n in tensors if n not in masks}
            with pytest.raises(RuntimeError):
                call(row, given | changed)
                pytest.fail(f"{key}: expected an error for {kind}")
        if "do not broadcast" in told:
            changed = {n: weft.ones(2 + at).to(given[n].dtype) for at, n in enumerate(tensors)}
            with pytest.raises(RuntimeError, match="broadcast"):
                call(row, given | changed)
        if "dimension" in told:
            one = next(arg for arg in row.schema.args if arg.name == "dim")
            with pytest.raises(IndexError):
                call(row, given | {"dim": [99] if "[" in one.type else 99})

"""Docstrings of operators.

A row's part is its sentence and the sections that follow from its fields. The rest stands in
src/weft/_ops/docs, a block for each name: sections that no row tells (those of one overload under
its key, as where.default), and an example, which tests/test_docs.py runs. In-place and out= forms,
methods and second names show the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gen.cpp import quote
from weft._ops.forms import PLAIN, Form
from weft._ops.table import COMPLEX, FLOATS, INTEGERS, Row

_BLOCKS = Path(__file__).resolve().parents[2] / "src" / "weft" / "_ops" / "docs"
_DIMENSIONS = ("dim", "dim0", "dim1", "axis0", "start_dim")
#: words of `shape=` (weft/jit/passes/shape_words.py) in English
_SHAPES = {
    "reduced": "that of {0} without the dimensions `dim`, which keepdim keeps with size 1",
    "squeezed": "that of {0} without dimensions of size 1",
    "expanded": "`{1}`, where -1 keeps a size",
    "viewed": "`{1}`, where -1 stands for the size that follows from the others",
    "swapped": "that of {0} with `{1}` and `{2}` exchanged",
    "permuted": "the sizes of {0} in the order `{1}`",
    "inserted": "that of {0} with a dimension of size 1 at `{1}`",
    "without": "that of {0} without the dimension `{1}`",
    "resized": "that of {0} with another size at `{1}`",
    "flattened": "that of {0} with the dimensions from `{1}` to `{2}` as one",
    "matmul": "(*, n, p) of (*, n, m) and (*, m, p), where * broadcasts",
    "convolved": "(N, O, *) of inputs (N, C, *) and O filters; N may be missing",
    "pooled": "that of {0} with a size for each window in the last two dimensions",
    "joined": "that of the tensors with the sum of their sizes at `{1}`",
    "stacked": "that of each tensor with a new dimension at `{1}`",
    "diagonals": "that of {0} with two dimensions for the matrices in place of the last",
    "padded": "that of {0} with sizes larger by `{1}`",
    "counted": "a vector",
}  # fmt: skip


class Docs:
    """The texts of all rows."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = {row.key: row for row in rows}
        self._names = {row.name: row for row in reversed(rows)}
        self._blocks = dict(_blocks())

    def example(self, name: str) -> str:
        """The example of a name."""
        lines = self._block(name)
        return "\n".join(lines[_first_prompt(lines) :])

    def row(self, row: Row) -> str:
        """The part of one row."""
        if "backward" in row.tags:
            return row.doc
        written = self._base(row) if row.doc.startswith("In-place ") else row
        key = f"{written.name}.{written.overload or 'default'}"
        told = self._sections(row.name) | self._sections(key)
        known = {
            "Shape": shape(written),
            "Dtype": dtype(written),
            "Gradient": gradient(written),
            "Raises": errors(written),
            "In place": self._in_place(written),
        }
        sections = {name: told.get(name) or (text and f"{text}.") for name, text in known.items()}
        shown = [f"{name}: {text}" for name, text in sections.items() if text]
        return _python_names(row, "\n".join([written.doc, "", *shown]))

    def _sections(self, name: str) -> dict[str, str]:
        lines = self._block(name)
        return dict(line.split(": ", 1) for line in lines[: _first_prompt(lines)])

    def _block(self, name: str) -> list[str]:
        """An in-place form without a block has that of its base."""
        return self._blocks.get(name) or self._blocks.get(name.removesuffix("_"), [])

    def _base(self, row: Row) -> Row:
        """The row that an in-place row repeats in place."""
        name = row.name.removesuffix("_")
        return self._rows.get(f"{name}.{row.overload}".removesuffix(".")) or self._names[name]

    def _in_place(self, row: Row) -> str:
        if row.inplace is None and f"{row.name}_" not in self._names:
            return ""
        if row.kind == "view":
            return f"{row.name}_"
        return f"{row.name}_; RuntimeError where self cannot hold the result"


def header(forms: Sequence[Form]) -> str:
    """op_docs.h: texts of all records in their order, which Python's functions show."""
    docs = Docs([form.row for form in forms if form.kind == PLAIN])
    lines = ["#pragma once", "", "namespace weft::py {", ""]
    lines += ["struct OpDocs {", "  const char* doc;      // its sentence, sizes, dtypes, errors"]
    lines += ["  const char* example;  // behind the docs of all overloads; they have the same"]
    lines += ["};", "inline constexpr OpDocs kOpDocs[] = {"]
    for form in forms:
        example = quote(docs.example(form.schema.name))
        lines.append(f"    {{{quote(docs.row(form.row))},\n     {example}}},")
    return "\n".join([*lines, "};", "", "}  // namespace weft::py", ""])


def _blocks() -> Iterator[tuple[str, list[str]]]:
    for path in sorted(_BLOCKS.glob("*.txt")):
        for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
            names, *lines = block.splitlines()
            yield from ((name, lines) for name in names.split())


def _first_prompt(lines: Sequence[str]) -> int:
    return next((at for at, line in enumerate(lines) if line.startswith(">>> ")), len(lines))


def _python_names(row: Row, text: str) -> str:
    """`self` as Python's callers name it."""
    known = any(arg.name == "self" for arg in row.schema.args)
    return re.sub(r"\bself\b", "input", text) if known else text


# ---- shapes ----


def shape(row: Row) -> str:
    """The sizes of the results, "" where the row does not tell."""
    if all(result.type not in ("Tensor", "Tensor[]") for result in row.schema.returns):
        return ""
    if not row.shape:
        return "that of self" if row.writes else ""
    if row.shape == "[]":
        return "0-d"
    if row.shape in (arg.name for arg in row.schema.args):
        return f"that of {row.shape}" if row.shape in row.operands else f"`{row.shape}`"
    call = re.fullmatch(r"(\w+)\(([\w, ]+)\)", row.shape)
    if call is None:
        return ""
    word, names = call[1], call[2].split(", ")
    if word == "broadcast":
        several = len(names) > 1
        return f"the sizes of {_and(names)}, broadcast" if several else f"that of {names[0]}"
    return _SHAPES[word].format(*names) if word in _SHAPES else ""


def _and(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


# ---- dtypes ----


def dtype(row: Row) -> str:
    """The dtypes of the results, "" where the row does not tell."""
    returns = row.schema.returns
    if all(result.type not in ("Tensor", "Tensor[]") for result in returns):
        return ""
    names = [result.name or "" for result in returns]
    told = [_result_dtype(row, result) for result in row.result]
    if not all(told):
        return ""
    each = [f"{each} ({name})" if name else each for name, each in zip(names, told)]
    return _and(list(dict.fromkeys(each if len(set(told)) > 1 else told)))


def _result_dtype(row: Row, result: str) -> str:
    if result in ("bool", "int64", "int32"):
        return result
    if result == "truth":
        return "bool, for uint8 uint8"
    if "factory" in row.tags:
        return _factory(row)
    if result not in ("compute", "real"):
        given = next(arg for arg in row.schema.args if arg.name == result)
        return f"that of {result}" if given.is_tensor else f"the promoted dtype of {result}"
    if row.is_program:
        parts = ", for complex numbers that of their parts" if result == "real" else ""
        return _computed(row) + parts
    if row.writes or (row.kind == "view" and "retypes" not in row.tags):
        return f"that of {row.operands[0]}"
    return ""


def _computed(row: Row) -> str:
    """The dtype that a kernel computes in."""
    left_out = (*row.bool_inputs, *row.int_inputs)
    tensors = [name for name in row.operands if name not in left_out]
    numbers, alone = _promoting_numbers(row), len(tensors) == 1
    common = f"that of {tensors[0]}" if alone else f"the promoted dtype of {_and(tensors)}"
    if numbers and alone:
        common += f", or of the kind of {_and(numbers)} where that is higher"
    if row.promotion == "floating":
        common += ", the default dtype for integers and bools"
    if row.promotion == "sum":
        common += ", int64 for integers and bools"
    return f"`dtype`, or {common}" if any(a.name == "dtype" for a in row.schema.args) else common


def _promoting_numbers(row: Row) -> list[str]:
    scalars = [arg.name for arg in row.schema.args if arg.type == "Scalar"]
    return [name for name in scalars if name not in row.weak]


def _factory(row: Row) -> str:
    given = next((arg for arg in row.schema.args if arg.name == "dtype"), None)
    if row.operands:
        return f"`dtype`, or that of {row.operands[0]}"
    if given is not None and given.default is not None:
        return "`dtype`, int64 where it is not given"
    numbers = any(arg.type == "Scalar" for arg in row.schema.args)
    rest = "the default dtype" + (", int64 for integers, bool for bools" if numbers else "")
    return f"`dtype`, or {rest}"


def _refused(row: Row) -> list[str]:
    """The kinds of numbers that it has no kernels for."""
    if not row.is_program or not row.dtypes:
        return []
    kinds = {"bools": ("bool",), "integers": INTEGERS, "floats": FLOATS, "complex numbers": COMPLEX}
    becomes = ["bools", "integers"] if row.promotion in ("floating", "sum") else []
    if _promoting_numbers(row) and "no_masks" not in row.tags:
        becomes.append("bools")
    return [
        kind
        for kind, members in kinds.items()
        if kind not in becomes and not set(members) & set(row.dtypes)
    ]


# ---- gradients, errors, forms ----


def gradient(row: Row) -> str:
    """Which arguments gradients flow to, "" where that follows from its body."""
    if "nondifferentiable" in row.tags or row.result[:1] in (("bool",), ("int64",), ("truth",)):
        return "none"
    raising = {name for names, text in row.grad.items() for name in names if "_no_gradient" in text}
    if flowing := [name for name in row.differentiable if name not in raising]:
        return f"to {_and(flowing)}"
    return "backward raises" if raising else ""


def errors(row: Row) -> str:
    """What it raises, as far as the row says."""
    broadcasts = row.shape.startswith("broadcast(") and "," in row.shape
    unfit = ["sizes that do not broadcast"] if broadcasts else []
    unfit += [_and(refused)] if (refused := _refused(row)) else []
    told = [f"RuntimeError for {', and for '.join(unfit)}"] if unfit else []
    if any(arg.name in _DIMENSIONS for arg in row.schema.args):
        told.append("IndexError for a dimension out of range")
    return "; ".join(told) or "TypeError for arguments of other types"

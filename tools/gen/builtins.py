"""builtin_*.{h,cpp}: the builtins (src/weft/_ops/builtins) as C++.

builtin_bodies.h     declarations of the bodies that are functions
builtin_scalars.h    the rows on unboxed numbers, as an X-macro for the interpreter
builtin_records.cpp  bodies that are expressions, and the table of all rows
"""

from __future__ import annotations

from collections.abc import Sequence

from gen.arguments import Arguments
from gen.cpp import quote
from weft._ops import builtins
from weft._ops.builtins.rows import PARAMETERS, SCALARS, Builtin
from weft._ops.schema import Arg

# By value or by reference; everything else is a `const Value&`.
_TYPES = {
    "int": "int64_t", "float": "double", "bool": "bool", "str": "std::string",
    "complex": "std::complex<double>", "Scalar": "Scalar", "Tensor": "Tensor",
}  # fmt: skip
_BY_REFERENCE = ("str", "Scalar", "Tensor")
_RECORDS_PRELUDE = """\
#include "autograd/mode.h"
#include "autograd/node.h"
#include "autograd/views.h"
#include "builtin_bodies.h"
#include "runtime/arithmetic.h"
#include "runtime/boxed.h"
#include "runtime/builtins.h"
#include "runtime/builtins_support.h"
#include "runtime/dict.h"
#include "runtime/equality.h"
#include "runtime/list.h"
#include "runtime/print.h"

namespace weft {
namespace builtins {
namespace {

"""


FILES = ("builtin_bodies.h", "builtin_scalars.h", "builtin_records.cpp")


def files(arguments: Arguments) -> dict[str, str]:
    """Every file of the builtins, by name."""
    rows = list(builtins.load().values())
    return dict(zip(FILES, (bodies_header(rows), scalars_header(rows), records(rows, arguments))))


# Items and keys: bodies serve lists and dicts of every type.
_ITEMS = {
    "lists": ("el", "item"), "dicts": ("key", "idx", "v", "default_value"), "tensors": ("t",),
}  # fmt: skip


def parameter(row: Builtin, arg: Arg) -> str:
    """The C++ type of a parameter."""
    type_ = arg.type
    if type_ not in _TYPES or (not row.is_expression and arg.name in _ITEMS.get(row.family, ())):
        return "const Value&"
    return f"const {_TYPES[type_]}&" if type_ in _BY_REFERENCE else _TYPES[type_]


def result(row: Builtin) -> str:
    """The C++ result type of a row."""
    types = [_TYPES.get(result.type, "Value") for result in row.returns]
    if not types:
        return "void"
    return types[0] if len(types) == 1 else f"std::tuple<{', '.join(types)}>"


def parameters(row: Builtin, named: bool) -> str:
    """The C++ parameters; `named` after their positions."""
    types = [parameter(row, arg) for arg in row.args]
    if row.schema.varargs:
        types.append("const Value&")
    if not named:
        return ", ".join(types)
    return ", ".join(f"[[maybe_unused]] {t} {PARAMETERS[i]}" for i, t in enumerate(types))


def schema_text(row: Builtin) -> str:
    """The schema as the runtime sees it: further arguments are one tuple."""
    return row.text.replace("...", "Any args")


def bodies_header(rows: Sequence[Builtin]) -> str:
    """Declarations of the bodies that are functions; rows share bodies."""
    lines = [
        "#pragma once",
        "",
        '#include "runtime/builtins.h"',
        "",
        "namespace weft::builtins {",
        "",
    ]
    declared = {f"{result(row)} {row.cpp}({parameters(row, False)});": None
                for row in rows if not row.is_expression}  # fmt: skip
    return "\n".join([*lines, *declared, "", "}  // namespace weft::builtins", ""])


def scalars_header(rows: Sequence[Builtin]) -> str:
    """UNARY(id, R, A, expression over a) and BINARY(id, R, A, B, expression over a and b)."""
    lines = ["#pragma once", "", "#define WEFT_SCALAR_BUILTINS(UNARY, BINARY) \\"]
    for row in rows:
        if not row.is_scalar:
            continue
        types = [SCALARS[part.type] for part in (row.returns[0], *row.args)]
        macro = "UNARY" if len(row.args) == 1 else "BINARY"
        lines.append(f"  {macro}({row.id}, {', '.join(types)}, {row.cpp}) \\")
    return "\n".join([*lines, ""]) + "\n"


def records(rows: Sequence[Builtin], arguments: Arguments) -> str:
    """builtin_records.cpp."""
    lines = [_RECORDS_PRELUDE]
    for row in rows:
        if row.is_expression:
            body = f"return {row.cpp};" if row.returns else f"{row.cpp};"
            lines.append(f"{result(row)} row_{row.id}({parameters(row, True)}) {{ {body} }}")
    lines += ["", "constexpr OpRecord kRecords[] = {"]
    for row in rows:
        body = f"row_{row.id}" if row.is_expression else row.cpp
        signature = f"{result(row)} (*)({parameters(row, False)})"
        lines.append(
            f"    {{{quote(row.name)}, {quote(row.overload)},\n     {quote(schema_text(row))},\n"
            f"     Boxed<static_cast<{signature}>({body})>::call, "
            f"{len(row.args) + row.schema.varargs}, {len(row.returns)}, 0, "
            f"{arguments.add(row.schema)}}},"
        )
    lines += ["};", "}  // namespace", "}  // namespace builtins", ""]
    lines += [
        "std::span<const OpRecord> builtin_records() { return builtins::kRecords; }",
        "",
        "}  // namespace weft",
        "",
    ]
    return "\n".join(lines)

"""fused_products.cpp: the products that fusion groups contain, of rows with `product=`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from gen.boxed import read
from gen.cpp import quote
from weft._ops.schema import plain
from weft._ops.table import Row

_HEAD = """\
#include "ops/heads.h"
#include "ops/sizes.h"
#include "runtime/boxed.h"
#include "runtime/fused_head.h"

namespace weft {
namespace {

"""


def file(rows: Sequence[Row]) -> str:
    """One entry a row; `sizes` is its shape formula."""
    products = [row for row in rows if row.product]
    entries = "".join(f"    {_entry(row)},\n" for row in products)
    return (
        f"{_HEAD}constexpr FusedProduct kProducts[] = {{\n{entries}}};\n\n"
        "}  // namespace\n\n"
        "std::span<const FusedProduct> fused_products() { return kProducts; }\n\n"
        "}  // namespace weft\n"
    )


def _entry(row: Row) -> str:
    reads = {arg.name: read(arg, i) for i, arg in enumerate(row.schema.args)}
    names = list(reads)
    sizes = {
        arg.name: f"{reads[arg.name]}.sizes()" if arg.is_tensor else reads[arg.name]
        for arg in row.schema.args
        if arg.is_tensor or plain(arg.type) == "int[]"
    }
    flags = ["true" if tag in row.tags else "false" for tag in ("convolution", "composite")]
    call = f"native::{row.body}({', '.join((*reads.values(), 'around'))})"
    return (
        f"{{{quote(row.id)}, {quote(f'aten::{row.key}')}, {names.index(row.product[0])}, "
        f"{', '.join(flags)},\n"
        f"     [](const Value* args) -> Dims {{ return {_print(_parsed(row.shape), sizes)}; }},\n"
        f"     [](const Value* args, const Around& around) {{ return {call}; }}}}"
    )


def _parsed(formula: str) -> ast.expr:
    return ast.parse(formula, mode="eval").body


def _print(node: ast.expr, names: Mapping[str, str]) -> str:
    """A shape formula in C++, with the words of csrc/ops/sizes.h."""
    match node:
        case ast.Name(id=name):
            return names[name]
        case ast.List(elts=items):
            return f"Dims{{{', '.join(_print(item, names) for item in items)}}}"
        case ast.Call(func=ast.Name(id=word), args=args):
            return f"sizes::{word}({', '.join(_print(arg, names) for arg in args)})"
        case ast.Subscript(value=value, slice=ast.Constant() as dim):
            return f"sizes::at({_print(value, names)}, {ast.unparse(dim)})"
        case ast.Subscript(value=value, slice=ast.Slice() as cut) if ast.unparse(cut) == "::-1":
            return f"sizes::reversed({_print(value, names)})"
    raise ValueError(f"shape: expected a formula that C++ knows, got {ast.unparse(node)}")

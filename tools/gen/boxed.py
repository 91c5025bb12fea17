"""boxed_<n>.cpp and op_records.cpp: operators as the interpreter and the bindings call them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gen.arguments import Arguments
from gen.cpp import quote
from weft._ops.forms import Form
from weft._ops.schema import Arg, is_optional, plain

_PRELUDE = """\
#include "runtime/value.h"
#include "runtime/boxed.h"

"""
_READERS = {
    "Tensor": "{0}.to_tensor()",
    "Tensor?": "{0}.to_tensor()",
    "Tensor[]": "{0}.to_tensors()",
    "Tensor?[]": "{0}.to_tensors()",
    "Scalar": "{0}.to_scalar()",
    "int": "{0}.to_int()",
    "float": "{0}.to_double()",
    "bool": "{0}.to_bool()",
    "int[]": "{0}.to_ints()",
    "str": "{0}.to_string()",
    "ScalarType": "boxed::dtype({0})",
    "Device": "{0}.to_device()",
    "Layout": "{0}.to_int()",
    "MemoryFormat": "{0}.to_int()",
    "Generator?": "{0}.to_generator()",
}
_OPTIONAL_READERS = {
    "int": "to_int", "float": "to_double", "bool": "to_bool", "Scalar": "to_scalar",
    "str": "to_string", "int[]": "to_ints", "Device": "to_device", "Layout": "to_int",
    "MemoryFormat": "to_int",
}  # fmt: skip


def read(arg: Arg, index: int) -> str:
    """The C++ expression that takes an argument out of its Value."""
    type_, value = plain(arg.type), f"args[{index}]"
    if type_ in _READERS:
        return _READERS[type_].format(value)
    assert is_optional(type_), type_
    if type_ == "ScalarType?":
        return f"boxed::optional_dtype({value})"
    return f"boxed::maybe({value}, &Value::{_OPTIONAL_READERS[type_[:-1]]})"


def function(form: Form) -> list[str]:
    """The boxed call of one operator."""
    args = [read(arg, i) for i, arg in enumerate(form.schema.args)]
    call = f"ops::{form.cpp_name}({', '.join(args)})"
    args_name = "args" if args else ""
    count = len(form.schema.returns)
    lines = [f"void {form.id}(const Value* {args_name}, Value* {'results' if count else ''}) {{"]
    if count == 0:
        lines.append(f"  {call};")
    elif count == 1:
        lines.append(f"  results[0] = Value({call});")
    else:
        lines.append(f"  auto out = {call};")
        lines += [f"  results[{i}] = Value(std::move(std::get<{i}>(out)));" for i in range(count)]
    return [*lines, "}", ""]


def file(families: Mapping[str, Sequence[Form]]) -> str:
    """One translation unit: the boxed calls of some families."""
    includes = [f'#include "ops_{family}.h"' for family in families]
    lines = [*includes, _PRELUDE + "namespace weft::boxed {", ""]
    for form in (form for forms in families.values() for form in forms):
        lines += function(form)
    return "\n".join([*lines, "}  // namespace weft::boxed", ""])


def records(forms: Sequence[Form], arguments: Arguments) -> str:
    """op_records.cpp: the table as the runtime sees it."""
    lines = ['#include "runtime/op_record.h"', "", "namespace weft {", "namespace boxed {", ""]
    lines += [f"void {form.id}(const Value*, Value*);" for form in forms]
    lines += ["", "}  // namespace boxed", "", "namespace {", "constexpr OpRecord kRecords[] = {"]
    for form in forms:
        schema = form.schema
        lines.append(
            f"    {{{quote(schema.name)}, {quote(schema.overload)},\n     {quote(str(schema))},\n"
            f"     boxed::{form.id}, {len(schema.args)}, {len(schema.returns)}, "
            f"{form.variant_bits}, {arguments.add(schema)}}},"
        )
    lines += ["};", "}  // namespace", ""]
    lines += [
        "std::span<const OpRecord> op_records() { return kRecords; }",
        "",
        "}  // namespace weft",
        "",
    ]
    return "\n".join(lines)

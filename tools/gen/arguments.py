"""op_arguments.cpp: what schemas say of arguments and results, as data.

Nothing parses a schema of ours at run time. Alike arguments of all operators are one entry, and a
record says where the numbers of its own begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gen.cpp import list_length, literal, quote
from weft._ops.schema import MISSING, Arg, Schema, base_of, is_list, is_optional

_KINDS = {
    "Tensor": "Tensor", "int": "Int", "float": "Float", "bool": "Bool", "Scalar": "Scalar",
    "ScalarType": "DType", "Device": "Device", "str": "Str", "Layout": "Layout",
    "MemoryFormat": "MemoryFormat", "Generator": "Generator",
}  # fmt: skip
_LISTS = ("Tensor", "int", "float", "bool")
_NUMBER = "Bool Int Double Complex"
_ANY_LIST = "IntList DoubleList BoolList TensorList OptionalTensorList List"
# The tags of values that are good for a type, and for a list of it.
_TAGS = {
    "Tensor": ("Tensor", "TensorSpan TensorList"),
    "Tensor?": ("Tensor None", "TensorSpan TensorList OptionalTensorList"),
    "int": ("Int Bool", "IntSpan IntList"),
    "float": ("Int Bool Double", "DoubleSpan DoubleList"),
    "bool": ("Int Bool", "BoolList"),
    "complex": (_NUMBER, "List"),
    "Scalar": (f"{_NUMBER} Tensor", _ANY_LIST),
    "number": (f"{_NUMBER} Tensor", _ANY_LIST),
    "str": ("String", "List"),
    "Device": ("Device", "List"),
    "ScalarType": ("DType Int", "List"),
    "dtype": ("DType Int", "List"),
    "Layout": ("Int", "List"),
    "MemoryFormat": ("Int", "List"),
    "Generator": ("Generator", "List"),
    "NoneType": ("None", "List"),
    "Dict": ("Dict", "List"),
    "Future": ("Future", "List"),
    "AnyEnumType": ("Enum", "List"),
    "AnyClassType": ("Object", "List"),
}
_FILE = """\
#include <limits>

#include "runtime/op_record.h"

namespace weft {{
namespace {{

using K = ArgumentKind;
using T = ValueTag;
template <class... Tags>
constexpr uint32_t bits(Tags... tags) {{
  return ((uint32_t{{1}} << static_cast<uint32_t>(tags)) | ...);
}}

{}

constexpr SchemaArgument kArguments[] = {{
{}
}};
constexpr uint16_t kNumbers[] = {{{}}};

}}  // namespace

const SchemaArgument& argument_of(const OpRecord& record, size_t i) {{
  return kArguments[kNumbers[record.first_argument + i]];
}}

}}  // namespace weft
"""


class Arguments:
    """The entries so far."""

    def __init__(self) -> None:
        self._entries: dict[str, int] = {}
        self._defaults: dict[str, int] = {}
        self._numbers: list[int] = []

    def add(self, schema: Schema) -> int:
        """Where the numbers of a schema's arguments begin, which those of its results follow."""
        first = len(self._numbers)
        rest = [Arg("args", "Any")] if schema.varargs else []
        results = [Arg(each.name, each.type, MISSING, False, each.alias) for each in schema.returns]
        for arg in (*schema.args, *rest, *results):
            self._numbers.append(self._entries.setdefault(self._entry(arg), len(self._entries)))
        return first

    def _entry(self, arg: Arg) -> str:
        default = "nullptr"
        if arg.has_default:
            number = self._defaults.setdefault(_default(arg), len(self._defaults))
            default = f"default_{number}"
        length = list_length(arg.type) if re.search(r"\[\d", arg.type) else 0
        flags = (is_optional(arg.type), "?[" in arg.type, arg.kwarg_only, arg.is_written)
        return (
            f"{{{quote(arg.name)}, {quote(arg.type)}, {default}, {tags(arg.type)}, "
            f"K::{_kind(arg.type)}, {length}, {', '.join(map(literal, flags))}}},"
        )

    def file(self) -> str:
        """op_arguments.cpp."""
        defaults = [f"Value default_{n}() {{ return {v}; }}" for v, n in self._defaults.items()]
        return _FILE.format("\n".join(defaults), "\n".join(self._entries), _joined(self._numbers))


def _kind(type_: str) -> str:
    base = base_of(type_)
    if not is_list(type_):
        return _KINDS.get(base, "Other")
    return f"{_KINDS[base]}List" if base in _LISTS and type_.count("[") == 1 else "Other"


def tags(type_: str) -> str:
    """The tags of values that are good for a type, as C++: items of containers are not asked."""
    if type_.startswith("("):
        return _bits("List" if type_.endswith("[]") else "Tuple")
    name, _, suffix = re.fullmatch(r"(\w+)(\(.*\))?([\[\]?\d]*)", type_).groups()  # type: ignore[union-attr]
    optional_items = "?[" in suffix and name == "Tensor"
    single, many = _TAGS.get("Tensor?" if optional_items else name, ("", _ANY_LIST))
    if name in _TAGS and (suffix.count("[") > 1 or ("?[" in suffix and not optional_items)):
        many = "List"
    found = many if "[" in suffix else single
    return _bits(found + " None" * suffix.endswith("?")) if found else "~uint32_t{0}"


def _bits(names: str) -> str:
    return f"bits({', '.join(f'T::{name}' for name in dict.fromkeys(names.split()))})"


def _default(arg: Arg) -> str:
    """A default as the Value that a call without the argument passes."""
    value = arg.default
    if value is None:
        return "Value()"
    if isinstance(value, str):
        return f"Value(std::string({quote(value)}))"
    if isinstance(value, bool):
        return f"Value({literal(value)})"
    if is_list(arg.type):
        items = value if isinstance(value, tuple) else (value,) * list_length(arg.type)
        return f"Value(std::vector<int64_t>{{{_joined(items)}}})"
    if arg.base == "ScalarType":
        return f"Value(dtype_of_number({value}))"
    number = float(value) if arg.base == "float" else value
    return f"Value({'double' if isinstance(number, float) else 'int64_t'}{{{literal(number)}}})"


def _joined(items: Iterable[int]) -> str:
    return ", ".join(map(str, items))

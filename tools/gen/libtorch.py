"""libtorch/tensor_methods.h and libtorch/operators.h: operators as libtorch has them, those of the
table and those that weft composes.

A schema says a signature of libtorch's C++: arguments in their order with their defaults, dtype,
layout, device and pin_memory of factories as one TensorOptions. Each is a call through weft.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gen import composed, libtorch_absent, libtorch_variants
from gen.cpp import list_length, literal
from gen.libtorch_variants import OPTIONS, Parameter, Variant
from weft._ops.aliases import ALIASES
from weft._ops.forms import OUT, Form
from weft._ops.schema import MISSING, Arg, Schema, is_list, is_optional, plain

FILES = (
    "libtorch/tensor_methods.h",
    "libtorch/operators.h",
    libtorch_variants.FILE,
    *libtorch_absent.FILES,
)

_TYPES = {
    "Tensor": "const Tensor&", "Tensor?": "const std::optional<Tensor>&",
    "Tensor[]": "TensorList", "Tensor?[]": "const c10::List<std::optional<Tensor>>&",
    "Scalar": "const Scalar&", "Scalar?": "const std::optional<Scalar>&", "int": "int64_t",
    "float": "double", "bool": "bool", "int[]": "IntArrayRef", "int[]?": "OptionalIntArrayRef",
    "float[]": "ArrayRef<double>", "Scalar[]": "ArrayRef<Scalar>",
    "float[]?": "std::optional<ArrayRef<double>>",
    "str": "std::string_view", "ScalarType": "ScalarType", "Device": "Device", "Layout": "Layout",
    "MemoryFormat": "MemoryFormat", "Generator": "Generator",
}  # fmt: skip
_RESULTS = {
    "Tensor": "Tensor", "Tensor[]": "std::vector<Tensor>", "Scalar": "Scalar", "bool": "bool",
    "int": "int64_t", "float": "double", "ScalarType": "ScalarType",
}  # fmt: skip
_OPTIONS = ("dtype", "layout", "device", "pin_memory")
# Written by hand, as their overloads are more than the table's.
_WRITTEN_METHODS = (
    *("contiguous", "index", "index_put_", "item", "to", "dim", "get_device", "is_complex"),
    *("is_contiguous", "is_floating_point", "is_leaf", "is_signed", "numel", "pin_memory"),
    *("requires_grad_", "retain_grad", "storage_offset"),
)
_WRITTEN_FUNCTIONS = ("contiguous", "item", "to")
_METHODS = """\
// Members of at::Tensor: included in the class.
"""
_FUNCTIONS = """\
#pragma once

#include "tensor.h"

namespace at {
inline namespace over_weft {

"""


def files(forms: Sequence[Form]) -> dict[str, str]:
    """The headers by their names."""
    listed = composed.load()
    methods = _distinct(_of_table(forms, True) + _composed(listed, True))
    functions = _distinct(_of_table(forms, False) + _composed(listed, False))
    variants = _distinct(functions + list(libtorch_variants.variants(functions)))[len(functions) :]
    for calls in (methods, [*functions, *variants]):
        _choose_defaults(calls)
    defined = "".join(call.definition() for call in [*methods, *functions])
    end = "\n}  // namespace over_weft\n}  // namespace at\n"
    return {
        FILES[0]: _METHODS + "".join(f"{call.declaration()};\n" for call in methods),
        FILES[1]: _FUNCTIONS
        + "".join(f"inline {call.declaration()};\n" for call in functions)
        + f"\n{defined}{end}",
        FILES[2]: libtorch_variants.text(variants),
        **libtorch_absent.files(
            {call.name for call in [*functions, *variants]}, {call.name for call in methods}
        ),
    }


def _of_table(forms: Sequence[Form], method: bool) -> list[Call]:
    """Methods of tensors, or functions."""
    calls = []
    for form in filter(_is_public, forms):
        if not method or form.variant_bits & 10:
            made = (Call(form.schema, name, method, form.kind == OUT) for name in _names(form))
            calls += [call for call in made if call.is_free]
    return calls


def _composed(listed: Sequence[composed.Composed], method: bool) -> list[Call]:
    wanted = ("both", "method" if method else "function")
    made = (Call(e.schema, e.schema.name, method) for e in listed if e.variants in wanted)
    return [call for call in made if call.is_free]


def _distinct(calls: Iterable[Call | Variant]) -> list[Any]:
    """Without those that have the parameters of an earlier one: second names."""
    found: dict[tuple[str, ...], Call | Variant] = {}
    for call in calls:
        found.setdefault((call.name, *call.types), call)
    return list(found.values())


def _choose_defaults(calls: Iterable[Call | Variant]) -> None:
    """No call may fit two overloads: the one with fewer parameters gets its defaults first."""
    taken: dict[str, set[tuple[str, ...]]] = {}
    for call in sorted(calls, key=lambda call: len(call.parameters)):
        known = taken.setdefault(call.name, set())
        types = call.types
        first = len(types)
        while first > 0 and call.parameters[first - 1].default and types[: first - 1] not in known:
            first -= 1
        known.update(types[:count] for count in range(first, len(types) + 1))
        call.first_default = first


def _is_public(form: Form) -> bool:
    is_internal = form.schema.name.startswith("_") or "_backward" in form.schema.name
    needs_generator = any(
        arg.type == "Generator?" and not arg.has_default for arg in form.schema.args
    )
    return not is_internal and not needs_generator and form.schema.name.isidentifier()


def _names(form: Form) -> list[str]:
    """The C++ function's name, then its second names."""
    first = form.row.name
    others = [alias for alias, name in ALIASES.items() if name == first]
    return [form.cpp_name, *(form.cpp_name.replace(first, alias, 1) for alias in others)]


class Call:
    """An operator as a method of tensors or as a function."""

    def __init__(self, schema: Schema, name: str, method: bool, is_out: bool = False) -> None:
        self.name = name
        self.schema = schema
        self.method = method
        self.is_out = is_out
        self.has_options = {arg.name for arg in schema.args}.issuperset(_OPTIONS)
        self.written = [arg for arg in schema.args if arg.is_written]
        self.parameters = self._parameters()
        self.first_default = len(self.parameters)

    @property
    def types(self) -> tuple[str, ...]:
        """Of its parameters."""
        return tuple(each.text.rpartition(" ")[0] for each in self.parameters)

    @property
    def is_free(self) -> bool:
        """Whether the name is not one that is written by hand."""
        if not self.method:
            return self.name not in _WRITTEN_FUNCTIONS
        return self.holder is not None and self.name not in _WRITTEN_METHODS

    @property
    def holder(self) -> Arg | None:
        """The argument whose method it is."""
        return next((arg for arg in self.schema.args if arg.name == "self" and self.method), None)

    def _parameters(self) -> list[Parameter]:
        args = [arg for arg in self.schema.args if arg is not self.holder]
        if self.is_out:  # libtorch has these first
            args = [*self.written, *(arg for arg in args if not arg.is_written)]
        found = []
        for arg in args:
            if not self.has_options or arg.name not in _OPTIONS:
                found.append(Parameter(f"{_parameter_type(arg)} {arg.name}", _default(arg)))
            elif arg.name == "dtype" and not self.is_out:
                found.append(Parameter(OPTIONS, "{}"))
        return found

    @property
    def result(self) -> str:
        """References to what is written, where that is what the call returns."""
        if len(self.written) == 1:
            return "Tensor&"
        if self.is_out:
            return f"std::tuple<{', '.join(['Tensor&'] * len(self.written))}>"
        types = [_RESULTS[plain(result.type)] for result in self.schema.returns]
        if len(types) < 2:
            return "".join(types) or "void"
        return f"std::tuple<{', '.join(types)}>"

    def declaration(self, owner: str = "") -> str:
        """The head of a function; with its defaults unless it has an owner."""
        texts = [
            f"{each.text} = {each.default}" if i >= self.first_default and not owner else each.text
            for i, each in enumerate(self.parameters)
        ]
        end = " const" if self.method else ""
        return f"{self.result} {owner.strip()}{self.name}({', '.join(texts)}){end}"

    def definition(self) -> str:
        """The function with its body."""
        given = [f"c10::detail::box({self._value(arg)})" for arg in self.schema.args]
        kind = ".".join(filter(None, (self.schema.name, self.schema.overload)))
        lines = [f'  static const c10::detail::Operator op("aten::{kind}");']
        result, args = self.result, "{" + ", ".join(given) + "}"
        if result == "Tensor&":
            target = "const_cast<Tensor&>(*this)" if self.method else self.written[0].name
            lines += [f"  op.call<void>({args});", f"  return {target};"]
        elif self.is_out:
            targets = ", ".join(arg.name for arg in self.written)
            lines += [f"  op.call<void>({args});", f"  return std::tie({targets});"]
        elif self.has_options:  # a factory
            lines.append(f"  return c10::detail::with_options(op.call<Tensor>({args}), options);")
        else:
            lines.append(f"  return op.call<{result}>({args});")
        head = self.declaration("Tensor::" if self.method else " ")
        return f"inline {head} {{\n" + "\n".join(lines) + "\n}\n"

    def _value(self, arg: Arg) -> str:
        if arg is self.holder:
            return "*this"
        if not self.has_options or arg.name not in _OPTIONS:
            return arg.name
        if self.is_out:
            return "c10::detail::none()"
        return f"options.{'pinned_memory' if arg.name == 'pin_memory' else arg.name}_opt()"


def _parameter_type(arg: Arg) -> str:
    if arg.is_written:
        return "Tensor&"
    type_ = plain(arg.type)
    if type_ in _TYPES:
        return _TYPES[type_]
    assert is_optional(type_), type_
    return f"std::optional<{_TYPES[type_[:-1]]}>"


def _default(arg: Arg) -> str:
    value, type_ = arg.default, plain(arg.type)
    if value is MISSING:
        return ""
    if value is None:
        return "std::nullopt" if is_optional(type_) else "{}"
    if is_list(type_.rstrip("?")):
        items = value if isinstance(value, tuple) else (value,) * list_length(arg.type)
        return "{" + ", ".join(map(str, items)) + "}"
    if type_ == "MemoryFormat":
        return f"static_cast<MemoryFormat>({value})"
    return literal(float(value) if type_.startswith("float") else value)

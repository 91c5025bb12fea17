"""libtorch/tensor_methods.h and libtorch/operators.h: the table's operators as libtorch has them.

A schema says a signature of libtorch's C++: arguments in their order with their defaults, dtype,
layout, device and pin_memory of factories as one TensorOptions. Each is a call through weft.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gen import libtorch_variants
from gen.cpp import list_length, literal
from gen.libtorch_variants import OPTIONS, Parameter
from weft._ops.aliases import ALIASES
from weft._ops.forms import OUT, Form
from weft._ops.schema import MISSING, Arg, is_list, is_optional, plain

FILES = ("libtorch/tensor_methods.h", "libtorch/operators.h", libtorch_variants.FILE)

_TYPES = {
    "Tensor": "const Tensor&", "Tensor?": "const std::optional<Tensor>&",
    "Tensor[]": "TensorList", "Tensor?[]": "const c10::List<std::optional<Tensor>>&",
    "Scalar": "const Scalar&", "Scalar?": "const std::optional<Scalar>&", "int": "int64_t",
    "float": "double", "bool": "bool", "int[]": "IntArrayRef", "int[]?": "OptionalIntArrayRef",
    "float[]": "ArrayRef<double>", "float[]?": "std::optional<ArrayRef<double>>",
    "str": "std::string_view", "ScalarType": "ScalarType", "Device": "Device", "Layout": "Layout",
    "MemoryFormat": "MemoryFormat", "Generator": "Generator",
}  # fmt: skip
_RESULTS = {
    "Tensor": "Tensor", "Tensor[]": "std::vector<Tensor>", "Scalar": "Scalar", "bool": "bool",
    "int": "int64_t", "float": "double",
}  # fmt: skip
_OPTIONS = ("dtype", "layout", "device", "pin_memory")
# Written by hand, as their overloads are more than the table's.
_WRITTEN_METHODS = ("contiguous", "index", "index_put_", "item", "to")
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
    chosen = [(form, name) for form in forms if _is_public(form) for name in _names(form)]
    methods = [call for call in (Call(*each, True) for each in chosen) if call.is_method]
    functions = [call for call in (Call(*each, False) for each in chosen) if call.is_function]
    variants = list(libtorch_variants.variants(functions))
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
    }


def _choose_defaults(calls: Iterable[Call | libtorch_variants.Variant]) -> None:
    """No call may fit two overloads: the one with fewer parameters gets its defaults first."""
    taken: dict[str, set[tuple[str, ...]]] = {}
    for call in sorted(calls, key=lambda call: len(call.parameters)):
        known = taken.setdefault(call.name, set())
        types = tuple(parameter.text.rpartition(" ")[0] for parameter in call.parameters)
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

    def __init__(self, form: Form, name: str, method: bool) -> None:
        self.form = form
        self.name = name
        self.schema = form.schema
        self.method = method
        names = [arg.name for arg in form.schema.args]
        self.has_options = all(name in names for name in _OPTIONS)
        self.written = [arg for arg in form.schema.args if arg.is_written]
        self.parameters = self._parameters()
        self.first_default = len(self.parameters)

    @property
    def is_method(self) -> bool:
        """Whether tensors have it."""
        has_self = self.schema.args[:1] and self.schema.args[0].name == "self"
        bits = self.form.variant_bits
        return has_self and bool(bits & 10) and self.schema.name not in _WRITTEN_METHODS

    @property
    def is_function(self) -> bool:
        """Whether the namespace has it."""
        return self.schema.name not in _WRITTEN_FUNCTIONS

    def _parameters(self) -> list[Parameter]:
        args = list(self.schema.args[1 if self.method else 0 :])
        if self.form.kind == OUT:  # libtorch has these first
            args = [*self.written, *(arg for arg in args if not arg.is_written)]
        found = []
        for arg in args:
            if not self.has_options or arg.name not in _OPTIONS:
                found.append(Parameter(f"{_parameter_type(arg)} {arg.name}", _default(arg)))
            elif arg.name == "dtype" and self.form.kind != OUT:
                found.append(Parameter(OPTIONS, "{}"))
        return found

    @property
    def result(self) -> str:
        """References to what is written, where that is what the call returns."""
        if len(self.written) == 1:
            return "Tensor&"
        if self.form.kind == OUT:
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
        elif self.form.kind == OUT:
            targets = ", ".join(arg.name for arg in self.written)
            lines += [f"  op.call<void>({args});", f"  return std::tie({targets});"]
        elif self.has_options:  # a factory
            lines.append(f"  return c10::detail::with_options(op.call<Tensor>({args}), options);")
        else:
            lines.append(f"  return op.call<{result}>({args});")
        head = self.declaration("Tensor::" if self.method else " ")
        return f"inline {head} {{\n" + "\n".join(lines) + "\n}\n"

    def _value(self, arg: Arg) -> str:
        if self.method and arg is self.schema.args[0]:
            return "*this"
        if not self.has_options or arg.name not in _OPTIONS:
            return arg.name
        if self.form.kind == OUT:
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

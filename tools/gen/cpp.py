"""C++ types of schema types, and the printer from formula trees to C++."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft._kernels import types
from weft._ops.formulas import Expr, Statement, tuple_types
from weft._ops.schema import Arg, Schema, is_optional, plain

DTYPES = {dtype.python_name: dtype.name for dtype in types.DTYPES}

# What an object that lives longer than a call holds.
VALUES = {
    "Tensor": "Tensor", "Tensor?": "Tensor", "Tensor[]": "TensorList", "Tensor?[]": "TensorList",
    "Scalar": "Scalar", "int": "int64_t", "float": "double", "bool": "bool", "int[]": "Dims",
    "str": "std::string", "ScalarType": "DType", "Device": "Device", "Layout": "int64_t",
    "MemoryFormat": "int64_t", "Generator?": "Ref<Generator>",
}  # fmt: skip
_BY_REFERENCE = {
    "Tensor": "const Tensor&", "Tensor?": "const Tensor&", "Tensor[]": "const TensorList&",
    "Tensor?[]": "const TensorList&", "Scalar": "const Scalar&", "str": "const std::string&",
    "Generator?": "const Ref<Generator>&", "int[]": "IntList", "int[]?": "std::optional<IntList>",
}  # fmt: skip


def value_type(type_: str) -> str:
    """The C++ type that owns a value of the schema type."""
    type_ = plain(type_)
    if type_.startswith("("):
        return f"std::tuple<{', '.join(map(value_type, tuple_types(type_)))}>"
    if type_ in VALUES:
        return VALUES[type_]
    if is_optional(type_):
        return f"std::optional<{value_type(type_[:-1])}>"
    raise KeyError(f"no C++ type for {type_}")


def parameter_type(type_: str) -> str:
    """The C++ type of a parameter of the schema type."""
    type_ = plain(type_)
    return _BY_REFERENCE.get(type_) or value_type(type_)


def return_type(schema: Schema) -> str:
    """The C++ result type of an operator."""
    types = [value_type(ret.type) for ret in schema.returns]
    if not types:
        return "void"
    return types[0] if len(types) == 1 else f"std::tuple<{', '.join(types)}>"


def parameters(args: Sequence[Arg], defaults_from: int | None = None) -> str:
    """A C++ parameter list; those from number `defaults_from` on get their schema default."""
    parts = []
    for i, arg in enumerate(args):
        part = f"{parameter_type(arg.type)} {arg.name}"
        if defaults_from is not None and i >= defaults_from:
            part += f" = {default_value(arg)}"
        parts.append(part)
    return ", ".join(parts)


def first_default(args: Sequence[Arg], taken: set[tuple[str, ...]]) -> int:
    """From which parameter on defaults may stand so that no call fits two overloads.

    `taken`: leading parameter types of calls that other overloads answer; this one's are added.
    """
    types = tuple(parameter_type(arg.type) for arg in args)
    first = len(args)
    while first > 0 and args[first - 1].has_default and types[: first - 1] not in taken:
        first -= 1
    taken.update(types[:count] for count in range(first, len(args) + 1))
    return first


def default_value(arg: Arg) -> str:
    """A schema default as a C++ default argument."""
    value, type_ = arg.default, plain(arg.type)
    if value is None:
        return "{}"
    if type_ in ("int[]", "int[]?"):
        items = value if isinstance(value, tuple) else (value,) * list_length(arg.type)
        return f"list_default<{', '.join(map(str, items))}>" if items else "{}"
    if type_ == "ScalarType" or type_ == "ScalarType?":
        return f"dtype_of_number({value})"  # as TorchScript writes a default
    if type_ == "Scalar":
        return f"Scalar({literal(value)})"
    return literal(float(value) if type_.startswith("float") else value)


def list_length(type_: str) -> int:
    """The length in "int[2]"; 1 where none is given."""
    return int(type_[type_.index("[") + 1 : type_.index("]")] or 1)


def literal(value: Any) -> str:
    """A Python constant as C++ writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, float):
        if value in (float("inf"), float("-inf")):
            return ("-" if value < 0 else "") + "std::numeric_limits<double>::infinity()"
        return repr(value)
    return str(value)


def quote(text: str) -> str:
    """A C++ string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + "".join(c if c.isprintable() else f"\\{ord(c):03o}" for c in escaped) + '"'


_BUILTINS = {
    "shape": "{0}.sizes()",
    "dtype": "{0}.dtype()",
    "device": "{0}.device()",
    "dim": "{0}.dim()",
    "numel": "{0}.numel()",
    "size": "{0}.size({1})",
    "stride": "{0}.strides()",
    "storage_offset": "{0}.offset()",
    "is_contiguous": "{0}.is_contiguous()",
    "same": "{0}.is_same({1})",
    "shapes_match": "same({0}, {1})",
    "len": "static_cast<int64_t>({0}.size())",
    "int": "{0}.to_int()",
    "is_integral": "{0}.is_integral()",
    "neg": "(-{0})",
    "not": "!{0}",
    "and": "({0} && {1})",
    "or": "({0} || {1})",
    "promote": "promote({0}, {1})",
    "max": "std::max({0}, {1})",
    "min": "std::min({0}, {1})",
    "default_dtype": "default_dtype()",
    "grad_enabled": "autograd::grad_enabled()",
    "list_or_empty": "{0}.value_or(IntList())",
    "lt": "({0} < {1})",
    "le": "({0} <= {1})",
    "gt": "({0} > {1})",
    "ge": "({0} >= {1})",
    "eq": "({0} == {1})",
    "ne": "({0} != {1})",
    "add": "({0} + {1})",
    "sub": "({0} - {1})",
    "mul": "({0} * {1})",
    "div": "({0} / {1})",
}
# Accessors of a tensor that a node kept only the looks of.
_META_MEMBERS = {
    "shape": ("shape", "{0}"),
    "dim": ("shape", "static_cast<int64_t>({0}.size())"),
    "numel": ("shape", "formula::product({0})"),
    "size": ("shape", "formula::at({0}, {1})"),
    "stride": ("stride", "{0}"),
    "storage_offset": ("offset", "{0}"),
    "dtype": ("dtype", "{0}"),
    "is_complex": ("dtype", "is_complex({0})"),
    "is_floating_point": ("dtype", "is_floating({0})"),
    "is_float8": ("dtype", "is_float8({0})"),
    "device": ("device", "{0}"),
    "sizes": ("sizes", "{0}"),
}
META_TYPES = {
    "shape": "Dims", "stride": "Dims", "offset": "int64_t", "dtype": "DType", "device": "Device",
    "sizes": "Dims",
}  # fmt: skip
META_READERS = {
    "shape": "{0}.sizes()", "stride": "{0}.strides()", "offset": "{0}.offset()",
    "dtype": "{0}.dtype()", "device": "{0}.device()",
}  # fmt: skip


def meta_member(accessor: str) -> str:
    """The suffix of the member that keeps what the accessor needs."""
    return _META_MEMBERS[accessor][0]


class Printer:
    """Prints formula trees. `kept`: (argument, member suffix) pairs a node has as members."""

    def __init__(self, kept: frozenset[tuple[str, str]] = frozenset()) -> None:
        self.kept = kept

    def expr(self, node: Expr) -> str:
        """The tree as a C++ expression."""
        return str(getattr(self, f"on_{node.kind}")(node))

    def all(self, nodes: Sequence[Expr]) -> list[str]:
        return [self.expr(node) for node in nodes]

    def on_const(self, node: Expr) -> str:
        if node.type == "ScalarType":
            return f"DType::{DTYPES[node.value]}"
        if node.type == "None":
            return "std::nullopt"
        if isinstance(node.value, str) and node.type == "float":
            sign, name = ("-", node.value[1:]) if node.value[0] == "-" else ("", node.value)
            limits = "std::numeric_limits<double>::"
            names = {"inf": f"{limits}infinity()", "nan": f"{limits}quiet_NaN()"}
            return sign + names.get(name, "std::numbers::pi")
        if node.type == "int":
            return f"int64_t{{{node.value}}}"
        return literal(node.value)

    def on_name(self, node: Expr) -> str:
        return str(node.value)

    def on_op(self, node: Expr) -> str:
        schema: Schema = node.value
        return f"ops::{schema.name}({', '.join(self.all(node.args))})"

    def on_builtin(self, node: Expr) -> str:
        name = str(node.value)
        if name in _META_MEMBERS and node.args:
            member, template = _META_MEMBERS[name]
            base = node.args[0]
            while base.kind == "convert":
                base = base.args[0]
            if base.kind == "name" and (base.value, member) in self.kept:
                rest = self.all(node.args[1:])
                return template.format(f"{base.value}_{member}_", *rest)
        if name == "not" and node.args[0].kind == "builtin" and node.args[0].value == "is_none":
            return self.present(node.args[0].args[0])
        if name == "is_none":
            return f"!{self.present(node.args[0])}"
        args = self.all(node.args)
        if name in ("is_complex", "is_floating_point", "is_float8"):
            dtype = args[0] if node.args[0].type == "ScalarType" else f"{args[0]}.dtype()"
            return f"{name.removesuffix('_point')}({dtype})"
        if name == "float":
            is_number = node.args[0].type != "Scalar"
            return f"static_cast<double>({args[0]})" if is_number else f"{args[0]}.to_double()"
        if name == "bool":
            tensor = node.args[0].type == "Tensor"
            return f"{args[0]}.item().to_bool()" if tensor else f"{args[0]}.to_bool()"
        scalars = bool(node.args) and node.args[0].type == "Scalar"
        if scalars and name in ("add", "sub", "mul", "div", "lt", "le", "gt", "ge"):
            return f"formula::{name}({', '.join(args)})"
        if name in _BUILTINS:
            return _BUILTINS[name].format(*args)
        return f"formula::{name}({', '.join(args)})"

    def present(self, node: Expr) -> str:
        """Whether an optional value is there."""
        has = "defined" if "Tensor" in node.type else "has_value"
        return f"{_wrap(self.expr(node))}.{has}()"

    def on_list(self, node: Expr) -> str:
        if node.type.startswith("Tensor"):
            return f"TensorList{{{', '.join(self.all(node.args))}}}"
        items = [str(a.value) if a.kind == "const" else self.expr(a) for a in node.args]
        return f"Dims{{{', '.join(items)}}}"

    def on_tuple(self, node: Expr) -> str:
        return f"{value_type(node.type)}({', '.join(self.all(node.args))})"

    def on_index(self, node: Expr) -> str:
        return f"std::get<{node.value}>({self.expr(node.args[0])})"

    def on_if(self, node: Expr) -> str:
        test, *sides = node.args
        type_ = value_type(node.type)
        a, b = (self.branch(side, type_) for side in sides)
        return f"({self.expr(test)} ? {a} : {b})"

    def branch(self, side: Expr, type_: str) -> str:
        same_type = side.kind in ("op", "builtin") and side.type in VALUES and side.type != "int[]"
        return self.expr(side) if same_type else f"{type_}({self.expr(side)})"

    def on_convert(self, node: Expr) -> str:
        (inner,) = node.args
        got, wanted = inner.type, node.type
        if got == "None":
            return _nothing(wanted)
        if got == "[]":
            return "TensorList{}" if wanted.startswith("Tensor") else "Dims{}"
        text = self.expr(inner)
        if is_optional(wanted):
            return (
                self.on_convert(Expr("convert", wanted[:-1], args=node.args))
                if (got != wanted[:-1] and not is_optional(got))
                else text
            )
        if is_optional(got):
            return text if "Tensor" in got else f"{_wrap(text)}.value()"
        if wanted == "Scalar":
            if inner.kind == "const" and got == "int":
                return f"Scalar({inner.value})"
            return f"Scalar({text})"
        if wanted == "float":
            if inner.kind == "const":
                return literal(float(inner.value))
            return f"static_cast<double>({text})"
        if wanted in ("ScalarType", "Layout", "MemoryFormat") and inner.kind == "const":
            return f"dtype_of_number({inner.value})" if wanted == "ScalarType" else text
        return text

    # ---- statements ----

    def block(self, statements: Sequence[Statement], indent: str) -> list[str]:
        """Statements as lines of C++."""
        return [line for statement in statements for line in self.statement(statement, indent)]

    def statement(self, node: Statement, indent: str) -> list[str]:
        if node.kind == "if":
            assert node.expr is not None
            lines = [f"{indent}if ({_bare(self.expr(node.expr))}) {{"]
            lines += self.block(node.then, indent + "  ")
            if node.other:
                lines += [f"{indent}}} else {{", *self.block(node.other, indent + "  ")]
            return [*lines, f"{indent}}}"]
        assert node.expr is not None
        text = self.expr(node.expr)
        if node.kind == "check":
            parts = ", ".join(self.message(part) for part in node.parts)
            return [f"{indent}WEFT_CHECK_AS({node.value}, {text}, {parts});"]
        if node.kind == "return":
            return [f"{indent}return {_bare(text)};"]
        if node.kind == "do":
            return [f"{indent}{text};"]
        if node.kind == "reassign":
            return [f"{indent}{node.value} = {_bare(text)};"]
        if isinstance(node.value, tuple):
            return [f"{indent}const auto [{', '.join(node.value)}] = {text};"]
        return [f"{indent}{value_type(node.expr.type)} {node.value} = {_bare(text)};"]

    def message(self, part: Expr) -> str:
        text = self.expr(part)
        if is_optional(part.type) and "Tensor" not in part.type:
            return f"{_wrap(text)}.value()"
        return f"AsTuple{{{text}}}" if part.type == "int[]" else text


def _nothing(type_: str) -> str:
    if type_ in ("Tensor", "Tensor?"):
        return "Tensor()"
    return "Ref<Generator>()" if type_ == "Generator?" else f"{_optional(type_)}()"


def _optional(type_: str) -> str:
    return parameter_type(type_)


def _wrap(text: str) -> str:
    return text if text.replace("_", "").replace(".", "").isalnum() else f"({text})"


def _bare(text: str) -> str:
    """Without the outer brackets of "(a + b)", where the text is one bracketed expression."""
    if not text.startswith("("):
        return text
    depth = 0
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return text[1:-1] if i == len(text) - 1 else text
    return text

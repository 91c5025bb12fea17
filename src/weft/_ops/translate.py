"""From Python source to formula trees: parsing, typing, and the choice of overloads."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from weft._kernels.types import DTYPES
from weft._ops.formulas import (
    BUILTINS,
    META,
    Expr,
    FormulaError,
    Statement,
    conversion_cost,
    return_type,
    tuple_types,
)
from weft._ops.schema import Schema, is_list, plain

_PROPERTIES = frozenset(("shape", "dtype", "device"))
_METHODS = META | {"is_contiguous"}
_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor",
}  # fmt: skip
_TENSOR_OP = {"floordiv": "floor_divide", "mod": "remainder"}
_COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_CHECKS = {
    "check": "Runtime", "check_value": "Value", "check_type": "Type", "check_index": "Index",
    "check_implemented": "NotImplemented",
}  # fmt: skip
_DTYPES = frozenset(dtype.python_name for dtype in DTYPES)


class Translator:
    """Parses the formulas of one row. `schemas`: every callable operator, by base name."""

    def __init__(self, owner: str, schemas: Mapping[str, Sequence[Schema]]) -> None:
        self.owner = owner
        self.schemas = schemas
        self.names: dict[str, str] = {}
        self.fixed: frozenset[str] = frozenset()
        self.source = ""

    # ---- entry points ----

    def formula(self, text: str, names: Mapping[str, str]) -> Expr:
        """One expression over `names` (name: type)."""
        self.names, self.source = dict(names), text
        try:
            tree = ast.parse(textwrap.dedent(text).strip(), mode="eval")
        except SyntaxError as error:
            self.fail(f"a Python expression ({error.msg})", text)
        return self.expr(tree.body)

    def body(
        self, body: str | Callable[..., Any], names: Mapping[str, str], returns: str
    ) -> list[Statement]:
        """A compose body: an expression or a function, that gives a value of type `returns`."""
        if isinstance(body, str):
            return [Statement("return", expr=self.convert(self.formula(body, names), returns))]
        self.names, self.fixed = dict(names), frozenset(names)
        self.source = textwrap.dedent(inspect.getsource(body))
        tree = ast.parse(self.source).body[0]
        if not isinstance(tree, ast.FunctionDef):
            self.fail("a function made by def", type(tree).__name__)
        return list(self.block(_without_docstring(tree.body), returns))

    def fail(self, expected: str, got: object) -> NoReturn:
        raise FormulaError(f"{self.owner}: expected {expected}, got {got}\n  in: {self.source}")

    # ---- statements ----

    def block(self, nodes: Sequence[ast.stmt], returns: str) -> tuple[Statement, ...]:
        return tuple(self.statement(node, returns) for node in nodes)

    def statement(self, node: ast.stmt, returns: str) -> Statement:
        if isinstance(node, ast.Return) and node.value is not None:
            return Statement("return", expr=self.convert(self.expr(node.value), returns))
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            return self.assign(node.targets[0], self.expr(node.value))
        if isinstance(node, ast.If):
            test = self.condition(node.test)
            before = dict(self.names)
            then = self.block(node.body, returns)
            self.names = dict(before)
            other = self.block(node.orelse, returns)
            self.names = before
            return Statement("if", expr=test, then=then, other=other)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            name = getattr(node.value.func, "attr", getattr(node.value.func, "id", ""))
            if name in _CHECKS:
                return self.check(name, node.value)
            return Statement("do", expr=self.expr(node.value))
        self.fail("an assignment, if, return, check or call", ast.unparse(node))

    def assign(self, target: ast.expr, value: Expr) -> Statement:
        if isinstance(target, ast.Tuple):
            names = [t.id for t in target.elts if isinstance(t, ast.Name)]
            types = tuple_types(value.type) if value.type.startswith("(") else []
            if len(names) != len(types):
                self.fail(f"{len(names)} values", value.type)
            self.names.update(zip(names, types))
            return Statement("assign", value=tuple(names), expr=value)
        if not isinstance(target, ast.Name):
            self.fail("a name to assign to", ast.unparse(target))
        if target.id in self.fixed:
            self.fail("a name that is no argument's to assign to", target.id)
        if target.id in self.names:
            value = self.convert(value, self.names[target.id])
            return Statement("reassign", value=target.id, expr=value)
        self.names[target.id] = value.type
        return Statement("assign", value=target.id, expr=value)

    def check(self, name: str, node: ast.Call) -> Statement:
        parts = tuple(self.expr(part) for part in node.args[1:])
        return Statement("check", _CHECKS[name], self.condition(node.args[0]), parts=parts)

    # ---- expressions ----

    def condition(self, node: ast.expr) -> Expr:
        expr = self.expr(node)
        return expr if expr.type == "bool" else self.builtin("bool", expr)

    def expr(self, node: ast.expr) -> Expr:
        method = getattr(self, f"on_{type(node).__name__.lower()}", None)
        if method is None:
            self.fail("an expression of the formula language", ast.unparse(node))
        result = method(node)
        assert isinstance(result, Expr)
        return result

    def on_constant(self, node: ast.Constant) -> Expr:
        types = {bool: "bool", int: "int", float: "float", str: "str", type(None): "None"}
        return Expr("const", types[type(node.value)], node.value)

    def on_name(self, node: ast.Name) -> Expr:
        if node.id in self.names:
            return Expr("name", self.names[node.id], node.id)
        if node.id in ("inf", "nan", "pi"):
            return Expr("const", "float", node.id)
        if node.id in _DTYPES:
            return Expr("const", "ScalarType", node.id)
        self.fail(f"a name among {', '.join(self.names)}", repr(node.id))

    def on_list(self, node: ast.List) -> Expr:
        items = tuple(self.expr(item) for item in node.elts)
        if not items:
            return Expr("list", "[]")
        if all(item.type in ("int", "int?") for item in items):
            return Expr("list", "int[]", args=tuple(self.convert(i, "int") for i in items))
        return Expr("list", "Tensor[]", args=tuple(self.convert(i, "Tensor") for i in items))

    def on_tuple(self, node: ast.Tuple) -> Expr:
        values = [self.expr(item) for item in node.elts]
        items = tuple(self.convert(v, "Tensor") if v.type == "None" else v for v in values)
        return Expr("tuple", f"({', '.join(item.type for item in items)})", args=items)

    def on_attribute(self, node: ast.Attribute) -> Expr:
        if isinstance(node.value, ast.Name) and node.value.id == "ops":
            return self.on_name(ast.Name(node.attr))
        base = self.expr(node.value)
        if node.attr in _PROPERTIES:
            return self.builtin(node.attr, base)
        if node.attr in ("mT", "mH"):
            minus = [Expr("const", "int", at) for at in (-2, -1)]
            turned = self.op("transpose", [base, *minus], {})
            return self.op("conj", [turned], {}) if node.attr == "mH" else turned
        self.fail("shape, dtype, device, mT or mH", ast.unparse(node))

    def on_call(self, node: ast.Call) -> Expr:
        if any(keyword.arg is None for keyword in node.keywords):
            self.fail("arguments by name", ast.unparse(node))
        kwargs = {str(keyword.arg): self.expr(keyword.value) for keyword in node.keywords}
        args = [self.expr(arg) for arg in node.args]
        if isinstance(node.func, ast.Name):
            return self.function(node.func.id, args, kwargs)
        if isinstance(node.func, ast.Attribute):
            if isinstance(node.func.value, ast.Name) and node.func.value.id == "ops":
                return self.function(node.func.attr, args, kwargs)
            return self.method(node.func.attr, self.expr(node.func.value), args, kwargs)
        self.fail("a function or a method", ast.unparse(node))

    def function(self, name: str, args: list[Expr], kwargs: dict[str, Expr]) -> Expr:
        if name in self.schemas and not (args and args[0].type not in _tensor_like(args)):
            return self.op(name, args, kwargs)
        if name in BUILTINS and not kwargs:
            return self.builtin(name, *args)
        return self.op(name, args, kwargs)

    def method(self, name: str, base: Expr, args: list[Expr], kwargs: dict[str, Expr]) -> Expr:
        if name in _METHODS or (name in ("conj",) and base.type == "Scalar"):
            return self.builtin(name, base, *args)
        if name == "stride" and args:
            return self.builtin("at", self.builtin("stride", base), *args)
        return self.op(name, [base, *args], kwargs)

    def on_binop(self, node: ast.BinOp) -> Expr:
        name = _BINARY.get(type(node.op))
        if name is None:
            self.fail("an operator", ast.unparse(node))
        return self.binary(name, self.expr(node.left), self.expr(node.right))

    def binary(self, name: str, a: Expr, b: Expr) -> Expr:
        if _is_tensor(a) or _is_tensor(b):
            name = _TENSOR_OP.get(name, name)
            if _is_tensor(a) or name == "pow":
                return self.op(name, [a, b], {})
            if name in ("add", "mul"):
                return self.op(name, [b, a], {})
            if name == "sub":
                return self.op("rsub", [b, a], {})
            if name == "div":
                return self.op("mul", [self.op("reciprocal", [b], {}), a], {})
            self.fail("a tensor on the left", name)
        if name == "add" and (is_list(a.type) or a.type == "[]"):
            return self.builtin("concat", a, b)
        return self.builtin(name, a, b)

    def on_unaryop(self, node: ast.UnaryOp) -> Expr:
        if isinstance(node.op, ast.Not):
            return self.builtin("not", self.condition(node.operand))
        value = self.expr(node.operand)
        if isinstance(node.op, ast.USub):
            if value.kind == "const" and isinstance(value.value, (int, float)):
                return Expr("const", value.type, -value.value)
            if value.kind == "const":
                return Expr("const", value.type, f"-{value.value}")
            return self.op("neg", [value], {}) if _is_tensor(value) else self.builtin("neg", value)
        if isinstance(node.op, ast.Invert):
            return self.op("bitwise_not", [value], {})
        self.fail("not, - or ~", ast.unparse(node))

    def on_boolop(self, node: ast.BoolOp) -> Expr:
        name = "and" if isinstance(node.op, ast.And) else "or"
        result = self.condition(node.values[0])
        for value in node.values[1:]:
            result = self.builtin(name, result, self.condition(value))
        return result

    def on_compare(self, node: ast.Compare) -> Expr:
        if len(node.ops) != 1:
            self.fail("one comparison", ast.unparse(node))
        a, b, how = self.expr(node.left), self.expr(node.comparators[0]), node.ops[0]
        if isinstance(how, (ast.Is, ast.IsNot)):
            if b.type != "None":
                self.fail("is None", ast.unparse(node))
            none = Expr("builtin", "bool", "is_none", (a,))
            return none if isinstance(how, ast.Is) else self.builtin("not", none)
        name = _COMPARE.get(type(how))
        if name is None:
            self.fail("a comparison", ast.unparse(node))
        if _is_tensor(a) or _is_tensor(b):
            if not _is_tensor(a):
                name = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}.get(name, name)
                a, b = b, a
            return self.op(name, [a, b], {})
        if is_list(a.type) and name in ("eq", "ne"):
            match = self.builtin("shapes_match", a, b)
            return match if name == "eq" else self.builtin("not", match)
        return self.builtin(name, a, b)

    def on_ifexp(self, node: ast.IfExp) -> Expr:
        test, a, b = self.condition(node.test), self.expr(node.body), self.expr(node.orelse)
        type_ = self.common_type(a.type, b.type)
        return Expr("if", type_, args=(test, self.convert(a, type_), self.convert(b, type_)))

    def common_type(self, a: str, b: str) -> str:
        for wanted in (a, b, f"{a}?", f"{b}?"):
            if None not in (conversion_cost(a, wanted), conversion_cost(b, wanted)):
                return wanted
        self.fail(f"two values of type {a}", b)

    def on_subscript(self, node: ast.Subscript) -> Expr:
        if isinstance(node.slice, ast.Slice):
            base = self.expr(node.value)
            ends = [
                self.expr(end) if end else Expr("const", "None")
                for end in (node.slice.lower, node.slice.upper)
            ]
            return self.builtin("slice_of", base, *ends)
        if isinstance(node.value, ast.Name) and node.value.id == "grads":
            if not isinstance(node.slice, ast.Constant):
                self.fail("grads[number]", ast.unparse(node))
            name = f"grads[{node.slice.value!r}]"
            if name not in self.names:
                self.fail("the number of a result", name)
            return Expr("name", "Tensor", name)
        base, index = self.expr(node.value), self.expr(node.slice)
        if base.type.startswith("("):
            if index.kind != "const":
                self.fail("a constant index", ast.unparse(node))
            return Expr("index", tuple_types(base.type)[index.value], index.value, (base,))
        return self.builtin("at", base, index)

    # ---- resolution ----

    def builtin(self, name: str, *args: Expr) -> Expr:
        best: tuple[int, tuple[str, ...], str] | None = None
        for types, returns in BUILTINS.get(name, ()):
            costs = [conversion_cost(a.type, t) for a, t in zip(args, types)]
            if len(args) == len(types) and None not in costs:
                cost = sum(c for c in costs if c is not None)
                if best is None or cost < best[0]:
                    best = (cost, types, returns)
        if best is None:
            self.fail(f"arguments that {name} takes", f"({', '.join(a.type for a in args)})")
        converted = tuple(self.convert(a, t) for a, t in zip(args, best[1]))
        return Expr("builtin", best[2], name, converted)

    def op(self, name: str, args: list[Expr], kwargs: dict[str, Expr]) -> Expr:
        if name not in self.schemas:
            self.fail("an operator of the table", repr(name))
        best: tuple[int, Schema, list[Expr]] | None = None
        for schema in self.schemas[name]:
            match = self.match(schema, args, kwargs)
            if match is not None and (best is None or match[0] < best[0]):
                best = (match[0], schema, match[1])
        if best is None:
            types = [a.type for a in args] + [f"{k}={v.type}" for k, v in kwargs.items()]
            self.fail(f"arguments that {name} takes", f"({', '.join(types)})")
        _, schema, values = best
        return Expr("op", return_type(schema), schema, tuple(values))

    def match(
        self, schema: Schema, args: list[Expr], kwargs: dict[str, Expr]
    ) -> tuple[int, list[Expr]] | None:
        positional = [arg for arg in schema.args if not arg.kwarg_only]
        if len(args) > len(positional) or not set(kwargs) <= {arg.name for arg in schema.args}:
            return None
        given = {arg.name: value for arg, value in zip(positional, args)}
        if set(given) & set(kwargs):
            return None
        given.update(kwargs)
        cost, values = 0, []
        for arg in schema.args:
            value = given.get(arg.name)
            if value is None:
                if not arg.has_default:
                    return None
                values.append(_default(arg.default, arg.type))
                continue
            step = conversion_cost(value.type, plain(arg.type))
            if step is None and value.type == "int" and plain(arg.type) in ("int[]", "int[]?"):
                value, step = Expr("list", "int[]", args=(value,)), 3
            if step is None:
                return None
            cost += step
            values.append(self.convert(value, plain(arg.type)))
        return cost, values

    def convert(self, expr: Expr, wanted: str) -> Expr:
        if expr.type == wanted:
            return expr
        if wanted.startswith("(") and expr.kind == "tuple":
            types = tuple_types(wanted)
            items = tuple(self.convert(item, type_) for item, type_ in zip(expr.args, types))
            return Expr("tuple", wanted, args=items)
        if expr.type == "None" and wanted == "Tensor":
            return Expr("convert", "Tensor", args=(expr,))
        if conversion_cost(expr.type, wanted) is None:
            self.fail(f"a value of type {wanted}", expr.type)
        return Expr("convert", wanted, args=(expr,))


def _is_tensor(expr: Expr) -> bool:
    return expr.type in ("Tensor", "Tensor?")


def _tensor_like(args: Sequence[Expr]) -> tuple[str, ...]:
    """First-argument types for which a name means the operator, not the builtin."""
    return ("Tensor", "Tensor?", "Tensor[]", "Tensor?[]", "Scalar") if len(args) > 1 else (
        "Tensor", "Tensor?", "Tensor[]", "int[]", "[]",
    )  # fmt: skip


def _default(value: Any, type_: str) -> Expr:
    """The default of an argument, already of the argument's type."""
    wanted = plain(type_)
    if value is None:
        return Expr("convert", wanted, args=(Expr("const", "None"),))
    if is_list(type_):
        length = int(type_[type_.index("[") + 1 : type_.index("]")] or 0)
        items = value if isinstance(value, tuple) else (value,) * max(length, 1)
        return Expr("list", wanted, args=tuple(Expr("const", "int", item) for item in items))
    got = {bool: "bool", int: "int", float: "float", str: "str"}[type(value)]
    const = Expr("const", got, value)
    return const if got == wanted else Expr("convert", wanted, args=(const,))


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        return body[1:]
    return body

"""Parameters, and what a definition takes and gives: annotations, type comments, defaults."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from weft.jit.frontend.source.code import Code
from weft.jit.frontend.source.errors import (
    REFUSED_FORMS,
    FrontendError,
    NotSupportedError,
    fail,
    refuse_form,
)
from weft.jit.frontend.source.resolver import MISSING
from weft.jit.frontend.types.annotations import GENERIC, Annotations, type_of_value
from weft.jit.frontend.types.names import as_type
from weft.jit.frontend.values import Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.fresh_stack import parse
from weft.jit.ir.graph import Function, Graph
from weft.jit.ir.record import NamedTuple
from weft.jit.ir.source import SourceRange


class Declared(NamedTuple):
    """A parameter as written. `type` is None where nothing is written, GENERIC where it is open."""

    name: str
    type: Any
    default: Any
    kwarg_only: bool
    node: ast.arg
    length: int | None = None  # as in Parameter
    nameless: bool = False

    @property
    def has_default(self) -> bool:
        """Whether a call may leave it out."""
        return self.default is not MISSING


class Signature(NamedTuple):
    """Parameters and result of a definition. `returns` None: found out by compiling."""

    parameters: list[Declared]
    returns: Any
    varargs: ast.arg | None


_DTYPES: dict[Any, ty.Type] = {ty.INT: ty.DTYPE, ty.OptionalType(ty.INT): ty.OptionalType(ty.DTYPE)}


def signature_of(
    node: ast.FunctionDef | ast.Lambda,
    code: Code,
    annotations: Annotations,
    defaults: dict[str, Any],
    is_method: bool = False,
    generic: bool = False,
) -> Signature:
    """The signature of a definition; `defaults` are the values Python has for them."""
    args = node.args
    if getattr(node, "type_params", None) and not generic:
        refuse_form(code, node, "generic function")
    if args.kwarg is not None:
        refuse_form(code, args.kwarg, "kwargs")
    if args.vararg is not None and not generic:
        refuse_form(code, args.vararg, "varargs")
    positional = [*args.posonlyargs, *args.args]
    commented, returned = _type_comment(node, code, annotations, positional, is_method)
    written = dict(zip(reversed(positional), reversed(args.defaults)))
    written.update({a: d for a, d in zip(args.kwonlyargs, args.kw_defaults) if d is not None})
    parameters = []
    for index, arg in enumerate([*positional, *args.kwonlyargs]):
        type_: Any = None
        if is_method and index == 0:
            type_ = None
        elif arg.annotation is not None:
            type_ = annotations.read(arg.annotation)
        elif arg.type_comment is not None:
            type_ = annotations._of_text(arg.type_comment, arg)
        else:
            type_ = commented.get(arg)
        if arg.arg.endswith("dtype") and not (generic or code.is_archived):
            type_ = _DTYPES.get(type_, type_)  # PyTorch's programs write int for it
        default = defaults.get(arg.arg, MISSING)
        if default is MISSING and arg in written:
            default = _default(written[arg], annotations)
        length = annotations.length(arg.annotation)
        if length is not None and isinstance(default, int | float):
            default = [default] * length
        named, nameless = index >= len(positional), index < len(args.posonlyargs)
        parameters.append(Declared(arg.arg, type_, default, named, arg, length, nameless))
    returns: Any = returned
    if isinstance(node, ast.FunctionDef) and node.returns is not None:
        returns = annotations.read(node.returns)
    return Signature(parameters, None if returns is GENERIC else returns, args.vararg)


def _type_comment(
    node: ast.FunctionDef | ast.Lambda,
    code: Code,
    annotations: Annotations,
    positional: Sequence[ast.arg],
    is_method: bool,
) -> tuple[dict[ast.arg, Any], Any]:
    """The types of `# type: (Tensor, int) -> Tensor`, by argument, and of the result."""
    text = getattr(node, "type_comment", None)
    if text is None:
        return {}, None
    place = ast.copy_location(ast.Name("", ast.Load()), node)
    try:
        parsed = parse(text if "->" in text else f"{text} -> _", mode="func_type")
    except SyntaxError:
        fail(f"type comment: expected (types) -> type, got {text!r}", code.range(node))
    assert isinstance(parsed, ast.FunctionType)
    wanted = list(positional[1:] if is_method else positional)
    types = parsed.argtypes
    is_dots = len(types) == 1 and isinstance(types[0], ast.Constant) and types[0].value is ...
    if not is_dots and len(types) != len(wanted):
        fail(
            f"type comment: expected {len(wanted)} types, one for each argument, got {len(types)}",
            code.range(node),
        )

    def read(expression: ast.expr) -> Any:
        return annotations._of_text(ast.unparse(expression), place)

    by_arg = {} if is_dots else {arg: read(each) for arg, each in zip(wanted, types)}
    return by_arg, read(parsed.returns) if "->" in text else None


def _default(node: ast.expr, annotations: Annotations) -> Any:
    """A default of source that was never run: a literal, a name of a value such as inf or a member
    of an enum, what a name makes of literals (torch.device("cpu")), or a tuple of these."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _default(node.operand, annotations)
        if isinstance(inner, float):
            return -inner
    if isinstance(node, ast.Tuple):
        return tuple(_default(each, annotations) for each in node.elts)
    if isinstance(node, ast.Name | ast.Attribute):
        found = annotations.object(node)
        if type_of_value(found) is not None:
            return found
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        called = annotations.object(node.func)
        if isinstance(called, Sugared) and hasattr(called, "constant_of") and not node.keywords:
            return called.constant_of(*(_default(each, annotations) for each in node.args))
    fail(f"default: expected a literal, got {ast.unparse(node)}", annotations.code.range(node))


def defaults_of(function: Any) -> dict[str, Any]:
    """The default values of a Python function by parameter name."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    values = function.__defaults__ or ()
    found = dict(zip(names[len(names) - len(values) :], values))
    found.update(function.__kwdefaults__ or {})
    return found


def parameter_of(declared: Declared, type_: ty.Type, code: Code) -> Parameter:
    """The parameter of that type; FrontendError for a default that is none of its values."""
    made = _with_default(declared, type_, code)
    return made._replace(length=declared.length, nameless=declared.nameless)


def _with_default(declared: Declared, type_: ty.Type, code: Code) -> Parameter:
    if not declared.has_default:
        return Parameter(declared.name, type_, kwarg_only=declared.kwarg_only)
    default = as_type(declared.default, type_)
    if default is MISSING:
        got = type_of_value(declared.default)
        shown = type(declared.default).__name__ if got is None else got.annotation
        fail(
            f"{declared.name}: expected a default of type {type_.annotation}, got {shown}",
            code.range(declared.node),
            f"{declared.name}: {shown} = ..." if declared.type is None and got else None,
        )
    return Parameter(declared.name, type_, default, True, declared.kwarg_only)


def type_or_tensor(declared: Declared, code: Code) -> ty.Type:
    """The type of a parameter; Tensor where none is written."""
    if declared.type is None:
        return ty.TENSOR
    if not isinstance(declared.type, ty.Type):
        fail(f"{declared.name}: expected a type of the language", code.range(declared.node))
    return declared.type


class Parameter(NamedTuple):
    """What the matcher needs to know of a parameter; `length` is the 2 of `int[2]`."""

    name: str
    type: ty.Type
    default: Any = None
    has_default: bool = False
    kwarg_only: bool = False
    length: int | None = None
    var_list: bool = False  # trailing numbers may be given one by one: view(2, 3)
    rest: bool = False  # a tuple of all further arguments
    read: bool = False  # nobody writes to a list for it: a copy serves
    nameless: bool = False  # before a /: given by position alone


def bind_type(formal: ty.Type, actual: ty.Type, bindings: dict[str, ty.Type]) -> bool:
    """Whether a value of type `actual` fits `formal`; type variables are bound."""
    if isinstance(formal, ty.TypeVar):
        known = bindings.get(formal.name)
        if known is None:
            bindings[formal.name] = actual
            return True
        return ty.is_subtype(actual, known)
    if isinstance(formal, ty.OptionalType):
        if actual is ty.NONE:
            return True
        return bind_type(formal.elem, ty.non_none(actual), bindings)
    if formal.children and type(formal) is type(actual) and not isinstance(formal, ty.UnionType):
        if len(formal.children) != len(actual.children):
            return False
        if not ty.has_variables(formal):
            return ty.is_subtype(actual, formal)
        return all(
            _bind_invariant(f, a, bindings) for f, a in zip(formal.children, actual.children)
        )
    return ty.is_subtype(actual, formal)


def _bind_invariant(formal: ty.Type, actual: ty.Type, bindings: dict[str, ty.Type]) -> bool:
    if isinstance(formal, ty.TypeVar):
        known = bindings.setdefault(formal.name, actual)
        return known == actual
    if ty.has_variables(formal):
        return bind_type(formal, actual, bindings)
    return formal == actual


class Compiled:
    """A function on its way to the IR, or there. `returns` is None until it is known."""

    def __init__(self, name: str, parameters: list[Parameter], returns: ty.Type | None) -> None:
        self.name = name
        self.parameters = parameters
        self.returns = returns
        self.function = Function(name, Graph(), [p.name for p in parameters])
        self.function.defaults = {p.name: p.default for p in parameters if p.has_default}
        self.function.lengths = {p.name: p.length for p in parameters if p.length is not None}
        self.error: FrontendError | None = None
        self.walk = ""  # the digest of what it depended on

    def known_return(self, range: SourceRange) -> ty.Type:
        """The return type; a function that is still being compiled must declare it."""
        if self.returns is None:
            refusal = REFUSED_FORMS["recursion"]
            raise NotSupportedError(
                f"expected syntax of the language, got {refusal.what}", range, refusal.instead
            )
        return self.returns

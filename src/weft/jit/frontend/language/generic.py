"""weft's own Python functions, whose annotations may be open (Any, Sequence): compiled once for
each combination of argument types and of flags known while compiling."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import Scope
from weft.jit.frontend.language.calls import Mismatch, match
from weft.jit.frontend.language.conversions import LEVELS
from weft.jit.frontend.language.functions import (
    FunctionValue,
    begin,
    body_result,
    compile_body,
    compile_function,
)
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.code import code_of, function_definition
from weft.jit.frontend.source.errors import FrontendError, callers, compiling, fail
from weft.jit.frontend.source.resolver import MISSING, resolver_of_function
from weft.jit.frontend.types.annotations import Annotations
from weft.jit.frontend.types.names import qualified_name
from weft.jit.frontend.types.signatures import (
    Compiled,
    Declared,
    Parameter,
    Signature,
    defaults_of,
    parameter_of,
    signature_of,
    type_or_tensor,
)
from weft.jit.frontend.values import UNKNOWN, Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.source import SourceRange

_MAX_INLINE = 32


class Template:
    """A definition with open annotations and what has been compiled from it."""

    def __init__(self, function: Any, is_method: bool = False) -> None:
        self.node, self.code = function_definition(
            function, "a method" if is_method else "a function"
        )
        self.resolver = resolver_of_function(function)
        self.name = qualified_name(function)
        annotations = Annotations(self.code, self.resolver, generic=True)
        found = signature_of(
            self.node, self.code, annotations, defaults_of(function), is_method, generic=True
        )
        own = found.parameters[1:] if is_method else found.parameters
        self.signature: Signature = found._replace(parameters=own)
        self.made: dict[Any, Compiled] = {}


@functools.cache
def template_of(function: Any, is_method: bool = False) -> Template:
    """The template of a Python function; of a method without its first parameter."""
    return Template(function, is_method)


class GenericFunction(Sugared):
    """A function of weft that is written in Python."""

    def __init__(self, function: Any) -> None:
        self.function = getattr(function, "_weft_unwrapped", function)

    def describe(self) -> str:
        return f"the function {self.function.__qualname__}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        with compiling(self.function.__qualname__, c.name, call.range):
            return call_template(c, template_of(self.function), call)

    def key(self) -> Any:
        return ("generic function", self.function)


def bind(c: Compiler, name: str, signature: Signature, call: Call) -> dict[str, Sugared]:
    """What each parameter is in one call."""
    given, rest = list(call.args), dict(call.kwargs)
    bound: dict[str, Sugared] = {}
    for parameter in signature.parameters:
        if given and not parameter.kwarg_only:
            arg = given.pop(0)
        elif parameter.name in rest:
            arg = rest.pop(parameter.name)
        elif parameter.has_default:
            arg = Arg(c.sugar(parameter.default, call.range, parameter.name), call.range)
        else:
            fail(f"{name}: expected an argument '{parameter.name}', got none", call.range)
        bound[parameter.name] = _as_declared(c, parameter, arg)
    if signature.varargs is not None:
        bound[signature.varargs.arg] = TupleLiteral([arg.value for arg in given])
        given = []
    if given or rest:
        extra = (
            f"argument '{next(iter(rest))}'" if rest else f"{len(call.args)} positional arguments"
        )
        most = len(signature.parameters)
        fail(f"{name}: expected at most {most} arguments, got {extra}", call.range)
    return bound


def _as_declared(c: Compiler, parameter: Declared, arg: Arg) -> Sugared:
    if not isinstance(parameter.type, ty.Type) or parameter.type is ty.ANY:
        return arg.value
    made = c.convert(arg.value, parameter.type, arg.range, parameter.name)
    same = isinstance(arg.value, Simple | TupleLiteral) and made.type == c.type_of(
        arg.value, arg.range
    )
    return arg.value if same else Simple(made)


def _part(c: Compiler, value: Sugared, range: SourceRange) -> tuple[str, Any]:
    """What of an argument decides about the compiled code."""
    known = value.static(c)
    if isinstance(known, bool | str | int | None.__class__) and known is not UNKNOWN:
        return "constant", (type(known), known)
    if isinstance(value, TupleLiteral):
        parts = tuple(_part(c, item, range) for item in value.items)
        if any(kind == "object" for kind, _ in parts):
            return "object", value.key()
    try:
        return "type", c.type_of(value, range)
    except FrontendError:
        return "object", value.key()


def call_template(
    c: Compiler, template: Template, call: Call, owner: Sugared | None = None
) -> Sugared:
    """A call of a template; `owner` is the self of a method."""
    bound = bind(c, template.name.rpartition(".")[2], template.signature, call)
    parts = {name: _part(c, value, call.range) for name, value in bound.items()}
    if owner is not None or any(kind == "object" for kind, _ in parts.values()):
        return _inline(c, template, bound, owner, call.range)
    key = tuple(parts.values())
    compiled = template.made.get(key)
    if compiled is None or compiled.error is not None:
        try:
            compiled = _specialize(template, bound, parts, c, call.range)
        except FrontendError as error:
            if not c.annotations.generic:
                _refuse_flag(template, parts, error, call.range)
            raise
    values = [bound[p.name].value(c, call.range) for p in compiled.parameters]
    returns = compiled.known_return(call.range)
    attrs = {"function": compiled.function}
    return Simple(c.emit("prim::CallFunction", values, returns, attrs, call.range))


def _refuse_flag(
    template: Template, parts: dict[str, tuple[str, Any]], why: FrontendError, range: SourceRange
) -> None:
    """Says it where the result has another type for True than for False, as by return_indices."""
    flags = [name for name, part in parts.items() if part == ("type", ty.BOOL)]
    if "expected one type on both paths" in why.message and flags:
        name = template.name.rpartition(".")[2]
        fail(
            f"{name}: expected True or False for {' and '.join(flags)}, "
            "by which the type of the result is chosen, got a value not known while compiling",
            range,
            f"an if with a call for {flags[0]}=True and one for {flags[0]}=False",
        )


def _specialize(
    template: Template,
    bound: dict[str, Sugared],
    parts: dict[str, tuple[str, Any]],
    caller: Compiler,
    range: SourceRange,
) -> Compiled:
    parameters = [Parameter(name, caller.type_of(value, range)) for name, value in bound.items()]
    declared = template.signature.returns
    number = len(template.made)
    name = template.name if not number else f"{template.name}__{number}"
    compiled = Compiled(name, parameters, declared)
    template.made[tuple(parts.values())] = compiled
    short = template.name.rpartition(".")[2]
    c = begin(compiled, template.code, template.resolver, short, generic=True)
    for value, name in zip(compiled.function.graph.inputs, bound):
        kind, known = parts[name]
        given = bound[name]
        if kind == "constant":
            c.scope.set(name, Simple(c.constant(known[1])))
        elif kind == "type" and isinstance(given, TupleLiteral) and not given.fields:
            # Of a tuple of which some items are None those stay known in the body.
            c.scope.set(name, TupleLiteral(c.unpack_tuple(value, range), type=given.type))
    compile_body(c, template.node, compiled)
    return compiled


def _inline(
    c: Compiler,
    template: Template,
    bound: dict[str, Sugared],
    owner: Sugared | None,
    range: SourceRange,
) -> Sugared:
    """The body in place of the call, for arguments that are no values."""
    depth = c.inlined
    if depth > _MAX_INLINE:
        fail(f"{template.name}: expected no recursion with arguments that are no values", range)
    scope = Scope()
    if owner is not None:
        scope.set(template.node.args.args[0].arg, owner)
    for name, value in bound.items():
        scope.set(name, value)
    generic = c.annotations.generic
    c.inlined = depth + 1
    try:
        with c.as_function(template.code, template.resolver, scope, template.signature.returns):
            c.annotations.generic = True
            return body_result(c, template.node)
    finally:
        c.annotations.generic = generic
        c.inlined = depth


@verb("call")
def call_function(
    c: Compiler, function: Callable[..., Any], range: SourceRange, *args: Sugared, **kwargs: Sugared
) -> Sugared:
    """A call of one of weft's own Python functions with values."""
    named = {name: Arg(value, range) for name, value in kwargs.items()}
    return GenericFunction(function).call(c, Call.of(range, *args)._replace(kwargs=named))


# qualified name -> the functions marked @_overload (or @_overload_method), in order
FUNCTIONS: dict[str, list[Any]] = {}
_MAX_CALL_DEPTH = 64
_made: dict[tuple[Any, int], Compiled] = {}


def register(function: Any) -> Any:
    """Remembers the signature of a function marked @_overload."""
    known = FUNCTIONS.setdefault(qualified_name(function), [])
    known[:] = [f for f in known if f.__code__.co_firstlineno != function.__code__.co_firstlineno]
    known.append(function)
    return function


def overloads_of(function: Any) -> list[Any]:
    """The overloads of an implementation; empty where it has none."""
    return FUNCTIONS.get(qualified_name(function), [])


def signature_of_overload(function: Any, is_method: bool = False) -> Signature:
    """The signature written at one overload."""
    node, code = function_definition(function)
    annotations = Annotations(code, resolver_of_function(function))
    return signature_of(node, code, annotations, defaults_of(function), is_method)


def overload_parameters(
    function: Any, implementation: Any, is_method: bool = False
) -> tuple[list[Parameter], Any]:
    """Parameters and result of an overload. The defaults are the implementation's, as in Python;
    an overload may repeat them."""
    code = code_of(function)
    signature = signature_of_overload(function, is_method)
    defaults = defaults_of(implementation)
    parameters = []
    for each in signature.parameters[1:] if is_method else signature.parameters:
        default = defaults.get(each.name, MISSING)
        if each.has_default and each.default is not ... and each.default != default:
            shown = "none" if default is MISSING else repr(default)
            fail(
                f"{each.name}: expected the default of the implementation, {shown}, got "
                f"{each.default!r}",
                code.range(each.node),
            )
        declared = each._replace(default=default)
        parameters.append(parameter_of(declared, type_or_tensor(each, code), code))
    return parameters, signature.returns


def choose_overload(
    c: Compiler, name: str, parameters: Sequence[Sequence[Parameter]], call: Call
) -> int:
    """Which of several parameter lists fits first; FrontendError lists them if none does."""
    why: list[str] = []
    for level in LEVELS:
        why = []
        for index, each in enumerate(parameters):
            found = match(c, each, call, level)
            if not isinstance(found, Mismatch):
                return index
            shown = ", ".join(f"{p.name}: {p.type.annotation}" for p in each)
            why.append(f"  ({shown}): {found.reason}")
    fail(f"{name}: expected arguments that fit one of these:\n" + "\n".join(why), call.range)


def pick_overload(
    c: Compiler, implementation: Any, overloads: Sequence[Any], call: Call
) -> Sugared:
    """The overload that fits the arguments. All are compiled: one that cannot be is refused."""
    found = [overload_parameters(each, implementation) for each in overloads]
    lists = [parameters for parameters, _ in found]
    chosen = choose_overload(c, implementation.__qualname__, lists, call)
    with compiling(implementation.__qualname__, c.name, call.range):
        made = [_compiled(implementation, index, *each) for index, each in enumerate(found)]
    return FunctionValue(made[chosen])


def _compiled(
    implementation: Any, index: int, parameters: list[Parameter], returns: Any
) -> Compiled:
    known = _made.get((implementation, index))
    if known is not None and known.error is None:
        return known
    node, code = function_definition(implementation)
    compiled = Compiled(f"{qualified_name(implementation)}__{index}", parameters, returns)
    _made[implementation, index] = compiled
    resolver = resolver_of_function(implementation)
    inner = begin(compiled, code, resolver, implementation.__name__)
    try:
        compile_body(inner, node, compiled)
    except BaseException:
        del _made[implementation, index]
        raise
    return compiled


class PythonFunction(Sugared):
    """A Python function that is compiled when it is called."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def describe(self) -> str:
        return f"the function {self.function.__qualname__}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        return self.resolved(c, call).call(c, call)

    def resolved(self, c: Compiler, call: Call) -> Sugared:
        """The compiled function, or the overload that fits the arguments."""
        if len(callers()) > _MAX_CALL_DEPTH:
            fail("expected a shorter chain of calls between functions", call.range)
        overloads = overloads_of(self.function)
        if overloads:
            return pick_overload(c, self.function, overloads, call)
        extra = getattr(c.resolver, "extra", {})
        return FunctionValue(compile_function(self.function, extra, c.name, call.range))

    def key(self) -> Any:
        return ("python function", self.function)

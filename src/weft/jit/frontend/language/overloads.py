"""@_overload: several signatures for one implementation, each compiled as a function of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import Mismatch, match
from weft.jit.frontend.language.conversions import LEVELS
from weft.jit.frontend.language.functions import (
    FunctionValue,
    begin,
    compile_body,
    compile_function,
)
from weft.jit.frontend.source.code import code_of, function_definition
from weft.jit.frontend.source.errors import callers, compiling, fail
from weft.jit.frontend.source.resolver import MISSING, resolver_of_function
from weft.jit.frontend.types.annotations import Annotations
from weft.jit.frontend.types.names import qualified_name
from weft.jit.frontend.types.parameters import Compiled, Parameter
from weft.jit.frontend.types.signatures import (
    Signature,
    defaults_of,
    parameter_of,
    signature_of,
    type_or_tensor,
)
from weft.jit.frontend.values import Call, Sugared

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

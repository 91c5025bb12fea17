"""f-strings and % on literals."""

from __future__ import annotations

import ast

from weft.jit.frontend.calls import call_operator
from weft.jit.frontend.conversions import type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import FrontendError
from weft.jit.frontend.expressions import expr
from weft.jit.frontend.scaffold import expression, refuse_form
from weft.jit.frontend.sugared import Arg, Simple, Sugared
from weft.jit.ir import types as ty


@expression(ast.JoinedStr)
def _joined(e: Emitter, node: ast.JoinedStr, hint: ty.Type | None) -> Sugared:
    """f"...": one call of format with a {} for every value."""
    template = ""
    args: list[Arg] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            template += str(part.value).replace("{", "{{").replace("}", "}}")
        elif isinstance(part, ast.FormattedValue):
            template += "{}"
            args.append(_formatted(e, part))
    range = e.range(node)
    if not args:
        return Simple(e.constant(template.replace("{{", "{").replace("}}", "}")))
    if len(args) == 1 and template == "{}" and type_of(e, args[0].value, range) is ty.STR:
        return args[0].value
    first = Arg(Simple(e.constant(template)), range)
    return call_operator(e, "aten::format", range, [first, *args], {})


def _formatted(e: Emitter, part: ast.FormattedValue) -> Arg:
    range = e.range(part.value)
    held: Sugared = expr(e, part.value)
    if part.conversion == ord("a"):
        refuse_form(e.code, part, "ascii conversion")
    if part.conversion == ord("r"):
        held = call_operator(e, "aten::repr", range, [Arg(held, range)], {})
    elif part.conversion == ord("s"):
        from weft.jit.frontend.exceptions import text_of

        held = Simple(text_of(e, held, range))
    if part.format_spec is not None:
        spec = expr(e, part.format_spec)
        if spec.static(e) != "":
            args = [Arg(held, range), Arg(spec, range)]
            held = call_operator(e, "aten::format_spec", range, args, {})
    return Arg(Simple(held.value(e, range)), range)


def percent(e: Emitter, node: ast.BinOp) -> Sugared | None:
    """ "..." % values; None where the left side is no string."""
    left = expr(e, node.left)
    range = e.range(node)
    try:
        if type_of(e, left, range) is not ty.STR:
            return None
    except FrontendError:
        return None
    right = expr(e, node.right)
    items = right.unrolled(e, range)
    values = [right] if items is None else items
    args = [Arg(left, range), *(Arg(Simple(v.value(e, range)), range) for v in values)]
    return call_operator(e, "aten::percentFormat", range, args, {})

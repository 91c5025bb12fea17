"""f-strings and % on literals."""

from __future__ import annotations

import ast
import string

from weft.jit.frontend.calls import apply_operator, call_operator
from weft.jit.frontend.conversions import type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import FrontendError, fail
from weft.jit.frontend.expressions import expr
from weft.jit.frontend.scaffold import expression, refuse_form
from weft.jit.frontend.sugared import Arg, Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.source import SourceRange


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
    first = Simple(e.constant(template))
    return call_operator(e, "aten::format", Call(range, args).behind(first))


def _formatted(e: Emitter, part: ast.FormattedValue) -> Arg:
    range = e.range(part.value)
    from weft.jit.frontend.exceptions import shown, text_of

    held: Sugared = expr(e, part.value)
    if part.conversion == ord("a"):
        refuse_form(e.code, part, "ascii conversion")
    if part.conversion == ord("r"):
        held = repr_of(e, held, range)
    elif part.conversion == ord("s"):
        held = Simple(text_of(e, held, range))
    held = shown(e, held, range)
    if part.format_spec is not None:
        spec = expr(e, part.format_spec)
        if spec.static(e) != "":
            held = apply_operator(e, "aten::format_spec", range, held, spec)
    return Arg(Simple(held.value(e, range)), range)


def repr_of(e: Emitter, value: Sugared, range: SourceRange) -> Sugared:
    """repr(value)."""
    from weft.jit.frontend.exceptions import shown

    told = shown(e, value, range, "__repr__")
    if told is not value:
        return told
    return apply_operator(e, "aten::repr", range, value)


def format_call(e: Emitter, template: Sugared, call: Call) -> Sugared:
    """template.format(...). Keywords become places: the template has to be known then."""
    from weft.jit.frontend.exceptions import shown

    given = [
        Arg(shown(e, arg.value, arg.range), arg.range)
        for arg in (*call.args, *call.kwargs.values())
    ]
    if call.kwargs:
        text = template.static(e)
        if not isinstance(text, str):
            fail(
                "format: expected a text known while compiling where arguments have names, got "
                "another",
                call.range,
                "arguments without names",
            )
        names = {name: len(call.args) + i for i, name in enumerate(call.kwargs)}
        template = Simple(e.constant(_numbered(text, names, call.range)))
    return call_operator(e, "aten::format", Call(call.range, given).behind(template))


def _numbered(text: str, names: dict[str, int], range: SourceRange) -> str:
    """The template with a number for every field."""
    made, count = "", 0
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:
        fail(f"format: expected a template, got {text!r}: {error}", range)
    for literal, field, spec, conversion in parts:
        made += literal.replace("{", "{{").replace("}", "}}")
        if field is None:
            continue
        if field == "":
            place, count = count, count + 1
        elif field.isdigit():
            place = int(field)
        elif field in names:
            place = names[field]
        else:
            fail(f"format: expected an argument {field!r}, got none", range)
        made += "{" + str(place)
        made += f"!{conversion}" if conversion else ""
        made += f":{spec}" if spec else ""
        made += "}"
    return made


def percent(e: Emitter, node: ast.BinOp) -> Sugared | None:
    """ "..." % values; None where the left side is no string."""
    left = expr(e, node.left)
    range = e.range(node)
    try:
        if type_of(e, left, range) is not ty.STR:
            return None
    except FrontendError:
        return None
    return percent_of(e, left, expr(e, node.right), range)


def percent_of(e: Emitter, left: Sugared, right: Sugared, range: SourceRange) -> Sugared:
    """left % right for a string."""
    from weft.jit.frontend.exceptions import shown

    items = right.unrolled(e, range)
    values = [right] if items is None else items
    told = [shown(e, v, range).value(e, range) for v in values]
    return apply_operator(e, "aten::percentFormat", range, left, *map(Simple, told))

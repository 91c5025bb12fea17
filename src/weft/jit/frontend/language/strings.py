"""Texts in a program: f-strings, format, %, and what objects are as text."""

from __future__ import annotations

import ast
import string

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import expression, verb
from weft.jit.frontend.source.errors import FrontendError, fail, refuse_form
from weft.jit.frontend.values import Arg, Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


@expression(ast.JoinedStr)
def _joined(c: Compiler, node: ast.JoinedStr, hint: ty.Type | None) -> Sugared:
    """f"...": one call of format with a {} for every value."""
    template = ""
    args: list[Arg] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            template += str(part.value).replace("{", "{{").replace("}", "}}")
        elif isinstance(part, ast.FormattedValue):
            template += "{}"
            args.append(_formatted(c, part))
    range = c.range(node)
    if not args:
        return Simple(c.constant(template.replace("{{", "{").replace("}}", "}")))
    if len(args) == 1 and template == "{}" and c.type_of(args[0].value, range) is ty.STR:
        return args[0].value
    first = Simple(c.constant(template))
    return c.call_operator("aten::format", Call(range, args).behind(first))


def _formatted(c: Compiler, part: ast.FormattedValue) -> Arg:
    range = c.range(part.value)

    held: Sugared = c.expr(part.value)
    if part.conversion == ord("a"):
        refuse_form(c.code, part, "ascii conversion")
    if part.conversion == ord("r"):
        held = repr_of(c, held, range)
    elif part.conversion == ord("s"):
        held = Simple(text_of(c, held, range))
    held = shown(c, held, range)
    if part.format_spec is not None:
        spec = c.expr(part.format_spec)
        if spec.static(c) != "":
            held = c.apply("aten::format_spec", range, held, spec)
    return Arg(Simple(held.value(c, range)), range)


def format_call(c: Compiler, template: Sugared, call: Call) -> Sugared:
    """template.format(...). Keywords become places: the template has to be known then."""
    given = [
        Arg(shown(c, arg.value, arg.range), arg.range)
        for arg in (*call.args, *call.kwargs.values())
    ]
    if call.kwargs:
        text = template.static(c)
        if not isinstance(text, str):
            fail(
                "format: expected a text known while compiling where arguments have names, got "
                "another",
                call.range,
                "arguments without names",
            )
        names = {name: len(call.args) + i for i, name in enumerate(call.kwargs)}
        template = Simple(c.constant(_numbered(text, names, call.range)))
    return c.call_operator("aten::format", Call(call.range, given).behind(template))


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


@verb("percent")
def percent(c: Compiler, node: ast.BinOp) -> Sugared | None:
    """ "..." % values; None where the left side is no string."""
    left = c.expr(node.left)
    range = c.range(node)
    try:
        if c.type_of(left, range) is not ty.STR:
            return None
    except FrontendError:
        return None
    return percent_of(c, left, c.expr(node.right), range)


def percent_of(c: Compiler, left: Sugared, right: Sugared, range: SourceRange) -> Sugared:
    """left % right for a string."""
    items = right.unrolled(c, range)
    values = [right] if items is None else items
    told = [shown(c, v, range).value(c, range) for v in values]
    return c.apply("aten::percentFormat", range, left, *map(Simple, told))


def shown(c: Compiler, value: Sugared, range: SourceRange, method: str = "__str__") -> Sugared:
    """A value to be put into a text: what its class says of itself, or the value."""
    if isinstance(value, Simple) and isinstance(value.v.type, ty.ClassType):
        for name in dict.fromkeys((method, "__repr__")):
            if value.has_attr(c, name):
                return value.attr(c, range, name).call(c, Call(range))
    type = value.v.type if isinstance(value, Simple) else None
    if isinstance(type, ty.ListType | ty.DictType) and _tells(c, type.children[-1]):
        function = prelude.list_text if isinstance(type, ty.ListType) else prelude.dict_text
        return c.call(function, range, value)
    return value


def _tells(c: Compiler, type: ty.Type) -> bool:
    """Whether values of the type are objects whose class has a __repr__, or lists of them."""
    if isinstance(type, ty.ListType | ty.DictType):
        return _tells(c, type.children[-1])
    return isinstance(type, ty.ClassType) and Simple(c.uninitialized(type)).has_attr(c, "__repr__")


def text_of(c: Compiler, value: Sugared, range: SourceRange) -> Value:
    """str(value)."""
    made = shown(c, value, range).value(c, range)
    if made.type is ty.STR:
        return made
    return c.apply("aten::str", range, Simple(made)).value(c, range)


def repr_of(c: Compiler, value: Sugared, range: SourceRange) -> Sugared:
    """repr(value)."""
    told = shown(c, value, range, "__repr__")
    if told is not value:
        return told
    return c.apply("aten::repr", range, value)

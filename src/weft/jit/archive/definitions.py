"""The files of an archive's code: each definition in the file that its qualified name says."""

from __future__ import annotations

from collections.abc import Iterable

from weft.jit.archive.collect import Definition, attributes_of, hooks_of, is_kind, methods_of
from weft.jit.archive.constants import is_literal
from weft.jit.archive.debug import Line
from weft.jit.archive.printer import FunctionPrinter, Program
from weft.jit.archive.variables import is_name
from weft.jit.ir import Function
from weft.jit.ir import types as ty


def files_of(program: Program) -> dict[str, list[Line]]:
    """The lines of each file by its path: "code/__torch__/a/b.py" holds `__torch__.a.b.name`."""
    files: dict[str, list[Line]] = {}
    for definition in program.collector.definitions:
        module, _, short = program.names.of(definition).rpartition(".")
        path = f"code/{module.replace('.', '/')}.py"
        files.setdefault(path, []).extend(_lines(program, definition, short))
    return files


def _lines(program: Program, definition: Definition, name: str) -> list[Line]:
    if isinstance(definition, Function):
        return FunctionPrinter(program, definition).whole(name)
    if isinstance(definition, ty.ClassType):
        return _class(program, definition, name)
    if isinstance(definition, ty.InterfaceType):
        return _interface(program, definition, name)
    if isinstance(definition, ty.EnumType):
        members = definition.members
        lines = [Line(f"{member} = {program.constants.text(value)}") for member, value in members]
        return _definition(f"{name}(Enum)", lines)
    assert isinstance(definition, ty.TupleType)
    fields = zip(definition.fields, definition.elems)
    lines = [Line(f"{name} : {program.names.type(type)}") for name, type in fields]
    return _definition(f"{name}(NamedTuple)", lines)


def _definition(head: str, lines: Iterable[Line]) -> list[Line]:
    return [Line(f"class {head}:"), *(Line(f"  {line.text}", line.range) for line in lines)]


# Classes ------------------------------------------------------------------------------------------


def _class(program: Program, type: ty.ClassType, name: str) -> list[Line]:
    texts = [_attribute(program, held, each) for held, each in attributes_of(type)]
    if type.is_module:
        texts = [*_kinds(type), *texts, *_constants(program, type)]
    lines = [*map(Line, texts)]
    qualified = program.names.of(type)
    for method, function in methods_of(type):
        lines += FunctionPrinter(program, function).whole(method, qualified)
    return _definition(f"{name}(Module)" if type.is_module else name, lines or [Line("pass")])


def _kinds(type: ty.ClassType) -> Iterable[str]:
    for kind in ("parameter", "buffer"):
        names = [name for name, each in type.attributes.items() if is_kind(each, kind)]
        listed = "".join(f'"{name}", ' for name in names)
        yield f"__{kind}s__ = [{listed}]"
    for kind in ("pre_hook", "hook"):
        listed = "".join(f'"{name}", ' for name in hooks_of(type, kind))
        if listed:
            yield f"__forward_{kind}s__ = [{listed}]"


def _attribute(program: Program, name: str, type: ty.Type) -> str:
    text = program.names.type(type)
    return f"{name} : {text}" if is_name(name) else f'__annotations__["{name}"] = {text}'


def _constants(program: Program, type: ty.ClassType) -> Iterable[str]:
    """Constants are for those who read the class: methods have their values in them."""
    for name, each in type.attributes.items():
        if (
            name != "training"
            and each.kind == "constant"
            and is_literal(each.value)
            and is_name(name)
        ):
            text = program.constants.text(each.value)
            yield f"{name} : Final[{program.names.type(each.type)}] = {text}"


# Interfaces ---------------------------------------------------------------------------------------


def _interface(program: Program, type: ty.InterfaceType, name: str) -> list[Line]:
    base = "ModuleInterface" if type.is_module else "Interface"
    lines: list[Line] = []
    for method, schema in type.methods.items():
        parameters = ["self", *(_parameter(program, each) for each in schema.args)]
        returns = program.names.type(schema.returns)
        lines += [Line(f"def {method}({', '.join(parameters)}) -> {returns}:"), Line("  pass")]
    return _definition(f"{name}({base})", lines)


def _parameter(program: Program, argument: ty.Argument) -> str:
    text = f"{argument.name}: {program.names.type(argument.type)}"
    return f"{text}={program.constants.text(argument.default)}" if argument.has_default else text

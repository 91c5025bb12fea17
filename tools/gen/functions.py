"""The C++ functions of operators: ops_<family>.h, native_<family>.h, ops_<family>.cpp.

A family's source declares for itself what it calls of other families, and so does not wait for
their headers: a new row is the business of those who call it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from gen import nodes
from gen.cpp import Printer, first_default, parameter_type, parameters, return_type, value_type
from gen.plan import Plan
from weft._ops.forms import INPLACE, OUT, PLAIN, Form
from weft._ops.formulas import argument_types
from weft._ops.formulas import return_type as schema_return_type
from weft._ops.schema import Arg, Schema, plain
from weft._ops.table import Row
from weft._ops.translate import Translator

PRELUDE = """\
#include "ops_{family}.h"

#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "autograd/record.h"
#include "core/error.h"
#include "native_{family}.h"
#include "ops/formula.h"
#include "ops/native_call.h"
#include "ops/argument_validation.h"
#include "ops/copy.h"
#include "ops/view_dtype.h"
#include "ops/tile.h"
#include "ops/views.h"
"""
_OPS_HEADER = """\
#pragma once

#include "ops/signature.h"

// Operators of the table, with autograd. Undefined tensors stand for None.
namespace weft::ops {

"""
_NATIVE_HEADER = """\
#pragma once

#include "ops/signature.h"

// Bodies that are written by hand, in csrc/ops. They see no autograd of their own row.
namespace weft::native {

"""
_CALL = re.compile(r"\b(ops|native)::(\w+)\(")
_FREE_CALL = re.compile(r"(?<![\w.:])([a-z]\w*)\(")


def ops_headers(families: Mapping[str, Sequence[Form]]) -> dict[str, str]:
    """The texts of ops_<family>.h, by family."""
    defaults = _defaults([form for forms in families.values() for form in forms])
    texts = {}
    for family, forms in families.items():
        lines = [f"// {form.schema}\n{_declaration(form, defaults[form])}\n" for form in forms]
        texts[family] = _OPS_HEADER + "".join(lines) + "\n}  // namespace weft::ops\n"
    return texts


def _defaults(forms: Sequence[Form]) -> dict[Form, int]:
    """Where defaults begin. The overload with the fewest parameters gets its own first."""
    taken: dict[str, set[tuple[str, ...]]] = {}
    defaults: dict[Form, int] = {}
    for form in sorted(forms, key=lambda form: len(form.schema.args)):
        calls = taken.setdefault(form.cpp_name, set())
        defaults[form] = first_default(form.schema.args, calls)
    return defaults


def _declaration(form: Form, defaults_from: int | None = None) -> str:
    params = parameters(form.schema.args, defaults_from)
    return f"{return_type(form.schema)} {form.cpp_name}({params});"


def native_header(rows: Sequence[Row]) -> str:
    """The text of native_<family>.h."""
    lines = [f"{line}\n" for line in _native_declarations(rows)]
    return _NATIVE_HEADER + "".join(lines) + "\n}  // namespace weft::native\n"


def _native_declarations(rows: Iterable[Row]) -> list[str]:
    """Each body once, though several rows may share it."""
    own = [row for row in rows if row.kind in ("native", "random") and "(" not in row.body]
    return list(
        dict.fromkeys(
            f"{return_type(row.schema)} {row.body}({parameters(row.schema.args)});" for row in own
        )
    )


def _in_namespace(name: str, lines: Sequence[str]) -> list[str]:
    around = f"namespace weft::{name}"
    return [f"{around} {{", "", *lines, "", f"}}  // {around}", ""] if lines else []


def umbrella(stem: str, families: Iterable[str]) -> str:
    """The header that includes those of all families."""
    lines = ["#pragma once", "", *(f'#include "{stem}_{family}.h"' for family in sorted(families))]
    return "\n".join([*lines, ""])


class FunctionEmitter:
    """Writes the definitions of one table's operators."""

    def __init__(
        self,
        families: Mapping[str, Sequence[Form]],
        plans: Mapping[str, Plan],
        schemas: Mapping[str, Sequence[Schema]],
    ) -> None:
        self.families = families
        self.plans = plans
        self.schemas = schemas

    def file(self, family: str) -> str:
        """One translation unit: nodes, their makers, and the functions."""
        rows = {form.row.key: form.row for form in self.families[family]}
        lines = self.definitions(self.families[family], rows)
        declared = [*self.called(family, lines), *self.programs(rows.values())]
        return "\n".join([PRELUDE.format(family=family), *declared, *lines])

    def called(self, family: str, lines: Sequence[str]) -> list[str]:
        """Declarations of what the lines call of other families, all overloads of it."""
        names = {call for line in lines for call in _CALL.findall(line)}
        others = [
            form for other, forms in self.families.items() for form in forms if other != family
        ]
        calls = [_declaration(form) for form in others if ("ops", form.cpp_name) in names]
        bodies = [form.row for form in others if ("native", form.row.body) in names]
        return [
            *_in_namespace("ops", calls),
            *_in_namespace("native", _native_declarations(bodies)),
        ]

    def programs(self, rows: Iterable[Row]) -> list[str]:
        """Declarations of the rows' tile programs."""
        found = [f"extern const tile::Program {row.id};" for row in rows if row.is_program]
        return _in_namespace("tile_ops", found)

    def definitions(self, forms: Sequence[Form], rows: Mapping[str, Row]) -> list[str]:
        found = [self.plans[key] for key in rows if key in self.plans]
        plans = [each for plan in found for each in (plan, plan.of_result) if each is not None]
        lines = ["namespace weft::nodes {", ""]
        lines += ["using autograd::Node;", "using autograd::SavedTensor;", ""]
        for plan in plans:
            lines += nodes.declare(plan) + nodes.apply(plan)
        lines += ["}  // namespace weft::nodes", "", "namespace weft::ops {", "namespace {", ""]
        for plan in plans:
            lines += nodes.make(plan, plan.row.inplace is not None)
        for row in rows.values():
            if row.kind == "compose" and row.grad:
                lines += self.compose_body(row, f"body_{row.id}")
        lines += ["}  // namespace", ""]
        for form in forms:
            lines += self.function(form)
        return [*lines, "}  // namespace weft::ops", ""]

    def function(self, form: Form) -> list[str]:
        """The definition of one operator."""
        row = form.row
        if row.kind == "compose" and not row.grad and form.kind == PLAIN:
            return self.compose_body(row, form.cpp_name, self.autocast(form))
        body = [*self.autocast(form), *self.body(form)]
        return [f"// {form.schema}", self.head(form.schema, form.cpp_name, body), *body, "}", ""]

    def head(self, schema: Schema, name: str, body: Sequence[str]) -> str:
        text = "\n".join(body)
        params = []
        for arg in schema.args:
            used = re.search(rf"\b{arg.name}\b", text)
            params.append(("" if used else "[[maybe_unused]] ") + parameters([arg]))
        return f"{return_type(schema)} {name}({', '.join(params)}) {{"

    def body(self, form: Form) -> list[str]:
        row = form.row
        if form.kind == OUT:
            return self.out_body(form)
        if form.writes_self:
            return self.inplace_body(form)
        if row.kind == "view":
            return self.view_body(form)
        if row.is_program:
            lines = self.run(form, "")
            if "each_of_none" in row.tags:
                over_one = f"ops::{row.name}(ops::unsqueeze(self, -1), last, false)"
                lines = [
                    "  const int64_t last[] = {-1};",
                    f"  if (dim && dim->empty()) return {over_one};",
                    *lines,
                ]
            return [*lines, *self.record_after(form), f"  return {self.returned(row)};"]
        return self.call_body(form)

    def autocast(self, form: Form) -> list[str]:
        """Lines that call the operator again with its tensors as autocast wants them."""
        row = form.row
        if row.autocast is None or form.kind != PLAIN or form.writes_self:
            return []
        convert = f"autocast.{row.autocast}"
        tensors = [arg.name for arg in row.schema.args if arg.base == "Tensor"]
        names = ", ".join(
            f"{convert}({arg.name})" if arg.base == "Tensor" else arg.name
            for arg in row.schema.args
        )
        look = f"({', '.join(tensors)})" if row.autocast == "widest" else ""
        return [
            "  if (autograd::mode.autocast) [[unlikely]] {",
            f"    const autograd::Autocast autocast{look};",
            f"    return ops::{form.cpp_name}({names});",
            "  }",
        ]

    # ---- calls ----

    def call(self, row: Row) -> str:
        """The body that is no tile program."""
        names = ", ".join(arg.name for arg in row.schema.args)
        if row.kind == "compose":
            return f"body_{row.id}({names})"
        types = ", ".join(parameter_type(arg.type) for arg in row.schema.args)
        signature = f"{return_type(row.schema)}({types})"
        rest = f", {names}" if names else ""
        if "(" in row.body:
            return f'native::call_body<{signature}>("{row.key}", {self.expression(row)}{rest})'
        return f'native::call<{signature}>("{row.key}", native::{row.body}{rest})'

    def expression(self, row: Row) -> str:
        """A body that calls those of other rows; "..." in it: the arguments that it does not name,
        in their order."""
        rest = [a.name for a in row.schema.args if not re.search(rf"\b{a.name}\b", row.body)]
        text = row.body.replace(", ...", "".join(f", {name}" for name in rest))
        text = _FREE_CALL.sub(r"native::\1(", text)
        head = f"[]({parameters(row.schema.args)}) __attribute__((always_inline))"
        return f"{head} -> {return_type(row.schema)} {{ return {text}; }}"

    def run(self, form: Form, target: str) -> list[str]:
        """Lines that run the row's tile program into new results, or into `target`."""
        row = form.row
        count = len(row.schema.returns)
        lines = []
        if row.validate is not None:
            names = ", ".join(arg.name for arg in row.schema.args)
            lines.append(f'  validation::{row.validate}("{row.name.lstrip("_")}", {names});')
        if form.kind == INPLACE and row.result == ("real",):
            lines.append(
                "  WEFT_CHECK(!is_complex(self.dtype()), "
                f'"{row.name}_: expected a real dtype in place, got ", self.dtype());'
            )
        lines += [
            f"  const Tensor* const inputs[] = {{{', '.join('&' + n for n in row.operands)}}};"
        ]
        fields = [".inputs = inputs"]
        if row.attributes:
            numbers = ", ".join(self.as_scalar(row.schema.arg(name)) for name in row.attributes)
            lines.append(f"  const Scalar attributes[] = {{{numbers}}};")
            fields.append(".attributes = attributes")
        if row.kind in ("reduce", "rowwise"):
            self.row_fields(row, lines, fields, dtype=self.given_dtype(form))
        if form.kind == INPLACE:
            fields.append(".in_place = true")
        if form.kind == OUT:
            fields.append(".resize = autograd::resize_out")
        if count == 1:
            lines.append(f"  Tensor result{' = ' + target if target else ''};")
            results = "{&result, 1}"
        else:
            lines.append(f"  Tensor results[{count}];")
            results = "results"
        fields_text = ", ".join(fields)
        if form.kind == OUT and row.exact_out:
            return [*lines, *self.run_exactly(row, fields_text, results)]
        lines.append(f"  tile::run(tile_ops::{row.id}, {{{fields_text}}}, {results});")
        return lines

    def run_exactly(self, row: Row, fields: str, results: str) -> list[str]:
        """Lines that check the dtype of `out` before they run the program."""
        dtype = f"tile::result_dtype(tile_ops::{row.id}, call)"
        byte = ", true" if row.result == ("truth",) else ""
        return [
            f"  const tile::Call call{{{fields}}};",
            f'  autograd::check_out_dtype("{row.name}", {dtype}, out{byte});',
            f"  tile::run(tile_ops::{row.id}, call, {results});",
        ]

    def as_scalar(self, arg: Arg) -> str:
        return arg.name if arg.type == "Scalar" else f"Scalar({arg.name})"

    def given_dtype(self, form: Form) -> str:
        """The dtype to compute in: where the form writes to `out` and may choose, that of out."""
        writes = form.kind == OUT and len(form.outs) == 1
        writes = writes and ("factory" in form.row.tags or not form.row.exact_out)
        return f'autograd::out_dtype("{form.row.name}", dtype, out)' if writes else "dtype"

    def row_fields(self, row: Row, lines: list[str], fields: list[str], dtype: str) -> None:
        names = {arg.name: plain(arg.type) for arg in row.schema.args}
        if row.dims is not None:
            expr = Translator(row.key, self.schemas).formula(row.dims, argument_types(row.schema))
            lines.append(f"  const Dims row_dims = {Printer().expr(expr)};")
            fields.append(".dims = row_dims")
        elif names.get("dim") == "int":
            lines.append("  const int64_t row_dims[] = {dim};")
            fields.append(".dims = row_dims")
        elif names.get("dim") == "int?":
            lines.append("  const int64_t row_dims[] = {dim.value_or(0)};")
            fields.append(".dims = dim ? IntList(row_dims) : IntList()")
        elif "dim" in names:
            fields.append(
                ".dims = " + ("dim.value_or(IntList())" if names["dim"][-1] == "?" else "dim")
            )
        if "keepdim" in names:
            fields.append(".keepdim = keepdim")
        if "dtype" in names:
            fields.append(f".dtype = {dtype}")

    # ---- forms ----

    def call_body(self, form: Form) -> list[str]:
        row, plan = form.row, self.plans.get(form.row.key)
        if plan is None:
            fresh = ".as_new()" if "factory" in row.tags else ""
            return [f"  return {self.call(row)}{fresh};"]
        needs = self.needs_graph(row)
        type_ = value_type(schema_return_type(row.schema))
        name = "result" if len(row.schema.returns) == 1 else "results"
        return [
            f"  if (!{needs}) return {self.call(row)};",
            f"  {type_} {name} = autograd::without_graph([&] {{ return {self.call(row)}; }});",
            *self.record(plan, "  "),
            f"  return {name};",
        ]

    def returned(self, row: Row) -> str:
        count = len(row.schema.returns)
        if count == 1:
            return "result"
        return "{" + ", ".join(f"std::move(results[{i}])" for i in range(count)) + "}"

    def needs_graph(self, row: Row) -> str:
        return f"autograd::needs_graph({', '.join(row.differentiable)})"

    def record_after(self, form: Form) -> list[str]:
        plan = self.plans.get(form.row.key)
        if plan is None:
            return []
        return [
            f"  if ({self.needs_graph(form.row)}) [[unlikely]] {{",
            *self.record(plan, "    "),
            "  }",
        ]

    def record(self, plan: Plan, indent: str) -> list[str]:
        """Makes the node of fresh results their history."""
        row = plan.row
        names = plan.make_arguments()
        keeps_self = row.inplace is not None and row.schema.args[0].name in plan.tensors
        arguments = ", ".join(names + (["false"] if keeps_self else []))
        results = self.result_names(row)
        if not plan.results and results == ["result"]:
            return [f"{indent}autograd::set_history(result, {plan.make_name}({arguments}));"]
        lines = [f"{indent}const auto node = {plan.make_name}({arguments});"]
        for i, result in enumerate(results):
            # A result that no formula reads the gradient of has none.
            shown = result if i in plan.used_grads or len(results) == 1 else "Tensor()"
            if result == "result" and row.schema.returns[0].type == "Tensor[]":
                lines.append(
                    f"{indent}for (const Tensor& one : result) autograd::set_history(one, node);"
                )
            else:
                lines.append(f"{indent}autograd::set_history({shown}, node);")
        return lines + nodes.save_results(plan, results, indent)

    def result_names(self, row: Row) -> list[str]:
        count = len(row.schema.returns)
        if count == 1:
            return ["result"]
        return [
            f"results[{i}]" if row.is_program else f"std::get<{i}>(results)" for i in range(count)
        ]

    def view_body(self, form: Form) -> list[str]:
        row = form.row
        rest = "".join(f", {arg.name}" for arg in row.schema.args[1:])
        if "view_dtype" in row.tags:
            lines = [f"  Tensor result = views::{row.body}(self{rest});"]
        else:
            layout = f"views::{row.body}(self.layout(){rest})"
            lines = [f'  Tensor result = self.with_layout({layout}, "{row.name}");']
        if "nondifferentiable" not in row.tags:
            lines.append("  autograd::mark_view(result, self);")
        return [*lines, *self.record_after(form), "  return result;"]

    def inplace_body(self, form: Form) -> list[str]:
        row, plan = form.row, self.plans.get(form.row.key)
        name = form.schema.name
        needs = self.needs_graph(row) if plan else "autograd::needs_graph(self)"
        lines = []
        if not row.is_program:
            if plan is None:
                return [f"  return {self.call(row)};"]
            lines.append(f"  if (!{needs}) return {self.call(row)};")
        check = f'autograd::check_inplace("{name}", self);'
        type_, make, saves = "autograd::Node", "autograd::overwritten(self)", []
        if plan is not None:
            type_, make, saves = f"nodes::{plan.node}", *self.node_in_place(plan)
        if plan is not None and plan.of_result is not None:
            type_ = "autograd::Node"
            lines.append(f"  const bool of_result = {self.is_of_result(row)};")
        rebase = "rebase_layout" if "relayout" in row.tags else "rebase_history"
        after = [f"autograd::{rebase}(self, node);", *saves]
        if not row.is_program:
            run = f"autograd::without_graph([&] {{ return {self.call(row)}; }});"
            lines += ["  " + line for line in (check, f"const auto node = {make};", run, *after)]
            return [*lines, "  return self;"]
        lines += [f"  Ref<{type_}> node;", f"  if ({needs}) [[unlikely]] {{"]
        lines += [f"    {check}", f"    node = {make};", "  }", *self.run(form, "self")]
        if len(after) == 1:
            lines.append(f"  if (node) [[unlikely]] {after[0]}")
        else:
            lines += ["  if (node) [[unlikely]] {", *("    " + line for line in after), "  }"]
        return [*lines, "  return self;"]

    def node_in_place(self, plan: Plan) -> tuple[str, list[str]]:
        """What makes the node of an in-place form, and the lines that save its result."""
        keeps_self = plan.row.inplace is not None and plan.row.schema.args[0].name in plan.tensors
        arguments = ", ".join(plan.make_arguments() + (["true"] if keeps_self else []))
        make, saves = f"{plan.make_name}({arguments})", nodes.save_results(plan, ["self"], "")
        if plan.of_result is None:
            return make, saves
        other, other_saves = self.node_in_place(plan.of_result)
        node = f"static_cast<nodes::{plan.of_result.node}&>(*node)."
        saves = [f"if (of_result) {line.replace('node->', node)}" for line in other_saves]
        return f"of_result ? Ref<autograd::Node>({other}) : Ref<autograd::Node>({make})", saves

    def is_of_result(self, row: Row) -> str:
        """Whether the node of an in-place form reads its result."""
        translator = Translator(row.key, self.schemas)
        condition = translator.formula(row.inplace_grad_when, argument_types(row.schema))
        return Printer().expr(condition)

    def out_body(self, form: Form) -> list[str]:
        row = form.row
        tensors = [arg.name for arg in form.schema.args if arg.base == "Tensor"]
        needs = f"autograd::needs_graph({', '.join(tensors)})"
        check = f'  autograd::check_out_graph("{row.name}", {needs});'
        if row.is_program and len(form.outs) == 1:
            return [check, *self.run(form, "out"), "  return result;"]
        if "distinct_out" in row.tags:
            operands = ", ".join(f"&{name}" for name in row.operands)
            check += "".join(
                f'\n  autograd::check_distinct_out("{row.name}", {out}, {{{operands}}});'
                for out in form.outs
            )
        names = [arg.name for arg in row.schema.args]
        if "dtype" in names:
            names[names.index("dtype")] = self.given_dtype(form)
        if row.autocast is not None:  # the dtype of `out` says the precision
            check += "\n  const autograd::Autocast off;"
        call = f"ops::{row.name}({', '.join(names)})"
        write = "autograd::write_out" if row.exact_out else "autograd::cast_out"
        if "fills_out" in row.tags:
            write = "autograd::fill_out"
        if len(form.outs) == 1:
            return [check, f'  return {write}("{row.name}", {call}, out);']
        written = [
            f'{write}("{row.name}", std::get<{i}>(results), {out})'
            for i, out in enumerate(form.outs)
        ]
        return [check, f"  const auto results = {call};", f"  return {{{', '.join(written)}}};"]

    def compose_body(self, row: Row, name: str, before: Sequence[str] = ()) -> list[str]:
        translator = Translator(row.key, self.schemas)
        wanted = schema_return_type(row.schema)
        body = translator.body(row.body, argument_types(row.schema), wanted)
        lines = [*before, *Printer().block(body, "  ")]
        return [f"// {row.schema}", self.head(row.schema, name, lines), *lines, "}", ""]

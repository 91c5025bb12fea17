"""What the node of a row looks like: its edges, its formulas and what it saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gen.cpp import META_TYPES, meta_member, value_type
from weft._ops.forms import Form
from weft._ops.formulas import Expr, FormulaError, Saved, gradient_names, saved_by
from weft._ops.schema import Schema
from weft._ops.table import Row
from weft._ops.translate import Translator


@dataclass
class Formula:
    """The gradient of one edge, or of several by one tuple."""

    names: tuple[str, ...]
    expr: Expr
    saved: Saved


@dataclass
class Plan:
    """One node class. Names of saved things map to the edges whose formulas read them."""

    row: Row
    node: str  # the C++ class
    label: str  # what Python shows: "MulBackward0"
    edges: tuple[str, ...]
    formulas: list[Formula]
    tensors: dict[str, set[str]] = field(default_factory=dict)
    results: dict[str, set[str]] = field(default_factory=dict)
    meta: dict[tuple[str, str], Expr | None] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    used_grads: set[int] = field(default_factory=set)
    of_result: Plan | None = None  # of the in-place form, where it need not keep its input

    @property
    def make_name(self) -> str:
        """The C++ function that makes a node."""
        return f"make_{self.node}"

    @property
    def has_list(self) -> bool:
        """Whether the edges are those of one Tensor[] argument."""
        return self.row.schema.arg(self.edges[0]).is_tensor_list

    def index(self, name: str) -> int:
        """The number of an argument's edge."""
        return self.edges.index(name)

    def is_list(self, name: str) -> bool:
        """Whether a saved argument is a list of tensors."""
        return self.row.schema.arg(name).is_tensor_list

    def members(self) -> list[tuple[str, str]]:
        """(type, name) of every member, saved tensors first."""
        result = []
        for name in self.tensors:
            type_ = "std::vector<SavedTensor>" if self.is_list(name) else "SavedTensor"
            result.append((type_, f"{name}_"))
        result += [("SavedTensor", f"{name}_") for name in self.results]
        result += [(META_TYPES[member], f"{name}_{member}_") for name, member in self.meta]
        result += [(value_type(type_), f"{name}_") for name, type_ in self.others.items()]
        return result

    def make_arguments(self) -> list[str]:
        """Schema arguments that making the node needs, in schema order."""
        wanted = {*self.edges, *self.tensors, *self.others, *(name for name, _ in self.meta)}
        for expr in self.meta.values():
            if expr is not None and expr.kind == "name":
                wanted.add(str(expr.value))
        return [arg.name for arg in self.row.schema.args if arg.name in wanted]


def node_name(name: str, taken: dict[str, int]) -> str:
    """PyTorch's node names: "MulBackward0", numbered over the overloads of a base name."""
    camel = "".join(part[:1].upper() + part[1:] for part in name.strip("_").split("_"))
    number = taken.get(camel, 0)
    taken[camel] = number + 1
    return f"{camel}Backward{number}"


def make_plans(rows: Sequence[Row], schemas: Mapping[str, Sequence[Schema]]) -> dict[str, Plan]:
    """The plan of every row with gradient formulas, by row key."""
    taken: dict[str, int] = {}
    nodes = {row.key: node_name(row.name, taken) for row in rows if row.grad}
    plans = {}
    for row in (row for row in rows if row.grad):
        node, label = nodes[row.key], nodes.get(_shown_as(row), nodes[row.key])
        plan = plans[row.key] = _plan(row, node, label, row.grad, schemas)
        if row.inplace_grad:
            plan.of_result = _plan(row, f"{node}OfResult", label, row.inplace_grad, schemas)
    return plans


def _shown_as(row: Row) -> str:
    """PyTorch turns a Python number into a tensor: `x * 2` shows the node of `x * y`."""
    return f"{row.name}.Tensor" if row.overload == "Scalar" else row.key


def _plan(
    row: Row,
    node: str,
    label: str,
    formulas: Mapping[tuple[str, ...], str],
    schemas: Mapping[str, Sequence[Schema]],
) -> Plan:
    translator = Translator(row.key, schemas)
    names = gradient_names(row.schema)
    plan = Plan(row, node, label, row.differentiable, [])
    if plan.has_list and len(plan.edges) > 1:
        raise FormulaError(f"{row.key}: expected a Tensor[] as the only argument with a gradient")
    joint = {name for key in formulas if len(key) > 1 for name in key}
    for key, text in formulas.items():
        if len(key) == 1 and key[0] in joint:
            continue  # fusion groups have it
        expr = translator.formula(text, names)
        expr = _as_gradient(translator, row, key, expr)
        formula = Formula(key, expr, saved_by(expr))
        plan.formulas.append(formula)
        _collect(plan, formula, names)
    return plan


def _as_gradient(translator: Translator, row: Row, key: tuple[str, ...], expr: Expr) -> Expr:
    if expr.type == "None":
        return expr
    if len(key) > 1:
        return translator.convert(expr, f"({', '.join(['Tensor'] * len(key))})")
    return translator.convert(
        expr, "Tensor[]" if row.schema.arg(key[0]).is_tensor_list else "Tensor"
    )


def _collect(plan: Plan, formula: Formula, names: Mapping[str, str]) -> None:
    saved = formula.saved
    for arg in plan.row.schema.args:
        if arg.name in saved.tensors:
            plan.tensors.setdefault(arg.name, set()).update(formula.names)
        if arg.name in saved.others:
            plan.others[arg.name] = names[arg.name]
    for result in sorted(saved.results):
        plan.results.setdefault(result, set()).update(formula.names)
    for name, accessor in sorted(saved.meta):
        member = meta_member(accessor)
        plan.meta[name, member] = _sizes_argument(formula.expr, name) if member == "sizes" else None
    plan.used_grads |= saved.grads


def _sizes_argument(expr: Expr, name: str) -> Expr:
    """The `dim` in `tensors.sizes(dim)`."""
    if expr.kind == "builtin" and expr.value == "sizes":
        return expr.args[1]
    for arg in expr.args:
        found = _sizes_argument(arg, name) if arg.args or arg.kind == "builtin" else None
        if found is not None:
            return found
    return Expr("const", "None")


def form_schemas(forms: Sequence[Form]) -> dict[str, list[Schema]]:
    """Everything a formula may call, by base name: all forms but the out= ones."""
    result: dict[str, list[Schema]] = {}
    for form in forms:
        if form.kind != "out":
            result.setdefault(form.schema.name, []).append(form.schema)
    return result

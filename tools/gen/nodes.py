"""The code of nodes: their classes, making one in the forward call, applying it in backward."""

from __future__ import annotations

from gen.cpp import META_READERS, Printer, parameter_type
from gen.plan import Formula, Plan


def declare(plan: Plan) -> list[str]:
    """The class of a node: what it keeps of the forward call, and what it does."""
    is_part = "part" in plan.row.tags
    bases = "Node, autograd::Part" if is_part else "Node"
    lines = [f"// {plan.row.schema}", f"struct {plan.node} final : {bases} {{"]
    # Gradients may be missing where a formula takes them as optional arguments.
    if "partial_grads" in plan.row.tags:
        lines.append(f"  {plan.node}() {{ fill_missing = false; }}")
    lines.append(f'  const char* name() const override {{ return "{plan.label}"; }}')
    lines.append("  TensorList apply(TensorList grads) override;")
    if is_part:
        names = ", ".join(f"{arg.name}_" for arg in plan.row.schema.args[1:])
        view = f"ops::{plan.row.schema.name}(whole, {names})"
        lines.append(f"  Tensor of(const Tensor& whole) const override {{ return {view}; }}")
    saved = [*plan.tensors, *plan.results]
    if saved:
        resets = " ".join(
            f"for (SavedTensor& one : {name}_) one.reset();"
            if name in plan.tensors and plan.is_list(name)
            else f"{name}_.reset();"
            for name in saved
        )
        lines.append(f"  void release_saved() override {{ {resets} }}")
    lines += [f"  {type_} {name}{_initial(type_)};" for type_, name in plan.members()]
    return [*lines, "};", ""]


def _initial(type_: str) -> str:
    return "{}" if type_ in ("int64_t", "double", "bool", "DType", "Device") else ""


def make(plan: Plan, in_place: bool) -> list[str]:
    """The function that makes the node of a call, before the operator runs."""
    row = plan.row
    keeps_self = in_place and _first(plan) in plan.tensors and not row.writes
    params = [f"{parameter_type(row.schema.arg(n).type)} {n}" for n in plan.make_arguments()]
    if keeps_self:
        params.append("bool in_place")
    lines = [f"[[gnu::noinline]] Ref<nodes::{plan.node}> {plan.make_name}({', '.join(params)}) {{"]
    lines.append(f"  auto node = make_ref<nodes::{plan.node}>();")
    for name in plan.edges:
        method = "add_inputs" if row.schema.arg(name).is_tensor_list else "add_input"
        lines.append(f"  node->{method}({name});")
    for name, readers in plan.tensors.items():
        lines += [f"  {_condition(plan, readers)}{_save(plan, name, keeps_self)}"]
    for (name, member), expr in plan.meta.items():
        if member == "sizes":
            assert expr is not None
            value = f"formula::sizes({name}, {Printer().expr(expr)})"
        else:
            value = META_READERS[member].format(name)
        guard = f"if ({name}.defined()) " if row.schema.arg(name).type == "Tensor?" else ""
        lines.append(f"  {guard}node->{name}_{member}_ = {value};")
    for name, type_ in plan.others.items():
        lines.append(f"  node->{name}_ = {_own(name, type_)};")
    return [*lines, "  return node;", "}", ""]


def _first(plan: Plan) -> str:
    return plan.row.schema.args[0].name


def _own(name: str, type_: str) -> str:
    if type_ == "int[]?":
        return f"{name} ? std::optional<Dims>(*{name}) : std::nullopt"
    return f"Dims({name})" if type_ == "int[]" else name


def _condition(plan: Plan, readers: set[str]) -> str:
    """Saves only what a wanted gradient reads."""
    if plan.has_list or readers >= set(plan.edges):
        return ""
    tests = [f"node->edges[{plan.index(name)}]" for name in plan.edges if name in readers]
    return f"if ({' || '.join(tests)}) "


def _save(plan: Plan, name: str, keeps_self: bool) -> str:
    if plan.is_list(name):
        return f'autograd::save_list(node->{name}_, {name}, "{name}");'
    value = name
    if name == _first(plan) and (keeps_self or plan.row.writes):
        # The old values are about to be overwritten.
        copy = f"ops::clone({name}, std::nullopt)"
        value = copy if plan.row.writes else f"in_place ? {copy} : {name}"
    return f'node->{name}_.save({value}, false, "{name}");'


def save_results(plan: Plan, expressions: list[str], indent: str) -> list[str]:
    """Lines that keep results in the node, once they have their history."""
    lines = []
    for name in plan.results:
        number = int(name[6:] or 0)
        condition = _condition(plan, plan.results[name])
        save = f'node->{name}_.save({expressions[number]}, true, "result", {number});'
        lines.append(f"{indent}{condition}{save}")
    return lines


def apply(plan: Plan) -> list[str]:
    """The definition of `apply`."""
    count = "edges.size()" if plan.has_list else str(len(plan.edges))
    reads = any(f.expr.type != "None" for f in plan.formulas)
    lines = [f"TensorList {plan.node}::apply({'TensorList grads' if reads else 'TensorList'}) {{"]
    if not reads:
        return [*lines, f"  return TensorList({count});", "}", ""]
    if _names_grad(plan):
        lines.append("  const Tensor& grad = grads[0];")
    if plan.has_list:
        (formula,) = plan.formulas
        lines += _unpack(plan, formula, "  ")
        return [*lines, f"  return {_print(plan, formula)};", "}", ""]
    lines.append(f"  TensorList edge_grads({count});")
    for formula in plan.formulas:
        if formula.expr.type != "None":
            lines += _one_formula(plan, formula)
    return [*lines, "  return edge_grads;", "}", ""]


def _names_grad(plan: Plan) -> bool:
    def find(expr: object) -> bool:
        kind, value, args = expr.kind, expr.value, expr.args  # type: ignore[attr-defined]
        return (kind == "name" and value == "grad") or any(find(arg) for arg in args)

    return any(find(formula.expr) for formula in plan.formulas)


def _one_formula(plan: Plan, formula: Formula) -> list[str]:
    wants = " || ".join(f"wants({plan.index(name)})" for name in formula.names)
    lines = [f"  if ({wants}) {{", *_unpack(plan, formula, "    ")]
    if len(formula.names) == 1:
        lines.append(f"    edge_grads[{plan.index(formula.names[0])}] = {_print(plan, formula)};")
    else:
        targets = ", ".join(f"edge_grads[{plan.index(name)}]" for name in formula.names)
        lines.append(f"    std::tie({targets}) = {_print(plan, formula)};")
    return [*lines, "  }"]


def _unpack(plan: Plan, formula: Formula, indent: str) -> list[str]:
    """Local names for what the formula reads, so that it prints as a compose body does."""
    lines = []
    for name in plan.tensors:
        if name not in formula.saved.tensors:
            continue
        if plan.is_list(name):
            value = f"const TensorList {name} = autograd::unpack_list({name}_, this)"
        else:
            value = f"const Tensor {name} = {name}_.unpack(this)"
        lines.append(f"{indent}{value};")
    for name in plan.results:
        if name in formula.saved.results:
            lines.append(f"{indent}const Tensor {name} = {name}_.unpack(this, Ref<Node>(this));")
    for name in plan.others:
        if name in formula.saved.others:
            lines.append(f"{indent}const auto& {name} = {name}_;")
    return lines


def _print(plan: Plan, formula: Formula) -> str:
    kept = frozenset(plan.meta)
    text = Printer(kept).expr(formula.expr)
    return text

"""The operator table and its generator: schemas, forms, formulas, C++, parity with PyTorch."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft._ops
from weft._ops import row_checks, table
from weft._ops.forms import Form, all_forms, forms
from weft._ops.formulas import FormulaError
from weft._ops.schema import MISSING, Arg, Return, Schema, SchemaError, parse
from weft._ops.table import Row, TableError, op, ops
from weft._ops.translate import Translator

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from gen import cpp, emit, plan  # noqa: E402  (tools/ is no installed package)

ROWS = weft._ops.load()
FORMS = all_forms(ROWS)
SCHEMAS = plan.form_schemas(FORMS)
PLANS = plan.make_plans(ROWS, SCHEMAS)


# ---- schemas ----

_names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
_defaults: dict[str, st.SearchStrategy[Any]] = {
    "Tensor": st.just(MISSING),
    "Scalar": st.one_of(st.integers(), st.booleans(), st.floats(allow_nan=False)),
    "int": st.integers(),
    "float": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "str": st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=5),
    "ScalarType": st.integers(0, 11),
}


@st.composite
def _arguments(draw: st.DrawFn) -> Arg:
    base = draw(st.sampled_from(sorted(_defaults)))
    suffix = draw(st.sampled_from(["", "?", "[]", "[2]", "[]?", "?[]"]))
    if suffix.startswith("["):
        default = (
            st.lists(_defaults[base], max_size=3).map(tuple) if base != "Tensor" else st.just(())
        )
    else:
        default = _defaults[base] if "[" not in suffix else st.just(())
    if suffix.endswith("?"):
        default = st.one_of(default, st.none())
    alias = draw(st.sampled_from(["", "a", "a!", "a -> *"])) if base == "Tensor" else ""
    value = draw(st.one_of(st.just(MISSING), default))
    return Arg(draw(_names), base + suffix, value, False, alias)


@st.composite
def _schemas(draw: st.DrawFn) -> Schema:
    args = draw(st.lists(_arguments(), max_size=5, unique_by=lambda arg: arg.name))
    star = draw(st.integers(0, len(args)))
    args = [Arg(a.name, a.type, a.default, i >= star, a.alias) for i, a in enumerate(args)]
    returns = draw(st.lists(st.sampled_from(["Tensor", "int", "Tensor[]"]).map(Return)))
    return Schema(draw(_names), draw(st.one_of(st.just(""), _names)), tuple(args), tuple(returns))


@given(_schemas())
def test_schema_round_trip(schema: Schema) -> None:
    assert parse(str(schema)) == schema


def test_schema_parts() -> None:
    schema = parse(
        "split.Tensor(Tensor(a -> *) self, int[2] size=1, *, str? mode=None, Scalar p=-1.5)"
        " -> (Tensor(a)[] parts, int)"
    )
    assert (schema.name, schema.overload, schema.key) == ("split", "Tensor", "split.Tensor")
    assert [arg.alias for arg in schema.args] == ["a -> *", "", "", ""]
    assert [arg.kwarg_only for arg in schema.args] == [False, False, True, True]
    assert [arg.default for arg in schema.args] == [MISSING, 1, None, -1.5]
    assert schema.returns == (Return("Tensor[]", "parts", "a"), Return("int"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f(Tensr x) -> Tensor", "expected a type, got 'Tensr'"),
        ("f(Tensor x -> Tensor", "expected ',', got '->'"),
        ("f(Tensor x) Tensor", "expected '->', got 'Tensor'"),
        ("f(Tensor x, Tensor x) -> Tensor", "expected distinct argument names, got 'x'"),
        ("f(int x=None) -> Tensor", "expected a default of type int, got 'None'"),
        ('f(int x="a") -> Tensor', "expected a default of type int, got '\"a\"'"),
        ("f(Tensor x) -> Tensor y z", "expected end of text, got 'z'"),
        ("f(*, *, int x) -> Tensor", "expected one '*', got '*'"),
        ("f(int x=#) -> Tensor", "expected a schema token, got '#'"),
        ("f(int[x] y) -> Tensor", "expected ']', got 'x'"),
        ("", "expected an operator name, got 'end of text'"),
    ],
)
def test_schema_errors(text: str, message: str) -> None:
    with pytest.raises(SchemaError) as error:
        parse(text)
    first, shown, caret = str(error.value).split("\n")
    assert first == f"schema: {message}"
    assert shown == f"  {text}" and caret.strip() == "^"


def test_schema_error_points_at_the_place() -> None:
    with pytest.raises(SchemaError) as error:
        parse("f(Tensor self, Bool flag) -> Tensor")
    assert str(error.value).split("\n")[2].index("^") == 2 + len("f(Tensor self, ")


# ---- rows and forms ----


def _row(key: str) -> Row:
    return next(row for row in ROWS if row.key == key)


def test_derived_forms() -> None:
    assert [str(form.schema) for form in forms(_row("add.Tensor"))] == [
        "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    ]
    assert [form.id for form in forms(_row("add.Tensor"))] == [
        "add_Tensor", "add_in_place_Tensor", "add_out",
    ]  # fmt: skip
    assert [form.cpp_name for form in forms(_row("exp"))] == ["exp", "exp_", "exp_out"]
    assert [form.variants for form in forms(_row("exp"))] == ["fm", "fm", "f"]
    assert [form.schema.key for form in forms(_row("isnan"))] == ["isnan"]
    assert [form.schema.key for form in forms(_row("sum"))] == ["sum", "sum.out"]
    assert [form.schema.key for form in forms(_row("softmax.int"))] == [
        "softmax.int",
        "softmax.int_out",
    ]


def test_row_fields() -> None:
    row = _row("add.Tensor")
    assert (row.id, row.kind, row.operands, row.attributes) == (
        "add_Tensor", "pointwise", ("self", "other"), ("alpha",),
    )  # fmt: skip
    assert row.weak == ("alpha",) and row.family == "arithmetic"
    assert _row("_layer_norm_affine").weak == ("eps",)
    assert _row("sum.dim_IntList").attributes == ()
    assert _row("copy_").writes and not row.writes


def test_names_are_distinct() -> None:
    for what in (lambda f: f.schema.key, lambda f: f.id):
        names = [what(form) for form in FORMS]
        assert len(names) == len(set(names))
    signatures = [
        (form.cpp_name, tuple(cpp.parameter_type(arg.type) for arg in form.schema.args))
        for form in FORMS
    ]
    assert len(signatures) == len(set(signatures))


# Those that programs call.
PRIVATE_FUNCTIONS = (
    "_int_mm", "_sample_dirichlet", "_scaled_mm", "_standard_gamma", "_to_copy", "_weight_int8pack_mm",
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_every_row_is_complete(row: Row) -> None:
    assert row.doc and row.doc[-1] == "." and len(row.doc) < 200
    follows = row.kind == "compose" or "composite" in row.tags
    assert bool(row.grad) or follows or "nondifferentiable" in row.tags
    if row.grad:
        tensors = {arg.name for arg in row.schema.args if arg.base == "Tensor"}
        covered = {*row.differentiable, *row.constants, *row.bool_inputs, *row.int_inputs}
        assert tensors <= covered.union(row_checks.CONSTANTS)
    if row.name.startswith("_") and row.name not in PRIVATE_FUNCTIONS:
        assert row.variants == ""


@pytest.fixture
def scratch_table(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Row]]:
    rows = list(table.TABLE)
    monkeypatch.setattr(table, "TABLE", rows)
    monkeypatch.setattr(table, "_keys", set(table._keys))
    yield rows


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"compose": "self", "native": "probe"},
            "probe: expected at most one body, got ['compose', 'native']",
        ),
        ({"compose": "self", "doc": ""}, "probe: expected a doc line, got none"),
        (
            {},
            "probe: expected either gradient formulas, a compose body, or the tag "
            "nondifferentiable or composite, got none",
        ),
        (
            {"native": "probe", "grad": {"self": "grad"}},
            "probe: expected a gradient formula (or constants=) for every tensor, got ['other']",
        ),
        (
            {"native": "probe", "grad": {"slef": "grad"}},
            "probe: expected grad among other, p, self, got 'slef'",
        ),
        (
            {"pointwise": lambda self: self, "grad": {"self, other": "grad"}},
            "probe: expected a body with parameters ('self', 'other', 'p'), got ('self',)",
        ),
        (
            {"compose": "self", "tags": ("nice",)},
            f"probe: expected tags among {', '.join(sorted(table.TAGS))}, got 'nice'",
        ),
        (
            {"compose": "self", "variants": "x"},
            "probe: expected variants among fm, f, m, nn, , got 'x'",
        ),
    ],
)
def test_row_errors(scratch_table: list[Row], fields: dict[str, Any], message: str) -> None:
    with pytest.raises(TableError) as error:
        op("probe(Tensor self, Tensor other, Scalar p) -> Tensor", **{"doc": "A probe.", **fields})
    assert str(error.value) == message


@pytest.mark.parametrize("name", ["grad", "result", "result1"])
def test_arguments_that_hide_a_gradient(scratch_table: list[Row], name: str) -> None:
    with pytest.raises(TableError, match=r"names mean nothing else in its gradients, got \['"):
        op(f"probe(Tensor {name}) -> Tensor", doc="A probe.", native="p", grad={name: "grad"})


def test_rows_of_several_schemas(scratch_table: list[Row]) -> None:
    op(
        "probe.Tensor(Tensor self, Tensor other) -> Tensor",
        "probe.Scalar(Tensor self, Scalar other) -> Tensor",
        doc=("Of two tensors.", "Of a number."),
        pointwise=lambda self, other: self * other,
        weak=("other",),
        tags=("commutative", "cheap"),
        grad={"self": "grad * other", "other": "grad * self"},
        out="out",
    )
    tensor, scalar = scratch_table[-2:]
    assert (tensor.doc, scalar.doc) == ("Of two tensors.", "Of a number.")
    assert (tensor.out, scalar.out) == ("out", "Scalar_out")
    assert (tensor.weak, scalar.weak) == ((), ("other",))
    assert (tensor.tags, scalar.tags) == ({"commutative", "cheap"}, {"cheap"})
    assert (list(tensor.grad), list(scalar.grad)) == ([("self",), ("other",)], [("self",)])
    with pytest.raises(TableError, match=r"more\.a: expected gradients of tensors, got .*'third'"):
        op(
            "more.a(Tensor self, Tensor other) -> Tensor",
            "more.b(Tensor self, Scalar other) -> Tensor",
            doc="Neither has a third.",
            pointwise=lambda self, other: self * other,
            grad={"self": "grad", "other": "grad", "third": "grad"},
        )


def test_second_row_of_a_schema(scratch_table: list[Row]) -> None:
    with pytest.raises(TableError, match=r"^exp: expected one row per schema, got a second one$"):
        op("exp(Tensor self) -> Tensor", doc="Again.", compose="self")


# ---- formulas ----


def _print(text: str, **types: str) -> str:
    translator = Translator("probe", SCHEMAS)
    return cpp.Printer().expr(translator.formula(text, types))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a * b", "ops::mul(a, b)"),
        ("a + 1", "ops::add(a, Scalar(1), Scalar(1))"),
        ("1 - a", "ops::rsub(a, Scalar(1), Scalar(1))"),
        ("2 * a", "ops::mul(a, Scalar(2))"),
        ("1 / a", "ops::mul(ops::reciprocal(a), Scalar(1))"),
        ("-a", "ops::neg(a)"),
        ("a @ b", "ops::matmul(a, b)"),
        ("a ** 2", "ops::pow(a, Scalar(2))"),
        ("a.mH", "ops::conj(ops::transpose(a, int64_t{-2}, int64_t{-1}))"),
        ("a > 0", "ops::gt(a, Scalar(0))"),
        ("0 < a", "ops::gt(a, Scalar(0))"),
        ("a.sum([d], True)", "ops::sum(a, Dims{d}, true, std::optional<DType>())"),
        ("a.sum(d)", "ops::sum(a, Dims{d}, false, std::optional<DType>())"),
        ("a.shape", "a.sizes()"),
        ("a.dim() - 1", "(a.dim() - int64_t{1})"),
        ("a.numel() / 2", "(static_cast<double>(a.numel()) / 2.0)"),
        ("d // 2", "formula::floordiv(d, int64_t{2})"),
        ("s - 1", "formula::sub(s, Scalar(1))"),
        ("s.conj()", "formula::conj(s)"),
        ("a if s == 1 else a * s", "((s == Scalar(1)) ? Tensor(a) : ops::mul(a, s))"),
        ("a if o is None else o", "(!o.defined() ? Tensor(a) : Tensor(o))"),
        ("a if o is not None else b", "(o.defined() ? Tensor(a) : Tensor(b))"),
        ("where(a > 0, 0, b)", "ops::where(ops::gt(a, Scalar(0)), Scalar(0), b)"),
        ("shape[:-1] + [d]", "formula::concat(formula::slice_of(shape, std::optional<int64_t>(), "
         "int64_t{-1}), Dims{d})"),
        ("cat([a, b])", "ops::cat(TensorList{a, b}, int64_t{0})"),
        ("max(a, 0)[1]", "std::get<1>(ops::max(a, int64_t{0}, false))"),
        ("bool((a == 0).any())", "ops::any(ops::eq(a, Scalar(0))).item().to_bool()"),
        ("(a, None)", "std::tuple<Tensor, Tensor>(a, Tensor())"),
    ],
)  # fmt: skip
def test_printed_formulas(text: str, printed: str) -> None:
    types = {
        "a": "Tensor",
        "b": "Tensor",
        "o": "Tensor?",
        "s": "Scalar",
        "d": "int",
        "shape": "int[]",
    }
    assert _print(text, **types) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a *", "probe: expected a Python expression (invalid syntax), got a *\n  in: a *"),
        ("c", "probe: expected a name among a, s, got 'c'\n  in: c"),
        ("nothing(a)", "probe: expected an operator of the table, got 'nothing'\n  in: nothing(a)"),
        ("a.sin(1)", "probe: expected arguments that sin takes, got (Tensor, int)\n  in: a.sin(1)"),
        ("a.add(s, beta=1)",
         "probe: expected arguments that add takes, got (Tensor, Scalar, beta=int)\n"
         "  in: a.add(s, beta=1)"),
        ("a.length",
         "probe: expected shape, dtype, device, mT or mH, got a.length\n  in: a.length"),
        ("0 < s < 1", "probe: expected one comparison, got 0 < s < 1\n  in: 0 < s < 1"),
        ("{a}", "probe: expected an expression of the formula language, got {a}\n  in: {a}"),
    ],
)  # fmt: skip
def test_formula_errors(text: str, message: str) -> None:
    with pytest.raises(FormulaError) as error:
        _print(text, a="Tensor", s="Scalar")
    assert str(error.value) == message


def _probe_body(self: Any, count: Any, weight: Any) -> Any:
    """Documentation is skipped."""
    ops.check(count > 0, "probe: expected count above 0, got ", count)
    x = self + 1
    if weight is not None:
        x = x * weight
    values, indices = ops.max(x, 0)
    values.add_(indices)
    return values


_PROBE_ARGUMENTS = {"self": "Tensor", "count": "int", "weight": "Tensor?"}


def test_printed_body() -> None:
    statements = Translator("probe", SCHEMAS).body(_probe_body, _PROBE_ARGUMENTS, "Tensor")
    assert cpp.Printer().block(statements, "") == [
        "WEFT_CHECK_AS(Runtime, (count > int64_t{0}), "
        '"probe: expected count above 0, got ", count);',
        "Tensor x = ops::add(self, Scalar(1), Scalar(1));",
        "if (weight.defined()) {",
        "  x = ops::mul(x, weight);",
        "}",
        "const auto [values, indices] = ops::max(x, int64_t{0}, false);",
        "ops::add_(values, indices, Scalar(1));",
        "return values;",
    ]


def _assigns_argument(self: Any) -> Any:
    self = self + 1
    return self


def _loops(self: Any) -> Any:
    for _ in range(3):
        self.add_(1)
    return self


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (_assigns_argument, "probe: expected a name that is no argument's to assign to, got self"),
        (_loops, "probe: expected an assignment, if, return, check or call, got for _ in range(3)"),
    ],
)
def test_body_errors(body: Any, message: str) -> None:
    with pytest.raises(FormulaError) as error:
        Translator("probe", SCHEMAS).body(body, {"self": "Tensor"}, "Tensor")
    assert str(error.value).startswith(message)


# ---- what nodes keep ----


@pytest.mark.parametrize(
    ("key", "name", "members"),
    [
        ("add.Tensor", "AddBackward0", {"alpha_"}),
        ("add.Scalar", "AddBackward1", set()),
        ("mul.Tensor", "MulBackward0", {"self_", "other_"}),
        ("exp", "ExpBackward0", {"result_"}),
        ("relu", "ReluBackward0", {"result_"}),
        ("sum", "SumBackward0", {"self_shape_"}),
        ("sum.dim_IntList", "SumBackward1", {"self_shape_", "dim_"}),
        ("max.dim", "MaxBackward0", {"result1_", "self_shape_", "dim_", "keepdim_"}),
        ("mm", "MmBackward0", {"self_", "mat2_"}),
        ("addmm", "AddmmBackward0", {"mat1_", "mat2_", "beta_", "alpha_"}),
        ("softmax.int", "SoftmaxBackward0", {"result_", "dim_", "self_dtype_"}),
        ("transpose.int", "TransposeBackward0", {"dim0_", "dim1_"}),
        ("cat", "CatBackward0", {"tensors_sizes_", "dim_"}),
        ("index.Tensor", "IndexBackward0", {"indices_", "self_shape_"}),
        ("copy_", "CopyBackward0", set()),
    ],
)
def test_nodes_keep_what_formulas_read(key: str, name: str, members: set[str]) -> None:
    node = PLANS[key]
    assert node.node == name
    assert {member for _, member in node.members()} == members


def test_a_number_operand_shows_the_node_of_the_tensor_operand() -> None:
    assert PLANS["mul.Scalar"].label == PLANS["mul.Tensor"].label == "MulBackward0"
    assert PLANS["fill_.Scalar"].label == PLANS["fill_.Tensor"].label


def test_node_names_are_distinct() -> None:
    names = [node.node for node in PLANS.values()]
    assert len(names) == len(set(names))


def test_tensors_are_saved_only_for_wanted_edges() -> None:
    from gen import nodes

    text = "\n".join(nodes.make(PLANS["mul.Tensor"], True))
    assert 'if (node->edges[0]) node->other_.save(other, false, "other");' in text
    assert (
        "if (node->edges[1]) node->self_.save(in_place ? ops::clone(self, std::nullopt) : self"
        in text
    )


# ---- the generator ----


def test_generation_is_deterministic() -> None:
    assert emit.generate() == emit.generate()


def test_generator_program(tmp_path: Path) -> None:
    program = [sys.executable, str(ROOT / "tools" / "gen.py"), "--out", str(tmp_path)]
    listed = subprocess.run([*program, "--list"], capture_output=True, text=True, check=True).stdout
    assert not list(tmp_path.iterdir())
    subprocess.run(program, check=True)
    written = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert written == set(listed.split()) >= {"ops.h", "native_scans.h", "op_records.cpp"}
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in written}
    (tmp_path / "ops.h").write_text("old")
    (tmp_path / "of_others.cpp").write_text("int x;\n")
    (tmp_path / "of_old.cpp").write_text(emit.BANNER)
    subprocess.run(program, check=True)
    assert (tmp_path / "of_others.cpp").exists() and not (tmp_path / "of_old.cpp").exists()
    changed = {name for name in written if (tmp_path / name).stat().st_mtime_ns != before[name]}
    assert changed == {"ops.h"}


def test_defaults_never_make_a_call_ambiguous() -> None:
    taken: set[tuple[str, ...]] = set()
    one = parse("f(Tensor self, bool unbiased=True) -> Tensor").args
    other = parse("f(Tensor self, int[1]? dim=None, *, bool keepdim=False) -> Tensor").args
    assert cpp.first_default(one, taken) == 1
    assert cpp.first_default(other, taken) == 2


# ---- parity with PyTorch ----


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def torch_schemas(torch: Any) -> dict[str, str]:
    every = torch._C._jit_get_all_schemas()
    texts = [str(s)[6:].replace("SymInt", "int") for s in every if s.name.startswith("aten::")]
    return {text.split("(")[0]: text for text in texts}


def _comparable(schema: Schema) -> Any:
    """One number stands for a list, an int for a float: spelling, not meaning."""

    def default(arg: Arg) -> Any:
        value = arg.default
        length = re.search(r"\[(\d+)\]", arg.type)
        if isinstance(value, int) and length:
            return (value,) * int(length[1])
        return float(value) if arg.base == "float" and isinstance(value, int) else value

    def name(arg: Arg) -> str:
        return arg.alias if arg.kwarg_only and arg.is_written else arg.name  # `out=` in Python

    args = [(name(a), a.type, default(a), a.kwarg_only, a.alias) for a in schema.args]
    return args, [(r.type, r.alias) for r in schema.returns]


#: what factories take beside `out=` in Python, in both libraries
OPTIONS = ("dtype", "layout", "device", "pin_memory", "memory_format")


@pytest.mark.parity
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.schema.key)
def test_schema_is_pytorchs(form: Form, torch_schemas: dict[str, str]) -> None:
    theirs = torch_schemas.get(form.schema.key)
    if theirs is None:
        assert form.schema.name.startswith("_"), "a public operator that PyTorch does not have"
        return
    schemas = [form.schema, parse(theirs)]
    if form.kind == "out" and "factory" in form.row.tags:
        kept = [tuple(arg for arg in s.args if arg.name not in OPTIONS) for s in schemas]
        schemas = [schema._replace(args=args) for schema, args in zip(schemas, kept)]
    ours, wanted = map(_comparable, schemas)
    assert ours == wanted


@pytest.mark.parity
def test_python_sees_what_pytorch_shows(torch: Any) -> None:
    seen: dict[str, int] = {}
    for form in FORMS:
        if form.kind != "out":
            bits = form.variant_bits & 7
            seen[form.schema.name] = seen.get(form.schema.name, 0) | bits
    for name, bits in seen.items():
        if bits == 0:
            continue
        function, method = hasattr(torch, name), hasattr(torch.Tensor, name)
        neural = hasattr(torch._C._nn, name) and not function
        assert (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0) == (function, method, neural), name

"""What the extension says of operators is what the table and the builtins say; and a first program
needs nothing else."""

import json
import subprocess
import sys

import pytest

import weft._ops
from weft import _C
from weft._ops import builtins
from weft._ops.forms import all_forms
from weft._ops.formulas import gradient_names
from weft._ops.translate import Translator
from weft.jit import operator_facts, schemas
from weft.jit.codegen import rows
from weft.jit.ir import types

ROWS = weft._ops.load()
FORMS = all_forms(ROWS)
BUILTINS = list(builtins.load().values())


def test_every_operator_is_there_in_order():
    expected = [(f"aten::{f.schema.name}", str(f.schema)) for f in FORMS]
    expected += [(row.name, row.text) for row in BUILTINS]
    names = dict.fromkeys(name for name, _ in expected)
    assert operator_facts.names() == list(names)
    for name in names:
        wanted = [schema for other, schema in expected if other == name]
        entries = operator_facts.entries(name)
        assert [schemas.Operator(*entry).text for entry in entries] == wanted
        assert operator_facts.exists(name)
    assert not operator_facts.exists("aten::no_such") and _C._operators("aten::no_such") == []


def test_forms_know_their_rows():
    for form in FORMS:
        found = schemas.of(f"aten::{form.schema.key}")
        assert not found.is_builtin
        assert found.row is not None and found.row.key == form.row.key
        assert found.writes_self == form.writes_self, form.schema


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_row(row):
    found = operator_facts.row(row.key)
    assert found is not None
    assert (found.key, found.id, found.kind, found.family) == (
        row.key,
        row.id,
        row.kind,
        row.family,
    )
    assert found.tags == row.tags
    assert found.gives_mask == (row.result[0] in ("bool", "truth") if row.result else False)
    if row.kind == "rowwise":
        assert (found.per_row, found.results) == (row.per_row, len(row.schema.returns))
    assert found.has_validation == (row.validate is not None)
    assert found.has_masks == bool(row.int_inputs or row.bool_inputs)
    assert found.differentiable == row.differentiable
    assert found.has_gradient == bool(row.grad)
    if found.is_elementwise:
        tensors = [what == "Tensor" for what in found.operands]
        assert tensors == [arg.type == "Tensor" for arg in row.schema.args]
        assert row.kind == "pointwise" and found.body is None
    elif found.body is not None:
        assert row.kind == "compose"
    elif row.kind in ("reduce", "rowwise"):
        assert found.attributes == row.attributes


def test_row_operators_of_groups():
    for key in (row.key for row in ROWS):
        found = operator_facts.row(key)
        if not (found.is_fusible or rows.applies(found)):
            continue
        assert operator_facts.row_of_id(found.id) is found
        assert found.kind in ("compose", "view") or key == "reshape" or found.gradient, key
        args = schemas.of(f"aten::{key}").args
        if found.kind in ("reduce", "rowwise"):
            assert [what == "Tensor" for what in found.operands] == [
                arg.type == types.TENSOR for arg in args
            ]


def test_formulas_are_those_of_the_table():
    forms = {}
    for form in FORMS:
        if form.kind != "out":
            forms.setdefault(form.schema.name, []).append(form.schema)

    def plain(tree):
        value = tree.value.key if tree.kind == "op" else tree.value
        return json.loads(json.dumps([tree.kind, tree.type, value, list(map(plain, tree.args))]))

    checked = 0
    for row in ROWS:
        found = operator_facts.row(row.key)
        if not found.operands or not found.gradient:
            continue
        translator = Translator(row.key, forms)
        for (name, formula), wanted in zip(found.gradient, row.differentiable, strict=True):
            text = row.grad[(wanted,)]
            assert name == wanted
            assert formula == plain(translator.formula(text, gradient_names(row.schema)))
            checked += 1
    assert checked > 100


def test_builtins():
    for row in BUILTINS:
        found = schemas.of(row.kind)
        assert found.is_builtin and found.row is None
        assert found.tags == row.tags
        assert found.folds == (found.pure and row.python is not None)
        assert found._row_python is row.python
        assert ("scalar" in found.facts) == row.is_scalar


FIRST_PROGRAM = """
import gc, sys
before = set(sys.modules)
import weft
unit = weft.jit.CompilationUnit(sys.argv[1])
assert unit.f(weft.ones(3), 1).shape == (3,)  # what runs twice is compiled, in the background
assert gc.isenabled()
heavy = ("weft._ops.table", "weft._ops.builtins.rows", "weft._ops.schema", "weft.nn",
         "weft.jit.script_module", "weft.jit.tracing", "weft.jit.tracing.trace",
         "weft.jit.native.compose", "weft.jit.ir.html", "llvmlite", "numpy", "platform",
         "weft.jit.archive", "weft.jit.graph_view",
         "inspect", "dataclasses", "textwrap", "json")
print([name for name in heavy if name in sys.modules and name not in before])
"""


LOOP = """
def f(x, n: int):
    for i in range(n):
        x = weft.tanh(x * 2.0 + i) - x.relu()
    return x
"""
CHAIN = "def f(x, n: int):\n    return weft.tanh(x * 2.0 + n) - x.relu()\n"


@pytest.mark.parametrize("source", [CHAIN, LOOP], ids=["chain", "loop"])
def test_a_first_program_imports_little(source):
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_PROGRAM, source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.strip() == "[]", ran.stdout + ran.stderr

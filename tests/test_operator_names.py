"""Facts about operators stand in the operator table. Lists of operators' names elsewhere are counted
here, and may only become shorter: a fact that a pass or the runtime needs is a tag of the row."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import weft._ops
from weft._ops import builtins
from weft._ops.forms import all_forms

ROOT = Path(__file__).resolve().parent.parent
# Names in a list are what these files are about.
ALLOWED = {
    "src/weft/jit/passes/algebra.py": "identities between operators",
    "src/weft/jit/passes/moments.py": "an identity between operators",
    "src/weft/jit/ir/node_rules.py": "nodes of the IR",
    "src/weft/jit/archive/": "what PyTorch calls operators, today and in older archives",
    "src/weft/jit/frontend/language/attributes.py": "attributes of tensors",
    "csrc/runtime/arithmetic.cpp": "functions of Python's math",
    "src/weft/jit/frontend/language/operators.py": "the operators of Python's syntax",
    "src/weft/jit/frontend/language/comparison.py": "the comparisons of Python's syntax",
    "src/weft/jit/codegen/steps.py": "the words of formulas",
    "src/weft/jit/tracing/faces.py": "attributes and methods of tensors",
    "src/weft/jit/tracing/numbers.py": "methods of Python's numbers",
    "src/weft/jit/python_functions.py": "functions of Python's modules",
}
# Lists that are still to become tags: how many names they hold.
OFFENDERS = {
    "src/weft/jit/pipeline.py": 4,
    "src/weft/jit/schemas.py": 3,
}


@cache
def operators():
    """Names of rows of the table, and full names of all operators: "add", "aten::add"."""
    rows = {form.schema.name for form in all_forms(weft._ops.load())}
    full = {f"aten::{name}" for name in rows} | {row.name for row in builtins.load().values()}
    return rows, full


def names_operator(text):
    rows, full = operators()
    return text.partition(".")[0] in (full if "::" in text else rows)


def lists_of(tree):
    """The texts that stand beside each other: in displays, keys of dicts, arguments of calls."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Set, ast.Tuple, ast.List)):
            items = node.elts
        elif isinstance(node, ast.Dict):
            items = [key for key in node.keys if key is not None]
        elif isinstance(node, ast.Call):
            items = node.args
        else:
            continue
        yield [
            each.value
            for each in items
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]


def in_python(text):
    """How many operators lists of two or more name, most of the texts in them being such names."""
    found = 0
    for texts in lists_of(ast.parse(text)):
        named = sum(map(names_operator, texts))
        found += named if named >= 2 and 2 * named >= len(texts) else 0
    return found


def in_cpp(text):
    """How many operators the first fields of tables, and comparisons, name."""
    text = re.sub(r"//.*", "", text)
    texts = re.findall(r'(?:\{|== )"([\w.]+)"', text) + re.findall(r'"(aten::[\w.]+)"', text)
    return sum(map(names_operator, texts))


def files():
    for folder, suffix in (
        ("src/weft/jit", "*.py"),
        ("csrc/runtime", "*.cpp"),
        ("csrc/runtime", "*.h"),
    ):
        for path in sorted((ROOT / folder).rglob(suffix)):
            if "test" not in path.name:
                yield path.relative_to(ROOT).as_posix(), path


def found():
    counts = {
        name: (in_python if path.suffix == ".py" else in_cpp)(path.read_text(encoding="utf-8"))
        for name, path in files()
    }
    return {n: count for n, count in counts.items() if count and not n.startswith(tuple(ALLOWED))}


def test_lists_become_shorter():
    counts = found()
    longer = {name: count for name, count in counts.items() if count > OFFENDERS.get(name, 0)}
    assert not longer, (
        f"expected facts as tags of rows (src/weft/_ops), got lists of names in {longer}"
    )
    done = OFFENDERS.keys() - counts.keys()
    assert not done, f"no longer on the list: {sorted(done)}"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('X = frozenset(("aten::add", "aten::mul.Tensor", "other"))', 2),
        ('X = {"softmax.int": 1, "mean": 2}', 2),
        ('@rule("relu", "gelu")\ndef f(): ...', 2),
        ('node.kind == "aten::add"', 0),
        ('X = ("device", "size", "strings", "of", "all", "sorts")', 0),
    ],
)
def test_lists_are_found(text, count):
    assert in_python(text) == count


def test_tables_of_cpp_are_found():
    assert in_cpp('Head kHeads[] = {{"mm", f}, {"none", g}};  // {"add"') == 1
    assert in_cpp('step.op == "_layer_norm" || find("aten::add.Tensor")') == 2

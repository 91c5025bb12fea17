"""Facts about operators stand in the operator table: what a pass, a transform or the bindings need to
know of an operator is a tag of its row. A list of operators' names anywhere else is found here."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import weft._ops
from weft._ops import builtins
from weft._ops.forms import all_forms
from weft.jit.ir.node_rules import RULES

ROOT = Path(__file__).resolve().parent.parent
# Names in a list are what these files are about: what a name means there, which no other part of
# weft asks, or what somebody else calls it.
ALLOWED = {
    "src/weft/_ops/": "the table itself",
    "src/weft/_kernels/": "the words of the kernel language",
    "src/weft/__init__.py": "public names",
    "src/weft/_functions/": "public names, and what they call reductions",
    "src/weft/_runtime/torch_function.py": "methods behind Python's operators",
    "src/weft/array_api/": "the names of the standard",
    "src/weft/export/": "PyTorch's names in its files, and the operators of Python's syntax",
    "src/weft/fx/": "PyTorch's names in graphs, and the operators of Python's syntax",
    "src/weft/autograd/graph.py": "words of an option",
    "src/weft/distributed/tensor/": "rules of placements that do not follow from facts",
    "src/weft/func/": "rules of batches that do not follow from facts",
    "src/weft/jit/archive/": "what PyTorch calls operators, today and in older archives",
    "src/weft/jit/codegen/steps.py": "the words of formulas",
    "src/weft/jit/frontend/language/attributes.py": "attributes of tensors",
    "src/weft/jit/frontend/language/comparison.py": "the comparisons of Python's syntax",
    "src/weft/jit/frontend/language/operators.py": "the operators of Python's syntax",
    "src/weft/jit/passes/algebra.py": "identities between operators",
    "src/weft/jit/passes/channels_last.py": "an identity between operators",
    "src/weft/jit/passes/conv_bn.py": "an identity between operators",
    "src/weft/jit/passes/conv_sum.py": "an identity between operators",
    "src/weft/jit/passes/var_mean.py": "an identity between operators",
    "src/weft/jit/python_functions.py": "functions of Python's modules",
    "src/weft/jit/schemas.py": "functions of weft that rows of builtins cannot name",
    "src/weft/jit/tracing/overrides.py": "attributes and methods of tensors",
    "src/weft/jit/tracing/numbers.py": "methods of Python's numbers",
    "src/weft/nested/": "meanings of operators for nested tensors",
    "src/weft/nn/": "public names, and what layers call reductions",
    "src/weft/onnx/": "mappings: each operator's nodes in another language",
    "src/weft/optim/": "words of options",
    "src/weft/return_types.py": "public names",
    "src/weft/serialization/": "what PyTorch's files call things",
    "src/weft/sparse/": "meanings of operators for sparse tensors",
    "src/weft/utils/_flop_formulas.py": "formulas of operations, by what PyTorch counts them as",
    "src/weft/utils/_selective_checkpoint.py": "what PyTorch calls the operators behind functions",
    "src/weft/utils/tensorboard/": "fields of a record",
    "csrc/bindings/grad_mode.cpp": "methods of a mode",
    "csrc/bindings/jit_fused.cpp": "words of groups",
    "csrc/bindings/storage_methods.cpp": "methods of storages",
    "csrc/bindings/tensor_getset.cpp": "attributes of tensors",
    "csrc/bindings/tensor_methods.cpp": "methods of tensors",
    "csrc/libtorch/": "calls of single operators, behind libtorch's names for them",
    "csrc/ops/index_write.cpp": "words of an option",
    "csrc/runtime/arithmetic.cpp": "functions of Python's math",
    "csrc/runtime/fused_operators.cpp": "sums of gradients, some of which are missing",
}


KEYS = ("key", "id")  # what rows are called


@cache
def operators():
    """Names of rows of the table, full names of all operators but the IR's own nodes, and
    identifiers of forms: "add", "aten::add", "add_Tensor"."""
    forms = all_forms(weft._ops.load())
    rows = {form.schema.name for form in forms}
    full = {f"aten::{name}" for name in rows} | {row.name for row in builtins.load().values()}
    return rows, full - RULES.keys(), {form.id for form in forms}


def names_operator(text):
    rows, full, ids = operators()
    return text in ids or text.partition(".")[0] in (full if "::" in text else rows)


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


def compared(tree):
    """Texts that something is compared with, and whether that is the key or id of an operator."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            of_row = any(isinstance(each, ast.Attribute) and each.attr in KEYS for each in sides)
            for each in sides:
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield each.value, of_row


def in_python(text):
    """How many operators lists of two or more name, most of the texts in them being such
    names, and how many comparisons do."""
    tree = ast.parse(text)
    found = 0
    for texts in lists_of(tree):
        named = sum(map(names_operator, texts))
        found += named if named >= 2 and 2 * named >= len(texts) else 0
    found += sum("::" in text or of_row for text, of_row in compared(tree) if names_operator(text))
    return found


def in_cpp(text):
    """How many operators lists, the first fields of tables, and comparisons name."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    found = 0
    for items in re.findall(r'\{((?:\s*"[\w.]+",?){2,})\s*\}', text):
        texts = re.findall(r'"([\w.]+)"', items)
        named = sum(map(names_operator, texts))
        found += named if 2 * named >= len(texts) else 0
        text = text.replace(items, "")
    texts = re.findall(r'(?:\{|[!=]= )"([\w.]+)"', text) + re.findall(r'"(aten::[\w.]+)"', text)
    return found + sum(map(names_operator, texts))


def files():
    for folder, suffix in (("src/weft", "*.py"), ("csrc", "*.cpp"), ("csrc", "*.h")):
        for path in sorted((ROOT / folder).rglob(suffix)):
            if "test" not in path.name:
                yield path.relative_to(ROOT).as_posix(), path


def found():
    counts = {
        name: (in_python if path.suffix == ".py" else in_cpp)(path.read_text(encoding="utf-8"))
        for name, path in files()
    }
    return {n: count for n, count in counts.items() if count and not n.startswith(tuple(ALLOWED))}


def test_no_list_of_names():
    counts = found()
    assert not counts, (
        f"expected facts as tags of rows (src/weft/_ops), got lists of names in {counts}"
    )


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('X = frozenset(("aten::add", "aten::mul.Tensor", "other"))', 2),
        ('X = {"softmax.int": 1, "mean": 2}', 2),
        ('@rule("relu", "gelu")\ndef f(): ...', 2),
        ('node.kind == "aten::add"', 1),
        ('row.key != "layer_norm" or "add_Tensor" == row.id', 2),
        ('node.kind == "aten::wait" or name == "min"', 0),
        ('emit("aten::add", [x, y])', 0),
        ('X = ("device", "size", "strings", "of", "all", "sorts")', 0),
    ],
)
def test_lists_are_found(text, count):
    assert in_python(text) == count


def test_tables_of_cpp_are_found():
    assert in_cpp('Head kHeads[] = {{"mm", f}, {"none", g}};  // {"add"') == 1
    assert in_cpp('step.op == "_layer_norm" || find("aten::add.Tensor")') == 2
    assert in_cpp('step.op != "add_Tensor"') == 1


def test_lists_of_cpp_are_found():
    text = 'std::string_view kNumberFirst[] = {\n    "add", "sub",  "mul",  // "div"\n};'
    assert in_cpp(text) == 3
    assert in_cpp('kWords[] = {"last", "over", "all"};') == 0


def test_every_allowance_is_used():
    counts = [
        name
        for name, path in files()
        if (in_python if path.suffix == ".py" else in_cpp)(path.read_text(encoding="utf-8"))
    ]
    unused = {each for each in ALLOWED if not any(name.startswith(each) for name in counts)}
    assert not unused

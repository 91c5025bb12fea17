"""No mutated program reaches an internal error of the compiler: it compiles, or it is refused."""

from __future__ import annotations

import ast
import inspect
import linecache
import random
import textwrap
import warnings

import pytest
from tests.jit import frontend_cases
from tests.jit import test_script_classes as script_classes
from tests.jit.mutate import mutate

from weft import jit
from weft.jit import schemas
from weft.jit.frontend import FrontendError
from weft.jit.frontend.language.functions import compile_definition
from weft.jit.frontend.source.code import Code
from weft.jit.frontend.source.resolver import Resolver
from weft.jit.ir.verify import verify

FUNCTIONS = list(dict.fromkeys(function for function, _ in frontend_cases.CASES))


def try_compile(text: str) -> str:
    """ "refused", "compiled" or "syntax"; any other exception goes through."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            compile(text, "<mutant>", "exec")
    except (SyntaxError, ValueError):
        return "syntax"
    try:
        code = Code(text, "<mutant>", 1)
        node = code.tree.body[0]
        assert isinstance(node, ast.FunctionDef)
        scopes = Resolver(vars(frontend_cases))
        compiled = compile_definition(node, code, scopes, f"__torch__.{node.name}", {})
    except FrontendError as error:
        assert str(error)
        return "refused"
    verify(compiled.function.graph, schemas.of)
    return "compiled"


def mutants(function, count: int, seed: int):
    """Texts of mutated copies of a function."""
    source = textwrap.dedent(inspect.getsource(function))
    tree = ast.parse(source).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.decorator_list = []
    random_ = random.Random(seed)
    for _ in range(count):
        try:
            yield ast.unparse(mutate(tree, random_)) + "\n"
        except (ValueError, AttributeError, TypeError, RecursionError):
            continue  # a tree that is no program


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_mutants_compile_or_are_refused(function, request):
    results = {"refused": 0, "compiled": 0, "syntax": 0}
    for text in mutants(function, 12, 1):
        try:
            results[try_compile(text)] += 1
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}\n{text}") from error
    assert results["refused"] + results["compiled"] > 0


def mutated_class(cls, random_: random.Random) -> str:
    """The text of a class with one method mutated."""
    while True:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
        assert isinstance(tree, ast.ClassDef)
        methods = [i for i, node in enumerate(tree.body) if isinstance(node, ast.FunctionDef)]
        index = random_.choice(methods)
        try:
            tree.body[index] = mutate(tree.body[index], random_)  # type: ignore[arg-type]
            return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        except (ValueError, AttributeError, TypeError, RecursionError):
            continue


CLASSES = [
    (script_classes.Net, None),
    (script_classes.Cached, None),
    (script_classes.Hooked, None),
    (script_classes.Counter, script_classes.use_class),
    (script_classes.Config, script_classes.use_dataclass),
    (script_classes.Timer, script_classes.use_with),
    (script_classes.Square, script_classes.use_interface),
]


@pytest.mark.parametrize(("cls", "user"), CLASSES, ids=lambda v: getattr(v, "__name__", ""))
def test_mutated_classes_compile_or_are_refused(cls, user):
    random_ = random.Random(7)
    results = {"refused": 0, "compiled": 0}
    for number in range(25):
        text = mutated_class(cls, random_)
        if user is not None:
            text += textwrap.dedent(inspect.getsource(user))
        name = f"<mutated {cls.__name__} {number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        space = dict(vars(script_classes))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                exec(compile(text, name, "exec"), space)
            subject = space[cls.__name__]() if user is None else space[user.__name__]
        except Exception:
            continue  # no program of Python either
        try:
            jit.script(subject)
            results["compiled"] += 1
        except RuntimeError as error:
            assert str(error)
            results["refused"] += 1
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}\n{text}") from error
    assert sum(results.values()) > 0

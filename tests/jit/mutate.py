"""Mutated programs: well-formed Python that mostly means nothing, for the compiler to refuse."""

from __future__ import annotations

import ast
import copy
import random

SNIPPETS = [
    "None", "1", "-1", "2.5", "'s'", "True", "x", "n", "[]", "{}", "()", "[1, 'a']", "{1: 2}", "x.shape",
    "x[0]", "x[:, None]", "x.foo", "len", "torch", "torch.relu", "math.pi", "lambda a: a", "print",
    "f'{x!r:>{n}}'", "(y := 3)", "[i for i in x]", "{k: k for k in n}", "x if n else None", "not x",
    "n < x < 3", "x is None", "x in n", "isinstance(x, int)", "isinstance(x, y)", "hasattr(x, 'a')",
    "*x", "...", "x @ n", "x ** 'a'", "self", "super()", "int", "int('a')", "range(n)", "zip(x, n)",
    "enumerate(3)", "List[int]", "Optional[int]", "x()", "n()", "len(n, n)", "torch.zeros(n, 'a')",
    "torch.cat(x)", "x.view(-1, n)", "max()", "sum(n)", "sorted(x, key=n)", "getattr(x, n)", "b'x'",
    "10 ** 30", "await_", "__name__", "x[1:2:3]", "x[...]", "x['a']", "[*x]", "{**x}", "jit.annotate(n, x)",
    "torch.jit.fork(n)", "dict(a=1)", "tuple(x)", "str(x).join(n)", "'%d' % x", "x.append(x)", "1j",
]  # fmt: skip
STATEMENTS = [
    "return", "return x", "break", "continue", "x = n", "n = x", "x += 'a'", "del x", "del n[0]", "raise x",
    "raise ValueError", "raise", "assert x, n", "pass", "x: int = 's'", "n: List[str] = []", "x.y = 3",
    "x[0] = n", "x, n = n, x", "a, *b = x", "for i in x:\n    x = i", "while x:\n    break",
    "if x:\n    n = 's'", "with x:\n    pass", "def g(a):\n    return a\nx = g(n)", "import os",
    "global q", "try:\n    pass\nfinally:\n    pass", "class A: pass", "yield x", "lambda: 0",
    "x = y = n", "for i, in zip(n):\n    pass\nelse:\n    x = 1", "async def z(): pass", "return x, n",
    "with torch.no_grad() as q:\n    x = 1", "if n is None:\n    return 3",
]  # fmt: skip


def mutate(tree: ast.FunctionDef, random_: random.Random) -> ast.FunctionDef:
    """A copy with one to four changes."""
    tree = copy.deepcopy(tree)
    for _ in range(random_.randint(1, 4)):
        _change(tree, random_)
    return ast.fix_missing_locations(tree)


def _change(tree: ast.FunctionDef, random_: random.Random) -> None:
    places = []
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                places += [(node, name, i) for i, item in enumerate(value) if _movable(item)]
            elif _movable(value):
                places.append((node, name, None))
    node, name, index = random_.choice(places)
    value = getattr(node, name)
    old = value if index is None else value[index]
    new = _replacement(old, tree, random_)
    if new is None and index is not None and len(value) > 1:
        del value[index]
    elif new is not None and index is None:
        setattr(node, name, new)
    elif new is not None:
        value[index] = new


def _movable(item: object) -> bool:
    return isinstance(item, (ast.expr, ast.stmt, ast.operator, ast.cmpop, ast.boolop, ast.unaryop))


def _replacement(old: ast.AST, tree: ast.AST, random_: random.Random) -> ast.AST | None:
    for kind in (ast.operator, ast.cmpop, ast.boolop, ast.unaryop):
        if isinstance(old, kind):
            return random_.choice(kind.__subclasses__())()
    kind = ast.expr if isinstance(old, ast.expr) else ast.stmt
    choice = random_.random()
    if choice < 0.45:
        same = [n for n in ast.walk(tree) if isinstance(n, kind) and n is not tree]
        return copy.deepcopy(random_.choice(same))
    if choice < 0.55 and kind is ast.stmt:
        return None
    if kind is ast.stmt:
        return random_.choice(ast.parse(random_.choice(STATEMENTS)).body)
    parsed = ast.parse(f"f({random_.choice(SNIPPETS)})", mode="eval").body
    assert isinstance(parsed, ast.Call)
    made = parsed.args[0] if parsed.args else parsed
    return made if not isinstance(made, ast.Starred) or isinstance(old, ast.expr) else None

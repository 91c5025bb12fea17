"""Where definitions end: found by indents and the parser, as inspect finds it by tokens."""

import argparse
import ast
import functools
import inspect
import json.decoder
import linecache
import sys
import textwrap

import pytest

import weft
from jit.corpus import sequences
from weft.jit.frontend.source import code as source
from weft.jit.frontend.source.code import _lines_of, code_of
from weft.jit.ir.fresh_stack import parse

MODULES = (argparse, inspect, json.decoder, linecache, textwrap, sequences, weft.nn.functional)


def functions(module):
    for holder in (module, *(c for c in vars(module).values() if inspect.isclass(c))):
        for each in vars(holder).values():
            each = getattr(each, "__wrapped__", each)
            if inspect.isfunction(each) and each.__module__ == module.__name__:
                yield each


def tree(lines):
    return ast.dump(ast.parse(textwrap.dedent("".join(lines))))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_definitions_end_where_inspect_says(module):
    found = 0
    for function in functions(module):
        try:
            wanted, first = inspect.getsourcelines(function)
        except OSError:
            continue
        got = _lines_of(function, linecache.getlines(inspect.getsourcefile(function)))
        if got is None:  # left to inspect
            continue
        assert (tree(got[0]), got[1]) == (tree(wanted), first), function
        found += 1
    assert found > 5


def decorate(*_):
    return lambda function: function


# fmt: off
@decorate(
"an argument at the left",
)
def strange(x, y=(
1, 2,
)):
    """A text
that goes on at the left
    """
    z = x + \
1
# a comment at the left

    def inner(a):
        return a
    return (inner(z),
y)
# a comment after it


one_line = None
if sys:
    def one_line(x): return x
class Layouts:
    def comment(self, x):
        y = x
# at the left
        return y

    def strings(self, x):
        s = """one
    two
        three
four"""
        return s, f"""{s}
            {x}
""", "a\
    b"

    def lines(self, x):
        s = """
""" """
""" """
""" """
""" """
""" """
""" """
""" """
""" """
""" """
""" """
""" """
""" """
""" """
""" """
""" """
""" """
"""
        return s
# fmt: on


def wrapped_by(function):
    @functools.wraps(function)
    def wrapper(x):
        return function(x)

    return wrapper


@wrapped_by
def wrapped(x):
    return x


@pytest.mark.parametrize("function", [strange, one_line], ids=lambda f: f.__name__)
def test_strange_layouts(function):
    lines, first = _lines_of(function, linecache.getlines(__file__))
    wanted, wanted_first = inspect.getsourcelines(function)
    assert (tree(lines), first) == (tree(wanted), wanted_first)
    assert "comment after" not in "".join(lines)


METHODS = [Layouts.comment, Layouts.strings, Layouts.lines]


@pytest.mark.parametrize("method", METHODS, ids=lambda f: f.__name__)
def test_methods_mean_what_they_say(method, monkeypatch):
    """Strings keep the indent of their lines, and the end is not sought by parsing ever more."""
    parsed = []
    monkeypatch.setattr(source, "parse", lambda *a, **k: parsed.append(a) or parse(*a, **k))
    names = {}
    exec(code_of(method).text, names)
    assert names[method.__name__](None, 3) == method(None, 3)
    assert len(parsed) < 20


@pytest.mark.parametrize("function", [wrapped, lambda x: x], ids=["wrapped", "lambda"])
def test_what_is_left_to_inspect(function):
    assert _lines_of(function, linecache.getlines(__file__)) is None
    assert code_of(function).text


def test_source_that_does_not_fit_the_code_is_left_to_inspect():
    scope = {}
    exec(compile("\n\n\ndef f(x):\n    return x\n", __file__, "exec"), scope)
    assert _lines_of(scope["f"], linecache.getlines(__file__)) is None

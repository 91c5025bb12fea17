"""From functions of the IR to callables: optimise, lower, load; once each, at the first call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from weft import _C
from weft._runtime import lazy
from weft._runtime.fork_lock import ForkLock
from weft.jit import codegen, literals, native  # noqa: F401  (literals: constants of weft)
from weft.jit.cache.cached_programs import FIRST, GRADIENTS, CachedPrograms
from weft.jit.cache.cached_programs import INFERENCE as WITHOUT
from weft.jit.ir import Function
from weft.jit.ir import types as ty
from weft.jit.native import compiler
from weft.jit.passes import gradients, quantized
from weft.jit.passes.inlining import callee
from weft.jit.passes.options import DEFAULT, INFERENCE, Options
from weft.jit.recursion import DeepRecursion

pipeline = lazy.module("weft.jit.pipeline")  # a third of the compiler: first calls do without


class _Compiling:
    """One compiler at a time, since the frontend and the passes share tables."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._deep = DeepRecursion()

    def __enter__(self) -> None:
        self._lock.__enter__()
        if self._lock.depth == 1:
            self._deep.__enter__()

    def __exit__(self, *exception: object) -> None:
        if self._lock.depth == 1:
            self._deep.__exit__()
        self._lock.__exit__()


LOCK = _Compiling()
_LEVEL = 2
programs_made = 0  # in this process; weft.jit.stats tells


def class_of(type: ty.ClassType) -> Any:
    """The runtime class of a class type. All programs share it, so that an object goes from one to
    another. It knows the methods, by which it stands behind interfaces."""
    with LOCK:
        if type.runtime is None or type.told < len(type.methods):
            within = _classes_within(type)
            known = {each.name: each.runtime for each in within if each.runtime is not None}
            made = [each for each in within if each.runtime is None or each is type]
            program = codegen.compile_program([], made, known)
            for each in made:
                each.runtime, each.told = program.class_(each.name), len(each.methods)
        return type.runtime


def _classes_within(type: ty.ClassType) -> list[ty.ClassType]:
    """The classes of the attributes, each before those that hold it."""
    found: dict[int, ty.ClassType] = {}
    seen: set[int] = set()

    def visit(each: ty.Type) -> None:
        if isinstance(each, ty.ClassType):
            if id(each) in seen:
                return
            seen.add(id(each))
            for attribute in each.attributes.values():
                visit(attribute.type)
            found[id(each)] = each
        else:
            for child in each.children:
                visit(child)

    visit(type)
    return list(found.values())


def executable(
    function: Function, classes: Iterable[ty.ClassType] = (), level: int | None = None
) -> Callable[..., Any]:
    """The function, ready to be called with Python objects. `classes` are those whose objects may
    stand behind interfaces. With a `level` of the pipeline calls run its programs from the first
    on.
    """
    return Programs(function, list(classes), level).executable()


class Programs:
    """The programs of a function, each made when it is first needed: one for calls in which no
    gradient can be recorded, because grad mode is off or no argument requires one, and one for
    the others. For the former passes are freer and groups carry no gradient.

    Before them calls take the function as the frontend made it, unless there are loops in a short
    one: the very first call, because many functions are called once and its result is sooner there
    than the optimised program, and, where the function is long, all calls until the passes have run
    beside them.
    """

    def __init__(
        self, function: Function, classes: Iterable[ty.ClassType] = (), level: int | None = None,
        cached: CachedPrograms | None = None,
    ) -> None:  # fmt: skip
        self.function, self.classes, self.cached = function, list(classes), cached
        self.level = _LEVEL if level is None else level
        nodes = _nodes_within(function) if level is None else 0
        self.is_tiered = level is None and (nodes > _VERY_LONG or not _may_repeat(function))
        self.is_tiered &= not quantized.is_within(function, callee)
        self.is_long = self.is_tiered and nodes > _LONG
        self.was_called = False
        self.first: Any = None  # as the frontend made it
        self.optimized: dict[bool, Any] = {}  # by whether gradients may be recorded
        self.jobs: dict[bool, Any] = {}

    def executable(self) -> Callable[..., Any]:
        """The function, ready to be called."""
        run = _C.JitDispatcher(self.choose)
        return _broadcasting(run, self.function) if self.function.lengths else run

    def choose(self, records: bool, is_large: bool) -> tuple[Any, bool]:
        """The program of a call, and whether it is that of all calls like it. `is_large`: the
        arguments are, so that an optimised program is worth waiting for."""
        is_first, self.was_called = not self.was_called, True
        if is_first and self.is_tiered and not is_large:
            return self._unoptimized(), False
        records = records or not self.level or gradients.may_start(self.function.graph)
        if self.is_long and not self._is_ready(records):
            return self._unoptimized(), False
        return self._make(records), True

    def _unoptimized(self) -> Any:
        if self.first is None:
            with LOCK:
                self.first = self._load(0, DEFAULT, FIRST)
        return self.first

    def _make(self, records: bool) -> Any:
        with LOCK:
            if records not in self.optimized:
                kinds = [GRADIENTS] if records else [WITHOUT]
                if gradients.may_start(self.function.graph):
                    kinds = [GRADIENTS, WITHOUT]
                options = DEFAULT if records else INFERENCE
                self.optimized[records] = self._load(self.level, options, *kinds)
            return self.optimized[records]

    def _load(self, level: int, options: Options, *kinds: str) -> Callable[..., Any]:
        # Imported under LOCK: a child of fork would wait for ever for a thread that imports.
        function = self.function
        optimized = _optimized(function, level, options) if level else function
        data = codegen.lower_program([optimized], self.classes, options.gradients)
        encoded = data.encode()  # which brings the last classes
        classes = {type.name: class_of(type) for type in data.tables.classes}
        program = _C.JitProgram(encoded, data.tables.inputs, data.callables, classes)
        if self.cached is not None and not function.lengths:
            for kind in kinds:
                self.cached.save(
                    kind, function.name, encoded, data.tables.inputs,
                    data.callables, data.tables.strings, classes,
                )  # fmt: skip
        run = program.function(optimized.name)
        run._source = lambda: function  # for traces that call it
        global programs_made
        programs_made += 1
        return run

    def _is_ready(self, records: bool) -> bool:
        """Whether the passes have run, or can only run in this thread."""
        if records not in self.jobs:
            self.jobs[records] = compiler.submit(lambda: self._make(records))
        return compiler.is_over(self.jobs[records])


_LONG = 300  # nodes; the passes take some tenths of a second
_VERY_LONG = 4000  # they take seconds, more than loops lose that run as they stand


def _nodes_within(function: Function, known: dict[int, int] | None = None) -> int:
    """How many nodes a function has with those that it calls in the places of the calls."""
    known = {} if known is None else known
    if id(function) not in known:
        known[id(function)] = 0  # should it call itself
        nodes = list(function.graph.walk())
        called = [callee(node) for node in nodes if node.kind in _CALLS]
        known[id(function)] = len(nodes) + sum(_nodes_within(f, known) for f in called if f)
    return known[id(function)]


def _broadcasting(run: Callable[..., Any], function: Function) -> Callable[..., Any]:
    """Gives a function lists where it was given one number for them."""
    names = function.arg_names

    def listed(name: str, value: Any) -> Any:
        takes_one = name in function.lengths and isinstance(value, int | float)
        return [value] * function.lengths[name] if takes_one else value

    def call(*args: Any, **kwargs: Any) -> Any:
        named = {name: listed(name, value) for name, value in kwargs.items()}
        return run(*map(listed, names, args), *args[len(names) :], **named)

    return call


_LOOPS = frozenset({"prim::Loop", "prim::fork"})
_CALLS = frozenset({"prim::CallFunction", "prim::CallMethod"})


# Functions of the library loop over dimensions and layers, and call themselves once; those of the
# prelude loop over any list. In archives the layers have PyTorch's names.
_OWN = ("__torch__.weft.", "__torch__.torch.")
_PRELUDE = "__torch__.weft.jit.frontend.library."
_MANGLED = re.compile(r"\.___torch_mangle_\d+")


def _is_own(name: str) -> bool:
    """Whether a function is the library's, by its name."""
    plain = _MANGLED.sub("", name)
    return plain.startswith(_OWN) and not plain.startswith(_PRELUDE)


def _may_repeat(function: Function, known: dict[int, bool] | None = None) -> bool:
    """Whether a call may run a node again and again."""
    is_own = _is_own(function.name)
    if function.graph.may_have(_LOOPS) and not is_own:
        return True
    if not function.graph.may_have(_CALLS):
        return False
    known = {} if known is None else known
    if id(function) not in known:
        known[id(function)] = not is_own  # should it call itself
        called = [callee(node) for node in function.graph.walk() if node.kind in _CALLS]
        known[id(function)] = any(each is None or _may_repeat(each, known) for each in called)
    return known[id(function)]


def _optimized(function: Function, level: int, options: Options) -> Function:
    native.start()
    return pipeline.optimize(function, level, options, native.compiler.raise_if_stopping)


def stats() -> dict[str, int]:
    """What was compiled in this process so far.

    programs   functions made to run: as they stand for their first call, optimised at the second,
               and once more at the first call with (or without) gradients to record. Never for
               other shapes
    native     fusion groups that have native code, made or found on disk: one per group and dtypes
    failures   fusion groups that could not be compiled and run on their operators' kernels

    >>> import weft
    >>> @weft.jit.script
    ... def double(x):
    ...     return x * 2
    >>> before = weft.jit.stats()["programs"]
    >>> for length in range(1, 100):
    ...     _ = double(weft.ones(length))
    >>> weft.jit.stats()["programs"] - before
    2
    """
    return {
        "programs": programs_made,
        "native": len(compiler.compiled),
        "failures": len(compiler.failures),
    }
